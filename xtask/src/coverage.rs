//! `cargo xtask coverage`: line coverage of the crates that protect data.
//!
//! Counts product lines only: no test files, and no test modules at the ends of files.

use crate::Outcome;
use crate::run::{cargo, output, root, run as run_command, target_directory};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The crates with a required coverage.
const JUDGED: [&str; 3] = ["nand", "ftl", "store"];
/// The crates whose tests run: those of `protocol` use the store like clients.
const TESTED: [&str; 4] =
    ["softflash-nand", "softflash-ftl", "softflash-store", "softflash-protocol"];
/// Required coverage in percent.
const LEAST_PERCENT: f64 = 95.0;
/// Number of files to print, those with the most uncovered lines first.
const NAMED: usize = 10;

/// Number of lines, and how many of them were run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Lines {
    run: u64,
    all: u64,
}

impl Lines {
    fn add(&mut self, other: Lines) {
        self.run += other.run;
        self.all += other.all;
    }

    fn percent(self) -> f64 {
        100.0 * self.run as f64 / self.all.max(1) as f64
    }
}

/// Runs the tests with coverage instrumentation and prints the results. Fails if a crate is below
/// the required coverage.
pub fn run() -> Outcome {
    output(cargo().args(["llvm-cov", "--version"])).map_err(|error| {
        format!("{error}\ncargo-llvm-cov is needed: rustup component add llvm-tools && cargo install --locked cargo-llvm-cov")
    })?;
    let report = target_directory()?.join("coverage.lcov");
    let mut command = cargo();
    command.args(["llvm-cov", "test", "--locked", "--no-fail-fast", "--lcov", "--output-path"]);
    command.arg(&report).args(TESTED.iter().flat_map(|package| ["--package", package]));
    run_command(&mut command)?;
    let report =
        fs::read_to_string(&report).map_err(|error| format!("{}: {error}", report.display()))?;
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    verdict(&count(&report, &root(), read))
}

/// Line counts by file, as `crate/file`, from an lcov report. `read` returns a file's text.
fn count(report: &str, root: &Path, read: impl Fn(&str) -> String) -> BTreeMap<String, Lines> {
    let mut files: BTreeMap<String, Lines> = BTreeMap::new();
    let (mut file, mut end) = (None, u64::MAX);
    for line in report.lines() {
        if let Some(path) = line.strip_prefix("SF:") {
            file = name_of(path, root);
            end = if file.is_some() { end_of_product(&read(path)) } else { 0 };
        } else if let (Some(name), Some(data)) = (&file, line.strip_prefix("DA:"))
            && let Some((number, count)) = data.split_once(',')
            && number.parse().is_ok_and(|number: u64| number <= end)
        {
            let run = u64::from(!count.starts_with('0'));
            files.entry(name.clone()).or_default().add(Lines { run, all: 1 });
        }
    }
    files
}

/// `crate/file`, for a file that counts.
fn name_of(path: &str, root: &Path) -> Option<String> {
    let path = Path::new(path).strip_prefix(root.join("crates")).ok()?.to_str()?;
    let (package, file) = path.split_once("/src/")?;
    let is_test =
        file.split(['/', '.']).any(|part| ["tests", "testing", "fuzzing"].contains(&part));
    (JUDGED.contains(&package) && !is_test).then(|| format!("{package}/{file}"))
}

/// The last line before a module of tests in the same file.
fn end_of_product(text: &str) -> u64 {
    let lines: Vec<&str> = text.lines().collect();
    let is_start = |pair: &[&str]| matches!(pair, ["#[cfg(test)]", module] if module.contains("mod ") && module.ends_with('{'));
    lines.windows(2).position(is_start).map_or(u64::MAX, |before| before as u64)
}

/// Prints the crates, and the files with the most uncovered lines.
fn verdict(files: &BTreeMap<String, Lines>) -> Outcome {
    let mut worst: Vec<_> =
        files.iter().map(|(name, lines)| (lines.all - lines.run, name)).collect();
    worst.sort_by(|a, b| b.cmp(a));
    println!("{:<8} {:>8} {:>8} {:>8}", "crate", "lines", "run", "percent");
    let mut short = Vec::new();
    for package in JUDGED {
        let mut lines = Lines::default();
        let of_it = |name: &str| name.split_once('/').is_some_and(|(first, _)| first == package);
        files.iter().filter(|(name, _)| of_it(name)).for_each(|(_, of_file)| lines.add(*of_file));
        println!("{package:<8} {:>8} {:>8} {:>8.2}", lines.all, lines.run, lines.percent());
        if lines.percent() < LEAST_PERCENT {
            short.push(package);
        }
    }
    println!("most uncovered lines:");
    worst.iter().take(NAMED).for_each(|(missing, name)| println!("{missing:>8} {name}"));
    match short.is_empty() {
        true => Ok(()),
        false => Err(format!("below {LEAST_PERCENT} %: {}", short.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_tests_and_of_other_crates_do_not_count() {
        let report = "\
SF:/p/crates/ftl/src/map.rs\nDA:1,5\nDA:2,0\nDA:4,9\nend_of_record
SF:/p/crates/ftl/src/map/tests.rs\nDA:1,5\nend_of_record
SF:/p/crates/cli/src/main.rs\nDA:1,0\nend_of_record";
        let text = "fn a() {}\nfn b() {}\n#[cfg(test)]\nmod tests {\n}\n";
        let files = count(report, Path::new("/p"), |_| text.to_owned());
        let expected = BTreeMap::from([("ftl/map.rs".to_owned(), Lines { run: 1, all: 2 })]);
        assert_eq!(files, expected);
    }

    #[test]
    fn a_crate_with_too_few_lines_run_is_named() {
        let files = BTreeMap::from([
            ("nand/a.rs".to_owned(), Lines { run: 96, all: 100 }),
            ("ftl/a.rs".to_owned(), Lines { run: 94, all: 100 }),
            ("store/a.rs".to_owned(), Lines { run: 95, all: 100 }),
        ]);
        assert_eq!(verdict(&files), Err("below 95 %: ftl".to_owned()));
    }
}
