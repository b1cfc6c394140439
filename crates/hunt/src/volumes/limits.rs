//! The client's changes of settings, and whether quotas and limits hold.

use super::client::{Client, Ended, UNIT};
use super::reference::{Name, Pending};
use softflash_base::Time;
use softflash_volume::{Setting, Temperature, VolumeError, VolumeSettings};
use std::collections::BTreeSet;

/// What a volume held before some writes.
pub(super) struct Quota {
    pub name: Name,
    pub before: u64,
}

impl Client<'_> {
    /// Changes one or two settings of a volume.
    pub(super) async fn set(&mut self) -> Result<(), Ended> {
        let volumes = self.reference.borrow().volumes();
        let Some(name) = self.one(volumes) else { return Ok(()) };
        let changes: Vec<Setting> = (0..1 + self.rng.below(2)).map(|_| self.setting()).collect();
        self.change(&name, &changes).await
    }

    /// Changes settings while no other request of the client is under way.
    pub(super) async fn change(&mut self, name: &Name, changes: &[Setting]) -> Result<(), Ended> {
        let after = self.settings_after(name, changes);
        self.reference.borrow_mut().pending = Some(Pending::Sets(name.clone(), after));
        let result = self.domain.set(&name.volume, changes).await;
        self.paces.restart(name, self.runtime.now());
        self.completed(result)
    }

    /// The settings of a volume with these changes.
    pub(super) fn settings_after(&self, name: &Name, changes: &[Setting]) -> VolumeSettings {
        self.settings_of(name).with(changes)
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
        self.check_pace(name, bytes, self.runtime.now())?;
        self.check_quota(&Quota { name: name.clone(), before })?;
        written.as_ref().err().map_or(Ok(()), |error| self.check_refusal(name, error))
    }

    /// A write that has ended now did not come too early.
    pub(super) fn check_pace(&mut self, name: &Name, bytes: u64, at: Time) -> Result<(), Ended> {
        let settings = self.settings_of(name);
        self.paces.wrote(name, bytes, at, &settings).map_err(Ended::Wrong)
    }

    fn settings_of(&self, name: &Name) -> VolumeSettings {
        self.reference.borrow().settings.get(name).copied().unwrap_or_default()
    }

    /// What these volumes hold, each once.
    pub(super) fn quotas<'n>(&self, names: impl Iterator<Item = &'n Name>) -> Vec<Quota> {
        let names: BTreeSet<&Name> = names.collect();
        names
            .into_iter()
            .map(|name| Quota { name: name.clone(), before: self.used(name) })
            .collect()
    }

    /// A volume holds no more than its quota, or than it held before.
    pub(super) fn check_quota(&self, Quota { name, before }: &Quota) -> Result<(), Ended> {
        let used = self.used(name);
        let quota = self.settings_of(name).quota_bytes.unwrap_or(u64::MAX);
        if used <= quota.max(*before) {
            return Ok(());
        }
        Err(Ended::Wrong(format!(
            "{name:?} exceeds its quota: it holds {used} bytes, {before} before, with a quota of {quota}"
        )))
    }

    /// A write was refused for its quota only if one mapping unit more would not have fitted.
    pub(super) fn check_refusal(&self, name: &Name, error: &VolumeError) -> Result<(), Ended> {
        let used = self.used(name);
        let quota = self.settings_of(name).quota_bytes.unwrap_or(u64::MAX);
        if !matches!(error, VolumeError::QuotaExceeded { .. }) || used + UNIT > quota {
            return Ok(());
        }
        Err(Ended::Wrong(format!(
            "{name:?} is refused a write inside its quota: it holds {used} bytes, with a quota of {quota}"
        )))
    }
}
