//! The flash of a shard: one queue pair and one FTL over the units of its store and its volumes.

use crate::volume_units::ShardDomain;
use softflash_base::UnitSet;
use softflash_device::Device;
use softflash_flash::{Flash, FlashSource, MountedFlash};
use softflash_ftl::{FtlConfig, FtlError, Owners, Ownership};
use softflash_runtime::RuntimeHandle;
use softflash_volume::Domain;
use std::sync::Arc;

/// The flash of a shard, for each of its owners.
pub struct ShardFlash {
    /// That of the store.
    pub store: FlashSource,
    /// That of the volumes, if the shard has units for them.
    pub volumes: FlashSource,
}

impl ShardFlash {
    /// Mounts the units of a shard's store and of its domain together. Where that fails, each has
    /// to mount its own: so one of them is served where the flash of the other is damaged.
    pub async fn mount(
        device: &Arc<dyn Device>,
        store: UnitSet,
        domain: &ShardDomain,
        config: FtlConfig,
        runtime: &RuntimeHandle,
    ) -> ShardFlash {
        let ownership = Domain::ownership(domain.config.domain);
        let owners = vec![(store, Ownership::BLOCKS), (domain.units.clone(), ownership)];
        match mount(device, Owners::new(owners), config, runtime).await {
            Ok([store, volumes]) => ShardFlash {
                store: FlashSource::Mounted(store),
                volumes: FlashSource::Mounted(volumes),
            },
            Err(reason) => {
                let shard = domain.shard.0;
                tracing::warn!(shard, "keys and volumes are mounted one by one: {reason}");
                ShardFlash::separate(device)
            }
        }
    }

    /// Each owner mounts its own units.
    pub fn separate(device: &Arc<dyn Device>) -> ShardFlash {
        let source = || FlashSource::Device(Arc::clone(device));
        ShardFlash { store: source(), volumes: source() }
    }
}

/// A view for each of two owners.
async fn mount(
    device: &Arc<dyn Device>,
    owners: Owners,
    config: FtlConfig,
    runtime: &RuntimeHandle,
) -> Result<[MountedFlash; 2], String> {
    let queue =
        Arc::clone(device).open_queue_pair(&owners.units()).map_err(|error| error.to_string())?;
    let mounted = Flash::mount_for(queue, config, owners, runtime.clone()).await;
    let views = mounted.map_err(|error: FtlError| error.to_string())?;
    views.try_into().map_err(|views: Vec<_>| format!("{} views for two owners", views.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domains::MountError;
    use crate::error::DataDirError;
    use crate::open::block_on;
    use crate::volume_units::VolumeSection;
    use softflash_base::checksum::{checksum64, identity};
    use softflash_base::{ShardId, UnitId};
    use softflash_device::{FileFormat, OpenOptions, format_file, open_with};
    use softflash_volume::VolumeError;
    use std::fs;
    use std::path::{Path, PathBuf};
    use tempfile::TempDir;

    /// A version of headers that no program has.
    const NEWER: u8 = 200;

    /// A device file of four units, each of 64 superblocks of 256 KiB.
    fn device_file() -> (TempDir, PathBuf) {
        let temp = TempDir::new().unwrap();
        let path = temp.path().join("device");
        let format = FileFormat { superblock_bytes: 256 << 10, ..FileFormat::new(0, 7) };
        let format = FileFormat { size_bytes: format.bytes_for(64), ..format };
        format_file(&path, &format).unwrap();
        (temp, path)
    }

    /// The units of the store, and the domain on the last unit.
    fn owners() -> (UnitSet, ShardDomain) {
        let section = VolumeSection { units: 1, op_percent: 7 };
        (UnitSet::from(0..3), section.domain(ShardId(0), &UnitSet::from(3..4)))
    }

    fn with_flash<R>(
        path: &Path,
        work: impl AsyncFnOnce(ShardFlash, &ShardDomain, &RuntimeHandle) -> R,
    ) -> R {
        let device = open_with(path, OpenOptions::default()).unwrap();
        let result = block_on::<_, DataDirError, _>(|runtime| async move {
            let (store, domain) = owners();
            let config = FtlConfig::default();
            let flash = ShardFlash::mount(&device, store, &domain, config, &runtime).await;
            Ok(work(flash, &domain, &runtime).await)
        });
        result.unwrap()
    }

    /// Raises the version in the opening headers of volumes, with right checksums; returns how many
    /// there are.
    fn raise_header_versions(path: &Path) -> usize {
        const MAGIC: &[u8] = b"SFopen\0\0";
        let mut bytes = fs::read(path).unwrap();
        let mut raised = 0;
        for page in bytes.chunks_exact_mut(4096).filter(|page| page.starts_with(MAGIC)) {
            let word = |at: usize| u64::from_le_bytes(page[at..at + 8].try_into().unwrap());
            let unit = u64::from(u16::from_le_bytes([page[36], page[37]]));
            let parts = [word(0), word(16), word(24), unit, word(32) & u64::from(u32::MAX)];
            let end = 128 + 8 * page[12] as usize;
            let checksum = |page: &[u8]| checksum64(identity(&parts), &page[..end]).to_le_bytes();
            assert_eq!(checksum(page), page[end..end + 8], "the checksum that the FTL writes");
            if page[120] == 1 {
                page[8] = NEWER;
                let checksum = checksum(page);
                page[end..end + 8].copy_from_slice(&checksum);
                raised += 1;
            }
        }
        fs::write(path, bytes).unwrap();
        raised
    }

    #[test]
    fn volumes_of_a_newer_program_are_refused_and_the_store_is_mounted() {
        let (_temp, path) = device_file();
        with_flash(&path, async |flash, domain, runtime| {
            let FlashSource::Mounted(store) = &flash.store else { panic!("not together") };
            assert_eq!(store.flash.units(), &owners().0);
            let volumes = domain.mount(flash.volumes, runtime).await.unwrap();
            volumes.create("v", 1 << 20).await.unwrap();
            volumes.checkpoint().await.unwrap();
            volumes.stop();
            flash.store.stop();
        });
        assert!(raise_header_versions(&path) > 0);
        with_flash(&path, async |flash, domain, runtime| {
            let Err(MountError::Domain(error)) = domain.mount(flash.volumes, runtime).await else {
                panic!("mounted")
            };
            let VolumeError::Flash(FtlError::NewerFormat { unit, found, .. }) = error else {
                panic!("{error}")
            };
            assert_eq!((unit, found), (UnitId(3), u32::from(NEWER)));
            let FlashSource::Device(device) = flash.store else { panic!("mounted together") };
            let queue = device.open_queue_pair(&owners().0).unwrap();
            let config = FtlConfig::default();
            Flash::mount(queue, config, runtime.clone()).await.unwrap().0.stop();
        });
    }

    #[test]
    fn each_mounts_its_own_where_a_unit_is_in_use() {
        let (_temp, path) = device_file();
        let device = open_with(&path, OpenOptions::default()).unwrap();
        let held = Arc::clone(&device).open_queue_pair(&owners().1.units).unwrap();
        let result = block_on::<_, DataDirError, _>(|runtime| async move {
            let (store, domain) = owners();
            let config = FtlConfig::default();
            let flash = ShardFlash::mount(&device, store, &domain, config, &runtime).await;
            assert!(matches!(flash.store, FlashSource::Device(_)));
            let mounted = domain.mount(flash.volumes, &runtime).await;
            assert!(matches!(mounted, Err(MountError::Device(_))));
            Ok(())
        });
        result.unwrap();
        drop(held);
    }
}
