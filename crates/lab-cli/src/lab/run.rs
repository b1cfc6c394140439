//! `softflash lab run`: runs experiments and compares their figures with published ones.

use super::jobs::{self, Ended, Job};
use super::way::Way;
use clap::Args;
use softflash_console::CliError;
use softflash_console::output::{self, Form};
use softflash_console::{host, interrupt};
use softflash_lab::presets::Kind;
use softflash_lab::results::{
    Agreement, CellFile, ColumnTable, Directory, ExperimentResult, ResultRow, TableColumn,
    TableValue,
};
use softflash_lab::{Experiment, LabError, Outcome, Plan};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

/// Arguments of `lab run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash lab run sdf-table4 --out results
  softflash lab run ./mine.toml --out results --seed 7 -o json
  softflash lab run --all --quick --out results

Writes DIR/NAME/result.json and result.csv, and a file for each cell (run) in DIR/NAME/cells. \
Existing cells with the same inputs and the same program are reused: after Ctrl-C the same command \
continues. Equal seeds give equal bytes on any number of threads. After a failed cell the others \
still run; its experiment has no result then, and the exit code is 1.")]
pub struct Run {
    /// Experiments, by name or by the path of a TOML file
    #[arg(value_name = "NAME", required_unless_present = "all")]
    names: Vec<String>,
    /// All experiments of `lab list`
    #[arg(long, conflicts_with = "names")]
    all: bool,
    #[command(flatten)]
    way: Way,
}

/// A running experiment.
struct Task {
    plan: Plan,
    directory: Directory,
    /// Results of its cells.
    ended: Vec<Ended>,
}

impl Run {
    /// Plans all experiments, runs the missing cells, writes and prints the results.
    pub fn run(self) -> Result<(), CliError> {
        let program = host::program_identity()?;
        let mut tasks = self.tasks(program)?;
        let stop = interrupt::flag(None)?;
        let threads = self.way.threads();
        run_missing(&mut tasks, threads, program, &stop)?;
        let mut results = Vec::new();
        let mut failed = Vec::new();
        for task in tasks {
            match task.finish()? {
                Finished::Whole(result) => results.push(*result),
                Finished::Failed(name) => failed.push(name),
                Finished::Stopped => {}
            }
        }
        match self.way.output {
            Form::Json => output::json(&results)?,
            Form::Table => results.iter().for_each(print),
        }
        if stop.load(Ordering::Relaxed) {
            return Err(CliError::Failed(
                "interrupted; the completed cells are kept, and the same command continues with the rest"
                    .to_owned(),
            ));
        }
        match failed.as_slice() {
            [] => Ok(()),
            names => Err(CliError::Failed(format!(
                "cells failed, see above; no result for {}; the completed cells are kept",
                names.join(", ")
            ))),
        }
    }

    /// All experiments are planned before the first one runs, so that an error in the last file
    /// costs no time.
    fn tasks(&self, program: u64) -> Result<Vec<Task>, CliError> {
        let all = Kind::Experiment.embedded().iter().map(|(name, _)| (*name).to_owned());
        let names: Vec<String> = if self.all { all.collect() } else { self.names.clone() };
        let size = self.way.size();
        let mut tasks: Vec<Task> = Vec::new();
        for name in &names {
            let plan = Experiment::find(name)?.plan(size)?;
            if tasks.iter().any(|task| task.plan.name == plan.name) {
                let problem = format!(
                    "experiment `{}` is named twice; the results would be mixed up",
                    plan.name
                );
                return Err(CliError::Usage(problem));
            }
            let directory = Directory::new(&self.way.out, &plan.name);
            let found = |cell| -> Result<Ended, LabError> {
                Ok(CellFile::find(&directory, cell, program)?.map(Ok))
            };
            let ended = plan.cells.iter().map(found).collect::<Result<_, LabError>>()?;
            tasks.push(Task { plan, directory, ended });
        }
        Ok(tasks)
    }
}

fn run_missing(
    tasks: &mut [Task],
    threads: usize,
    program: u64,
    stop: &AtomicBool,
) -> Result<(), CliError> {
    let mut places = Vec::new();
    for (index, task) in tasks.iter().enumerate() {
        let missing = task.ended.iter().enumerate().filter(|(_, ended)| ended.is_none());
        places.extend(missing.map(|(cell, _)| (index, cell)));
    }
    let job = |&(task, cell): &(usize, usize)| {
        let task = tasks.get(task)?;
        let (directory, experiment) = (&task.directory, task.plan.name.as_str());
        Some(Job { cell: task.plan.cells.get(cell)?, directory, experiment, is_trial: false })
    };
    let waiting: Vec<Job> = places.iter().filter_map(job).collect();
    let bar = output::steps(waiting.len() as u64 * jobs::STEPS);
    let shown = jobs::Shown { bar: &bar, before: 0, all: waiting.len() };
    let ended = jobs::run(&waiting, threads, program, stop, shown)?;
    bar.finish_and_clear();
    drop(waiting);
    for ((task, cell), ended) in places.into_iter().zip(ended) {
        if let Some(place) = tasks.get_mut(task).and_then(|task| task.ended.get_mut(cell)) {
            *place = ended;
        }
    }
    Ok(())
}

/// Outcome of an experiment.
enum Finished {
    Whole(Box<ExperimentResult>),
    Failed(String),
    Stopped,
}

impl Task {
    /// Writes the result if all cells have succeeded; otherwise removes an older result, which does
    /// not belong to these cells.
    fn finish(self) -> Result<Finished, CliError> {
        let failed = self.ended.iter().any(|ended| matches!(ended, Some(Err(_))));
        let outcomes: Option<Vec<Outcome>> =
            self.ended.into_iter().map(|ended| ended?.ok()).collect();
        let Some(outcomes) = outcomes else {
            for path in [self.directory.json(), self.directory.csv(), self.directory.table()] {
                // It does not exist if the experiment never ran.
                let _ = fs::remove_file(path);
            }
            return Ok(if failed { Finished::Failed(self.plan.name) } else { Finished::Stopped });
        };
        let result = ExperimentResult::new(&self.plan, &outcomes)?;
        result.write(&self.directory)?;
        Ok(Finished::Whole(Box::new(result)))
    }
}

/// Predictions from which on a count tells more than the rows.
const FEW: usize = 10;

fn print(result: &ExperimentResult) {
    let form = if result.quick { ", quick form" } else { "" };
    output::result(&format!("{}: {}{form}", result.experiment, result.title));
    let is_shown = |column: &&Column| result.rows.iter().any(|row| (column.1)(row).is_some());
    let shown: Vec<&Column> = COLUMNS.iter().filter(is_shown).collect();
    let header: Vec<&str> =
        std::iter::once("").chain(shown.iter().map(|column| column.0)).collect();
    let listed: Vec<&ResultRow> = result.rows.iter().filter(|row| row.is_listed()).collect();
    let rows = listed.iter().map(|row| {
        let cells = shown.iter().map(|column| (column.1)(row).unwrap_or_default());
        std::iter::once(row.label.clone()).chain(cells).collect()
    });
    if !listed.is_empty() {
        output::rows(&header, rows);
    }
    if !result.table.is_empty() {
        print_table(&result.table);
    }
    let agreement = Agreement::of(result);
    if agreement.predicted >= FEW {
        output::result(&format!(" {agreement}"));
    }
    result.warnings.iter().for_each(|warning| output::result(&format!(" {warning}")));
    output::result("");
}

/// Prints the cells as rows and their measures as columns.
pub(super) fn print_table(table: &ColumnTable) {
    let titles: Vec<String> = table.columns.iter().map(TableColumn::title).collect();
    let header: Vec<&str> = std::iter::once("").chain(titles.iter().map(String::as_str)).collect();
    let text = |value: &Option<TableValue>| match value {
        None => String::new(),
        Some(TableValue { ours, spread }) => match spread.filter(|spread| spread.ci95 > 0.0) {
            Some(spread) => format!("{} ± {}", figure(*ours), figure(spread.ci95)),
            None if ours.fract() == 0.0 => ours.to_string(),
            None => figure(*ours),
        },
    };
    let rows = table.rows.iter().map(|row| {
        let values = row.values.iter().map(text);
        std::iter::once(row.label.clone()).chain(values).collect()
    });
    output::rows(&header, rows);
}

/// A column: its title, and the text of a row. Columns without any text are left out.
type Column = (&'static str, fn(&ResultRow) -> Option<String>);

const COLUMNS: [Column; 8] = [
    ("figure", |row| Some(row.figure.clone()).filter(|figure| says_more(figure, &row.label))),
    ("unit", |row| Some(row.unit.clone()).filter(|unit| !unit.is_empty())),
    ("paper", |row| {
        row.paper.map(|published| match row.bound {
            Some(bound) => format!("{} {}", bound.words(), figure(published)),
            None => figure(published),
        })
    }),
    ("theory", |row| row.theory.map(figure)),
    ("ours", |row| Some(figure(row.ours))),
    ("± 95 %", |row| row.spread.map(|spread| figure(spread.ci95))),
    ("ratio", |row| row.ratio.map(|ratio| format!("{ratio:.3}"))),
    ("", |row| row.agrees.map(|agrees| if agrees { "ok" } else { "differs" }.to_owned())),
];

/// Whether a figure is of reads or of writes and the label does not say so.
fn says_more(figure: &str, label: &str) -> bool {
    let kinds = ["read", "write"];
    kinds.iter().any(|kind| figure.starts_with(kind))
        && !kinds.iter().any(|kind| label.contains(kind))
}

/// Four significant digits.
fn figure(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}
