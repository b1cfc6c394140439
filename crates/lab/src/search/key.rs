//! The key that a search varies: its type, unit, range and sensible bounds.

use super::grid::{Grid, GridError, Span, decimal};
use crate::cell::{Cell, Parameters};
use crate::error::LabError;
use crate::experiment::unknown;
use crate::keys::{self, Key};
use crate::presets::Kind;
use crate::toml_text::suggestion;
use serde_json::Value;

/// Of a number without a natural scale, as many times more and less than the value in the file are
/// sensible.
const FACTOR: f64 = 8.0;

/// Steps between bounds that are given without a step.
const STEPS: f64 = 64.0;

/// A key that is a number.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchedKey {
    /// Its path in an experiment, as `op_percent` or `workload.load.closed.queue_depth`.
    pub path: String,
    /// The unit of its values; empty for a plain count.
    pub unit: &'static str,
    /// Whether it takes whole numbers only.
    pub whole: bool,
    /// Its range, in words.
    range: Option<String>,
    /// Its value in the file.
    present: Option<f64>,
}

impl SearchedKey {
    /// The key at a path, as the experiment's cell has it.
    ///
    /// # Errors
    /// [`LabError::Parameter`] if there is no such key, or if its values have no order.
    pub fn of(cell: &Cell, path: &str) -> Result<SearchedKey, LabError> {
        let key = listed(path).map_err(LabError::Parameter)?;
        let whole = key.what.contains("whole number");
        if !whole && !key.what.contains("number") {
            let what = match key.what.as_str() {
                keys::ONE_OF => "it is one of several words or tables",
                other => &format!("it is a {other}"),
            };
            return Err(LabError::Parameter(format!(
                "`{path}` cannot be searched: {what}, and a search needs a number; vary it with \
                 `vary` in the file instead"
            )));
        }
        Ok(SearchedKey {
            path: path.to_owned(),
            unit: key.unit.unwrap_or_default(),
            whole,
            range: key.range,
            present: present(cell, path),
        })
    }

    /// The last part of its path, as labels have it.
    pub fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or(&self.path)
    }

    /// The values from which a search chooses: those that are given, else sensible ones. Sensible
    /// are 1 to 100 for percent, 0.05 to 1 for shares, and else from an eighth of the value in the
    /// file to eight times as much, inside the key's own range.
    pub fn grid(&self, span: Span) -> Result<Grid, GridError> {
        let sensible = self.sensible();
        let no_bounds = || GridError::NoBounds { key: self.path.clone() };
        let from = span.from.or(sensible.map(|it| it[0])).ok_or_else(no_bounds)?;
        let to = span.to.or(sensible.map(|it| it[1])).ok_or_else(no_bounds)?;
        for value in [from, to] {
            self.check(value)?;
        }
        let given = span.from.is_some() || span.to.is_some();
        let step = match (span.step, sensible) {
            (Some(step), _) => step,
            (None, Some([_, _, step])) if !given || to - from >= FACTOR * step => step,
            // An empty range is refused as such.
            _ => self.rounded((to - from).abs() / STEPS),
        };
        Grid::new(&self.path, [from, to, step], self.whole)
    }

    /// The sensible bounds and step; none where they do not follow from unit or value.
    fn sensible(&self) -> Option<[f64; 3]> {
        let [from, to, step] = match (self.unit, self.present) {
            ("%", _) => [1.0, 100.0, 1.0],
            ("share", _) => [0.05, 1.0, 0.05],
            (_, Some(present)) if present > 0.0 => {
                let least = self.rounded(present / FACTOR);
                [least, self.rounded(present * FACTOR), least]
            }
            _ => return None,
        };
        let (least, most) = self.bounds();
        Some([from.max(least), to.min(most), step])
    }

    /// The nearest value that the key can have and that is no long fraction; at least 1 where it
    /// is whole.
    fn rounded(&self, value: f64) -> f64 {
        if self.whole { value.round().max(1.0) } else { decimal(two_digits(value)) }
    }

    fn check(&self, value: f64) -> Result<(), GridError> {
        let (least, most) = self.bounds();
        match (least..=most).contains(&value) {
            true => Ok(()),
            false => Err(GridError::OutOfRange {
                key: self.path.clone(),
                value,
                range: self.range.clone().unwrap_or_default(),
            }),
        }
    }

    /// The ends of its range, `A to B` or `from A` in words.
    fn bounds(&self) -> (f64, f64) {
        let range = self.range.as_deref().unwrap_or_default();
        let range = range.strip_prefix("from ").unwrap_or(range);
        let (least, most) = range.split_once(" to ").unwrap_or((range, ""));
        (least.parse().unwrap_or(f64::NEG_INFINITY), most.parse().unwrap_or(f64::INFINITY))
    }
}

/// A number with two digits.
fn two_digits(number: f64) -> f64 {
    format!("{number:.1e}").parse().unwrap_or(number)
}

/// The description of the key at a path.
fn listed(path: &str) -> Result<Key, String> {
    let (root, rest) = path.split_once('.').unwrap_or((path, ""));
    let roots = [Kind::Device, Kind::Layout, Kind::Workload];
    let (kind, name) = match roots.into_iter().find(|kind| kind.name() == root) {
        Some(kind) => (kind, rest.to_owned()),
        None if Parameters::NAMES.contains(&path) => {
            (Kind::Experiment, format!("group.set.{path}"))
        }
        None => return Err(unknown(path, root)),
    };
    let all = keys::of(kind);
    let known: Vec<&str> = all.iter().map(|key| key.key.as_str()).collect();
    let hint = suggestion(&name, known.clone());
    all.iter().find(|key| key.key == name).cloned().ok_or_else(|| {
        let kind = kind.name();
        format!("`{path}` is no key of a {kind}; {hint}; `softflash lab keys {kind}` lists them")
    })
}

/// The value of a key in a cell, if it is a number there.
fn present(cell: &Cell, path: &str) -> Option<f64> {
    if path == "op_percent" {
        return Some(cell.op_percent());
    }
    let cell = serde_json::to_value(cell).ok()?;
    let pointer = match path.split_once('.') {
        Some(_) => format!("/{}", path.replace('.', "/")),
        None => format!("/parameters/{path}"),
    };
    cell.pointer(&pointer).and_then(Value::as_f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_in_the_wrong_order_are_refused_as_an_empty_range() {
        for (whole, unit) in [(false, "%"), (true, "")] {
            let key = SearchedKey {
                path: "some.key".to_owned(),
                unit,
                whole,
                range: None,
                present: Some(16.0),
            };
            let grid = |from, to| {
                let span = Span { from: Some(from), to: Some(to), step: None };
                key.grid(span).map(|grid| grid.count()).map_err(|error| error.to_string())
            };
            assert!(grid(10.0, 20.0).is_ok());
            let refused = grid(20.0, 10.0).unwrap_err();
            assert!(refused.contains("--from 20 is not below --to 10"), "{refused}");
        }
    }
}
