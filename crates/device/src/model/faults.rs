//! Planned faults of a device in use, and counters of injected faults.

use super::device::ModelDevice;
use softflash_nand::{ConfigError, FaultSchedule, InjectedFaults};
use std::sync::PoisonError;

impl ModelDevice {
    /// Plans faults for the open queue pairs, in addition to the configured rates. Dies and
    /// channels are counted through the device, times are on the clock of the queue pairs, and each
    /// row of pages that a die executes from now on counts as a command. Queue pairs that are
    /// opened later are not affected.
    ///
    /// A planned power cut cuts the whole device as [`power_cut`](ModelDevice::power_cut) does,
    /// with outcomes drawn from the device's seed and the time;
    /// [`last_power_cut`](ModelDevice::last_power_cut) returns its report.
    ///
    /// # Errors
    /// [`ConfigError::Schedule`] if a fault is impossible; then none is planned.
    pub fn schedule_faults(&self, schedule: &FaultSchedule) -> Result<(), ConfigError> {
        let whole = &self.config().array.geometry;
        schedule.validate(whole)?;
        let mut planned = Ok(());
        self.each_group(|group| {
            let part = schedule.part(whole, group.channels().in_device());
            if planned.is_ok() && !part.faults.is_empty() {
                planned = group.array.schedule(&part);
            }
        });
        planned
    }

    /// Counters of the silent, planned and slow faults injected since the device was opened.
    pub fn injected_faults(&self) -> InjectedFaults {
        let past = self.shared().past_injected.lock();
        let mut injected = *past.unwrap_or_else(PoisonError::into_inner);
        self.each_group(|group| injected.add(&group.array.injected()));
        injected
    }
}
