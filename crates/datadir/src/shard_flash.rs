//! The flash of a shard: one queue pair and one FTL over the units of its store and its volumes.

use crate::volume_units::ShardDomain;
use softflash_base::ShardId;
use softflash_device::Device;
use softflash_flash::{Flash, FlashSource, MountedFlash};
use softflash_ftl::{FtlConfig, FtlError, Owners, Ownership};
use softflash_runtime::RuntimeHandle;
use softflash_store::StoreLayout;
use softflash_volume::Domain;
use std::sync::Arc;

/// The flash of a shard, for each of its owners.
pub struct ShardFlash {
    /// That of the store.
    pub store: FlashSource,
    /// That of each of its domains.
    pub volumes: Vec<FlashSource>,
}

impl ShardFlash {
    /// Mounts the units of a shard's store and of its domains together. Where that fails, each has
    /// to mount its own: so one of them is served where the flash of another is damaged.
    pub async fn mount(
        device: &Arc<dyn Device>,
        (layout, shard): (&StoreLayout, ShardId),
        domains: &[&ShardDomain],
        config: FtlConfig,
        runtime: &RuntimeHandle,
    ) -> ShardFlash {
        if domains.is_empty() {
            return ShardFlash::separate(device, 0);
        }
        let of_domain = |it: &&ShardDomain| (it.units.clone(), Domain::ownership(it.config.domain));
        let of_store = (layout.units_of(shard), Ownership::BLOCKS);
        let owners = [of_store].into_iter().chain(domains.iter().map(of_domain)).collect();
        let owners = Owners::new(owners).at_epoch(layout.epoch);
        match mount(device, owners, config, runtime).await {
            Ok((store, volumes)) => ShardFlash {
                store: FlashSource::Mounted(store),
                volumes: volumes.into_iter().map(FlashSource::Mounted).collect(),
            },
            Err(reason) => {
                let shard = shard.0;
                tracing::warn!(shard, "keys and volumes are mounted one by one: {reason}");
                ShardFlash::separate(device, domains.len())
            }
        }
    }

    /// Each owner mounts its own units.
    fn separate(device: &Arc<dyn Device>, domains: usize) -> ShardFlash {
        let source = || FlashSource::Device(Arc::clone(device));
        ShardFlash { store: source(), volumes: (0..domains).map(|_| source()).collect() }
    }
}

/// A view for the first of the owners, and one for each of the others.
async fn mount(
    device: &Arc<dyn Device>,
    owners: Owners,
    config: FtlConfig,
    runtime: &RuntimeHandle,
) -> Result<(MountedFlash, Vec<MountedFlash>), String> {
    let queue =
        Arc::clone(device).open_queue_pair(&owners.units()).map_err(|error| error.to_string())?;
    let mounted = Flash::mount_for(queue, config, owners, runtime.clone()).await;
    let mut views = mounted.map_err(|error: FtlError| error.to_string())?.into_iter();
    let first = views.next().ok_or_else(|| "no view for the store".to_owned())?;
    Ok((first, views.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::DataDirError;
    use crate::mounting::MountError;
    use crate::open::block_on;
    use crate::set_table::SetTable;
    use crate::volume_units::VolumeSection;
    use softflash_base::checksum::{checksum64, identity};
    use softflash_base::{UnitId, UnitSet};
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

    /// The store, and the domain on the last unit.
    fn owners() -> (StoreLayout, ShardDomain) {
        let volumes = VolumeSection { units: 1, op_percent: 7 };
        let domain = SetTable::split(4, 1, Some(volumes)).domains().next().unwrap();
        (StoreLayout::new(1, 1, 3), domain)
    }

    async fn mount_both(device: &Arc<dyn Device>, runtime: &RuntimeHandle) -> ShardFlash {
        let (layout, domain) = owners();
        let store = (&layout, ShardId(0));
        ShardFlash::mount(device, store, &[&domain], FtlConfig::default(), runtime).await
    }

    fn with_flash<R>(
        path: &Path,
        work: impl AsyncFnOnce(FlashSource, FlashSource, &ShardDomain, &RuntimeHandle) -> R,
    ) -> R {
        let device = open_with(path, OpenOptions::default()).unwrap();
        let result = block_on::<_, DataDirError, _>(|runtime| async move {
            let ShardFlash { store, mut volumes } = mount_both(&device, &runtime).await;
            Ok(work(store, volumes.remove(0), &owners().1, &runtime).await)
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
        with_flash(&path, async |store, volumes, domain, runtime| {
            let FlashSource::Mounted(mounted) = &store else { panic!("not together") };
            assert_eq!(mounted.flash.units(), UnitSet::from(0..3));
            let volumes = domain.mount(volumes, runtime).await.unwrap();
            volumes.create("v", 1 << 20).await.unwrap();
            volumes.checkpoint().await.unwrap();
            volumes.stop();
            store.stop();
        });
        assert!(raise_header_versions(&path) > 0);
        with_flash(&path, async |store, volumes, domain, runtime| {
            let Err(MountError::Domain(error)) = domain.mount(volumes, runtime).await else {
                panic!("mounted")
            };
            let VolumeError::Flash(FtlError::NewerFormat { unit, found, .. }) = error else {
                panic!("{error}")
            };
            assert_eq!((unit, found), (UnitId(3), u32::from(NEWER)));
            let FlashSource::Device(device) = store else { panic!("mounted together") };
            let queue = device.open_queue_pair(&UnitSet::from(0..3)).unwrap();
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
            let ShardFlash { store, mut volumes } = mount_both(&device, &runtime).await;
            assert!(matches!(store, FlashSource::Device(_)));
            let mounted = owners().1.mount(volumes.remove(0), &runtime).await;
            assert!(matches!(mounted, Err(MountError::Device(_))));
            Ok(())
        });
        result.unwrap();
        drop(held);
    }
}
