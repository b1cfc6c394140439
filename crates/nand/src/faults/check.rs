//! Checks of configured numbers.

use crate::config::ConfigError;

/// Success, or the invalid field and its valid values.
pub(super) type Checked = Result<(), ConfigError>;

/// A probability.
pub(super) fn rate(field: &'static str, given: f64) -> Checked {
    holds(field, given, (0.0..=1.0).contains(&given), "a probability, 0 to 1")
}

/// A factor or a weight.
pub(super) fn factor(field: &'static str, given: f64) -> Checked {
    holds(field, given, given >= 0.0 && given.is_finite(), "finite and at least 0")
}

/// Any other condition.
pub(super) fn holds(
    field: &'static str,
    given: impl Into<f64>,
    holds: bool,
    wanted: &'static str,
) -> Checked {
    if holds { Ok(()) } else { Err(ConfigError::Faults { field, given: given.into(), wanted }) }
}
