//! Moves of volumes of a directory without a server.

use super::arrival::Arrival;
use super::departure::{Departure, Piece};
use super::error::MoveError;
use super::family::Family;
use super::{MoveProgress, UnfinishedMove};
use crate::directory::DataDir;
use crate::domains::Domains;
use crate::error::DataDirError;
use crate::open::{OpenDir, block_on};
use crate::volume_units::ShardDomain;
use softflash_volume::{Domain, VolumeError};
use std::sync::Arc;

/// What has moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// The volumes, parents before their clones.
    pub volumes: Vec<String>,
    /// The set that they have left.
    pub from: String,
    /// Bytes that were copied.
    pub copied_bytes: u64,
}

/// A domain with its place on the device.
type Place<'a> = (&'a ShardDomain, &'a Domain);

impl OpenDir {
    /// Moves a volume, with all that share data with it, to the set of this name. `goes_on` is
    /// called after each piece, and ends the move if it returns false.
    ///
    /// # Errors
    /// [`MoveError`], and errors of the file system. Everything is as before then, or the next
    /// opening of the directory makes it so.
    pub fn move_volume(
        &mut self,
        name: &str,
        set: &str,
        goes_on: &mut impl FnMut(&MoveProgress) -> bool,
    ) -> Result<Moved, DataDirError> {
        self.data.check_no_move()?;
        let table = self.table();
        let target = table.mapped_place(set).map_err(DataDirError::set(&self.path))?;
        let target = table.mapped.get(target).map_or(0, |set| set.id);
        let OpenDir { path, device, domains, data, .. } = self;
        let moved = block_on(|runtime| async move {
            device.mend_label()?;
            let domains = Domains::mount(device, domains, &runtime).await?;
            let moved = move_among(&domains, data, (name, target), goes_on).await;
            let flushed = domains.flush().await.map_err(DataDirError::volume(&*path));
            domains.stop();
            moved.and_then(|moved| flushed.map(|()| moved))
        })?;
        self.refresh();
        Ok(moved)
    }

    /// Finishes a move that was interrupted: what its record says of the volumes holds from now on
    /// without it. Without the set whose copies count for nothing it stays.
    pub(crate) fn finish_move(&mut self) -> Result<(), DataDirError> {
        let unfinished = self.data.manifest().unfinished_move.clone();
        let Some(set) = unfinished.as_ref().map(UnfinishedMove::leftover_set) else {
            return Ok(());
        };
        let OpenDir { path, device, domains, data, .. } = self;
        block_on(|runtime| async move {
            device.mend_label()?;
            // The mount takes the copies away.
            let mounted = Domains::mount(device, domains, &runtime).await?;
            let is_mounted = mounted.all.iter().any(|(of, _)| of.config.domain == set);
            let is_gone = !domains.iter().any(|of| of.config.domain == set);
            let flushed = mounted.flush().await.map_err(DataDirError::volume(&*path));
            mounted.stop();
            flushed?;
            if is_mounted || is_gone { data.end_move() } else { Ok(()) }
        })?;
        self.refresh();
        Ok(())
    }

    /// Takes the sets from the manifest again.
    fn refresh(&mut self) {
        self.domains = self.data.manifest().domains(self.device.info().units);
        self.sets = self.data.manifest().sets(self.device.info());
    }
}

async fn move_among(
    domains: &Domains,
    data: &mut DataDir,
    (name, target): (&str, u16),
    goes_on: &mut impl FnMut(&MoveProgress) -> bool,
) -> Result<Moved, DataDirError> {
    let path = data.path().to_owned();
    let planned = plan(domains, name, target);
    let (from, to, family) = planned.map_err(DataDirError::moving(&path))?;
    let progress = Arc::new(MoveProgress::begin(family.used_bytes()));
    data.begin_move(family.names(), from.0.config.domain, to.0.config.domain)?;
    let mut arrival = Arrival::begin(to.1, family.clone());
    let copied = async {
        let departure = Departure::begin(from.1, family.clone(), Arc::clone(&progress))?;
        let arriving = &mut arrival;
        let mut sink = async |piece: Piece| {
            arriving.take(piece).await?;
            if goes_on(&progress) { Ok(()) } else { Err(MoveError::Interrupted) }
        };
        departure.copy(&mut sink).await?;
        departure.finish(&mut sink).await?;
        Ok::<_, MoveError>(departure)
    };
    let copied = match copied.await {
        Ok(departure) => arrival.finish().await.map(|()| departure),
        Err(error) => Err(error),
    };
    let departure = match copied {
        Ok(departure) => departure,
        Err(error) => {
            if arrival.undo().await.is_ok() {
                data.end_move()?;
            }
            return Err(DataDirError::moving(&path)(error));
        }
    };
    data.arrived(true)?;
    arrival.show();
    departure.leave().await.map_err(DataDirError::volume(&path))?;
    data.end_move()?;
    let (volumes, from) = (family.names(), from.0.name.clone());
    Ok(Moved { volumes, from, copied_bytes: progress.copied_bytes() })
}

/// Source, target and family of a move that can be.
fn plan<'a>(
    domains: &'a Domains,
    name: &str,
    target: u16,
) -> Result<(Place<'a>, Place<'a>, Family), MoveError> {
    let missing = || VolumeError::NoVolume { name: name.to_owned() };
    let holder = domains.holder(name)?;
    let place = |is_it: &dyn Fn(Place<'_>) -> bool| {
        domains.all.iter().map(|(of, domain)| (of, domain)).find(|place| is_it(*place))
    };
    let from = place(&|(_, domain)| std::ptr::eq(domain, holder)).ok_or_else(missing)?;
    let not_mounted = || {
        let found = domains.not_mounted.iter().find(|(of, _)| of.config.domain == target);
        found.map_or_else(missing, |(of, error)| of.not_mounted(error))
    };
    let to = place(&|(of, _)| of.config.domain == target).ok_or_else(not_mounted)?;
    if let Some((of, _)) = [from, to].into_iter().find(|(of, _)| of.pair.is_some()) {
        return Err(MoveError::OfPair { set: of.name.clone() });
    }
    if from.0.config.domain == target {
        let (volume, set) = (name.to_owned(), to.0.name.clone());
        return Err(MoveError::AlreadyThere { volume, set });
    }
    let family = Family::of(name, &from.1.list()).ok_or_else(missing)?;
    family.check_room(&to.0.name, to.1.space())?;
    Ok((from, to, family))
}
