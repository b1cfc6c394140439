//! Moves that end in the middle, as a crash ends them: one set has the volumes.

use super::{Arrival, Departure, Family, MoveError, MoveProgress, Piece};
use crate::NewDataDir;
use crate::directory::{DEVICE_NAME, DataDir};
use crate::domains::{Domains, with_domains};
use crate::error::DataDirError;
use crate::manifest::{FORMAT_VERSION, MOVE_FORMAT_VERSION, Manifest, StoreSection};
use crate::open::{OpenDir, block_on};
use crate::volume_units::VolumeSection;
use softflash_device::{FileFormat, format_file};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

const UNIT: u64 = 4096;

/// A directory with the sets `vol-0` and `vol-1`. In the first one are `disk`, with a snapshot, and
/// `trial`, a clone of that.
fn make(temp: &TempDir) -> PathBuf {
    let path = temp.path().join("data");
    let store =
        StoreSection { shards: 2, slices: 4, compression: Vec::new(), copies: 1, parity: 0 };
    let volumes = Some(VolumeSection { units: 2, op_percent: 20 });
    let mut new = NewDataDir::begin(&path, false).unwrap();
    new.clear(Manifest::new(DEVICE_NAME, store, volumes)).unwrap();
    format_file(&new.device_path(), &FileFormat::new(512 << 20, 4)).unwrap();
    new.finish().unwrap();
    let directory = OpenDir::open(&path).unwrap();
    on(&directory, async |domains| {
        let domain = &domains.all[0].1;
        domain.create("disk", 64 * UNIT).await.unwrap();
        let disk = domain.volume("disk").unwrap();
        disk.write(0, &[1; 8 * UNIT as usize]).await.unwrap();
        domain.snapshot("disk", "monday").await.unwrap();
        disk.write(4 * UNIT, &[2; 8 * UNIT as usize]).await.unwrap();
        domain.clone_snapshot("disk", "monday", "trial").await.unwrap();
        domain.volume("trial").unwrap().write(0, &[3; UNIT as usize]).await.unwrap();
    });
    path
}

fn on<T>(directory: &OpenDir, work: impl AsyncFnOnce(&Domains) -> T) -> T {
    let done = with_domains(directory, async |domains| Ok(work(domains).await));
    done.map_err(|error: DataDirError| error).unwrap()
}

/// The volumes of each set, and the first bytes of all units of `disk`, its snapshot and `trial`.
fn state(path: &Path) -> (Vec<Vec<String>>, Vec<Vec<u8>>) {
    let directory = OpenDir::open(path).unwrap();
    assert_eq!(DataDir::inspect(path).unwrap().format_version, FORMAT_VERSION);
    on(&directory, async |domains| {
        let names = |domain: &softflash_volume::Domain| -> Vec<String> {
            domain.with_guests().list().into_iter().map(|volume| volume.name).collect()
        };
        let sets = domains.all.iter().map(|(_, domain)| names(domain)).collect();
        let holder = domains.holder("disk").unwrap();
        let mut contents = Vec::new();
        for volume in [
            holder.volume("disk").unwrap(),
            holder.open_snapshot("disk", "monday").unwrap(),
            holder.volume("trial").unwrap(),
        ] {
            let mut bytes = vec![0; volume.size_bytes().unwrap() as usize];
            volume.read(0, &mut bytes).await.unwrap();
            contents.push(bytes.into_iter().step_by(UNIT as usize).collect());
        }
        (sets, contents)
    })
}

/// Moves the family of `disk`, and ends as if the process were killed: behind so many pieces, or
/// behind the switch.
fn move_until(path: &Path, most_pieces: usize, switches: bool) -> usize {
    let mut directory = OpenDir::open(path).unwrap();
    let OpenDir { device, domains, data, .. } = &mut directory;
    block_on(|runtime| async move {
        let domains = Domains::mount(device, domains, &runtime).await?;
        let [(_, from), (_, to)] = &domains.all[..] else { panic!("there are two sets") };
        let family = Family::of("trial", &from.list()).unwrap();
        data.begin_move(family.names(), 1, 2)?;
        assert_eq!(data.manifest().format_version, MOVE_FORMAT_VERSION);
        let mut arrival = Arrival::begin(to, family.clone());
        assert!(to.list().is_empty(), "what comes is not found yet");
        let progress = Arc::new(MoveProgress::begin(family.used_bytes()));
        let departure = Departure::begin(from, family, Arc::clone(&progress)).unwrap();
        let mut pieces = 0;
        let arriving = &mut arrival;
        let mut sink = async |piece: Piece| {
            if pieces == most_pieces {
                return Err(MoveError::Interrupted);
            }
            pieces += 1;
            arriving.take(piece).await
        };
        let copied = match departure.copy(&mut sink).await {
            Ok(()) => departure.finish(&mut sink).await,
            Err(error) => Err(error),
        };
        to.flush().await.unwrap();
        if copied.is_ok() {
            arrival.finish().await.unwrap();
            assert_eq!(progress.left_bytes(), 0);
            assert_eq!(progress.copied_bytes(), (8 + 8 + 1) * UNIT);
        } else {
            assert_eq!(arrival.finish().await, Err(MoveError::Interrupted));
        }
        if switches {
            data.arrived(true)?;
        }
        domains.stop();
        Ok::<_, DataDirError>(pieces)
    })
    .unwrap()
}

#[test]
fn a_move_that_ends_before_the_switch_leaves_everything_where_it_was() {
    let temp = tempfile::tempdir().unwrap();
    let path = make(&temp);
    let before = state(&path);
    assert_eq!(before.0, [vec!["disk", "trial"], vec![]]);
    let all = move_until(&path, usize::MAX, false);
    assert!(all >= 8, "{all} pieces");
    assert_eq!(state(&path), before, "all pieces, and no switch");
    for pieces in 0..all {
        assert_eq!(move_until(&path, pieces, false), pieces);
        assert_eq!(state(&path), before, "after {pieces} of {all} pieces");
    }
}

#[test]
fn a_move_that_ends_behind_the_switch_has_moved_everything() {
    let temp = tempfile::tempdir().unwrap();
    let path = make(&temp);
    let (_, contents) = state(&path);
    move_until(&path, usize::MAX, true);
    // A command that only reads sees it, and leaves the directory as it is.
    let looking = OpenDir::open_to_try(&path).unwrap();
    on(&looking, async |domains| {
        assert!(domains.all[0].1.list().is_empty());
        assert_eq!(domains.all[1].1.list().len(), 2);
    });
    drop(looking);
    assert_eq!(DataDir::inspect(&path).unwrap().format_version, MOVE_FORMAT_VERSION);
    assert_eq!(state(&path), (vec![vec![], vec!["disk".into(), "trial".into()]], contents));
}

#[test]
fn what_clients_change_during_a_move_is_moved_too() {
    let temp = tempfile::tempdir().unwrap();
    let path = make(&temp);
    let mut directory = OpenDir::open(&path).unwrap();
    let OpenDir { device, domains, .. } = &mut directory;
    block_on(|runtime| async move {
        let domains = Domains::mount(device, domains, &runtime).await?;
        let [(_, from), (_, to)] = &domains.all[..] else { panic!("there are two sets") };
        let family = Family::of("disk", &from.list()).unwrap();
        let mut arrival = Arrival::begin(to, family.clone());
        let departure = Departure::begin(from, family.clone(), Arc::default()).unwrap();
        let disk = from.volume("disk").unwrap();
        let (arriving, mut pieces) = (&mut arrival, 0_u64);
        let mut sink = async |piece: Piece| {
            // Before and after each piece: what was copied changes again.
            let place = (pieces * 7 % 60) * UNIT;
            disk.write(place, &[100 + pieces as u8; 3 * UNIT as usize]).await?;
            disk.discard((pieces * 11 % 60) * UNIT, UNIT).await?;
            pieces += 1;
            arriving.take(piece).await
        };
        departure.copy(&mut sink).await.unwrap();
        let mut quiet = async |piece: Piece| arriving.take(piece).await;
        departure.finish(&mut quiet).await.unwrap();
        assert_eq!(from.changed_bytes(), 0);
        arrival.finish().await.unwrap();
        let mut both = [vec![0; 64 * UNIT as usize], vec![0; 64 * UNIT as usize]];
        disk.read(0, &mut both[0]).await.unwrap();
        to.with_guests().volume("disk").unwrap().read(0, &mut both[1]).await.unwrap();
        assert!(both[0] == both[1], "a change was lost");
        // Someone takes a snapshot: it would be lost.
        from.snapshot("disk", "friday").await.unwrap();
        let error = family.check_same(&from.list()).unwrap_err().to_string();
        assert!(error.contains("`disk`, `trial` have got other snapshots"), "{error}");
        domains.stop();
        Ok::<_, DataDirError>(())
    })
    .unwrap();
}
