//! An experiment with one value of a field: its cells, however the file sets or varies the field.

use super::fields::{Assignment, assignments};
use super::plan::Form;
use super::spec::Group;
use super::{Experiment, Plan};
use crate::cell::Cell;
use crate::error::LabError;
use toml::{Table, Value};

impl Experiment {
    /// The cells of the experiment with this value of a field in all of them, one replicate each.
    /// Their names end in the value.
    pub fn cells_with(&self, form: Form, fixed: &Assignment) -> Result<Vec<Cell>, LabError> {
        let mut experiment = self.clone();
        experiment.spec.replicates = 1;
        experiment.spec.groups.iter_mut().for_each(|group| fix(group, fixed));
        let Plan { cells, .. } = experiment.expanded(form)?;
        Ok(cells)
    }
}

/// Gives a field one value in all cells of a group.
fn fix(group: &mut Group, Assignment { path, value }: &Assignment) {
    group.vary = without(&group.vary, path);
    group.vary.insert(path.clone(), Value::Array(vec![value.clone()]));
    // The short form would set it again.
    group.quick = without(&group.quick, path);
    group.quick_vary = without(&group.quick_vary, path);
}

/// The fields of a table by their whole paths, without one of them.
fn without(table: &Table, path: &str) -> Table {
    let others = assignments(table).into_iter().filter(|assignment| assignment.path != path);
    others.map(|Assignment { path, value }| (path, value)).collect()
}
