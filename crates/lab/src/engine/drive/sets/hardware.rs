//! The part of a device that a set has, and what the host of sets cannot do.

use crate::error::LabError;
use crate::layout::Sets;
use softflash_drive::spec::{Bands, DeviceSpec, PageMapped};
use softflash_workload::Precondition;

/// The hardware of a set.
pub(super) fn hardware_of_set(device: &DeviceSpec, sets: &Sets) -> Result<DeviceSpec, LabError> {
    let channels = device.geometry.channels;
    let refused = |problem: String| Err(LabError::Parameter(problem));
    if sets.sets == 0 || !channels.is_multiple_of(sets.sets) {
        return refused(format!(
            "sets = {}: a set has whole channels, and all sets equally many; `{}` has {channels}",
            sets.sets, device.name
        ));
    }
    if device.thermal.is_some() {
        return refused(format!(
            "`{}` has a thermal limit, which its sets would share; remove it",
            device.name
        ));
    }
    let mut of_set = device.clone();
    of_set.geometry.channels = channels / sets.sets;
    of_set.controller.write_buffer_bytes /= u64::from(sets.sets);
    Ok(of_set)
}

/// Refuses sets that the host cannot use as the layout says.
pub(super) fn check(layout: &PageMapped, sets: &Sets, state: Precondition) -> Result<(), LabError> {
    let refused = |problem: String| Err(LabError::Parameter(problem));
    if sets.copies == 0 || !sets.sets.is_multiple_of(sets.copies) {
        return refused(format!(
            "copies = {}: {} sets cannot be divided into groups of so many",
            sets.copies, sets.sets
        ));
    }
    if !sets.pressure.is_finite() || sets.pressure < 0.0 {
        return refused(format!("pressure = {}: write 0 for no limit, or a share", sets.pressure));
    }
    if matches!(state, Precondition::Random4k { .. }) {
        return refused(format!("precondition {state} is of one drive; use steady"));
    }
    if sets.window_ms == 0 {
        return Ok(());
    }
    if sets.copies < 2 {
        return refused(
            "window_ms needs copies = 2 or more: one set reads while the other writes".to_owned(),
        );
    }
    let works_alone =
        layout.slc_cache.is_some() || layout.scrub_hours > 0.0 || layout.bands != Bands::None;
    if works_alone {
        return refused(
            "window_ms needs a drive that rests without writes: remove `slc_cache`, `scrub_hours` and `bands`"
                .to_owned(),
        );
    }
    Ok(())
}
