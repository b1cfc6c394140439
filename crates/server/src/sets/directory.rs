//! The data directory of a running server: the table of its sets, which changes.

use softflash_datadir::{
    DataDir, DataDirError, FlashSet, Growth, SetError, SetTable, ShardDomain, Shares,
};
use softflash_device::Device;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The error of changes while the server ends.
pub(super) const STOPPING: &str = "the server is stopping";

/// A directory that is open until it is [closed](Directory::close).
pub(super) struct Directory {
    data: Arc<Mutex<Option<DataDir>>>,
    /// The device with all of its units: another handle once it has grown.
    device: Arc<Mutex<Arc<dyn Device>>>,
}

impl Directory {
    pub fn new(data: DataDir, device: Arc<dyn Device>) -> Directory {
        Directory { data: Arc::new(Mutex::new(Some(data))), device: Arc::new(Mutex::new(device)) }
    }

    pub fn device(&self) -> Arc<dyn Device> {
        Arc::clone(&self.device.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn data(&self) -> MutexGuard<'_, Option<DataDir>> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets it go: others can open it.
    pub fn close(&self) {
        self.data().take();
    }

    /// The sets; none once it is closed.
    pub fn sets(&self) -> Vec<FlashSet> {
        self.data().as_ref().map(|data| data.sets(&*self.device())).unwrap_or_default()
    }

    /// The domains of the sets for volumes.
    pub fn domains(&self) -> Vec<ShardDomain> {
        let domains = |data: &DataDir| data.manifest().domains(self.units());
        self.data().as_ref().map(domains).unwrap_or_default()
    }

    /// What `plan` makes of the table of the sets.
    pub fn plan<T>(
        &self,
        plan: impl FnOnce(&SetTable) -> Result<T, SetError>,
    ) -> Result<T, String> {
        let data = self.data();
        let data = data.as_ref().ok_or(STOPPING)?;
        plan(&data.table(&*self.device())).map_err(|error| error.to_string())
    }

    /// Whether a table can follow.
    pub fn check(&self, next: &SetTable) -> Result<(), String> {
        let data = self.data();
        let data = data.as_ref().ok_or(STOPPING)?;
        data.check_table(&*self.device(), next).map_err(|error| error.to_string())
    }

    /// Replaces the table durably, on a thread that may wait for the disk.
    pub async fn replace(&self, next: SetTable) -> Result<(), String> {
        let device = self.device();
        self.write(move |data| data.replace_table(&*device, &next)).await
    }

    /// Whether the table on the disk is still the known one, after a change has failed.
    pub fn is_as_known(&self) -> bool {
        self.data().as_ref().is_some_and(DataDir::is_as_known)
    }

    /// Fails while the record of an earlier move is there.
    pub fn check_no_move(&self) -> Result<(), String> {
        let data = self.data();
        let data = data.as_ref().ok_or(STOPPING)?;
        data.check_no_move().map_err(|error| error.to_string())
    }

    /// Records that volumes are being copied from one set to another, durably.
    pub async fn begin_move(&self, volumes: Vec<String>, from: u16, to: u16) -> Result<(), String> {
        self.write(move |data| data.begin_move(volumes, from, to)).await
    }

    /// Records which of the two sets has them, durably.
    pub async fn arrived(&self, has_arrived: bool) -> Result<(), String> {
        self.write(move |data| data.arrived(has_arrived)).await
    }

    /// Records that nothing is left of them in the other set, durably.
    pub async fn end_move(&self) -> Result<(), String> {
        self.write(DataDir::end_move).await
    }

    /// Whether a move is unfinished, and the set that holds copies that count for nothing, unless
    /// it was deleted.
    pub fn unfinished_move(&self) -> Option<Option<String>> {
        let is_there = |data: &DataDir| data.manifest().unfinished_move.is_some();
        let domains = || self.domains().into_iter();
        let with_guests = || domains().find(|domain| !domain.guests.is_empty());
        let is_unfinished = self.data().as_ref().is_some_and(is_there);
        is_unfinished.then(|| with_guests().map(|domain| domain.name))
    }

    /// The volumes that the record of a move names.
    pub fn recorded_volumes(&self) -> Vec<String> {
        let data = self.data();
        let recorded = data.as_ref().and_then(|data| data.manifest().unfinished_move.clone());
        recorded.map(|it| it.volumes).unwrap_or_default()
    }

    /// Does something with the directory on a thread that may wait for the disk.
    async fn write(
        &self,
        work: impl FnOnce(&mut DataDir) -> Result<(), DataDirError> + Send + 'static,
    ) -> Result<(), String> {
        let data = Arc::clone(&self.data);
        let written = tokio::task::spawn_blocking(move || {
            let mut data = data.lock().unwrap_or_else(PoisonError::into_inner);
            let data = data.as_mut().ok_or(STOPPING)?;
            work(data).map_err(|error| error.to_string())
        });
        written.await.map_err(|error| error.to_string())?
    }

    /// The growth of the device; `None` where it has the size.
    pub fn plan_growth(
        &self,
        size_bytes: Option<u64>,
        shares: Shares,
    ) -> Result<Option<Arc<Growth>>, String> {
        let (data, device) = (self.data(), self.device());
        let data = data.as_ref().ok_or(STOPPING)?;
        let planned = Growth::plan(data.path(), data.manifest(), device.info(), size_bytes, shares);
        planned.map(|growth| growth.map(Arc::new)).map_err(|error| error.to_string())
    }

    /// Begins a growth, and returns the larger device. A failure undoes it.
    pub async fn begin_growth(&self, growth: &Arc<Growth>) -> Result<Arc<dyn Device>, String> {
        let (device, of_record) = (self.device(), Arc::clone(growth));
        let announced = self.write(move |data| data.announce_growth(&*device, &of_record)).await;
        let larger = match announced {
            Ok(()) => self.enlarge(growth).await,
            Err(error) => Err(error),
        };
        if larger.is_err() {
            self.undo_growth().await;
        }
        larger
    }

    /// Does not hold the directory, whose table others may read meanwhile.
    async fn enlarge(&self, growth: &Arc<Growth>) -> Result<Arc<dyn Device>, String> {
        let (device, growth) = (self.device(), Arc::clone(growth));
        let enlarged = tokio::task::spawn_blocking(move || growth.enlarge(&*device));
        let enlarged = enlarged.await.map_err(|error| error.to_string())?;
        enlarged.map_err(|error| error.to_string())
    }

    /// Completes a growth, durably.
    pub async fn finish_growth(
        &self,
        growth: &Arc<Growth>,
        larger: &Arc<dyn Device>,
    ) -> Result<(), String> {
        let (growth, of_directory) = (Arc::clone(growth), Arc::clone(&self.device));
        let larger = Arc::clone(larger);
        self.write(move |data| {
            data.record_growth(&*larger, &growth)?;
            // The device has grown, whatever becomes of the table: its new units are spare then.
            let device = Arc::clone(&larger);
            *of_directory.lock().unwrap_or_else(PoisonError::into_inner) = device;
            data.complete_growth(&*larger, &growth)
        })
        .await
    }

    /// Undoes a growth that was begun.
    pub async fn undo_growth(&self) {
        let device = self.device();
        let undone = self.write(move |data| {
            data.undo_growth(&*device);
            Ok(())
        });
        if let Err(error) = undone.await {
            tracing::warn!("an interrupted growth is undone at the next start: {error}");
        }
    }

    /// Units of the device.
    pub fn units(&self) -> u16 {
        self.device().info().units
    }
}
