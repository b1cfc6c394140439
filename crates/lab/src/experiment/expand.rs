//! Expands a group of an experiment to its cells: every device with every layout, workload, variant
//! and value.

use super::fields::{Assignment, Tables, assignments};
use super::label::{Names, fill, written};
use super::plan::{Place, Plan, PlannedRow, Point};
use super::{Experiment, Group, Plot};
use crate::cell::{Cell, Parameters};
use crate::error::LabError;
use crate::layout::Layout;
use crate::measure::Measure;
use crate::presets::{Document, Kind, seen_from};
use crate::toml_text::{self, TomlError, suggestion};
use crate::workload::Workload;
use serde::de::DeserializeOwned;
use softflash_base::checksum::checksum64;
use softflash_drive::spec::DeviceSpec;
use toml::{Table, Value};

/// One combination of the lists of a group.
#[derive(Debug, Clone)]
struct Choice<'a> {
    device: &'a Document,
    layout: &'a Document,
    workload: &'a Document,
    variant: &'a str,
    variant_set: &'a Table,
    varied: Vec<Assignment>,
}

/// Adds the cells and rows of a group to the plan.
pub fn expand(
    experiment: &Experiment,
    number: usize,
    group: &Group,
    quick: bool,
    plan: &mut Plan,
) -> Result<(), LabError> {
    let prefix = group.name.clone().unwrap_or_else(|| (number + 1).to_string());
    let axes = axes(experiment, group, quick)?;
    let find = |kind: Kind, names: &[String]| -> Result<Vec<Document>, LabError> {
        names.iter().map(|name| experiment.preset(kind, name)).collect()
    };
    let devices = find(Kind::Device, &group.device)?;
    let workloads = find(Kind::Workload, &group.workload)?;
    for remark in workloads.iter().flat_map(Document::named_remarks) {
        if !plan.remarks.contains(&remark) {
            plan.remarks.push(remark);
        }
    }
    let plain = [super::Variant { name: String::new(), set: Table::new() }];
    let variants = if group.variants.is_empty() { &plain[..] } else { &group.variants };
    for device in &devices {
        let layouts = match group.layout.is_empty() {
            true => vec![default_layout(device)?],
            false => find(Kind::Layout, &group.layout)?,
        };
        for layout in &layouts {
            for workload in &workloads {
                for variant in variants {
                    for varied in combinations(&axes) {
                        let choice = Choice {
                            device,
                            layout,
                            workload,
                            variant: &variant.name,
                            variant_set: &variant.set,
                            varied,
                        };
                        choice.add(experiment, group, &prefix, quick, plan)?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// The layout that a device names.
fn default_layout(device: &Document) -> Result<Document, LabError> {
    let name = device.read::<DeviceSpec>()?.default_layout;
    Kind::Layout.find(&seen_from(&device.directory, &name))
}

/// A field, and the values that it takes.
type Axis = (String, Vec<Value>);

fn axes(experiment: &Experiment, group: &Group, quick: bool) -> Result<Vec<Axis>, LabError> {
    let mut all = assignments(&group.vary);
    for instead in assignments(&group.quick_vary) {
        match all.iter_mut().find(|axis| axis.path == instead.path) {
            Some(axis) if quick => axis.value = instead.value,
            Some(_) => {}
            None => {
                let known: Vec<&str> = all.iter().map(|axis| axis.path.as_str()).collect();
                let nearest = suggestion(&instead.path, known);
                let problem = format!("quick_vary: `{}` is not varied; {nearest}", instead.path);
                return Err(experiment.wrong("quick_vary", problem));
            }
        }
    }
    let list = |axis: Assignment| match axis.value {
        Value::Array(values) if !values.is_empty() => Ok((axis.path, values)),
        _ => {
            let problem = format!("vary: `{}` needs a list of values", axis.path);
            Err(experiment.wrong(last(&axis.path), problem))
        }
    };
    all.into_iter().map(list).collect()
}

/// Every combination of the axes' values; the last axis varies fastest.
fn combinations(axes: &[Axis]) -> Vec<Vec<Assignment>> {
    let mut all = vec![Vec::new()];
    for (path, values) in axes {
        let longer = |head: &Vec<Assignment>| -> Vec<Vec<Assignment>> {
            let with = |value: &Value| {
                let mut longer = head.clone();
                longer.push(Assignment { path: path.clone(), value: value.clone() });
                longer
            };
            values.iter().map(with).collect()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

impl Choice<'_> {
    fn add(
        &self,
        experiment: &Experiment,
        group: &Group,
        prefix: &str,
        quick: bool,
        plan: &mut Plan,
    ) -> Result<(), LabError> {
        let tables = self.tables(experiment, group, quick)?;
        let cell = self.cell(experiment, prefix, plan.seed, &tables)?;
        let paths: Vec<&str> = self.varied.iter().map(|varied| varied.path.as_str()).collect();
        let names = Names {
            device: &cell.device.name,
            layout: &cell.layout_name,
            workload: &cell.workload_name,
            variant: self.variant,
            varied: &paths,
            tables: &tables,
        };
        let filled = |template: &str| {
            fill(template, &names).map_err(|problem| experiment.wrong("label =", problem))
        };
        for row in &group.rows {
            let figures = row.figures().map_err(|(word, text)| experiment.wrong(word, text))?;
            for figure in figures {
                let measure = Measure::parse(&figure.measure)
                    .map_err(|problem| experiment.wrong(&figure.measure, problem))?;
                let point = match &figure.plot {
                    None => None,
                    Some(name) => {
                        let plot = plot(experiment, plan, name)?;
                        let x = along(experiment, plot, &tables)?;
                        let series = filled(figure.series.as_deref().unwrap_or(&row.label))?;
                        Some(Point { plot: name.clone(), series, x })
                    }
                };
                let theory = figure.theory.map(|law| law.of(&cell)).transpose();
                let (label, place) = placed(filled(&row.label)?, figure.column);
                plan.rows.push(PlannedRow {
                    label,
                    place,
                    theory: theory.map_err(|problem| experiment.wrong("theory", problem))?,
                    unit: figure.unit.unwrap_or_else(|| measure.unit().to_owned()),
                    measure,
                    cell: plan.cells.len(),
                    point,
                });
            }
        }
        let seed = plan.seed;
        let others = (2..=plan.replicates).map(|number| replicate(&cell, seed, number));
        let others: Vec<Cell> = others.collect();
        plan.cells.push(cell);
        plan.cells.extend(others);
        Ok(())
    }

    /// The presets with the settings of the group, the variant and the varied values.
    fn tables(
        &self,
        experiment: &Experiment,
        group: &Group,
        quick: bool,
    ) -> Result<Tables, LabError> {
        let mut tables = Tables {
            device: self.device.table.clone(),
            layout: self.layout.table.clone(),
            workload: self.workload.table.clone(),
            parameters: Table::new(),
        };
        let mut all = assignments(&group.set);
        all.extend(assignments(self.variant_set));
        all.extend(self.varied.iter().cloned());
        if quick {
            all.extend(assignments(&group.quick));
        }
        for assignment in &all {
            tables
                .set(assignment)
                .map_err(|problem| experiment.wrong(last(&assignment.path), problem))?;
        }
        Ok(tables)
    }

    fn cell(
        &self,
        experiment: &Experiment,
        prefix: &str,
        seed: u64,
        tables: &Tables,
    ) -> Result<Cell, LabError> {
        let key = self.key(prefix);
        let device: DeviceSpec = understood(experiment, self.device, &tables.device)?;
        let layout: Layout = understood(experiment, self.layout, &tables.layout)?;
        let workload: Workload = understood(experiment, self.workload, &tables.workload)?;
        let workload = workload.seen_from(&self.workload.directory);
        let parameters: Parameters =
            toml_text::from_table(&experiment.file, &experiment.text, tables.parameters.clone())?;
        Ok(Cell {
            seed: checksum64(seed, key.as_bytes()),
            key,
            layout_name: self.layout.name.clone(),
            workload_name: self.workload.name.clone(),
            device,
            layout,
            workload,
            parameters,
        })
    }

    /// A name that is unique in the experiment and valid for a file.
    fn key(&self, prefix: &str) -> String {
        let mut parts = vec![prefix, &self.device.name, &self.layout.name, &self.workload.name];
        if !self.variant.is_empty() {
            parts.push(self.variant);
        }
        let mut key = parts.join("_");
        for varied in &self.varied {
            key += &format!("_{}={}", last(&varied.path), written(&varied.value, false));
        }
        let fit = |c: char| if c.is_ascii_alphanumeric() || "._=-".contains(c) { c } else { '-' };
        key.chars().map(fit).collect()
    }
}

/// The label of a figure, and its place in the table if it is in a column.
fn placed(row: String, column: Option<String>) -> (String, Option<Place>) {
    match column {
        None => (row, None),
        Some(column) => (format!("{row}: {column}"), Some(Place { row, column })),
    }
}

/// The plot of this name.
fn plot<'a>(experiment: &Experiment, plan: &'a Plan, name: &str) -> Result<&'a Plot, LabError> {
    plan.plots.iter().find(|plot| plot.name == name).ok_or_else(|| {
        let known: Vec<&str> = plan.plots.iter().map(|plot| plot.name.as_str()).collect();
        let problem = format!("no plot `{name}`; {}", suggestion(name, known));
        experiment.wrong(name, problem)
    })
}

/// A cell with another seed.
fn replicate(cell: &Cell, seed: u64, number: u32) -> Cell {
    let key = format!("{}_replicate={number}", cell.key);
    Cell { seed: checksum64(seed, key.as_bytes()), key, ..cell.clone() }
}

/// Parses a preset that the experiment has changed. An error of the unchanged preset names the
/// preset, any other error the experiment.
fn understood<T: DeserializeOwned>(
    experiment: &Experiment,
    document: &Document,
    table: &Table,
) -> Result<T, LabError> {
    let changed = toml_text::from_table(&experiment.file, &experiment.text, table.clone());
    changed.map_err(|error| document.read::<T>().err().unwrap_or_else(|| whole(error)).into())
}

/// Adds the way to replace a whole table to an error of two tables in place of one.
fn whole(mut error: TomlError) -> TomlError {
    let several = ["exactly 1 element", "fewer elements in map"];
    if several.iter().any(|words| error.problem.contains(words)) {
        error.problem += "; `set` adds keys to a table: write its path in quotes to replace it, as \
                          set.\"workload.pattern\" = { zipf = { exponent = 0.9 } }";
    }
    error
}

/// The place of a point along the x axis; 0 in a distribution, which has no point of its own.
fn along(experiment: &Experiment, plot: &Plot, tables: &Tables) -> Result<f64, LabError> {
    if plot.distribution.is_some() {
        return Ok(0.0);
    }
    if plot.x.is_empty() {
        let problem = format!(
            "plot `{}` needs `x`, the field along the x axis, or `distribution`",
            plot.name
        );
        return Err(experiment.wrong(&plot.name, problem));
    }
    tables.get(&plot.x).and_then(number).ok_or_else(|| {
        let problem = format!("plot `{}`: x = `{}` is no number", plot.name, plot.x);
        experiment.wrong(last(&plot.x), problem)
    })
}

fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|integer| integer as f64))
}

fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}
