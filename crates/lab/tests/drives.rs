//! `validate-drives`: what is fitted is named, and what is predicted is the larger part.

use softflash_lab::presets;
use softflash_lab::{Experiment, Form, LabError, Plan};
use std::collections::{BTreeMap, BTreeSet};

const FITTED: &str = "(fitted)";

fn plan() -> Result<Plan, LabError> {
    Experiment::find("validate-drives")?.plan(Form::default())
}

#[test]
fn every_fitted_row_is_of_a_drive_that_names_its_fits() {
    let plan = plan().unwrap();
    let mut fitted_rows = BTreeMap::<&str, BTreeSet<&str>>::new();
    for row in &plan.rows {
        let rows = fitted_rows.entry(plan.cells[row.cell].device.name.as_str()).or_default();
        if row.label.ends_with(FITTED) {
            rows.insert(&row.label);
        }
    }
    for (device, rows) in fitted_rows {
        let named = presets::device(device).unwrap().provenance.calibrated_on;
        assert_eq!(named.is_empty(), rows.is_empty(), "{device}: {named:?}, but {rows:?}");
        assert!(named.len() <= 3, "{device} is fitted to {named:?}");
    }
}

#[test]
fn six_drives_have_published_figures_and_most_of_them_are_predictions() {
    let plan = plan().unwrap();
    let drives: BTreeSet<&str> = plan.cells.iter().map(|cell| cell.device.name.as_str()).collect();
    assert!(drives.len() >= 6, "{drives:?}");
    let (fitted, predicted): (Vec<&String>, Vec<&String>) =
        plan.paper.keys().partition(|label| label.ends_with(FITTED));
    assert!(predicted.len() >= 3 * fitted.len(), "{fitted:?} are fitted");
}
