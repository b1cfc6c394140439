//! Scenarios of the FTL alone: an owner allocates superblocks, appends pages, and releases them,
//! some without any use. After each cut the mount finds all that were written durably, with their
//! tags and their pages.

use crate::medium::Medium;
use crate::scenario::Scenario;
use crate::superblock_shape::SuperblockShape;
use crate::trial::Record;
use crate::virtual_time;
use futures_util::future::{Either, select};
use softflash_base::Time;
use softflash_base::checksum::identity;
use softflash_base::random::Rng;
use softflash_flash::Flash;
use softflash_ftl::{FtlError, Hint, Inventory, OwnerTag, Superblock};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::pin;

/// Cuts occur 2^10 ns to 2^27 ns after power on, log-uniformly.
const EARLIEST_CUT: f64 = 10.0;
const LATEST_CUT: f64 = 27.0;
/// Bytes of a tag that hold its number.
const NUMBER_BYTES: usize = 8;

/// A superblock of the owner.
#[derive(Debug, Clone)]
struct Held {
    superblock: Superblock,
    /// Pages whose appends have completed, and those of them that are durable.
    completed: u32,
    durable: u32,
    is_open: bool,
}

/// What the owner knows: its superblocks by the number in their tags.
#[derive(Debug, Clone, Default)]
struct Owned {
    held: BTreeMap<u64, Held>,
    last: u64,
}

/// The end of a session.
enum Ended {
    /// The flash gives no room any more, since too many blocks are bad.
    WornOut,
    Wrong(String),
}

/// Runs a scenario of superblocks; the error describes the failure.
pub fn run(scenario: &Scenario, shape: &SuperblockShape) -> Result<Record, String> {
    let medium = Medium::new(scenario)?;
    let mut rng = Rng::seeded(scenario.seed).fork("superblocks");
    let (owned, mut record) = (RefCell::new(Owned::default()), Record::default());
    for cut in 0..=scenario.cuts {
        let exponent = EARLIEST_CUT + (LATEST_CUT - EARLIEST_CUT) * rng.unit_f64();
        let cut_at = (cut < scenario.cuts).then(|| Time(exponent.exp2() as u64));
        let seed = rng.next_u64();
        let session = Session { scenario, shape, medium: &medium, owned: &owned };
        let (at, ended) = session.run(cut_at, seed);
        medium.power_cut(at, seed).map_err(|error| format!("the cut: {error}"))?;
        record.simulated_ns += at.0;
        record.trace = identity(&[record.trace, at.0, owned.borrow().last]);
        match ended {
            Ok(()) => {}
            Err(Ended::WornOut) => {
                record.worn_out = true;
                return Ok(record);
            }
            Err(Ended::Wrong(what)) => return Err(format!("after {cut} cuts: {what}")),
        }
        record.crash_points += u64::from(cut > 0);
        record.comparisons += 1;
    }
    Ok(record)
}

struct Session<'a> {
    scenario: &'a Scenario,
    shape: &'a SuperblockShape,
    medium: &'a Medium,
    owned: &'a RefCell<Owned>,
}

impl Session<'_> {
    /// Mounts, compares, and works until the cut.
    fn run(&self, cut: Option<Time>, seed: u64) -> (Time, Result<(), Ended>) {
        let executor = virtual_time::executor(0);
        let runtime = executor.handle();
        let outcome = executor.try_block_on(async {
            let device = self.medium.device();
            let queue = device
                .open_queue_pair(&device.info().all_units())
                .map_err(|error| wrong(&error))?;
            let config = self.scenario.options(0).ftl;
            let mounted = Flash::mount(queue, config, runtime.clone()).await;
            let (flash, inventory) = mounted.map_err(|error| wrong(&error))?;
            self.compare(&flash, &inventory).await?;
            let work = pin!(self.work(&flash, Rng::seeded(seed)));
            let due = async {
                match cut {
                    Some(cut) => runtime.sleep_until(runtime.now() + cut.0).await,
                    None => std::future::pending().await,
                }
            };
            match select(work, pin!(due)).await {
                Either::Left((ended, _)) => ended,
                Either::Right(((), _)) => Ok(()),
            }
        });
        let at = executor.now();
        (at, outcome.unwrap_or_else(|deadlock| Err(Ended::Wrong(deadlock.to_string()))))
    }

    /// The mount has found every superblock with durable pages. The others are released, as those
    /// that were released before the cut.
    async fn compare(&self, flash: &Flash, inventory: &Inventory) -> Result<(), Ended> {
        let mut known = std::mem::take(&mut self.owned.borrow_mut().held);
        known.retain(|_, held| held.durable > 0);
        let last = self.owned.borrow().last;
        for found in &inventory.superblocks {
            let number = number_of(found.tag);
            if number == 0 || number > last || found.tag != tag(number) {
                return Err(Ended::Wrong(format!("{} has a wrong tag", found.superblock)));
            }
            let Some(held) = known.remove(&number) else {
                flash.release(&found.superblock);
                continue;
            };
            if (held.superblock.unit, held.superblock.index)
                != (found.superblock.unit, found.superblock.index)
            {
                let (now, before) = (found.superblock, held.superblock);
                return Err(Ended::Wrong(format!("{now} has the tag of {before}")));
            }
            let durable = held.durable;
            let held =
                Held { superblock: found.superblock, completed: durable, durable, is_open: false };
            read_back(flash, number, &held).await?;
            self.owned.borrow_mut().held.insert(number, held);
        }
        if let Some((number, held)) = known.first_key_value() {
            let (superblock, pages) = (held.superblock, held.durable);
            return Err(Ended::Wrong(format!(
                "{superblock}, allocated as number {number}, had {pages} durable pages, and the mount does not find it"
            )));
        }
        inventory.damaged.iter().for_each(|damaged| flash.release(&damaged.superblock));
        Ok(())
    }

    async fn work(&self, flash: &Flash, mut rng: Rng) -> Result<(), Ended> {
        for _ in 0..self.scenario.clients.requests * 8 {
            match rng.below(10) {
                0..4 => self.allocate(flash, &mut rng)?,
                4..8 => self.append(flash, &mut rng).await?,
                8 => {
                    if let Some((number, held)) = self.any(&mut rng, |held| held.completed > 0) {
                        read_back(flash, number, &Held { durable: held.completed, ..held }).await?;
                    }
                }
                _ => {
                    flash.flush(Hint::FOREGROUND).await.map_err(|error| wrong(&error))?;
                    let mut owned = self.owned.borrow_mut();
                    owned.held.values_mut().for_each(|held| held.durable = held.completed);
                }
            }
        }
        Ok(())
    }

    /// Allocates a superblock, and releases it at once, or another one if there are many.
    fn allocate(&self, flash: &Flash, rng: &mut Rng) -> Result<(), Ended> {
        let number = self.owned.borrow().last + 1;
        let unit = rng.below(flash.units().len() as u64) as u16;
        let hint = if rng.chance(0.5) { Hint::LOG } else { Hint::COMPACTION };
        match flash.allocate(unit, tag(number), hint) {
            Err(FtlError::NoSpace { .. }) if flash.space(unit).is_worn_out() => {
                return Err(Ended::WornOut);
            }
            Err(FtlError::NoSpace { .. }) => {}
            Err(error) => return Err(wrong(&error)),
            Ok(superblock) => {
                self.owned.borrow_mut().last = number;
                if rng.chance(self.shape.unused) {
                    flash.release(&superblock);
                } else {
                    let held = Held { superblock, completed: 0, durable: 0, is_open: true };
                    self.owned.borrow_mut().held.insert(number, held);
                }
            }
        }
        let most = self.shape.kept * f64::from(self.scenario.flash.blocks);
        while self.owned.borrow().held.len() as f64 > most * flash.units().len() as f64 {
            let Some((number, held)) = self.any(rng, |_| true) else { break };
            self.owned.borrow_mut().held.remove(&number);
            flash.release(&held.superblock);
        }
        Ok(())
    }

    /// Appends a page or two to an open superblock.
    async fn append(&self, flash: &Flash, rng: &mut Rng) -> Result<(), Ended> {
        let Some((number, held)) = self.any(rng, |held| held.is_open) else { return Ok(()) };
        let pages = 1 + rng.below(2) as u32;
        let mut data = flash.buffer(pages as usize * flash.page_bytes());
        for (page, bytes) in (held.completed..).zip(data.chunks_mut(flash.page_bytes())) {
            fill(number, page, bytes);
        }
        let durable = rng.chance(0.5);
        let appended = match flash.append(&held.superblock, data, durable, Hint::LOG) {
            Ok((first, outcome)) => {
                assert_eq!(first, held.completed, "appends go to one page after the other");
                outcome.await.0
            }
            Err((error, _)) => Err(error),
        };
        if let Some(held) = self.owned.borrow_mut().held.get_mut(&number) {
            match appended {
                Ok(()) => {
                    held.completed += pages;
                    // A durable append does not make earlier ones durable.
                    if durable && held.durable + pages == held.completed {
                        held.durable = held.completed;
                    }
                }
                Err(_) => {
                    held.is_open = false;
                    flash.seal(&held.superblock);
                }
            }
        }
        Ok(())
    }

    /// One of the superblocks.
    fn any(&self, rng: &mut Rng, fits: impl Fn(&Held) -> bool) -> Option<(u64, Held)> {
        let owned = self.owned.borrow();
        let fitting: Vec<_> = owned.held.iter().filter(|(_, held)| fits(held)).collect();
        let chosen = rng.below(fitting.len().max(1) as u64) as usize;
        fitting.get(chosen).map(|(number, held)| (**number, (*held).clone()))
    }
}

/// Reads the durable pages of a superblock.
async fn read_back(flash: &Flash, number: u64, held: &Held) -> Result<(), Ended> {
    let Held { superblock, durable, .. } = held;
    let read = flash.read(superblock, 0, *durable, Hint::FOREGROUND).await;
    let read = read.map_err(|error| wrong(&error))?;
    let mut expected = vec![0; flash.page_bytes()];
    for (page, bytes) in (0..).zip(read.bytes.chunks(flash.page_bytes())) {
        fill(number, page, &mut expected);
        if bytes != expected {
            return Err(Ended::Wrong(format!("page {page} of {superblock} has other contents")));
        }
    }
    Ok(())
}

fn fill(number: u64, page: u32, bytes: &mut [u8]) {
    Rng::seeded(number << 16 | u64::from(page)).fill(bytes);
}

/// The tag of the superblock that was allocated as this number.
fn tag(number: u64) -> OwnerTag {
    let mut bytes = [0; 64];
    let (first, rest) = bytes.split_at_mut(NUMBER_BYTES);
    first.copy_from_slice(&number.to_le_bytes());
    Rng::seeded(number).fill(rest);
    OwnerTag(bytes)
}

fn number_of(tag: OwnerTag) -> u64 {
    tag.0.first_chunk().map_or(0, |first| u64::from_le_bytes(*first))
}

fn wrong(error: &dyn std::fmt::Display) -> Ended {
    Ended::Wrong(error.to_string())
}
