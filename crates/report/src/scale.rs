//! From values to places: ranges and ticks.

use crate::axis::{Axis, Scaling};
use crate::number;

/// Values further from zero cannot be drawn: differences between them would overflow.
const LARGEST: f64 = 1e300;
/// A range narrower than this part of its values is shown from zero: its ticks would all read the
/// same.
const NARROWEST: f64 = 1e-6;
/// Below this part of the largest value the smallest is near enough to zero for the axis to begin
/// there.
const NEAR_ZERO: f64 = 0.3;

/// A mark on an axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    pub(crate) label: String,
}

/// A range of values with its ticks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    scaling: Scaling,
    low: f64,
    high: f64,
    pub(crate) ticks: Vec<Tick>,
    /// The label of the axis, with the unit where the ticks do not say it.
    pub(crate) title: String,
}

/// Whether a range ends with the data or with the next tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    AtData,
    AtTicks,
}

impl Scale {
    /// The range of the values that can be drawn, with about `most` ticks.
    pub(crate) fn fit(
        axis: &Axis,
        values: impl Iterator<Item = f64>,
        ends: Ends,
        most: usize,
    ) -> Scale {
        let mut range: Option<(f64, f64)> = None;
        let drawable = values.chain(axis.including.iter().copied());
        for value in drawable.filter(|value| can_draw(axis.scaling, *value)) {
            let (low, high) = range.unwrap_or((value, value));
            range = Some((low.min(value), high.max(value)));
        }
        match axis.scaling {
            Scaling::Linear => linear(axis, range, ends, most.max(2)),
            Scaling::Log2 => logarithmic(axis, range, ends, most.max(2), &powers_of_2),
            Scaling::Log10 => logarithmic(axis, range, ends, most.max(2), &powers_of_10),
        }
    }

    /// Where a value is between the beginning (0) and the end (1) of the range; `None` where it
    /// cannot be drawn.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        if !can_draw(self.scaling, value) {
            return None;
        }
        let [low, high, value] = match self.scaling {
            Scaling::Linear => [self.low, self.high, value],
            _ => [self.low.log2(), self.high.log2(), value.log2()],
        };
        Some(((value - low) / (high - low)).clamp(0.0, 1.0))
    }

    /// The ticks with their places.
    pub(crate) fn places(&self) -> impl Iterator<Item = (f64, &str)> {
        self.ticks.iter().filter_map(|tick| Some((self.place(tick.value)?, tick.label.as_str())))
    }
}

fn can_draw(scaling: Scaling, value: f64) -> bool {
    match scaling {
        Scaling::Linear => value.abs() <= LARGEST,
        _ => (1.0 / LARGEST..=LARGEST).contains(&value),
    }
}

fn linear(axis: &Axis, range: Option<(f64, f64)>, ends: Ends, most: usize) -> Scale {
    let (mut low, mut high) = range.unwrap_or((0.0, 1.0));
    let magnitude = low.abs().max(high.abs());
    let narrow = high - low <= magnitude * NARROWEST;
    if low > 0.0 && (narrow || low < high * NEAR_ZERO) {
        low = 0.0;
    }
    if high < 0.0 && (narrow || high > low * NEAR_ZERO) {
        high = 0.0;
    }
    if high - low < 1.0 / LARGEST {
        (low, high) = (0.0, 1.0);
    }
    let (size, name) = axis.unit.prefix(low.abs().max(high.abs()));
    let (step, decimals) = step((high - low) / size / most as f64);
    // Forgives the last bit, so that 0.3 is the third tenth.
    let (first, last) = match ends {
        Ends::AtTicks => ((low / size / step + 1e-9).floor(), (high / size / step - 1e-9).ceil()),
        Ends::AtData => ((low / size / step - 1e-9).ceil(), (high / size / step + 1e-9).floor()),
    };
    if ends == Ends::AtTicks {
        (low, high) = (first * step * size, last * step * size);
    }
    let count = (last - first).clamp(0.0, 100.0) as usize;
    let ticks = (0..=count).map(|index| {
        let value = (first + index as f64) * step;
        Tick { value: value * size, label: label(value, decimals) }
    });
    let ticks = ticks.collect();
    let title = match name {
        "" => axis.title.clone(),
        name => format!("{} ({name})", axis.title),
    };
    Scale { scaling: axis.scaling, low, high, ticks, title }
}

fn label(value: f64, decimals: i32) -> String {
    // Beyond this, places say less than an exponent.
    if decimals > 6 || value.abs() >= 1e15 {
        return number::trimmed(value, 4);
    }
    number::fixed(value, decimals.max(0) as usize)
}

/// The smallest of 1, 2, 5, 10, … that is not below `rough`, and the decimals it needs.
fn step(rough: f64) -> (f64, i32) {
    let exponent = rough.log10().floor();
    let power = 10_f64.powf(exponent);
    for (factor, carry) in [(1.0, 0), (2.0, 0), (5.0, 0), (10.0, 1)] {
        if factor * power >= rough * (1.0 - 1e-9) {
            return (factor * power, -(exponent as i32 + carry));
        }
    }
    (10.0 * power, -(exponent as i32 + 1))
}

fn logarithmic(
    axis: &Axis,
    range: Option<(f64, f64)>,
    ends: Ends,
    most: usize,
    candidates: &dyn Fn(f64, f64, usize) -> Vec<f64>,
) -> Scale {
    let (mut low, mut high) = range.unwrap_or((1.0, 10.0));
    if high / low < 1.5 {
        (low, high) = (low / 2.0, high * 2.0);
    }
    let (below, above) = (1.0 - 1e-9, 1.0 + 1e-9);
    let all = candidates(low, high, most);
    if ends == Ends::AtTicks {
        low = all.iter().copied().rfind(|tick| *tick <= low * above).unwrap_or(low);
        high = all.iter().copied().find(|tick| *tick >= high * below).unwrap_or(high);
    }
    let ticks = all
        .into_iter()
        .filter(|tick| (low * below..=high * above).contains(tick))
        .map(|value| Tick { value, label: axis.unit.write_trimmed(value, 4) })
        .collect();
    Scale { scaling: axis.scaling, low, high, ticks, title: axis.title.clone() }
}

fn powers_of_2(low: f64, high: f64, most: usize) -> Vec<f64> {
    let (first, last) = (low.log2().floor() as i32, high.log2().ceil() as i32);
    let stride = stride(last - first, most);
    // Multiples of the stride, so that equal ranges have equal ticks.
    (first.div_euclid(stride)..=last.div_euclid(stride) + 1)
        .map(|index| 2_f64.powi(index * stride))
        .collect()
}

fn powers_of_10(low: f64, high: f64, most: usize) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let stride = stride(last - first, most);
    let factors: &[f64] = if last - first <= 2 && most >= 6 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    (first.div_euclid(stride)..=last.div_euclid(stride) + 1)
        .flat_map(|index| factors.iter().map(move |factor| factor * 10_f64.powi(index * stride)))
        .collect()
}

fn stride(exponents: i32, most: usize) -> i32 {
    (exponents as f64 / most as f64).ceil().max(1.0) as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::Unit;

    fn labels(axis: &Axis, values: &[f64], ends: Ends) -> Vec<String> {
        let scale = Scale::fit(axis, values.iter().copied(), ends, 6);
        scale.ticks.into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn steps_are_1_2_and_5() {
        for (rough, expected) in [(0.03, 0.05), (0.1, 0.1), (1.2, 2.0), (6.0, 10.0), (250.0, 500.0)]
        {
            assert!((step(rough).0 - expected).abs() < 1e-12, "{rough} gives {}", step(rough).0);
        }
    }

    #[test]
    fn linear_ticks() {
        let axis = Axis::new("x");
        assert_eq!(
            labels(&axis, &[0.0, 1.0], Ends::AtTicks),
            ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        );
        assert_eq!(
            labels(&axis, &[100.0, 2900.0], Ends::AtTicks),
            ["0", "500", "1,000", "1,500", "2,000", "2,500", "3,000"]
        );
        assert_eq!(
            labels(&axis, &[0.95, 1.04], Ends::AtData),
            ["0.96", "0.98", "1.00", "1.02", "1.04"]
        );
        assert_eq!(
            labels(&axis, &[-1.0, 1.0], Ends::AtTicks),
            ["−1.0", "−0.5", "0.0", "0.5", "1.0"]
        );
    }

    #[test]
    fn the_unit_of_a_linear_axis_is_in_its_title() {
        let axis = Axis::new("latency").unit(Unit::Nanoseconds);
        let scale = Scale::fit(&axis, [0.0, 4e6].into_iter(), Ends::AtTicks, 4);
        assert_eq!(scale.title, "latency (ms)");
        assert_eq!(
            scale.ticks.iter().map(|tick| tick.label.as_str()).collect::<Vec<_>>(),
            ["0", "1", "2", "3", "4"]
        );
    }

    #[test]
    fn logarithmic_ticks() {
        let bytes = Axis::new("size").unit(Unit::Bytes).log2();
        assert_eq!(
            labels(&bytes, &[8192.0, 65536.0], Ends::AtData),
            ["8\u{a0}KiB", "16\u{a0}KiB", "32\u{a0}KiB", "64\u{a0}KiB"]
        );
        let latency = Axis::new("latency").unit(Unit::Nanoseconds).log10();
        assert_eq!(
            labels(&latency, &[3e4, 2e7], Ends::AtTicks),
            ["10\u{a0}µs", "100\u{a0}µs", "1\u{a0}ms", "10\u{a0}ms", "100\u{a0}ms"]
        );
        assert_eq!(
            labels(&Axis::new("x").log10(), &[1.0, 40.0], Ends::AtTicks),
            ["1", "2", "5", "10", "20", "50"]
        );
    }

    #[test]
    fn what_cannot_be_drawn_has_no_place() {
        let log =
            Scale::fit(&Axis::new("x").log10(), [1.0, 100.0, -3.0].into_iter(), Ends::AtData, 5);
        assert_eq!([log.place(0.0), log.place(-1.0), log.place(f64::NAN)], [None; 3]);
        assert_eq!(log.place(10.0), Some(0.5));
        let linear = Scale::fit(&Axis::new("x"), [f64::NAN].into_iter(), Ends::AtData, 5);
        assert_eq!(linear.place(f64::INFINITY), None);
        assert_eq!(linear.place(0.25), Some(0.25));
    }

    #[test]
    fn ranges_of_one_value_are_ranges() {
        for axis in [Axis::new("x"), Axis::new("x").log2(), Axis::new("x").log10()] {
            for value in [1e-200, 1.0, 7.0, 1e200] {
                let scale = Scale::fit(&axis, [value].into_iter(), Ends::AtTicks, 5);
                assert!(scale.place(value).is_some_and(f64::is_finite), "{axis:?} {value}");
                assert!(scale.ticks.len() >= 2, "{axis:?} {value}: {:?}", scale.ticks);
            }
        }
    }
}
