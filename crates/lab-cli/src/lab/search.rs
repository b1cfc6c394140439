//! `softflash lab search`: the smallest or largest value of a key for which a condition holds.

use super::jobs::{self, Job, STEPS, Shown};
use super::run::print_table;
use super::way::Way;
use clap::Args;
use indicatif::{HumanDuration, ProgressBar};
use serde::Serialize;
use softflash_console::CliError;
use softflash_console::output::{self, Form};
use softflash_console::{host, interrupt};
use softflash_lab::results::{CellFile, Directory};
use softflash_lab::search::{
    Bisection, Condition, Finding, Question, Quorum, SearchRun, Span, ValueResult, Want,
};
use softflash_lab::{Cell, Experiment, LabError, Outcome};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Arguments of `lab search`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash lab search op-for-latency --key op_percent \\
      --until 'p999_us < 2000 and kept_up'
  softflash lab search ./mine.toml \\
      --key workload.load.open.requests_per_second --largest \\
      --until 'write_p99_us < 500' --from 1000 --to 200000 --step 1000
  softflash lab search ./mine.toml --cell writes --key layout.write_buffer \\
      --until 'waf < 3 or not drifting' -o json

Conditions compare measures (docs/laboratory.md lists them) with numbers or each other: < <= > >= \
== !=, with and, or, not and parentheses. kept_up and drifting are true or false. p999_us and the \
like without read_ or write_ are of the requests that the run has, of both kinds the larger.

Bisection asks both ends of the range, then the middle of what is left: the condition must change \
once along the key. If it holds at both ends, the bound is the answer; if at neither, the exit code \
is 1 and the nearest value is named. A value holds if the condition does in all replicates, or in \
--quorum of them. Runs are kept in DIR/NAME-search-KEY, for `lab report DIR`; after Ctrl-C the same \
command continues, and another condition on the same key reuses them.")]
pub struct Search {
    /// Experiment, by name or by the path of a TOML file
    #[arg(value_name = "FILE")]
    experiment: String,
    /// The key to vary: a number in the file, as op_percent or layout.gather_us; `lab keys` lists
    /// them
    #[arg(long, value_name = "KEY")]
    key: String,
    /// The condition, as 'p999_us < 2000 and kept_up'
    #[arg(long, value_name = "CONDITION")]
    until: Condition,
    /// Find the largest value for which the condition holds, not the smallest
    #[arg(long)]
    largest: bool,
    /// Lowest value; by default 1 for percent, 0.05 for shares, else an eighth of the file's value
    #[arg(long, value_name = "VALUE", allow_negative_numbers = true)]
    from: Option<f64>,
    /// Highest value; by default 100 for percent, 1 for shares, else eight times the file's value
    #[arg(long, value_name = "VALUE", allow_negative_numbers = true)]
    to: Option<f64>,
    /// Distance of the values to choose from, the tolerance of the answer; by default 1 for
    /// percent, 0.05 for shares, else a 64th of the range
    #[arg(long, value_name = "STEP", visible_alias = "tolerance", allow_negative_numbers = true)]
    step: Option<f64>,
    /// The cell of an experiment that has several: its name, or enough of it
    #[arg(long, value_name = "NAME")]
    cell: Option<String>,
    /// Runs of each value, with different seeds
    #[arg(long, value_name = "N", default_value_t = 3)]
    replicates: u32,
    /// Replicates in which the condition must hold; by default all
    #[arg(long, value_name = "N")]
    quorum: Option<u32>,
    #[command(flatten)]
    way: Way,
}

/// The result for programs.
#[derive(Serialize)]
struct Report<'a> {
    experiment: &'a str,
    cell: &'a str,
    key: &'a str,
    unit: &'a str,
    until: &'a str,
    largest: bool,
    from: f64,
    to: f64,
    step: f64,
    replicates: u32,
    quorum: u32,
    seed: u64,
    #[serde(flatten)]
    finding: &'a Finding,
    /// In the order of the search.
    runs: Vec<&'a SearchRun>,
}

impl Search {
    /// Searches and prints the result.
    pub fn run(self) -> Result<(), CliError> {
        let question = self.question()?;
        let program = host::program_identity()?;
        let stop = interrupt::flag(None)?;
        let directory = Directory::new(&self.way.out, &question.name());
        // An older result does not belong to this condition.
        for path in [directory.json(), directory.csv(), directory.table()] {
            let _ = fs::remove_file(path);
        }
        let course = Course {
            question: &question,
            directory: &directory,
            program,
            threads: self.way.threads(),
            stop: &stop,
            began: host::now(),
        };
        let (finding, values) = course.search()?;
        let result = finding.result(&question, &values);
        result.write(&directory)?;
        match self.way.output {
            Form::Json => output::json(&self.report(&question, &finding, &values))?,
            Form::Table => {
                if let Some(value) = finding.value {
                    let unit = question.key.unit;
                    let runs: usize = values.iter().map(|value| value.runs.len()).sum();
                    output::pairs([
                        ("value", format!("{value} {unit}").trim_end().to_owned()),
                        ("runs", format!("{runs} of {} values", values.len())),
                    ]);
                    finding.note.iter().for_each(|note| output::say(&format!("note: {note}")));
                    let found = values.iter().filter(|it| it.value.total_cmp(&value).is_eq());
                    found
                        .flat_map(ValueResult::warnings)
                        .for_each(|warning| output::say(&format!("note: {warning}")));
                }
                print_table(&result.table);
            }
        }
        match finding {
            Finding { value: Some(_), .. } => Ok(()),
            Finding { note, .. } => {
                Err(CliError::Failed(format!("no value: {}", note.unwrap_or_default())))
            }
        }
    }

    fn question(&self) -> Result<Question, CliError> {
        let quorum = Quorum::new(self.replicates, self.quorum)?;
        let span = Span { from: self.from, to: self.to, step: self.step };
        let want = if self.largest { Want::Largest } else { Want::Smallest };
        Ok(Question::new(
            Experiment::find(&self.experiment)?,
            self.way.size(),
            self.cell.as_deref(),
            (&self.key, span),
            (want, self.until.clone()),
            quorum,
        )?)
    }

    fn report<'a>(
        &'a self,
        question: &'a Question,
        finding: &'a Finding,
        values: &'a [ValueResult],
    ) -> Report<'a> {
        let [from, to, step] = question.grid.span();
        Report {
            experiment: &question.experiment().name,
            cell: &question.cell_name,
            key: &question.key.path,
            unit: question.key.unit,
            until: question.condition.text(),
            largest: self.largest,
            from,
            to,
            step,
            replicates: question.quorum.replicates,
            quorum: question.quorum.least,
            seed: question.seed,
            finding,
            runs: values.iter().flat_map(|value| &value.runs).collect(),
        }
    }
}

/// A search under way.
struct Course<'a> {
    question: &'a Question,
    directory: &'a Directory,
    program: u64,
    threads: usize,
    stop: &'a AtomicBool,
    began: Instant,
}

impl Course<'_> {
    /// Runs the values that the bisection asks for until it has its answer.
    fn search(&self) -> Result<(Finding, Vec<ValueResult>), CliError> {
        let question = self.question;
        let mut bisection = Bisection::new(question.grid.count(), question.want);
        let mut values: Vec<ValueResult> = Vec::new();
        let replicates = question.quorum.replicates as usize;
        let bar = output::steps(bisection.most_left() as u64 * replicates as u64 * STEPS);
        let mut ran = 0;
        loop {
            let places = bisection.next();
            if places.is_empty() {
                break;
            }
            let all = (values.len() + bisection.most_left()) * replicates;
            bar.set_length(all as u64 * STEPS);
            let shown = Shown { bar: &bar, before: values.len() * replicates, all };
            let (found, new) = self.values(&places, shown)?;
            ran += new;
            for value in found {
                bisection.told(value.place, value.held);
                self.tell(&bar, &value, bisection.most_left(), ran);
                values.push(value);
            }
        }
        bar.finish_and_clear();
        let problems =
            || values.iter().flat_map(|it| &it.runs).filter_map(|run| run.problem.as_ref());
        let runs: usize = values.iter().map(|value| value.runs.len()).sum();
        if problems().count() == runs {
            let problem = problems().next().cloned().unwrap_or_default();
            return Err(CliError::Failed(format!("no value could be run: {problem}")));
        }
        match bisection.answer() {
            Some(answer) => Ok((Finding::new(question, answer, &values), values)),
            None => Err(CliError::Failed("the bisection ended without an answer".to_owned())),
        }
    }

    /// Runs the replicates of some values, as far as they are missing; returns what the condition
    /// says of them, and how many runs it took.
    fn values(
        &self,
        places: &[usize],
        shown: Shown,
    ) -> Result<(Vec<ValueResult>, usize), CliError> {
        let of = |&place: &usize| self.question.cells(place);
        let cells: Vec<Vec<Cell>> = places.iter().map(of).collect::<Result<_, LabError>>()?;
        let find = |cell: &Cell| CellFile::find(self.directory, cell, self.program);
        let mut outcomes: Vec<Option<Result<Outcome, LabError>>> = Vec::new();
        for cell in cells.iter().flatten() {
            outcomes.push(find(cell)?.map(Ok));
        }
        let name = self.question.name();
        let missing = cells.iter().flatten().zip(&outcomes).filter(|(_, known)| known.is_none());
        let waiting: Vec<Job> = missing
            .map(|(cell, _)| Job {
                cell,
                directory: self.directory,
                experiment: &name,
                is_trial: true,
            })
            .collect();
        let known = outcomes.iter().flatten().count();
        let shown = Shown { before: shown.before + known, ..shown };
        let new = waiting.len();
        let mut ended =
            jobs::run(&waiting, self.threads, self.program, self.stop, shown)?.into_iter();
        drop(waiting);
        for outcome in outcomes.iter_mut().filter(|outcome| outcome.is_none()) {
            *outcome = ended.next().flatten();
        }
        if self.stop.load(Ordering::Relaxed) {
            return Err(CliError::Failed(
                "interrupted; the completed runs are kept, and the same command continues"
                    .to_owned(),
            ));
        }
        let mut outcomes = outcomes.into_iter();
        let mut values = Vec::new();
        for (&place, cells) in places.iter().zip(cells) {
            let ran = cells.into_iter().zip(outcomes.by_ref());
            let ran = ran.filter_map(|(cell, outcome)| Some((cell, outcome?))).collect();
            values.push(ValueResult::new(self.question, place, ran)?);
        }
        Ok((values, new))
    }

    /// Says what the condition says of a value, and how long the rest takes at most.
    fn tell(&self, bar: &ProgressBar, value: &ValueResult, most_left: usize, ran: usize) {
        let question = self.question;
        let (key, held, all) = (&question.key.path, value.held_runs(), value.runs.len());
        let holds = if value.held { "holds" } else { "does not hold" };
        let mut line = format!(
            "{key} = {}: {holds}, in {held} of {all} replicates ({})",
            value.value,
            value.figures(question)
        );
        if most_left > 0 {
            line += &format!("; at most {most_left} values left");
            if ran > 0 {
                let left = most_left as u32 * question.quorum.replicates;
                let time = self.began.elapsed() / ran as u32 * left;
                line += &format!(", about {}", HumanDuration(time));
            }
        }
        bar.suspend(|| output::say(&line));
    }
}
