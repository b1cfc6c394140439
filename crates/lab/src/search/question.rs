//! What a search asks: of which cell, which key, which condition.

use super::bisection::Want;
use super::condition::Condition;
use super::grid::{Grid, Span};
use super::key::SearchedKey;
use crate::cell::Cell;
use crate::error::LabError;
use crate::experiment::{Assignment, Experiment, Form};
use crate::toml_text::suggestion;
use softflash_base::checksum::checksum64;
use toml::Value;

/// The most replicates of a value.
const MOST_REPLICATES: u32 = 1000;

/// How many replicates of a value must hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quorum {
    /// Runs of each value, with different seeds.
    pub replicates: u32,
    /// Those in which the condition must hold.
    pub least: u32,
}

impl Quorum {
    /// A quorum of `least` of the replicates, of all unless given.
    ///
    /// # Errors
    /// [`LabError::Parameter`] unless 1 to 1000 replicates are asked for, and `least` of them.
    pub fn new(replicates: u32, least: Option<u32>) -> Result<Quorum, LabError> {
        let least = least.unwrap_or(replicates);
        if !(1..=MOST_REPLICATES).contains(&replicates) {
            return Err(LabError::Parameter(format!(
                "{replicates} replicates; give 1 to {MOST_REPLICATES}"
            )));
        }
        if !(1..=replicates).contains(&least) {
            return Err(LabError::Parameter(format!(
                "a quorum of {least} of {replicates} replicates; give 1 to {replicates}"
            )));
        }
        Ok(Quorum { replicates, least })
    }
}

/// A search.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    experiment: Experiment,
    form: Form,
    /// Which of the experiment's cells.
    cell: usize,
    /// The seed of the experiment.
    pub seed: u64,
    /// The name of the cell, without the value of the key.
    pub cell_name: String,
    /// The key.
    pub key: SearchedKey,
    /// The values.
    pub grid: Grid,
    /// What must hold.
    pub condition: Condition,
    /// Which end is wanted.
    pub want: Want,
    /// How many replicates must hold.
    pub quorum: Quorum,
}

impl Question {
    /// Asks about the cell that `cell` names, or the only one of an experiment.
    ///
    /// # Errors
    /// [`LabError::Parameter`] if the key cannot be searched, the span makes no grid, or the cell
    /// is not known; the errors of the experiment's file.
    pub fn new(
        experiment: Experiment,
        form: Form,
        cell: Option<&str>,
        (path, span): (&str, Span),
        (want, condition): (Want, Condition),
        quorum: Quorum,
    ) -> Result<Question, LabError> {
        let plain = experiment.plan(form)?;
        // The key is checked on any cell before the cells of its values are made.
        let any = plain.cells.first();
        let any =
            any.ok_or_else(|| LabError::Parameter("the experiment has no cells".to_owned()))?;
        let key = SearchedKey::of(any, path)?;
        let grid = key.grid(span).map_err(|error| LabError::Parameter(error.to_string()))?;
        let cells = experiment.cells_with(form, &fixed(&key, &grid, 0))?;
        let suffix = format!("_{}={}", key.name(), written(&grid.value(0)));
        let names: Vec<String> =
            cells.iter().map(|cell| cell.key.replacen(&suffix, "", 1)).collect();
        let index = chosen(&experiment.name, &names, cell)?;
        let cell_name = names.into_iter().nth(index).unwrap_or_default();
        let seed = form.seed.unwrap_or(experiment.spec.seed);
        Ok(Question {
            experiment,
            form,
            cell: index,
            seed,
            cell_name,
            key,
            grid,
            condition,
            want,
            quorum,
        })
    }

    /// The experiment.
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// Whether it is the short form.
    pub fn is_quick(&self) -> bool {
        self.form.quick
    }

    /// The name of the search, that of the directory of its results.
    pub fn name(&self) -> String {
        format!("{}-search-{}", self.experiment.name, self.key.name())
    }

    /// The replicates of a value. All values have the same seeds, so that they differ in the value
    /// alone.
    pub fn cells(&self, place: usize) -> Result<Vec<Cell>, LabError> {
        let fixed = fixed(&self.key, &self.grid, place);
        let cell = self.experiment.cells_with(self.form, &fixed)?.into_iter().nth(self.cell);
        let cell = cell
            .ok_or_else(|| LabError::Simulation(format!("{}: the cell is gone", self.cell_name)))?;
        let replicate = |number: u32| {
            let seed = checksum64(self.seed, format!("search replicate={number}").as_bytes());
            let key = match number {
                1 => cell.key.clone(),
                number => format!("{}_replicate={number}", cell.key),
            };
            Cell { key, seed, ..cell.clone() }
        };
        Ok((1..=self.quorum.replicates).map(replicate).collect())
    }
}

fn fixed(key: &SearchedKey, grid: &Grid, place: usize) -> Assignment {
    Assignment { path: key.path.clone(), value: grid.value(place) }
}

/// A value as the name of a cell has it.
fn written(value: &Value) -> String {
    match value {
        Value::Float(number) => number.to_string(),
        other => other.to_string(),
    }
}

/// The index of the cell of this name, or of the only one that has `name` in it.
fn chosen(experiment: &str, names: &[String], name: Option<&str>) -> Result<usize, LabError> {
    let all = || names.iter().map(String::as_str);
    let Some(name) = name else {
        return match names {
            [_] => Ok(0),
            _ => Err(LabError::Parameter(format!(
                "{experiment} has {} cells; choose one with --cell: {}",
                names.len(),
                all().collect::<Vec<_>>().join(", ")
            ))),
        };
    };
    if let Some(index) = all().position(|known| known == name) {
        return Ok(index);
    }
    let like: Vec<usize> =
        (0..).zip(all()).filter(|(_, known)| known.contains(name)).map(|(at, _)| at).collect();
    match like.as_slice() {
        [index] => Ok(*index),
        [] => {
            let hint = suggestion(name, all().collect::<Vec<_>>());
            Err(LabError::Parameter(format!("{experiment} has no cell `{name}`; {hint}")))
        }
        _ => Err(LabError::Parameter(format!(
            "{} cells of {experiment} have `{name}` in their names; write more of one: {}",
            like.len(),
            all().filter(|known| known.contains(name)).collect::<Vec<_>>().join(", ")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_chosen_by_as_much_of_its_name_as_tells_it_from_others() {
        let names = ["1_sdf_sdf_reads".to_owned(), "1_sdf_sdf_writes".to_owned()];
        let choose = |name| chosen("x", &names, name).map_err(|error| error.to_string());
        assert_eq!(choose(Some("writes")), Ok(1));
        assert_eq!(choose(Some("1_sdf_sdf_reads")), Ok(0));
        assert!(choose(Some("sdf")).unwrap_err().contains("2 cells of x have `sdf`"));
        assert!(choose(None).unwrap_err().contains("--cell: 1_sdf_sdf_reads, 1_sdf"));
        assert!(choose(Some("1_sdf_sdf_raeds")).unwrap_err().contains("`1_sdf_sdf_reads`"));
    }

    #[test]
    fn a_quorum_is_some_of_the_replicates() {
        assert_eq!(Quorum::new(3, None).unwrap().least, 3);
        assert_eq!(Quorum::new(3, Some(2)).unwrap().least, 2);
        for (replicates, least) in [(0, None), (3, Some(4)), (3, Some(0)), (1001, None)] {
            assert!(Quorum::new(replicates, least).is_err(), "{least:?} of {replicates}");
        }
    }
}
