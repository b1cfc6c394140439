//! Figures in the largest unit that leaves a number from 1 up.

/// A latency: `85.3 us`, `12.0 ms`.
pub fn latency(ns: f64) -> String {
    in_units(ns, &[(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")])
}

/// A rate of bytes: `96.1 MB/s`.
pub fn bandwidth(bytes_per_second: f64) -> String {
    in_units(bytes_per_second, &[(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")])
}

/// A rate of requests: `12.3 k IOPS`.
pub fn rate(requests_per_second: f64) -> String {
    in_units(requests_per_second, &[(1e6, "M IOPS"), (1e3, "k IOPS"), (1.0, "IOPS")])
}

/// A relative change in percent, with its sign: `-12.1 %`.
pub fn change(share: f64) -> String {
    format!("{:+.1} %", 100.0 * share)
}

fn in_units(value: f64, units: &[(f64, &str)]) -> String {
    let largest = units.iter().find(|(size, _)| value >= *size).or(units.last());
    let (size, unit) = largest.copied().unwrap_or((1.0, ""));
    let scaled = value / size;
    let digits = match scaled {
        scaled if scaled >= 100.0 => 0,
        scaled if scaled >= 10.0 => 1,
        _ => 2,
    };
    format!("{scaled:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        assert_eq!(latency(85_260.0), "85.3 us");
        assert_eq!(latency(0.0), "0.00 ns");
        assert_eq!(latency(2.5e9), "2.50 s");
        assert_eq!(bandwidth(1.59e9), "1.59 GB/s");
        assert_eq!(bandwidth(999.0), "999 B/s");
        assert_eq!(rate(12_345.0), "12.3 k IOPS");
        assert_eq!(change(-0.1214), "-12.1 %");
    }
}
