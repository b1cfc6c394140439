//! The figures of a row of an experiment's file: one, or several as the columns of a table.

use super::spec::{Column, Row};
use crate::theory::Law;
use serde::{Deserialize, Deserializer};

impl<'de> Deserialize<'de> for Column {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Column, D::Error> {
        Ok(match Written::deserialize(deserializer)? {
            Written::Name(measure) => {
                Column { measure, name: None, unit: None, theory: None, plot: None, series: None }
            }
            Written::Table { measure, name, unit, theory, plot, series } => {
                Column { measure, name, unit, theory, plot, series }
            }
        })
    }
}

/// A column as a file has it.
#[derive(Deserialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected the name of a measure, or a table with `measure` and `name`, `unit`, \
                 `theory`, `plot`, `series`"
)]
enum Written {
    Name(String),
    Table {
        measure: String,
        #[serde(default)]
        name: Option<String>,
        #[serde(default)]
        unit: Option<String>,
        #[serde(default)]
        theory: Option<Law>,
        #[serde(default)]
        plot: Option<String>,
        #[serde(default)]
        series: Option<String>,
    },
}

/// A figure of a row, and the column that it is in, if it has one.
pub(super) struct Figure {
    /// The title of its column; none for a row of its own.
    pub(super) column: Option<String>,
    pub(super) measure: String,
    pub(super) unit: Option<String>,
    pub(super) theory: Option<Law>,
    pub(super) plot: Option<String>,
    pub(super) series: Option<String>,
}

impl Row {
    /// The figures of the row, in the order of the file.
    ///
    /// # Errors
    /// The word in the file that is wrong, and the problem: a row has either one figure or columns,
    /// and what describes a figure is in the table of its column.
    pub(super) fn figures(&self) -> Result<Vec<Figure>, (&'static str, String)> {
        let label = &self.label;
        match (&self.measure, self.measures.is_empty()) {
            (Some(measure), true) => Ok(vec![Figure {
                column: None,
                measure: measure.clone(),
                unit: self.unit.clone(),
                theory: self.theory,
                plot: self.plot.clone(),
                series: self.series.clone(),
            }]),
            (None, false) => self.columns(),
            (Some(_), false) => {
                let problem = format!("row `{label}`: give `measure` or `measures`, not both");
                Err(("measures", problem))
            }
            (None, true) => {
                let problem = format!(
                    "row `{label}`: `measure` is missing, as measure = \"iops\", or several as \
                     measures = [\"iops\", \"waf\"]"
                );
                Err(("label =", problem))
            }
        }
    }

    fn columns(&self) -> Result<Vec<Figure>, (&'static str, String)> {
        let of_one = [
            ("unit", self.unit.is_some()),
            ("theory", self.theory.is_some()),
            ("plot", self.plot.is_some()),
            ("series", self.series.is_some()),
        ];
        if let Some((key, _)) = of_one.into_iter().find(|(_, given)| *given) {
            let problem = format!(
                "row `{}`: `{key}` belongs to one of its measures: \
                 {{ measure = \"...\", {key} = ... }}",
                self.label
            );
            return Err((key, problem));
        }
        let figure = |column: &Column| Figure {
            column: Some(column.name.clone().unwrap_or_else(|| column.measure.clone())),
            measure: column.measure.clone(),
            unit: column.unit.clone(),
            theory: column.theory,
            plot: column.plot.clone(),
            series: Some(column.series.clone().unwrap_or_else(|| self.label.clone())),
        };
        Ok(self.measures.iter().map(figure).collect())
    }
}
