//! The runs of a search, what it has found, and its result for the report.

use super::bisection::{Answer, Ends, Want};
use super::condition::Figures;
use super::question::Question;
use crate::cell::Cell;
use crate::error::LabError;
use crate::experiment::Plot;
use crate::outcome::Outcome;
use crate::results::warnings;
use crate::results::{
    ColumnTable, ExperimentResult, ResultPoint, ResultRow, TableColumn, TableValue, mean_and_spread,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The title of the column with the replicates in which the condition held.
const HELD: &str = "held";

/// A run of a search.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchRun {
    /// The value of the key.
    pub value: f64,
    /// Its number among those of the value, from 1.
    pub replicate: u32,
    /// Its seed.
    pub seed: u64,
    /// The figures of the condition's measures.
    pub measures: BTreeMap<String, f64>,
    /// Whether the condition held.
    pub held: bool,
    /// Why there was no run, where the value is impossible: the condition does not hold then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    #[serde(skip)]
    cell: String,
    #[serde(skip)]
    warnings: Vec<String>,
}

/// The runs of a value.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueResult {
    /// The place of the value on the grid.
    pub place: usize,
    /// The value.
    pub value: f64,
    /// Its replicates.
    pub runs: Vec<SearchRun>,
    /// Whether the condition held in enough of them.
    pub held: bool,
    /// How far the mean of the figures is from the condition, 0 to 1.
    gap: f64,
}

/// What a search has found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// The value; none if the condition holds at neither end.
    pub value: Option<f64>,
    /// Where there is none: the value whose figures are nearest to the condition.
    pub nearest: Option<f64>,
    /// What the reader must know of the value.
    pub note: Option<String>,
}

impl ValueResult {
    /// What the condition says of the outcomes of a value's cells. A value with which the device
    /// cannot be built or cannot run the workload is one for which the condition does not hold.
    ///
    /// # Errors
    /// Those of a simulation, and of a measure that the run does not have.
    pub fn new(
        question: &Question,
        place: usize,
        ran: Vec<(Cell, Result<Outcome, LabError>)>,
    ) -> Result<ValueResult, LabError> {
        let value = question.grid.number(place);
        let mut runs = Vec::with_capacity(ran.len());
        for (replicate, (cell, outcome)) in (1..).zip(ran) {
            let (measures, problem, warnings) = match outcome {
                Ok(outcome) => {
                    let figures = question.condition.figures(&outcome);
                    let figures = figures.map_err(LabError::Parameter)?;
                    (figures, None, warnings::of(&outcome))
                }
                Err(error @ (LabError::Parameter(_) | LabError::Unsupported(_))) => {
                    (Figures::new(), Some(error.to_string()), Vec::new())
                }
                Err(error) => return Err(error),
            };
            let held = problem.is_none() && question.condition.holds(&measures);
            let Cell { key: cell, seed, .. } = cell;
            runs.push(SearchRun {
                value,
                replicate,
                seed,
                measures,
                held,
                problem,
                cell,
                warnings,
            });
        }
        let count = runs.iter().filter(|run| run.held).count();
        let gap = question.condition.gap(&means(&runs));
        Ok(ValueResult { place, value, held: count >= question.quorum.least as usize, runs, gap })
    }

    /// The warnings of its runs, each once.
    pub fn warnings(&self) -> BTreeSet<&str> {
        self.runs.iter().flat_map(|run| &run.warnings).map(String::as_str).collect()
    }

    /// In how many of its runs the condition held.
    pub fn held_runs(&self) -> usize {
        self.runs.iter().filter(|run| run.held).count()
    }

    /// The means of the figures, in words: `p999_us 820.5, kept_up 1`.
    pub fn figures(&self, question: &Question) -> String {
        let means = means(&self.runs);
        let named = question
            .condition
            .measures()
            .iter()
            .filter_map(|(name, _)| Some(format!("{name} {}", shown(*means.get(name)?))));
        let problem = self.runs.iter().find_map(|run| run.problem.clone());
        named.chain(problem).collect::<Vec<_>>().join(", ")
    }
}

/// The figures with four digits.
fn shown(figure: f64) -> String {
    let digits = match figure.abs() {
        _ if figure.fract() == 0.0 => 0,
        size if size >= 1000.0 => 0,
        size if size >= 10.0 => 1,
        _ => 3,
    };
    format!("{figure:.digits$}")
}

/// The means of the figures of runs that have any.
fn means(runs: &[SearchRun]) -> Figures {
    let ran: Vec<&SearchRun> = runs.iter().filter(|run| run.problem.is_none()).collect();
    let names: Vec<&String> =
        ran.first().map(|run| run.measures.keys().collect()).unwrap_or_default();
    let mean = |name: &String| {
        let all = ran.iter().filter_map(|run| run.measures.get(name));
        all.sum::<f64>() / ran.len() as f64
    };
    names.into_iter().map(|name| (name.clone(), mean(name))).collect()
}

impl Finding {
    /// The finding of a bisection that has ended so, from the values that it asked for.
    pub fn new(question: &Question, answer: Answer, values: &[ValueResult]) -> Finding {
        let (until, key) = (question.condition.text(), question.key.path.as_str());
        let [from, to, _] = question.grid.span();
        let (bound, beyond, other) = match question.want {
            Want::Smallest => ("lowest", "smaller", "--largest"),
            Want::Largest => ("highest", "larger", "the smallest, without --largest"),
        };
        match answer {
            Answer::At(place, ends) => {
                let note = match ends {
                    Ends::Change => None,
                    Ends::BothHold => Some(format!(
                        "`{until}` holds at {key} = {from} and at {to}: the {bound} value is the \
                         answer, and {beyond} ones were not tried"
                    )),
                    Ends::OtherWay => Some(format!(
                        "`{until}` holds at the {bound} value and not at the other end of {from} to \
                         {to}: it does not change in the direction of this search; ask for {other}"
                    )),
                };
                Finding { value: Some(question.grid.number(place)), nearest: None, note }
            }
            Answer::Nowhere => {
                let nearest = values.iter().min_by(|one, other| one.gap.total_cmp(&other.gap));
                let figures = nearest.map(|value| value.figures(question)).unwrap_or_default();
                let value = nearest.map(|value| value.value);
                let at = value.map_or_else(String::new, |value| value.to_string());
                Finding {
                    value: None,
                    nearest: value,
                    note: Some(format!(
                        "`{until}` holds neither at {key} = {from} nor at {to}; the nearest is {at} \
                         ({figures})"
                    )),
                }
            }
        }
    }

    /// The result of the search for `lab report`: its values as rows, the measures as columns, and
    /// a plot for each measure.
    pub fn result(&self, question: &Question, values: &[ValueResult]) -> ExperimentResult {
        let mut by_value: Vec<&ValueResult> = values.iter().collect();
        by_value.sort_by_key(|value| value.place);
        by_value.retain(|value| value.runs.iter().all(|run| run.problem.is_none()));
        let what = match question.want {
            Want::Smallest => "Smallest",
            Want::Largest => "Largest",
        };
        let (key, until) = (question.key.path.as_str(), question.condition.text());
        let mut drawn = Drawn { question, rows: Vec::new(), table: ColumnTable::default() };
        if let Some(value) = self.value {
            drawn.rows.push(row(question.key.path.clone(), question.key.unit, &[value]));
        }
        by_value.iter().for_each(|value| drawn.value(value));
        let warnings = by_value.iter().flat_map(|value| {
            value.runs.iter().flat_map(move |run| {
                let label = format!("{key} = {}, replicate {}", value.value, run.replicate);
                run.warnings.iter().map(move |warning| format!("{label}: {warning}"))
            })
        });
        ExperimentResult {
            experiment: question.name(),
            title: format!("{what} {key} for which {until}"),
            source: String::new(),
            text: self.text(question, values),
            quick: question.is_quick(),
            seed: question.seed,
            replicates: question.quorum.replicates,
            warnings: warnings.collect(),
            plots: plots(question),
            cells: by_value.iter().flat_map(|it| &it.runs).map(|run| run.cell.clone()).collect(),
            rows: drawn.rows,
            table: drawn.table,
        }
    }

    fn text(&self, question: &Question, values: &[ValueResult]) -> String {
        let [from, to, step] = question.grid.span();
        let runs: usize = values.iter().map(|value| value.runs.len()).sum();
        let found = match self.value {
            Some(value) => format!("It is {value}{}.", spaced(question.key.unit)),
            None => "There is none.".to_owned(),
        };
        let note = self.note.as_ref().map(|note| format!(" {note}.")).unwrap_or_default();
        let impossible = values.iter().filter_map(|value| {
            let problem = value.runs.iter().find_map(|run| run.problem.as_ref())?;
            Some(format!("\n\nNo run at {} = {}: {problem}", question.key.path, value.value))
        });
        format!(
            "Bisection over `{}` from {from} to {to} by {step}, of the cell `{}` of experiment `{}`. \
             {found}{note} {runs} runs of {} values; a value holds if `{}` does in {} of its {} \
             replicates.{}",
            question.key.path,
            question.cell_name,
            question.experiment().name,
            values.len(),
            question.condition.text(),
            question.quorum.least,
            question.quorum.replicates,
            impossible.collect::<String>()
        )
    }
}

/// A unit behind a number.
fn spaced(unit: &str) -> String {
    if unit.is_empty() { String::new() } else { format!(" {unit}") }
}

/// The rows of a result, as they are made.
struct Drawn<'a> {
    question: &'a Question,
    rows: Vec<ResultRow>,
    table: ColumnTable,
}

impl Drawn<'_> {
    /// Adds the figures of a value.
    fn value(&mut self, value: &ValueResult) {
        let label = format!("{} = {}", self.question.key.path, value.value);
        let cell = value.runs.first().map(|run| run.cell.clone());
        for (name, measure) in self.question.condition.measures() {
            let figures: Vec<f64> =
                value.runs.iter().filter_map(|run| run.measures.get(name)).copied().collect();
            let (ours, spread) = mean_and_spread(&figures);
            let unit = measure.unit();
            let column = TableColumn { name: name.clone(), unit: unit.to_owned() };
            self.table.add(&label, column, TableValue { ours, spread });
            let plot = ResultPoint { plot: name.clone(), series: name.clone(), x: value.value };
            self.rows.push(ResultRow {
                in_table: true,
                figure: measure.words(),
                cell: cell.clone(),
                point: Some(plot),
                ..row(format!("{label}: {name}"), unit, &figures)
            });
        }
        let column = TableColumn { name: HELD.to_owned(), unit: String::new() };
        let ours = value.held_runs() as f64;
        self.table.add(&label, column, TableValue { ours, spread: None });
    }
}

fn row(label: String, unit: &str, figures: &[f64]) -> ResultRow {
    let (ours, spread) = mean_and_spread(figures);
    ResultRow {
        label,
        in_table: false,
        figure: String::new(),
        unit: unit.to_owned(),
        paper: None,
        bound: None,
        theory: None,
        ours,
        spread,
        ratio: None,
        tolerance: 0.0,
        agrees: None,
        cell: None,
        point: None,
    }
}

/// A plot for each measure of the condition that is a number.
fn plots(question: &Question) -> Vec<Plot> {
    let key = &question.key;
    let x_label = match key.unit {
        "" => key.path.clone(),
        unit => format!("{}, {unit}", key.path),
    };
    let measures = question.condition.measures().iter();
    let numbers = measures.filter(|(_, measure)| !measure.is_flag());
    let plot = |(name, measure): &(String, crate::measure::Measure)| Plot {
        name: name.clone(),
        title: format!("{} by {}", measure.words(), key.path),
        x: key.path.clone(),
        x_label: x_label.clone(),
        y_label: name.clone(),
        log_x: false,
        log_y: false,
        distribution: None,
    };
    numbers.map(plot).collect()
}
