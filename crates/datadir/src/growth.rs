//! A data directory whose device gets more units at its end. No data move.
//!
//! | step | after a crash behind it, the next one who opens the directory |
//! |---|---|
//! | the record says what will be | removes the record |
//! | the table of sets names all units that there are, since a larger device has another static split | the same |
//! | the device reserves room for the new units | gives it back |
//! | units that join a set are erased | the same |
//! | the next manifest is written beside the one that counts | the same |
//! | the label of the device names the new units | completes the growth |
//! | that one counts: its table of sets names the new units | removes the record |
//!
//! So the label decides. Behind it no step needs space, which a full file system would not have.
//! Between it and the last table the new units are spare, also for those who only look.

mod plan;
#[cfg(test)]
mod tests;

pub use plan::Growth;

use crate::creation::remove_staged;
use crate::directory::DataDir;
use crate::error::DataDirError;
use crate::growth_record::Record;
use crate::open::OpenDir;
use crate::set_table::Shares;
use softflash_device::Device;
use std::io;
use std::path::Path;

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> DataDirError {
    let path = path.to_owned();
    move |source| DataDirError::Io { path, source }
}

impl DataDir {
    /// Begins a growth: the next step [enlarges](Growth::enlarge) the device. A restart finds the
    /// directory as before. After a failure it has to be [undone](DataDir::undo_growth).
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn announce_growth(
        &mut self,
        device: &dyn Device,
        growth: &Growth,
    ) -> Result<(), DataDirError> {
        let record = Record { device_units: growth.units.end, sets: growth.grown.next.clone() };
        record.write(self.path()).map_err(io_error(self.path()))?;
        if self.manifest().sets.as_ref() != Some(&growth.pinned) {
            self.replace_table(device, &growth.pinned)?;
        }
        Ok(())
    }

    /// Completes a growth: the units are the device's, and those that join a set belong to it,
    /// durably.
    ///
    /// # Errors
    /// As [`record_growth`](DataDir::record_growth) and
    /// [`complete_growth`](DataDir::complete_growth).
    pub fn finish_growth(
        &mut self,
        larger: &dyn Device,
        growth: &Growth,
    ) -> Result<(), DataDirError> {
        self.record_growth(larger, growth)?;
        self.complete_growth(larger, growth)
    }

    /// Records that the new units are the device's: from now on a restart completes the growth. A
    /// failure undoes it.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn record_growth(
        &mut self,
        larger: &dyn Device,
        growth: &Growth,
    ) -> Result<(), DataDirError> {
        let staged = self.stage_growth(larger, growth);
        let record = || larger.record_units().map_err(DataDirError::growth(self.path()));
        let recorded = staged.and_then(|()| record());
        if recorded.is_err() {
            self.undo_growth(larger);
        }
        recorded
    }

    /// Writes what the manifest will be: no step needs space once the label of the device names the
    /// new units.
    fn stage_growth(&self, larger: &dyn Device, growth: &Growth) -> Result<(), DataDirError> {
        self.stage_manifest(&self.with_table(larger, &growth.grown.next)?)
    }

    /// The units that join a set belong to it, durably. After an error they are spare, and the next
    /// start completes the growth.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn complete_growth(
        &mut self,
        larger: &dyn Device,
        growth: &Growth,
    ) -> Result<(), DataDirError> {
        self.put_manifest(self.with_table(larger, &growth.grown.next)?)?;
        Record::remove(self.path()).map_err(io_error(self.path()))
    }

    /// Undoes a growth that was begun and not finished. What cannot be undone now is undone by the
    /// next start.
    pub fn undo_growth(&mut self, device: &dyn Device) {
        let undone = device.give_back_room().map_err(DataDirError::growth(self.path()));
        let remove = || {
            remove_staged(self.path())?;
            Record::remove(self.path())
        };
        let removed = undone.and_then(|()| remove().map_err(io_error(self.path())));
        if let Err(error) = removed {
            tracing::warn!("an interrupted growth is undone at the next start: {error}");
        }
    }
}

impl OpenDir {
    /// The growth of its device, as [`Growth::plan`].
    ///
    /// # Errors
    /// As [`Growth::plan`].
    pub fn plan_growth(
        &self,
        size_bytes: Option<u64>,
        shares: Shares,
    ) -> Result<Option<Growth>, DataDirError> {
        let (manifest, device) = (self.data.manifest(), self.device.info());
        Growth::plan(&self.path, manifest, device, size_bytes, shares)
    }

    /// Begins a growth: returns the directory with the new units, none of which is in a set. Those
    /// that [join](crate::Grown::joining) one are to be erased. A restart finds the directory as
    /// before. A failure undoes it.
    ///
    /// # Errors
    /// [`DataDirError::Growth`] where the device gets no more units, and errors of the file system.
    pub fn begin_growth(self, growth: &Growth) -> Result<OpenDir, DataDirError> {
        let OpenDir { device, mut data, .. } = self;
        let begun = data.announce_growth(&*device, growth);
        let larger = begun.and_then(|()| growth.enlarge(&*device));
        let larger = larger.inspect_err(|_| data.undo_growth(&*device))?;
        let layout = data.manifest().layout(larger.info().units);
        Ok(OpenDir::of(data, larger, layout))
    }

    /// As [`DataDir::finish_growth`].
    ///
    /// # Errors
    /// As [`DataDir::finish_growth`].
    pub fn finish_growth(self, growth: &Growth) -> Result<OpenDir, DataDirError> {
        let OpenDir { device, mut data, .. } = self;
        data.finish_growth(&*device, growth)?;
        let layout = data.manifest().layout(device.info().units);
        Ok(OpenDir::of(data, device, layout))
    }

    /// As [`DataDir::undo_growth`].
    pub fn undo_growth(self) {
        let OpenDir { device, mut data, .. } = self;
        data.undo_growth(&*device);
    }
}
