//! The report: directories of results as one HTML file.

mod directories;
mod distribution;
mod inputs;
mod parts;
mod rows;
mod runs;
mod shown;

use crate::error::LabError;
use crate::results::{ExperimentResult, ResultRow};
use directories::{Results, names_of};
use parts::Parts;
use shown::{Run, Shown};
use softflash_report::{Block, Report, Section};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Draws all results in directories; those of an experiment that is in several stand side by side.
pub fn of_directories(directories: &[PathBuf]) -> Result<String, LabError> {
    let results: Vec<Results> =
        directories.iter().map(|path| Results::read(path)).collect::<Result<_, LabError>>()?;
    let names = names_of(directories);
    let mut report = Report::new("SoftFlash laboratory").intro(intro(&names, &results));
    let mut parts = Parts::default();
    let experiments: BTreeSet<&str> =
        results.iter().flat_map(Results::all).map(|result| result.experiment.as_str()).collect();
    for experiment in experiments {
        let mut shown = Vec::new();
        for (directory, results) in names.iter().zip(&results) {
            if let Some(result) = results.of(experiment) {
                shown.push(Shown::read(directory, &results.path, result)?);
            }
        }
        report = report.section(section(&shown, &mut parts));
    }
    Ok(parts.sections().into_iter().fold(report, Report::section).to_html())
}

fn intro(names: &[String], results: &[Results]) -> String {
    let all: Vec<&ExperimentResult> = results.iter().flat_map(Results::all).collect();
    let judged = all.iter().flat_map(|result| &result.rows).filter_map(|row| row.agrees);
    let (judged, agree) = judged.fold((0, 0), |(all, agree), a| (all + 1, agree + usize::from(a)));
    let experiments = all.len();
    let quick = all.iter().filter(|result| result.quick).count();
    let short = match quick {
        0 => String::new(),
        quick if quick == experiments => " All ran in their short form.".to_owned(),
        quick => format!(" {quick} of them ran in their short form."),
    };
    let beside = match names {
        [_] => String::new(),
        names => {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            format!(" Side by side: {}.", names.join(", "))
        }
    };
    format!(
        "Experiments: {experiments}.{short}{beside} {judged} figures have a published or theoretical value; {agree} agree \
         within their tolerance.\n\nEvery figure is the prediction of a model from geometry, timing and policy, in virtual \
         time."
    )
}

fn section(shown: &[Shown], parts: &mut Parts) -> Section {
    let Some(Shown { result, .. }) = shown.first() else { return Section::default() };
    let mut section = Section::new(&*result.experiment, &*result.title).text(about(shown));
    let warnings = warnings(shown);
    if !warnings.is_empty() {
        section = section.block(warnings);
    }
    let listed = |shown: &&Shown| shown.result.rows.iter().any(ResultRow::is_listed);
    if shown.len() > 1 || shown.iter().any(|shown| listed(&shown)) {
        section = section.block(rows::table(shown));
    }
    if let Some(columns) = rows::columns(shown) {
        section = section.block(columns);
    }
    for plot in rows::plots(shown) {
        section = section.block(plot);
    }
    let runs: Vec<&Run> = shown.iter().flat_map(|shown| &shown.runs).collect();
    section = section.block(inputs::table(&runs, parts));
    let drawn: Vec<&Run> = runs.into_iter().filter(|run| run.is_first).collect();
    runs::blocks(&drawn).into_iter().fold(section, |section, block: Block| section.block(block))
}

/// The runs whose figures are no steady state, as a list.
fn warnings(shown: &[Shown]) -> String {
    let line = |Shown { directory, result, .. }: &Shown| {
        let place = if directory.is_empty() { String::new() } else { format!("{directory}, ") };
        let lines = result.warnings.iter().map(|warning| format!("- {place}{warning}"));
        lines.collect::<Vec<String>>()
    };
    shown.iter().flat_map(line).collect::<Vec<String>>().join("\n")
}

fn about(shown: &[Shown]) -> String {
    let mut about = String::new();
    if let Some(Shown { result, .. }) = shown.first() {
        about += result.text.trim();
        if !result.source.is_empty() {
            about += &format!("\n\nPublished figures: {}.", result.source);
        }
    }
    for Shown { directory, result, .. } in shown {
        let of = if directory.is_empty() { String::new() } else { format!(" in `{directory}`") };
        let form = if result.quick { ", short form" } else { "" };
        let replicates = match result.replicates {
            1 => String::new(),
            count => format!(
                ", {count} replicates with different seeds: figures are means, error bars 95 % confidence intervals"
            ),
        };
        let (name, seed) = (&result.experiment, result.seed);
        about += &format!("\n\nExperiment `{name}`{of}, seed {seed}{replicates}{form}.");
    }
    about
}
