//! A flow in the arguments: `NAME=WORKLOAD[,KEY=VALUE]...`.

use softflash_console::CliError;
use softflash_lab::experiment::{Assignment, Tables};
use softflash_lab::presets::Kind;
use softflash_lab::{Flow, Workload, toml_text};
use std::convert::Infallible;
use std::str::FromStr;
use toml::Value;

/// A flow: its name, the preset or file of its requests, and changed keys of it.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedFlow {
    text: String,
}

/// Limits of a run, which those of a preset are not for its flow.
const LIMITS: [&str; 2] = ["requests", "duration_ns"];

impl FromStr for NamedFlow {
    type Err = Infallible;

    // The errors need the presets, which are read later.
    fn from_str(text: &str) -> Result<NamedFlow, Infallible> {
        Ok(NamedFlow { text: text.to_owned() })
    }
}

impl NamedFlow {
    /// The flow.
    pub fn flow(&self) -> Result<Flow, CliError> {
        let wrong = |problem: String| CliError::Usage(format!("--flow {}: {problem}", self.text));
        let form = || wrong("write NAME=WORKLOAD[,KEY=VALUE]..., as reader=random-read-8k".into());
        let (name, rest) = self.text.split_once('=').ok_or_else(form)?;
        let (workload, changes) = rest.split_once(',').unwrap_or((rest, ""));
        if name.is_empty() || workload.is_empty() {
            return Err(form());
        }
        let document = Kind::Workload.find(workload)?;
        if !matches!(document.workload()?, Workload::Block(_)) {
            return Err(wrong(format!(
                "`{workload}` is no workload of one block client; give it to --workload"
            )));
        }
        let mut tables = Tables { workload: document.table.clone(), ..Tables::default() };
        LIMITS.iter().for_each(|limit| _ = tables.workload.remove(*limit));
        tables.workload.remove("kind");
        tables.workload.insert("name".to_owned(), Value::String(name.to_owned()));
        for change in parts(changes) {
            let (key, value) = change.split_once('=').ok_or_else(form)?;
            let path = format!("workload.{}", key.trim());
            tables.set(&Assignment { path, value: value_of(value) }).map_err(wrong)?;
        }
        let text = toml::to_string(&tables.workload).map_err(|error| wrong(error.to_string()))?;
        toml_text::from_text(name, &text).map_err(|error| wrong(error.problem))
    }
}

/// The changes: commas in brackets or braces belong to a value.
fn parts(changes: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut begin) = (Vec::new(), 0, 0);
    for (at, letter) in changes.char_indices() {
        match letter {
            '[' | '{' => depth += 1,
            ']' | '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.extend(changes.get(begin..at));
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(changes.get(begin..).filter(|rest| !rest.is_empty()));
    parts
}

/// A value of TOML; any other text is a text, as `sequential`.
fn value_of(text: &str) -> Value {
    let parsed = format!("value = {text}").parse::<toml::Table>().ok();
    let value = parsed.and_then(|mut table| table.remove("value"));
    value.unwrap_or_else(|| Value::String(text.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(text: &str) -> Result<Flow, String> {
        text.parse::<NamedFlow>().unwrap().flow().map_err(|error| error.to_string())
    }

    fn written(text: &str) -> String {
        toml::to_string(&flow(text).unwrap()).unwrap()
    }

    #[test]
    fn a_flow_is_its_workload_with_the_changes() {
        let changed = written("w=random-write-8k,span.share=0.5,copies=3,pattern=sequential");
        for part in ["name = \"w\"", "share = 0.5", "copies = 3", "[pattern.sequential]"] {
            assert!(changed.contains(part), "{part}: {changed}");
        }
        let zipf =
            written("z=random-write-8k,pattern={ zipf = { exponent = 0.9, scattered = true } }");
        assert!(zipf.contains("exponent = 0.9") && zipf.contains("scattered = true"), "{zipf}");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("reader", "write NAME=WORKLOAD"),
            ("=random-read-8k", "write NAME=WORKLOAD"),
            ("a=random-read-8k,size", "write NAME=WORKLOAD"),
            ("a=random-raed-8k", "the nearest known one is `random-read-8k`"),
            (
                "a=random-read-8k,spna.share=1",
                "unknown key `spna`; the nearest known one is `span`",
            ),
            ("a=random-read-8k,size=big", "size"),
        ] {
            let error = flow(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
