//! The faults planned for one session: at which time, or at which command, they strike.

use softflash_base::Time;
use softflash_device::ModelDevice;
use softflash_nand::faults::{FaultPlace, FaultSchedule, FaultTime, PlannedFault, Strike};
use softflash_runtime::{RuntimeHandle, yield_now};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The faults planned for a session.
pub type PlannedFaults = Vec<PlannedFault>;

/// The dies that are dead from the start of the session.
pub fn dead_dies(planned_faults: &PlannedFaults) -> BTreeSet<u16> {
    let of = |fault: &PlannedFault| match fault {
        PlannedFault { place: FaultPlace::Die(die), what: Strike::Death, .. } => Some(*die as u16),
        _ => None,
    };
    planned_faults.iter().filter_map(of).collect()
}

/// When the first die fails.
pub(crate) fn first_death(planned_faults: &PlannedFaults) -> Option<Time> {
    let of = |fault: &PlannedFault| match (fault.when, fault.what) {
        (FaultTime::AtNs(at), Strike::Death) => Some(Time(at)),
        _ => None,
    };
    planned_faults.iter().filter_map(of).min()
}

/// A die that fails at this time.
pub(crate) fn death(die: u32, at: Time) -> PlannedFault {
    PlannedFault { place: FaultPlace::Die(die), when: FaultTime::AtNs(at.0), what: Strike::Death }
}

/// Schedules the faults as soon as the device is in use.
pub fn plan(planned_faults: &PlannedFaults, device: &Arc<ModelDevice>, runtime: &RuntimeHandle) {
    if planned_faults.is_empty() {
        return;
    }
    let schedule = FaultSchedule { faults: planned_faults.clone() };
    let device = Arc::clone(device);
    runtime.spawn(Box::pin(async move {
        // All queue pairs are opened before the first task waits.
        yield_now().await;
        let planned = device.schedule_faults(&schedule);
        assert!(planned.is_ok(), "the dies of the scenario exist: {planned:?}");
    }));
}
