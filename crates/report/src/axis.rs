//! An axis.

use crate::unit::Unit;

/// How values become places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Scaling {
    #[default]
    Linear,
    /// Logarithmic, with marks at powers of 2.
    Log2,
    /// Logarithmic, with marks at powers of 10.
    Log10,
}

/// An axis of a figure: its title, unit and scale. Its range follows from the data.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Axis {
    pub(crate) title: String,
    pub(crate) unit: Unit,
    pub(crate) scaling: Scaling,
    pub(crate) including: Vec<f64>,
}

impl Axis {
    /// A linear axis.
    pub fn new(title: impl Into<String>) -> Axis {
        Axis { title: title.into(), ..Axis::default() }
    }

    /// The unit of its values.
    #[must_use]
    pub fn unit(mut self, unit: impl Into<Unit>) -> Axis {
        self.unit = unit.into();
        self
    }

    /// Makes the scale logarithmic, marked at powers of 10.
    #[must_use]
    pub fn log10(mut self) -> Axis {
        self.scaling = Scaling::Log10;
        self
    }

    /// Makes the scale logarithmic, marked at powers of 2.
    #[must_use]
    pub fn log2(mut self) -> Axis {
        self.scaling = Scaling::Log2;
        self
    }

    /// Stretches the range until it has this value in it.
    #[must_use]
    pub fn including(mut self, value: f64) -> Axis {
        self.including.push(value);
        self
    }
}
