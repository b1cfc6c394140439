//! The values of a key that a search may choose from: equal steps from one bound to the other.

use thiserror::Error;
use toml::Value;

/// The most values of a grid: 22 runs find one of them.
const MOST_VALUES: f64 = (1 << 20) as f64;

/// The bounds and the step of a search, as far as they are given.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Span {
    /// The smallest value.
    pub from: Option<f64>,
    /// The largest.
    pub to: Option<f64>,
    /// The distance of two values.
    pub step: Option<f64>,
}

/// Bounds or a step that make no grid.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum GridError {
    /// A bound is missing, and the key has no sensible one.
    #[error("`{key}` has no sensible bounds: give --from and --to")]
    NoBounds {
        /// The key.
        key: String,
    },
    /// The bounds are in the wrong order.
    #[error("the range of `{key}` is empty: --from {from} is not below --to {to}")]
    Empty {
        /// The key.
        key: String,
        /// The lower bound.
        from: f64,
        /// The upper bound.
        to: f64,
    },
    /// A bound is outside the key's own range.
    #[error("`{key}` cannot be {value}: its range is {range}")]
    OutOfRange {
        /// The key.
        key: String,
        /// The bound.
        value: f64,
        /// The key's range, in words.
        range: String,
    },
    /// The key takes whole numbers only.
    #[error("`{key}` is a whole number, and {value} is none")]
    NotWhole {
        /// The key.
        key: String,
        /// The bound or the step.
        value: f64,
    },
    /// The step is not a positive number.
    #[error("the step of `{key}` must be above 0, and is {step}")]
    Step {
        /// The key.
        key: String,
        /// The step.
        step: f64,
    },
    /// There are too many values.
    #[error("{values} values of `{key}` are too many: make --step larger than {step}")]
    TooMany {
        /// The key.
        key: String,
        /// How many.
        values: f64,
        /// The step.
        step: f64,
    },
}

/// Values in equal steps; the last step may be shorter.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    from: f64,
    to: f64,
    step: f64,
    /// Whether values are whole numbers.
    whole: bool,
    count: usize,
}

impl Grid {
    /// The grid of these bounds and step, of the key called `key`.
    pub(super) fn new(
        key: &str,
        [from, to, step]: [f64; 3],
        whole: bool,
    ) -> Result<Grid, GridError> {
        let key = || key.to_owned();
        if whole && let Some(value) = [from, to, step].into_iter().find(|it| it.fract() != 0.0) {
            return Err(GridError::NotWhole { key: key(), value });
        }
        if !(from < to && from.is_finite() && to.is_finite()) {
            return Err(GridError::Empty { key: key(), from, to });
        }
        if !(step > 0.0 && step.is_finite()) {
            return Err(GridError::Step { key: key(), step });
        }
        // A share of a step is rounding, not a value of its own.
        let steps = ((to - from) / step - 1e-9).ceil().max(1.0);
        if steps >= MOST_VALUES {
            return Err(GridError::TooMany { key: key(), values: steps + 1.0, step });
        }
        Ok(Grid { from, to, step, whole, count: steps as usize + 1 })
    }

    /// How many values there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The lowest and the highest value, and the step.
    pub fn span(&self) -> [f64; 3] {
        [self.from, self.to, self.step]
    }

    /// The value at a place, the highest beyond the end.
    pub fn number(&self, place: usize) -> f64 {
        match place + 1 >= self.count {
            true => self.to,
            false => decimal(self.from + self.step * place as f64),
        }
    }

    /// The value at a place, as an experiment's file has it.
    pub fn value(&self, place: usize) -> Value {
        let number = self.number(place);
        if self.whole { Value::Integer(number as i64) } else { Value::Float(number) }
    }
}

/// A sum of decimal fractions without the rounding errors of binary ones: 0.3, not
/// 0.30000000000000004.
pub(super) fn decimal(number: f64) -> f64 {
    format!("{number:.12e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decimal_and_end_at_the_bound() {
        let grid = Grid::new("k", [0.1, 1.05, 0.1], false).unwrap();
        let values: Vec<f64> = (0..grid.count()).map(|place| grid.number(place)).collect();
        assert_eq!(values, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.05]);
        let grid = Grid::new("k", [1.0, 4.0, 1.0], true).unwrap();
        assert_eq!((grid.count(), grid.value(1)), (4, Value::Integer(2)));
    }

    #[test]
    fn what_makes_no_grid_is_named() {
        let problem = |span, whole| Grid::new("size", span, whole).unwrap_err().to_string();
        assert!(problem([1.0, 1.0, 1.0], true).contains("--from 1 is not below --to 1"));
        // The step that follows from an empty range is none.
        assert!(problem([10.0, 10.0, 0.0], false).contains("--from 10 is not below --to 10"));
        assert!(problem([1.0, 9.0, 0.5], true).contains("`size` is a whole number, and 0.5"));
        assert!(problem([1.0, 9.0, 0.0], false).contains("must be above 0"));
        assert!(problem([0.0, 1e9, 0.1], false).contains("too many"));
        assert!(problem([0.0, f64::NAN, 1.0], false).contains("is not below"));
    }
}
