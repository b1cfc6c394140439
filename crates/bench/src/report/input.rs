//! The JSON of benchmarks.

use serde::Deserialize;
use serde_json::{Map, Value};
use softflash_bench::kv::Second;
use softflash_console::CliError;
use softflash_console::measure::LatencySummary;
use std::fs;
use std::path::Path;

/// A file with results.
pub enum Input {
    /// Output of a script.
    Script(Box<Script>),
    /// Output of `bench kv -o json`.
    Kv(Box<Turn>),
}

/// Output of a script.
#[derive(Debug, Deserialize)]
pub struct Script {
    /// Its name.
    pub benchmark: String,
    /// Where it ran.
    pub machine: Machine,
    /// Its figures by name.
    pub results: Map<String, Value>,
    /// What they are of.
    #[serde(default)]
    pub details: Value,
}

/// Where a script ran.
#[derive(Debug, Deserialize)]
pub struct Machine {
    /// Number of cores.
    pub cores: u32,
    /// Version of the kernel.
    pub kernel: String,
}

/// `details` of a script that compares stores by workload.
#[derive(Debug, Deserialize)]
pub struct Comparison {
    /// Its settings.
    #[serde(default)]
    pub settings: Settings,
    /// All turns of all engines.
    pub turns: Vec<Turn>,
}

/// Settings of such a script.
#[derive(Debug, Default, Deserialize)]
pub struct Settings {
    /// What a reader has to know.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// One workload on one engine.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Turn {
    /// Which store, or what else.
    pub engine: String,
    /// The workload.
    pub workload: String,
    /// The distribution of keys.
    pub distribution: String,
    /// Number of keys.
    pub keys: u64,
    /// Bytes of a value.
    pub value_bytes: u64,
    /// Wanted share of the device in percent, if there is a device.
    pub full_percent: Option<f64>,
    /// Actual share of the device.
    pub fullness: Option<f64>,
    /// Why there are no figures.
    pub refused: Option<String>,
    pub operations_per_second: Option<f64>,
    pub bytes_per_second: Option<f64>,
    pub slowest_second_ratio: Option<f64>,
    pub cpu_us_per_operation: Option<f64>,
    pub latency: Option<LatencySummary>,
    pub write_amplification: Option<f64>,
    pub space_used_ratio: Option<f64>,
    pub space_peak_bytes: Option<f64>,
    pub peak_memory_bytes: Option<f64>,
    pub series: Option<Vec<Second>>,
}

impl Input {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Input, CliError> {
        let text = fs::read_to_string(path).map_err(CliError::file(path))?;
        Input::parse(&text).ok_or_else(|| {
            CliError::Usage(format!(
                "{}: not the JSON of a benchmark; make it by a script of bench/ with --json, or by `softflash bench kv -o \
                 json`",
                path.display()
            ))
        })
    }

    /// Scripts print a table before the JSON, unless it is forbidden.
    fn parse(text: &str) -> Option<Input> {
        let last = text.trim_end().lines().last().unwrap_or_default();
        let value: Value =
            serde_json::from_str(text).or_else(|_| serde_json::from_str(last)).ok()?;
        if value.get("benchmark").is_some() {
            return serde_json::from_value(value).ok().map(Input::Script);
        }
        value.get("operations_per_second")?;
        serde_json::from_value(value).ok().map(Input::Kv)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str =
        r#"{"benchmark":"x","machine":{"cores":2,"kernel":"6"},"results":{"a":1.5}}"#;

    #[test]
    fn scripts_are_read_with_and_without_their_table() {
        for text in [SCRIPT.to_owned(), format!("a  1.5\n\n{SCRIPT}\n")] {
            let Some(Input::Script(script)) = Input::parse(&text) else { panic!("{text}") };
            assert_eq!((script.benchmark.as_str(), script.machine.cores), ("x", 2));
            assert_eq!(script.results["a"], 1.5);
        }
    }

    #[test]
    fn a_run_of_kv_is_read_and_anything_else_is_not() {
        let run = r#"{"workload":"get","operations_per_second":5.0,"series":[{"operations":5}]}"#;
        let Some(Input::Kv(run)) = Input::parse(run) else { panic!() };
        assert_eq!(run.series.as_ref().map(Vec::len), Some(1));
        for wrong in ["", "{}", "[1]", "no JSON", r#"{"benchmark":"x"}"#] {
            assert!(Input::parse(wrong).is_none(), "{wrong}");
        }
    }
}
