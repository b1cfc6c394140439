//! The rows of an experiment: our figures and the published ones.

use super::columns::{ColumnTable, TableColumn, TableValue};
use super::spread::{Spread, mean_and_spread};
use super::warnings;
use super::{Directory, write_atomically, write_json};
use crate::error::LabError;
use crate::experiment::{Bound, Place, Plan, PlannedRow, Plot, Published};
use crate::outcome::Outcome;
use serde::{Deserialize, Serialize};

/// Differences below this are rounding errors.
const ROUNDING: f64 = 1e-9;

/// All rows of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentResult {
    /// Its name.
    pub experiment: String,
    /// Its title.
    pub title: String,
    /// Where the published figures are from.
    pub source: String,
    /// The text for readers.
    pub text: String,
    /// Whether it was the short form.
    pub quick: bool,
    /// The seed of everything random.
    pub seed: u64,
    /// Runs of each cell with different seeds.
    #[serde(default = "one_run")]
    pub replicates: u32,
    /// The rows.
    pub rows: Vec<ResultRow>,
    /// The figures of rows with several measures, by cell and measure.
    #[serde(default, skip_serializing_if = "ColumnTable::is_empty")]
    pub table: ColumnTable,
    /// The runs that drift, were not settled, or did not keep up.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// How they are drawn.
    pub plots: Vec<Plot>,
    /// Every run, by the key of its file.
    pub cells: Vec<String>,
}

/// A row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultRow {
    /// Its label.
    pub label: String,
    /// Whether its figure is in the table of columns.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_table: bool,
    /// The name of its figures for readers; empty for a derived row.
    #[serde(default)]
    pub figure: String,
    /// The unit of its figures.
    pub unit: String,
    /// The published figure.
    pub paper: Option<f64>,
    /// The kind of bound, if the published figure is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Bound>,
    /// The value of theory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theory: Option<f64>,
    /// Ours; the mean of the replicates.
    pub ours: f64,
    /// How far the replicates spread, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// Ours divided by the published figure, or else by the value of theory.
    pub ratio: Option<f64>,
    /// How far the ratio may be from 1; bounds have no tolerance.
    pub tolerance: f64,
    /// Whether the ratio is in the tolerance, or ours respects the bound.
    pub agrees: Option<bool>,
    /// The run of the row, the first of its replicates; none for derived rows.
    pub cell: Option<String>,
    /// Where it is drawn.
    pub point: Option<ResultPoint>,
}

/// A point of a plot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResultPoint {
    /// The plot.
    pub plot: String,
    /// The line.
    pub series: String,
    /// Where along the x axis.
    pub x: f64,
}

impl ExperimentResult {
    /// The rows of a plan, from the outcomes of its cells in their order.
    pub fn new(plan: &Plan, outcomes: &[Outcome]) -> Result<ExperimentResult, LabError> {
        let failed = |problem| LabError::Simulation(format!("{}: {problem}", plan.name));
        let figures = (0..plan.replicates as usize)
            .map(|replicate| figures(plan, outcomes, replicate).map_err(failed))
            .collect::<Result<Vec<Vec<f64>>, LabError>>()?;
        let mut rows = Vec::with_capacity(plan.rows.len() + plan.derived.len());
        let mut table = ColumnTable::default();
        for (index, row) in plan.rows.iter().enumerate() {
            let of_row: Vec<f64> =
                figures.iter().filter_map(|all| all.get(index)).copied().collect();
            let cell = plan.cells.get(row.cell).map(|cell| cell.key.clone());
            let point = row.point.as_ref().map(|point| ResultPoint {
                plot: point.plot.clone(),
                series: point.series.clone(),
                x: point.x,
            });
            let result = result_row(plan, &row.label, &row.unit, &of_row, row.theory);
            if let Some(Place { row: label, column }) = &row.place {
                let column = TableColumn { name: column.clone(), unit: row.unit.clone() };
                let value = TableValue { ours: result.ours, spread: result.spread };
                table.add(label, column, value);
            }
            let (figure, in_table) = (row.measure.words(), row.place.is_some());
            rows.push(ResultRow { figure, in_table, cell, point, ..result });
        }
        for derived in &plan.derived {
            let of_row: Result<Vec<f64>, String> =
                figures.iter().map(|all| derived.of(&plan.rows, all)).collect();
            let of_row = of_row.map_err(failed)?;
            rows.push(result_row(plan, &derived.label, &derived.unit, &of_row, None));
        }
        Ok(ExperimentResult {
            experiment: plan.name.clone(),
            title: plan.title.clone(),
            source: plan.source.clone(),
            text: plan.text.clone(),
            quick: plan.quick,
            seed: plan.seed,
            replicates: plan.replicates,
            rows,
            table,
            warnings: warnings::of_plan(plan, outcomes),
            plots: plan.plots.clone(),
            cells: plan.cells.iter().map(|cell| cell.key.clone()).collect(),
        })
    }

    /// Writes the files: `result.json`, `result.csv`, and `table.csv` if there are columns.
    pub fn write(&self, directory: &Directory) -> Result<(), LabError> {
        write_json(&directory.json(), self)?;
        if !self.table.is_empty() {
            write_atomically(&directory.table(), self.table.csv().as_bytes())?;
        }
        write_atomically(&directory.csv(), self.csv().as_bytes())
    }

    /// The rows as CSV, with the header `label,unit,paper,ours,ratio,theory,stddev,ci95`.
    pub fn csv(&self) -> String {
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        let mut text = String::from("label,unit,paper,ours,ratio,theory,stddev,ci95\n");
        for row in &self.rows {
            let fields = [
                quoted(&row.label),
                quoted(&row.unit),
                number(row.paper),
                row.ours.to_string(),
                number(row.ratio),
                number(row.theory),
                number(row.spread.map(|spread| spread.stddev)),
                number(row.spread.map(|spread| spread.ci95)),
            ];
            text += &fields.join(",");
            text.push('\n');
        }
        text
    }
}

impl ResultRow {
    /// The reference of ours: the published figure, or else the value of theory.
    pub fn reference(&self) -> Option<f64> {
        self.paper.or(self.theory)
    }

    /// Whether the list of figures shows it: a figure of the table of columns only where it has
    /// something to be compared with.
    pub fn is_listed(&self) -> bool {
        !self.in_table || self.reference().is_some()
    }
}

/// The figures of all rows in one of the replicates.
fn figures(plan: &Plan, outcomes: &[Outcome], replicate: usize) -> Result<Vec<f64>, String> {
    let figure = |row: &PlannedRow| {
        let outcome = outcomes.get(row.cell + replicate).ok_or("a run is missing")?;
        row.measure.of(outcome).map_err(|problem| format!("`{}`: {problem}", row.label))
    };
    plan.rows.iter().map(figure).collect()
}

fn result_row(
    plan: &Plan,
    label: &str,
    unit: &str,
    figures: &[f64],
    theory: Option<f64>,
) -> ResultRow {
    let (ours, spread) = mean_and_spread(figures);
    let published = plan.paper.get(label).copied();
    let (paper, bound) = (published.map(Published::value), published.and_then(Published::bound));
    let tolerance = plan.tolerance(label);
    let ratio =
        paper.or(theory).filter(|reference| *reference != 0.0).map(|reference| ours / reference);
    let agrees = match (bound, paper) {
        (Some(bound), Some(paper)) => Some(bound.holds(ours, paper)),
        _ => ratio.map(|ratio| (ratio - 1.0).abs() <= tolerance + ROUNDING),
    };
    ResultRow {
        label: label.to_owned(),
        in_table: false,
        figure: String::new(),
        unit: unit.to_owned(),
        paper,
        bound,
        theory,
        ours,
        spread,
        ratio,
        tolerance,
        agrees,
        cell: None,
        point: None,
    }
}

fn one_run() -> u32 {
    1
}

/// A field of CSV, in quotes where it needs them.
pub(super) fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
