//! The repair of a domain: its map is written again, without what is lost.

use crate::config::DomainConfig;
use crate::domain::Domain;
use crate::error::VolumeError;
use softflash_device::QueuePair;
use softflash_runtime::RuntimeHandle;

/// What a repair has done.
#[derive(Debug, Default)]
pub struct Repaired {
    /// Copies of leaves of the map that were written again.
    pub copies: u32,
    /// Halves of leaves of the map that were rebuilt from the frames; nothing of them is lost.
    pub rebuilt_halves: u32,
    /// Halves of leaves that were given up.
    pub lost_halves: u32,
    /// Mapping units whose reads fail until they are written or discarded.
    pub lost_units: u64,
    /// Why it could not be completed.
    pub error: Option<VolumeError>,
}

/// Mounts a domain, which mends what the mount could not read, and writes everything of its map
/// again of which a copy cannot be read.
pub(crate) async fn repair(
    queue: Box<dyn QueuePair>,
    config: DomainConfig,
    runtime: RuntimeHandle,
) -> Repaired {
    let (domain, report) = match Domain::mount(queue, config, runtime).await {
        Ok(mounted) => mounted,
        Err(error) => return Repaired { error: Some(error), ..Repaired::default() },
    };
    let mut repaired = Repaired {
        copies: report.copied_halves,
        rebuilt_halves: report.rebuilt_halves,
        lost_halves: report.lost_halves,
        lost_units: report.lost_units,
        error: None,
    };
    match domain.mend_map().await {
        Ok(copies) => repaired.copies += copies,
        Err(error) => repaired.error = Some(error),
    }
    domain.stop();
    repaired
}
