//! `validate-drives`: what is fitted is named, most rows are predictions, and these are near the
//! published figures.

use softflash_lab::cell::unattended;
use softflash_lab::{Experiment, Form, LabError, Plan, engine, presets};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

const FITTED: &str = "(fitted)";

fn plan(quick: bool) -> Result<Plan, LabError> {
    Experiment::find("validate-drives")?.plan(Form { quick, seed: None })
}

#[test]
fn every_fitted_row_is_of_a_drive_that_names_its_fits() {
    let plan = plan(false).unwrap();
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
    let plan = plan(false).unwrap();
    let drives: BTreeSet<&str> = plan.cells.iter().map(|cell| cell.device.name.as_str()).collect();
    assert!(drives.len() >= 6, "{drives:?}");
    let (fitted, predicted): (Vec<&String>, Vec<&String>) =
        plan.paper.keys().partition(|label| label.ends_with(FITTED));
    assert!(predicted.len() >= 3 * fitted.len(), "{fitted:?} are fitted");
}

/// How far each predicted row of the quick form is from the published figure, as a share of it.
fn deviations() -> Result<BTreeMap<String, f64>, LabError> {
    let plan = plan(true)?;
    let stop = AtomicBool::new(false);
    let mut of = BTreeMap::new();
    for (number, cell) in plan.cells.iter().enumerate() {
        let rows = plan.rows.iter().filter(|row| row.cell == number);
        let predicted: Vec<_> = rows
            .filter(|row| !row.label.ends_with(FITTED))
            .filter_map(|row| Some((row, plan.paper.get(&row.label)?.value())))
            .collect();
        if predicted.is_empty() {
            continue;
        }
        let outcome = engine::run(cell, &unattended(&stop))?;
        for (row, published) in predicted {
            let ours = row.measure.of(&outcome).unwrap_or(0.0);
            of.insert(row.label.clone(), (ours / published - 1.0).abs());
        }
    }
    Ok(of)
}

#[test]
fn four_of_five_predictions_are_within_15_percent_and_nearly_all_within_40() {
    let of = deviations().unwrap();
    assert!(of.len() >= 40, "{} predictions", of.len());
    let beyond = |limit: f64| -> Vec<_> { of.iter().filter(|row| *row.1 > limit).collect() };
    assert!(beyond(0.15).len() * 5 <= of.len(), "of {} rows {:?}", of.len(), beyond(0.15));
    assert!(beyond(0.40).len() * 20 <= of.len(), "of {} rows {:?}", of.len(), beyond(0.40));
}
