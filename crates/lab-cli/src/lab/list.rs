//! `softflash lab list`: shows experiments, devices, layouts and workloads.

use clap::Args;
use serde::Serialize;
use softflash_console::CliError;
use softflash_console::output::{self, Form};
use softflash_lab::presets::Kind;
use softflash_lab::{Experiment, Form as Size, LabError};

/// Arguments of `lab list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash lab list
  softflash lab list -o json | jq -r '.experiments[].name'")]
pub struct List {
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

#[derive(Serialize)]
struct Report {
    experiments: Vec<ExperimentEntry>,
    devices: Vec<Entry>,
    layouts: Vec<Entry>,
    workloads: Vec<Entry>,
}

#[derive(Serialize)]
struct ExperimentEntry {
    name: String,
    title: String,
    source: String,
    cells: usize,
    quick_cells: usize,
    rows: usize,
}

#[derive(Serialize)]
struct Entry {
    name: String,
    title: String,
}

impl List {
    /// Prints all presets and experiments of the program.
    pub fn run(self) -> Result<(), CliError> {
        let names = Kind::Experiment.embedded().iter().map(|(name, _)| *name);
        let report = Report {
            experiments: names.map(experiment).collect::<Result<_, LabError>>()?,
            devices: entries(Kind::Device)?,
            layouts: entries(Kind::Layout)?,
            workloads: entries(Kind::Workload)?,
        };
        if self.output == Form::Json {
            return output::json(&report);
        }
        let rows = report.experiments.iter().map(|entry| {
            let cells = format!("{} / {}", entry.cells, entry.quick_cells);
            vec![entry.name.clone(), cells, entry.title.clone()]
        });
        output::named_rows(&["experiment", "cells / quick", "title"], rows);
        let kinds = [
            ("device", &report.devices),
            ("layout", &report.layouts),
            ("workload", &report.workloads),
        ];
        for (kind, entries) in kinds {
            output::result("");
            let rows = entries.iter().map(|entry| vec![entry.name.clone(), entry.title.clone()]);
            output::named_rows(&[kind, "title"], rows);
        }
        Ok(())
    }
}

fn experiment(name: &str) -> Result<ExperimentEntry, LabError> {
    let experiment = Experiment::find(name)?;
    let plan = experiment.plan(Size::default())?;
    let quick = experiment.plan(Size { quick: true, ..Size::default() })?;
    Ok(ExperimentEntry {
        name: plan.name,
        title: plan.title,
        source: plan.source,
        cells: plan.cells.len(),
        quick_cells: quick.cells.len(),
        rows: plan.rows.len() + plan.derived.len(),
    })
}

fn entries(kind: Kind) -> Result<Vec<Entry>, LabError> {
    let entry = |document: softflash_lab::presets::Document| Entry {
        title: document.title().to_owned(),
        name: document.name,
    };
    Ok(kind.all()?.into_iter().map(entry).collect())
}
