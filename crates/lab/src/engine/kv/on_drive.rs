//! A store on a conventional drive, and the figures of the drive during the run.

use super::run::Watch;
use crate::cell::{Cell, Control, DriveIo};
use crate::engine::drive::foresight::check_one_source;
use crate::engine::drive::state::{self, Hardware};
use crate::engine::drive::{CHARTED, add_map_figures, busy, chart};
use crate::error::LabError;
use crate::host::ReadAhead;
use crate::host::read_ahead::LINUX_WINDOW_BYTES;
use crate::outcome::Outcome;
use softflash_base::Time;
use softflash_base::random::Rng;
use softflash_device::Device;
use softflash_drive::spec::PageMapped;
use softflash_drive::{Drive, DriveDevice, Extents};
use std::sync::Arc;

/// Units of a drive: as many as SDF has, so that stores have the same layout on both.
const UNITS: u16 = 44;

/// A drive in the cell's initial state, as a store's device.
pub struct OnDrive {
    device: Arc<DriveDevice>,
    drive_io: DriveIo,
    begin: Time,
    /// Busy times of channels and dies at the beginning.
    busy_ns: (Vec<u64>, Vec<u64>),
}

impl OnDrive {
    /// A preconditioned drive, used by others before the store.
    ///
    /// # Errors
    /// [`LabError::Parameter`] if the drive cannot be built.
    pub fn new(
        cell: &Cell,
        layout: &PageMapped,
        control: &Control<'_>,
    ) -> Result<OnDrive, LabError> {
        check_one_source(layout, false)?;
        let mut drive = Drive::new(&cell.device, layout, cell.op_percent())?;
        let rng = Rng::seeded(cell.seed);
        let hardware = Hardware { device: &cell.device, layout, op_percent: cell.op_percent() };
        let precondition = cell.parameters.precondition;
        state::prepare(&mut drive, &hardware, precondition, None, &rng, control)?;
        let cut = Extents { units: UNITS, ..Extents::default() };
        let device = Arc::new(DriveDevice::new(drive, &cut, cell.seed)?);
        Ok(OnDrive {
            device,
            drive_io: cell.parameters.drive_io,
            begin: Time::ZERO,
            busy_ns: Default::default(),
        })
    }

    /// The device.
    pub fn device(&self) -> Arc<dyn Device> {
        let device = Arc::clone(&self.device) as Arc<dyn Device>;
        match self.drive_io {
            DriveIo::Direct => device,
            DriveIo::Buffered => Arc::new(ReadAhead::new(device, LINUX_WINDOW_BYTES)),
        }
    }
}

impl Watch for OnDrive {
    fn begins(&mut self, now: Time) {
        self.begin = now;
        self.busy_ns = self.device.with_drive(|drive| {
            drive.clear_counters();
            drive.record(CHARTED);
            busy(drive)
        });
    }

    fn ended(&mut self, now: Time, outcome: &mut Outcome) -> Result<(), LabError> {
        let elapsed_ns = now.since_ns(self.begin).max(1) as f64;
        let shares = |after: Vec<u64>, before: &[u64]| {
            let busy = after.into_iter().zip(before).map(|(after, before)| after - before);
            // Started work counts completely, so the last may reach beyond the end.
            busy.map(|busy_ns| (busy_ns as f64 / elapsed_ns).min(1.0)).collect()
        };
        self.device.with_drive(|drive| {
            let (channels_ns, dies_ns) = busy(drive);
            outcome.channel_utilisation = shares(channels_ns, &self.busy_ns.0);
            outcome.die_utilisation = shares(dies_ns, &self.busy_ns.1);
            outcome.gantt = chart(drive.recorded());
            let counters = drive.counters();
            outcome.programs.collection = counters.programmed_for_collection;
            outcome.programs.folding = counters.programmed_for_folding;
            outcome.programs.parity = counters.programmed_for_parity;
            let bytes_per_page = drive.memory_bytes() as f64 / drive.flash_pages() as f64;
            outcome.bytes_per_page = bytes_per_page;
            let figures = [
                ("op_percent", drive.op_percent()),
                ("capacity_bytes", drive.capacity_bytes() as f64),
                ("drive_waf", counters.waf()),
                ("drive_erases", counters.erases as f64),
            ];
            outcome.figures.extend(figures.map(|(name, value)| (name.to_owned(), value)));
            if let Some(map) = drive.map_counters() {
                add_map_figures(&map, counters.host_pages_written, &mut outcome.figures);
            }
            // No page may be lost or mapped twice.
            drive.check().map_err(LabError::Simulation)
        })
    }
}
