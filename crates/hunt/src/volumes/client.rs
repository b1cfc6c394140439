//! A client: one request after the other on its own volumes, snapshots and clones.

use super::reading::read_units;
use super::reference::{Name, Pending};
use crate::volume_shape::VolumeShape;
use softflash_volume::{MAPPING_UNIT_BYTES, VolumeError};

pub use super::reading::UNIT;
pub use super::steps::{Client, Ended};

/// A mapping unit of this state.
pub fn unit(state: u64) -> Vec<u8> {
    state.to_le_bytes().repeat(MAPPING_UNIT_BYTES / 8)
}

/// The state of a mapping unit, which must be all of one.
pub fn state(bytes: &[u8]) -> Result<u64, String> {
    let (words, _) = bytes.as_chunks::<8>();
    let first = words.first().copied().unwrap_or_default();
    match words.iter().all(|word| *word == first) {
        true => Ok(u64::from_le_bytes(first)),
        false => Err("a mapping unit has several states".to_owned()),
    }
}

/// Whether a write was refused for lack of space: a part may have been written.
pub(super) fn is_refused(error: &VolumeError) -> bool {
    matches!(error, VolumeError::OutOfSpace { .. } | VolumeError::QuotaExceeded { .. })
}

impl Client<'_> {
    /// Makes requests until one fails; ends after `requests`, if that is not none.
    pub async fn run(&mut self, requests: Option<u32>) -> Result<(), Ended> {
        let mut left = requests;
        while left != Some(0) {
            left = left.map(|left| left - 1);
            match self.request().await {
                Err(Ended::Failed(VolumeError::OutOfSpace { .. })) => self.make_space().await?,
                // Discards and other quotas will come.
                Err(Ended::Failed(VolumeError::QuotaExceeded { .. })) => {}
                result => result?,
            }
        }
        Ok(())
    }

    async fn request(&mut self) -> Result<(), Ended> {
        let VolumeShape {
            discards, flushes, operations, settings, bursts, lifts, reshapes, ..
        } = *self.shape;
        let mut share = self.rng.unit_f64();
        let mut is = |of: f64| {
            share -= of;
            share < 0.0
        };
        if is(operations) {
            self.operation().await
        } else if is(settings) {
            self.set().await
        } else if bursts > 0.0 && is(bursts) {
            self.burst().await
        } else if lifts > 0.0 && is(lifts) {
            self.lift().await
        } else if reshapes > 0.0 && is(reshapes) {
            self.reshape().await
        } else if is(flushes) {
            self.flush().await
        } else if is(discards) {
            self.discard().await
        } else if is(self.reads) {
            self.read().await
        } else {
            self.write().await
        }
    }

    /// A range of a volume.
    pub(super) fn range(&mut self) -> Option<(Name, u32, u32)> {
        let name = self.one(self.reference.borrow().volumes())?;
        let size = self.reference.borrow().images.get(&name)?.len();
        let lba = self.rng.below(u64::from(size)) as u32;
        let count = 1 + self.rng.below(u64::from(self.shape.longest)) as u32;
        Some((name, lba, count.min(size - lba)))
    }

    async fn write(&mut self) -> Result<(), Ended> {
        let Some((name, lba, count)) = self.range() else { return Ok(()) };
        let volume = self.domain.volume(&name.volume)?;
        let data = self.new_data(&name, lba, count);
        let before = self.used(&name);
        let written = volume.write(u64::from(lba) * UNIT, &data).await;
        self.check_limits(&name, data.len() as u64, before, &written)?;
        if written.as_ref().is_err_and(is_refused) {
            // A part may have been written: what is there now is known by a read.
            self.look_again(&name, lba, count).await?;
        }
        Ok(written?)
    }

    /// Data of mapping units that are about to be written.
    pub(super) fn new_data(&self, name: &Name, lba: u32, count: u32) -> Vec<u8> {
        let mut reference = self.reference.borrow_mut();
        let units: Vec<_> = (lba..lba + count)
            .map(|lba| {
                let state = reference.next_state();
                reference.begin(name, lba, state);
                unit(state)
            })
            .collect();
        units.concat()
    }

    /// Takes what is read as the newest states.
    pub(super) async fn look_again(
        &mut self,
        name: &Name,
        lba: u32,
        count: u32,
    ) -> Result<(), Ended> {
        let volume = self.domain.volume(&name.volume)?;
        let read = read_units(&volume, lba, count, self.may_lose).await?;
        for (lba, bytes) in (lba..).zip(read) {
            let mut reference = self.reference.borrow_mut();
            match bytes {
                Some(bytes) => {
                    let state = state(&bytes).map_err(Ended::Wrong)?;
                    reference.begin(name, lba, state);
                }
                None => reference.forget_newest(name, lba),
            }
        }
        Ok(())
    }

    async fn read(&mut self) -> Result<(), Ended> {
        let Some((name, lba, count)) = self.range() else { return Ok(()) };
        let volume = self.domain.volume(&name.volume)?;
        let read = read_units(&volume, lba, count, self.may_lose).await?;
        for (lba, bytes) in (lba..).zip(read) {
            bytes.map_or(Ok(()), |bytes| self.compare_newest(&name, lba, &bytes))?;
        }
        Ok(())
    }

    /// Compares what was read with the newest states.
    pub(super) fn compare_newest(&self, name: &Name, lba: u32, bytes: &[u8]) -> Result<(), Ended> {
        for (lba, bytes) in (lba..).zip(bytes.chunks(MAPPING_UNIT_BYTES)) {
            let found = state(bytes).map_err(Ended::Wrong)?;
            self.reference.borrow().may_read(name, lba, found).map_err(Ended::Wrong)?;
        }
        Ok(())
    }

    async fn discard(&mut self) -> Result<(), Ended> {
        let Some((name, lba, count)) = self.range() else { return Ok(()) };
        (lba..lba + count).for_each(|lba| self.reference.borrow_mut().begin(&name, lba, 0));
        let volume = self.domain.volume(&name.volume)?;
        let discarded = volume.discard(u64::from(lba) * UNIT, u64::from(count) * UNIT).await;
        if discarded.as_ref().is_err_and(is_refused) {
            self.look_again(&name, lba, count).await?;
        }
        Ok(discarded?)
    }

    async fn flush(&mut self) -> Result<(), Ended> {
        match self.domain.flush().await {
            Ok(()) if self.may_lose && self.rng.chance(0.5) => {}
            Ok(()) => {
                if self.rest().await {
                    self.reference.borrow_mut().settle();
                }
            }
            // Nothing is durable, and the next flush may be better.
            Err(VolumeError::Flash(_)) if self.may_fail_flushes => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    async fn operation(&mut self) -> Result<(), Ended> {
        let (volumes, snapshots) =
            (self.reference.borrow().volumes(), self.reference.borrow().snapshots());
        let many = volumes.len() + snapshots.len() >= 4;
        match self.rng.below(10) {
            0..4 if !many => self.snapshot(volumes).await,
            4..6 if !many => self.clone_snapshot(snapshots).await,
            6 => self.resize(volumes).await,
            _ => self.delete(snapshots, volumes).await,
        }
    }

    async fn snapshot(&mut self, volumes: Vec<Name>) -> Result<(), Ended> {
        let Some(of) = self.one(volumes) else { return Ok(()) };
        let name = {
            let mut reference = self.reference.borrow_mut();
            let name = reference.fresh();
            let image = Name { volume: of.volume.clone(), snapshot: Some(name.clone()) };
            let contents = reference.images[&of].clone();
            reference.pending = Some(Pending::Appears(image, contents));
            name
        };
        let result = self.domain.snapshot(&of.volume, &name).await;
        self.completed(result).await
    }

    async fn clone_snapshot(&mut self, snapshots: Vec<Name>) -> Result<(), Ended> {
        let Some(of) = self.one(snapshots) else { return Ok(()) };
        let name = {
            let mut reference = self.reference.borrow_mut();
            let name = reference.fresh();
            let image = Name { volume: name.clone(), snapshot: None };
            let contents = reference.images[&of].clone();
            reference.pending = Some(Pending::Appears(image, contents));
            reference.parents.insert(name.clone(), of.clone());
            name
        };
        let snapshot = of.snapshot.unwrap_or_default();
        let result = self.domain.clone_snapshot(&of.volume, &snapshot, &name).await;
        self.completed(result).await
    }

    async fn resize(&mut self, volumes: Vec<Name>) -> Result<(), Ended> {
        let Some(name) = self.one(volumes) else { return Ok(()) };
        let units = 1 + self.rng.below(u64::from(self.shape.units)) as u32;
        self.reference.borrow_mut().pending = Some(Pending::Resizes(name.clone(), units));
        let result = self.domain.shrink(&name.volume, u64::from(units) * UNIT).await;
        self.completed(result).await
    }

    /// Deletes a snapshot, or a volume other than the first.
    async fn delete(&mut self, snapshots: Vec<Name>, volumes: Vec<Name>) -> Result<(), Ended> {
        let first = self.reference.borrow().volume_name();
        let all = snapshots
            .into_iter()
            .chain(volumes)
            .filter(|name| name.snapshot.is_some() || name.volume != first);
        let Some(name) = self.one(all.collect()) else { return Ok(()) };
        self.reference.borrow_mut().pending = Some(Pending::Disappears(name.clone()));
        let result = match &name.snapshot {
            Some(snapshot) => self.domain.delete_snapshot(&name.volume, snapshot).await,
            None => self.domain.delete(&name.volume).await,
        };
        if let Err(VolumeError::HasClones { .. } | VolumeError::HasSnapshots { .. }) = result {
            self.reference.borrow_mut().pending = None;
            return Ok(());
        }
        self.completed(result).await
    }

    /// The domain is full: discards a third of a volume, and deletes a snapshot.
    async fn make_space(&mut self) -> Result<(), Ended> {
        self.full = true;
        let Some((name, lba, _)) = self.range() else { return Ok(()) };
        let size = self.reference.borrow().images.get(&name).map_or(0, |contents| contents.len());
        let count = (size / 3 + 1).min(size - lba);
        (lba..lba + count).for_each(|lba| self.reference.borrow_mut().begin(&name, lba, 0));
        let volume = self.domain.volume(&name.volume)?;
        volume.discard(u64::from(lba) * UNIT, u64::from(count) * UNIT).await?;
        let snapshots = self.reference.borrow().snapshots();
        self.delete(snapshots, Vec::new()).await
    }
}
