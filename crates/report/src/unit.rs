//! Units of numbers.

use crate::number;

/// The unit of a number, which decides how it is written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Unit {
    /// None: a plain number.
    #[default]
    None,
    /// A unit that is written behind the number as it is.
    Named(String),
    /// Bytes, written as B, KiB, MiB and so on.
    Bytes,
    /// Nanoseconds, written as ns, µs, ms or s.
    Nanoseconds,
    /// A share, 1 being the whole, written in percent.
    Share,
}

impl From<&str> for Unit {
    fn from(name: &str) -> Unit {
        Unit::Named(name.to_string())
    }
}

impl From<String> for Unit {
    fn from(name: String) -> Unit {
        Unit::Named(name)
    }
}

const BYTES: [(f64, &str); 7] = [
    (1.0, "B"),
    (1024.0, "KiB"),
    (1048576.0, "MiB"),
    (1073741824.0, "GiB"),
    (1099511627776.0, "TiB"),
    (1125899906842624.0, "PiB"),
    (1152921504606846976.0, "EiB"),
];
const NANOSECONDS: [(f64, &str); 4] = [(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")];

impl Unit {
    /// The divisor of the unit, and its name, for values about as large as `magnitude`.
    pub(crate) fn prefix(&self, magnitude: f64) -> (f64, &str) {
        let largest = |table: &'static [(f64, &'static str)]| {
            let fits = table.iter().rev().find(|(size, _)| magnitude.abs() >= *size);
            fits.or(table.first()).copied().unwrap_or((1.0, ""))
        };
        match self {
            Unit::None => (1.0, ""),
            Unit::Named(name) => (1.0, name),
            Unit::Bytes => largest(&BYTES),
            Unit::Nanoseconds => largest(&NANOSECONDS),
            Unit::Share => (0.01, "%"),
        }
    }

    /// A number to so many significant digits, with its unit.
    pub(crate) fn write(&self, value: f64, digits: usize) -> String {
        self.with(value, |value| number::significant(value, digits))
    }

    /// As [`Unit::write`], without zeros at the end.
    pub(crate) fn write_trimmed(&self, value: f64, digits: usize) -> String {
        self.with(value, |value| number::trimmed(value, digits))
    }

    fn with(&self, value: f64, write: impl Fn(f64) -> String) -> String {
        if !value.is_finite() {
            return number::NONE.to_string();
        }
        let (size, name) = self.prefix(value);
        // A space that does not break: a number and its unit stay together.
        let gap = if name.is_empty() { "" } else { "\u{a0}" };
        format!("{}{gap}{name}", write(value / size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_follow_the_size() {
        let cases = [
            (Unit::Bytes, 8192.0, "8\u{a0}KiB"),
            (Unit::Bytes, 0.0, "0\u{a0}B"),
            (Unit::Nanoseconds, 1_500_000.0, "1.5\u{a0}ms"),
            (Unit::Nanoseconds, -2000.0, "−2\u{a0}µs"),
            (Unit::Share, 0.985, "98.5\u{a0}%"),
            (Unit::from("MB/s"), 1590.0, "1,590\u{a0}MB/s"),
            (Unit::None, 3.0, "3"),
            (Unit::Bytes, f64::NAN, "–"),
        ];
        for (unit, value, expected) in cases {
            assert_eq!(unit.write_trimmed(value, 4), expected);
        }
    }
}
