//! The client's changes of settings, and whether quotas and limits hold.

use super::client::{Client, Ended, UNIT};
use super::reference::{Name, Pending};
use softflash_volume::{Setting, Temperature, VolumeError};

impl Client<'_> {
    /// Changes one or two settings of a volume.
    pub(super) async fn set(&mut self) -> Result<(), Ended> {
        let volumes = self.reference.borrow().volumes();
        let Some(name) = self.one(volumes) else { return Ok(()) };
        let changes: Vec<Setting> = (0..1 + self.rng.below(2)).map(|_| self.setting()).collect();
        let before = self.reference.borrow().settings.get(&name).copied().unwrap_or_default();
        let after = before.with(&changes);
        self.reference.borrow_mut().pending = Some(Pending::Sets(name.clone(), after));
        let result = self.domain.set(&name.volume, &changes).await;
        self.paces.restart(&name, self.runtime.now());
        self.completed(result)
    }

    /// A setting: limits are high enough that a session makes progress.
    fn setting(&mut self) -> Setting {
        let removed = self.rng.chance(0.3);
        let units = u64::from(self.shape.units);
        match self.rng.below(6) {
            0 | 1 => {
                let quota = (1 + self.rng.below(2 * units)) * UNIT;
                Setting::Quota((!removed).then_some(quota))
            }
            2 => Setting::Iops((!removed).then_some(50 << self.rng.below(10))),
            3 => Setting::Bandwidth((!removed).then_some((256 << 10) << self.rng.below(8))),
            4 => Setting::Weight(1 + self.rng.below(1000) as u16),
            _ => match self.rng.below(4) {
                0 => Setting::Temperature(Temperature::Hot),
                1 => Setting::Temperature(Temperature::Warm),
                2 => Setting::Temperature(Temperature::Cold),
                _ => Setting::Stream(self.rng.below(8) as u8),
            },
        }
    }

    /// Bytes that a volume holds with its snapshots.
    pub(super) fn used(&self, name: &Name) -> u64 {
        let listed = self.domain.list();
        listed.iter().find(|info| info.name == name.volume).map_or(0, |info| info.used_bytes)
    }

    /// After a write: a volume holds no more than its quota, or than it held before, it was refused
    /// only if one mapping unit more would not have fitted, and it did not come too early.
    pub(super) fn check_limits(
        &mut self,
        name: &Name,
        bytes: u64,
        before: u64,
        written: &Result<(), VolumeError>,
    ) -> Result<(), Ended> {
        let settings = self.reference.borrow().settings.get(name).copied().unwrap_or_default();
        let paced = self.paces.wrote(name, bytes, self.runtime.now(), &settings);
        paced.map_err(Ended::Wrong)?;
        let used = self.used(name);
        let quota = settings.quota_bytes.unwrap_or(u64::MAX);
        let is_refused = matches!(written, Err(VolumeError::QuotaExceeded { .. }));
        let wrong = if used > quota.max(before) {
            "exceeds its quota"
        } else if is_refused && used + UNIT <= quota {
            "is refused a write inside its quota"
        } else {
            return Ok(());
        };
        let state = format!("holds {used} bytes, {before} before, with a quota of {quota}");
        Err(Ended::Wrong(format!("{name:?} {wrong}: it {state}")))
    }
}
