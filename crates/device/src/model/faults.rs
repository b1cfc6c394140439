//! Faults that are planned while a device is in use, and what struck it.

use super::device::ModelDevice;
use softflash_nand::{ConfigError, FaultSchedule, InjectedFaults};
use std::sync::PoisonError;

impl ModelDevice {
    /// Plans faults for the queue pairs that are open now, beside the configured rates. Dies and
    /// channels are counted through the device, times are on the clock of the queue pairs, and each
    /// row of pages that a die does from now on is a command. A queue pair that is opened later
    /// knows nothing of this.
    ///
    /// A planned power cut cuts the whole device as [`power_cut`](ModelDevice::power_cut) does,
    /// with chance from the device's seed and the time;
    /// [`last_power_cut`](ModelDevice::last_power_cut) says what it left.
    ///
    /// # Errors
    /// [`ConfigError::Schedule`] if a fault cannot happen; then nothing is planned.
    pub fn schedule_faults(&self, schedule: &FaultSchedule) -> Result<(), ConfigError> {
        let whole = &self.config().array.geometry;
        schedule.validate(whole)?;
        let mut planned = Ok(());
        self.each_group(|group, first| {
            let channels = first..first + u32::from(group.array.geometry().channels);
            let part = schedule.part(whole, channels);
            if planned.is_ok() && !part.faults.is_empty() {
                planned = group.array.schedule(&part);
            }
        });
        planned
    }

    /// How often silent, planned and slow faults struck since the device was opened.
    pub fn injected_faults(&self) -> InjectedFaults {
        let past = self.shared().past_injected.lock();
        let mut injected = *past.unwrap_or_else(PoisonError::into_inner);
        self.each_group(|group, _| injected.add(&group.array.injected()));
        injected
    }
}
