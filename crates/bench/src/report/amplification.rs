//! Write amplification by fullness, beside theory.

use super::cases::Case;
use softflash_console::sizes::human_bytes;
use softflash_datadir::SUPERBLOCK_BYTES;
use softflash_lab::theory::greedy_waf;
use softflash_report::{Axis, Block, Cell, Plot, Series, Style, Table, Unit};

/// Bytes of a key of the benchmarks.
const KEY_BYTES: u64 = 20;
/// Shares of the device between which theory is drawn, in percent.
const DRAWN: std::ops::RangeInclusive<u32> = 25..=92;

/// How often the values of uniform overwrites are written where they are all that is written and
/// the superblock with the fewest live values is cleaned first: the steady state for values of this
/// size that fill this share of the device.
pub fn theory(value_bytes: u64, fullness: f64) -> f64 {
    let values = SUPERBLOCK_BYTES / (KEY_BYTES + value_bytes).max(1);
    greedy_waf(1.0 / fullness, u32::try_from(values.max(1)).unwrap_or(u32::MAX))
}

/// A measurement on a device.
struct Point {
    value_bytes: u64,
    fullness: f64,
    written: f64,
}

/// Write amplification of the cases that have a device, if it is not always equally full, and for
/// uniform overwrites, of which the theory is, in any case.
pub fn blocks(workload: &str, distribution: &str, cases: &[&Case]) -> Vec<Block> {
    let points: Vec<Point> = cases.iter().filter_map(|case| point(case)).collect();
    let with_theory = workload == "overwrite" && distribution == "uniform";
    let first = cases.iter().find_map(|case| case.first().full_percent);
    let differs =
        cases.iter().any(|case| case.first().full_percent.is_some_and(|p| Some(p) != first));
    if points.is_empty() || !(with_theory || differs) {
        return Vec::new();
    }
    let mut blocks: Vec<Block> = vec![plot(&points, with_theory).into()];
    if with_theory {
        blocks.push(table(&points).into());
    }
    blocks
}

fn point(case: &Case) -> Option<Point> {
    case.first().full_percent?;
    let fullness = case.median(|turn| turn.fullness)?;
    let written = case.median(|turn| turn.write_amplification)?;
    Some(Point { value_bytes: case.first().value_bytes, fullness, written })
}

fn plot(points: &[Point], with_theory: bool) -> Plot {
    let share = Axis::new("keys and values, of the device").unit(Unit::Share);
    let written = Axis::new("bytes written, per byte of the clients").including(1.0);
    let mut plot = Plot::new("Write amplification by fullness", share, written);
    for size in sizes(points) {
        let of_size = points.iter().filter(|point| point.value_bytes == size);
        let mut line: Vec<(f64, f64)> =
            of_size.map(|point| (point.fullness, point.written)).collect();
        line.sort_by(|a, b| a.0.total_cmp(&b.0));
        plot = plot.series(Series::new(format!("values of {}", human_bytes(size)), line));
    }
    if !with_theory {
        return plot;
    }
    for size in sizes(points) {
        let line = DRAWN.map(|percent| f64::from(percent) / 100.0);
        let line: Vec<(f64, f64)> = line.map(|share| (share, theory(size, share))).collect();
        let name = format!("theory, {}", human_bytes(size));
        plot = plot.series(Series::new(name, line).style(Style::Dashed));
    }
    plot.note("Theory: greedy cleaning of superblocks, in which only values are written (finite-block mean field).")
}

fn table(points: &[Point]) -> Table {
    let columns = ["values", "of the device", "measured", "theory", "ratio"];
    let mut table = Table::new("Write amplification of uniform overwrites beside theory", columns);
    for point in points {
        let theory = theory(point.value_bytes, point.fullness);
        table = table.row([
            Cell::number(point.value_bytes as f64).unit(Unit::Bytes),
            Cell::number(point.fullness).unit(Unit::Share),
            Cell::number(point.written),
            Cell::number(theory),
            Cell::number(point.written / theory),
        ]);
    }
    table
}

fn sizes(points: &[Point]) -> Vec<u64> {
    let mut sizes: Vec<u64> = points.iter().map(|point| point.value_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn theory_is_the_greedy_mean_field_of_the_values_of_a_superblock() {
        // 63 values of 128 KiB and 15 of 512 KiB fit with their keys.
        let near =
            |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 0.01, "{found}");
        near(theory(128 << 10, 0.7), 1.83);
        assert!(theory(512 << 10, 0.7) < theory(128 << 10, 0.7));
        assert!(theory(128 << 10, 0.7) < theory(1 << 10, 0.7));
        assert!(theory(128 << 10, 0.7) < theory(128 << 10, 0.8));
        assert!(theory(128 << 10, 0.8) < theory(128 << 10, 0.9));
        assert!(theory(128 << 10, 0.25) < 1.05);
    }
}
