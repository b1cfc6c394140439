//! The plan of an experiment: cells, and rows of their figures.

use super::derive::Derivation;
use super::expand::expand;
use super::published::Published;
use super::{Experiment, spec};
use crate::cell::Cell;
use crate::error::LabError;
use crate::measure::Measure;
use crate::toml_text::suggestion;
use std::collections::{BTreeMap, BTreeSet};

/// The most runs of a cell with different seeds.
const MOST_REPLICATES: u32 = 1000;

/// The form of an experiment: complete or short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Form {
    /// Whether it is the short form.
    pub quick: bool,
    /// The seed in place of the experiment's own.
    pub seed: Option<u64>,
}

/// Everything that an experiment runs and prints, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The experiment's name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Where the published figures are from.
    pub source: String,
    /// The text for readers.
    pub text: String,
    /// Whether it is the short form.
    pub quick: bool,
    /// The seed from which all others are derived.
    pub seed: u64,
    /// Runs of each cell with different seeds.
    pub replicates: u32,
    /// The runs; the replicates of a cell follow each other.
    pub cells: Vec<Cell>,
    /// Their rows.
    pub rows: Vec<PlannedRow>,
    /// The rows that are calculated from rows.
    pub derived: Vec<Derivation>,
    /// How rows are drawn.
    pub plots: Vec<spec::Plot>,
    /// What was changed or left out of the files of other programs.
    pub remarks: Vec<String>,
    /// Published figures.
    pub paper: BTreeMap<String, Published>,
    tolerance: f64,
    tolerances: BTreeMap<String, f64>,
}

/// A row before its cell has run.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedRow {
    /// Its label; no two rows have the same.
    pub label: String,
    /// The column of a table that its figure is in, if it has one.
    pub place: Option<Place>,
    /// The unit of its figure.
    pub unit: String,
    /// The figure.
    pub measure: Measure,
    /// The value of theory that it is compared with.
    pub theory: Option<f64>,
    /// The index of its cell; of its first replicate if there are several.
    pub cell: usize,
    /// Where it is drawn.
    pub point: Option<Point>,
}

/// The place of a figure in a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The label of the table's row.
    pub row: String,
    /// The title of the column.
    pub column: String,
}

/// A point of a plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The plot.
    pub plot: String,
    /// The line.
    pub series: String,
    /// Where along the x axis.
    pub x: f64,
}

impl Experiment {
    /// Plans all cells and rows, and checks that the published figures and tolerances of the file
    /// belong to rows.
    pub fn plan(&self, form: Form) -> Result<Plan, LabError> {
        let mut plan = self.expanded(form)?;
        for derived in &self.spec.derived {
            match Derivation::plan(derived, &plan.rows) {
                Ok(derivation) => plan.derived.push(derivation),
                // The short form may leave out the rows that it is calculated from.
                Err(_) if form.quick => {}
                Err(problem) => return Err(self.wrong("derived", problem)),
            }
        }
        self.check(&plan, form)?;
        Ok(plan)
    }

    /// The cells and rows of all groups, unchecked.
    pub(super) fn expanded(&self, form: Form) -> Result<Plan, LabError> {
        let spec = &self.spec;
        let seed = form.seed.unwrap_or(spec.seed);
        let mut plan = Plan {
            name: self.name.clone(),
            title: spec.title.clone(),
            source: spec.source.clone(),
            text: spec.text.clone(),
            quick: form.quick,
            seed,
            replicates: self.replicates()?,
            cells: Vec::new(),
            rows: Vec::new(),
            derived: Vec::new(),
            plots: spec.plots.clone(),
            remarks: Vec::new(),
            paper: spec.paper.clone(),
            tolerance: spec.tolerance,
            tolerances: spec.tolerances.clone(),
        };
        for (number, group) in spec.groups.iter().enumerate() {
            expand(self, number, group, form.quick, &mut plan)?;
        }
        Ok(plan)
    }

    fn replicates(&self) -> Result<u32, LabError> {
        match self.spec.replicates {
            replicates @ 1..=MOST_REPLICATES => Ok(replicates),
            other => {
                let problem = format!("replicates = {other}; it must be 1 to {MOST_REPLICATES}");
                Err(self.wrong("replicates", problem))
            }
        }
    }

    fn check(&self, plan: &Plan, form: Form) -> Result<(), LabError> {
        let mut labels = BTreeSet::new();
        for label in plan.labels() {
            if !labels.insert(label) {
                let problem = format!(
                    "two rows are labelled `{label}`; add the field that differs to the label"
                );
                return Err(self.wrong("label =", problem));
            }
        }
        // The quick form has fewer rows, so published figures may have no row.
        if form.quick {
            return Ok(());
        }
        for label in plan.paper.keys().chain(plan.tolerances.keys()) {
            if !labels.contains(label.as_str()) {
                let known = labels.iter().copied();
                let problem = format!("no row is labelled `{label}`; {}", suggestion(label, known));
                return Err(self.wrong(label, problem));
            }
        }
        Ok(())
    }
}

impl Plan {
    /// The labels of all rows, the calculated ones last.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        let rows = self.rows.iter().map(|row| row.label.as_str());
        rows.chain(self.derived.iter().map(|derived| derived.label.as_str()))
    }

    /// The deviation from the published figure up to which a row agrees, as a share of the figure.
    pub fn tolerance(&self, label: &str) -> f64 {
        self.tolerances.get(label).copied().unwrap_or(self.tolerance)
    }
}
