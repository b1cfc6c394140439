//! Checks that a store that refuses writes for lack of space is really full.
//!
//! There are two checks. Immediately: a shard that is full has few free superblocks, as the flash
//! counts them. And where little data is live: after an idle time in which cleaning runs, every
//! shard accepts a write again.

use crate::invariants::SpaceAccounting;
use crate::scenario::Scenario;
use crate::session_failure::SessionFailure;
use bytes::Bytes;
use softflash_base::SliceId;
use softflash_ftl::UnitTelemetry;
use softflash_store::stats::StoreStats;
use softflash_store::{Entry, Store};
use std::time::Duration;

/// Idle time within which a store must finish all cleaning.
pub const REST: Duration = Duration::from_secs(60);

/// Superblocks that are released while commands to them are in flight become free when these
/// commands end, and the shard's counter may miss that.
const UNDER_WAY: u32 = 2;

/// Prefix of keys that test whether a shard accepts writes; they are deleted again.
const PROBE: &[u8] = b"probe:";

/// Superblocks that flushes, compactions and the log of a shard need, however little data is live.
const WORKING_BLOCKS: f64 = 28.0;
/// Live data count as little up to this share of the other superblocks.
const LITTLE: f64 = 0.5;
/// The same where values are cut into fragments: patches that share a value are merged together, up
/// to a whole level at a time, so both levels and the merged result need space.
const LITTLE_OF_FRAGMENTS: f64 = 1.0 / 3.0;
/// Approximate overhead of a record, in bytes: its header and its index entry.
const RECORD_BYTES: u64 = 64;
/// Page size of the flash in bytes.
const PAGE_BYTES: u64 = 4096;
/// Keys that one scan step returns.
const SCANNED: usize = 200;

/// Whether the key is one that tests whether a shard accepts writes.
pub fn is_probe(key: &[u8]) -> bool {
    key.starts_with(PROBE)
}

/// The shard's count of free blocks, by which it accepts writes, is the real one. It may be greater
/// where superblocks have gone bad since.
///
/// # Errors
/// The count is too small or too large.
pub fn free_blocks_are_known(stores: &[Store], scenario: &Scenario) -> Result<(), SessionFailure> {
    free_blocks_fit(stores, scenario)?;
    for store in stores {
        let blocks = store.blocks();
        let (known, free) = (blocks.free_blocks(), blocks.count_free_blocks());
        let flash = blocks.flash();
        let bad: u32 = flash.units().iter().map(|unit| flash.space(unit).bad).sum();
        if known + UNDER_WAY < free || known > free + UNDER_WAY + bad {
            let shard = store.local_id();
            return Err(SessionFailure::Wrong(format!(
                "shard {shard} counts {known} free blocks of {free}"
            )));
        }
    }
    Ok(())
}

/// The number of free blocks of a shard is that which fits the free superblocks of its units: two
/// copies of each on different units, if it keeps copies.
///
/// # Errors
/// The number is another one.
pub fn free_blocks_fit(stores: &[Store], scenario: &Scenario) -> Result<(), SessionFailure> {
    for store in stores {
        let blocks = store.blocks();
        let flash = blocks.flash();
        let units = flash.units();
        let spaces = units.iter().map(|unit| flash.space(unit));
        let serving = spaces.filter(|space| !space.is_worn_out());
        let of_units: Vec<u32> = serving.map(|space| space.allocatable()).collect();
        let (free, left) = (blocks.count_free_blocks(), fitting(&of_units, scenario));
        if free != left && blocks.lost_units() == 0 {
            let shard = store.local_id();
            return Err(SessionFailure::Wrong(format!(
                "shard {shard} counts {free} free blocks, and its units have room for {left}: {of_units:?} superblocks"
            )));
        }
    }
    Ok(())
}

/// Whether a shard has so few free blocks that it takes no new data. The rest is the reserve of
/// flushes and compactions, which cannot rewrite all blocks that lost a unit.
pub fn lacks_room(stores: &[Store]) -> bool {
    stores.iter().any(|store| store.blocks().free_blocks() < store.reserve_blocks())
}

/// A write was refused: some shard must have few free superblocks.
///
/// # Errors
/// No shard has few.
pub async fn is_low_on_space(stores: &[Store], scenario: &Scenario) -> Result<(), SessionFailure> {
    let Some(first) = stores.first() else {
        return Err(SessionFailure::Wrong(
            "the store does not open because the flash is full".to_owned(),
        ));
    };
    free_blocks_are_known(stores, scenario)?;
    if first.stats().await?.lost_units > 0 {
        return Ok(());
    }
    let units = first.units().await?;
    let mut shortages = Vec::new();
    for (store, units) in stores.iter().zip(units.chunks(scenario.units_of_a_shard())) {
        let free = blocks(units, scenario, |unit| unit.space.allocatable());
        let reserve = store.reserve_blocks();
        // A few may have been released since the refusal.
        if free < reserve + reserve / 2 {
            return Ok(());
        }
        shortages.push(format!("{free} blocks are free, the reserve is {reserve}"));
    }
    Err(SessionFailure::Wrong(format!(
        "a write is refused because the flash is full: {}",
        shortages.join("; ")
    )))
}

/// Leaves the store idle. Then all superblocks in use are known to the store, and every shard with
/// little live data accepts a write.
///
/// # Errors
/// The condition that is violated.
pub async fn takes_writes_again(
    stores: &[Store],
    scenario: &Scenario,
) -> Result<(), SessionFailure> {
    let Some(first) = stores.first() else { return Ok(()) };
    let runtime = first.runtime();
    runtime.sleep_until(runtime.now() + REST).await;
    let accounting = SpaceAccounting::of(first).await?;
    let StoreStats { lost_units, patches, value_blocks, .. } = first.stats().await?;
    if lost_units > 0 {
        return Ok(());
    }
    accounting.have_no_leak(scenario).map_err(SessionFailure::Wrong)?;
    free_blocks_are_known(stores, scenario)?;
    let units = first.units().await?;
    for (store, units) in stores.iter().zip(units.chunks(scenario.units_of_a_shard())) {
        let payload = units.first().map_or(1, |unit| unit.superblock_payload_bytes.max(1));
        let good = blocks(units, scenario, |unit| match unit.space.is_worn_out() {
            true => 0,
            false => unit.space.total() - unit.space.bad,
        });
        let alive = alive_bytes(store).await?.div_ceil(usable_bytes(payload, scenario));
        if alive as f64 > little(scenario) * (f64::from(good) - WORKING_BLOCKS) {
            continue;
        }
        probe(store).await.map_err(|failure| match failure {
            SessionFailure::Full => {
                let free = blocks(units, scenario, |unit| unit.space.allocatable());
                SessionFailure::Wrong(format!(
                    "shard {} still refuses writes after an idle time because the flash is full: the live data fit into {alive} of {good} \
                     blocks, {free} are free; all shards have {patches} patches and {value_blocks} value blocks",
                    store.local_id()
                ))
            }
            other => other,
        })?;
    }
    Ok(())
}

fn little(scenario: &Scenario) -> f64 {
    match scenario.options(0).fragment_bytes as u64 >= scenario.clients.value_bytes {
        true => LITTLE,
        false => LITTLE_OF_FRAGMENTS,
    }
}

/// Number of blocks for which these superblocks are enough.
fn blocks(
    units: &[UnitTelemetry],
    scenario: &Scenario,
    count: impl Fn(&UnitTelemetry) -> u32,
) -> u32 {
    fitting(&units.iter().map(count).collect::<Vec<u32>>(), scenario)
}

/// Number of blocks for which so many superblocks of each unit are enough: two copies of a block
/// are on different units, so that the room of the largest unit beyond that of the others together
/// holds none.
fn fitting(counts: &[u32], scenario: &Scenario) -> u32 {
    let (sum, most) = (counts.iter().sum::<u32>(), counts.iter().copied().max().unwrap_or(0));
    if scenario.store.is_redundant() && counts.len() > 1 { (sum / 2).min(sum - most) } else { sum }
}

/// Minimum bytes of values in a patch, approximately: a page is metadata, and some room remains
/// unused because the next record did not fit.
fn usable_bytes(payload: u64, scenario: &Scenario) -> u64 {
    let longest = scenario.clients.value_bytes.min(scenario.options(0).fragment_bytes as u64);
    payload.saturating_sub(PAGE_BYTES + longest / 2).max(payload / 4).max(1)
}

/// Bytes of live data in the store's own shard.
async fn alive_bytes(store: &Store) -> Result<u64, SessionFailure> {
    let mut bytes = 0;
    for slice in store.layout().slices_of(store.local_id()).map(SliceId) {
        let mut after = None;
        loop {
            let page = store.scan(slice, after, SCANNED).await?;
            let sizes = page.items.iter().map(|(key, entry)| key.len() + entry.value.len());
            bytes += sizes.map(|size| size as u64 + RECORD_BYTES).sum::<u64>();
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    Ok(bytes)
}

/// Writes a key of the store's own shard, and deletes it.
async fn probe(store: &Store) -> Result<(), SessionFailure> {
    let own = |key: &Bytes| store.shard_of(key) == store.local_id();
    let keys = (0..).map(|number| Bytes::from([PROBE, format!("{number}").as_bytes()].concat()));
    let Some(key) = keys.take(usize::from(u16::MAX)).find(own) else { return Ok(()) };
    for entry in [Some(Entry::new(Bytes::from_static(b"room"))), None] {
        let mut transaction = store.begin();
        match entry {
            Some(entry) => transaction.put(key.clone(), entry)?,
            None => transaction.delete(key.clone())?,
        }
        let token = store.commit(transaction).await?;
        store.durable(&token).await?;
    }
    Ok(())
}
