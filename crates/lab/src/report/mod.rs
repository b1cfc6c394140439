//! The report: a directory of results as one HTML file.

mod devices;
mod rows;
mod runs;

use crate::error::LabError;
use crate::results::{CellFile, Directory, ExperimentResult, read_json};
use softflash_report::{Report, Section};
use std::fs;
use std::path::Path;

/// A cell with its name in the report: the label of its first row.
struct Run {
    label: String,
    file: CellFile,
}

/// Draws all results in a directory.
pub fn of_directory(directory: &Path) -> Result<String, LabError> {
    let results = results(directory)?;
    if results.is_empty() {
        return Err(LabError::Parameter(format!(
            "{}: no results in it; run experiments with `softflash lab run NAME --out {}`",
            directory.display(),
            directory.display()
        )));
    }
    let mut report = Report::new("SoftFlash laboratory").intro(intro(&results));
    let mut devices = devices::Devices::default();
    for result in &results {
        let runs = runs_of(directory, result)?;
        runs.iter().for_each(|run| devices.add(&run.file.cell.device));
        report = report.section(section(result, &runs));
    }
    Ok(report.section(devices.section()).to_html())
}

/// All results below a directory, by name.
fn results(directory: &Path) -> Result<Vec<ExperimentResult>, LabError> {
    let entries = fs::read_dir(directory).map_err(LabError::file(directory))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(LabError::file(directory))?.path().join("result.json");
        if path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    paths.iter().map(|path| read_json(path)).collect()
}

fn runs_of(directory: &Path, result: &ExperimentResult) -> Result<Vec<Run>, LabError> {
    let directory = Directory::new(directory, &result.experiment);
    let run = |key: &String| {
        let row = result.rows.iter().find(|row| row.cell.as_ref() == Some(key));
        let label = row.map_or_else(|| key.clone(), |row| row.label.clone());
        Ok(Run { label, file: CellFile::read(&directory, key)? })
    };
    result.cells.iter().map(run).collect()
}

fn intro(results: &[ExperimentResult]) -> String {
    let judged = results.iter().flat_map(|result| &result.rows).filter_map(|row| row.agrees);
    let (all, agree) = judged.fold((0, 0), |(all, agree), a| (all + 1, agree + usize::from(a)));
    let experiments = results.len();
    let quick = results.iter().filter(|result| result.quick).count();
    let short = match quick {
        0 => String::new(),
        quick if quick == experiments => " All ran in their short form.".to_owned(),
        quick => format!(" {quick} of them ran in their short form."),
    };
    format!(
        "Experiments: {experiments}.{short} {all} figures have a published or theoretical value; {agree} agree within \
         their tolerance.\n\nEvery figure is the prediction of a model from geometry, timing and policy, in virtual time."
    )
}

fn section(result: &ExperimentResult, runs: &[Run]) -> Section {
    let mut section = Section::new(&*result.experiment, &*result.title).text(about(result));
    section = section.block(rows::table(result));
    for plot in rows::plots(result) {
        section = section.block(plot);
    }
    runs::blocks(runs).into_iter().fold(section, Section::block)
}

fn about(result: &ExperimentResult) -> String {
    let mut about = result.text.trim().to_owned();
    if !result.source.is_empty() {
        about += &format!("\n\nPublished figures: {}.", result.source);
    }
    let form = if result.quick { ", short form" } else { "" };
    about += &format!("\n\nExperiment `{}`, seed {}{form}.", result.experiment, result.seed);
    about
}
