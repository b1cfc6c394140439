//! Repairs: a bit of a patch is damaged, the store is repaired, and every key has its value, or was
//! reported as lost.

use crate::medium::{Image, Medium};
use crate::scenario::Scenario;
use crate::session::{ClientGroup, scan_all};
use crate::virtual_time;
use bytes::Bytes;
use softflash_base::random::Rng;
use softflash_store::open_all;
use softflash_store::repair::{self, Bound, OnLogLoss, RepairReport, RepairedPatch};
use std::collections::{BTreeMap, BTreeSet};

/// The page of a block with the opening header, the bytes with which that begins, and the kind of a
/// patch at its place, as `docs/formats.md` has them.
const OPENING_PAGE: usize = 1;
const OPENING: &[u8] = b"SFopen";
const KIND_AT: usize = 61;
const KIND_OF_PATCH: u8 = 2;
/// The first page of a patch, which has its header.
const FIRST_PAGE: usize = 2;
/// Share of damages to the first page, whose loss may hide which keys are lost.
const OF_METADATA: f64 = 0.1;

/// Damages patches of a store that is closed, one after the other, and repairs the store each time.
pub fn check(
    scenario: &Scenario,
    medium: &Medium,
    clients: &ClientGroup,
    wall_ms: u64,
    rng: &mut Rng,
) -> Result<(), String> {
    let ClientGroup::Direct(clients) = clients else { return Ok(()) };
    let current = clients.iter().flat_map(|client| client.promise.borrow().current());
    let expected: BTreeMap<Bytes, Bytes> = current.collect();
    for _ in 0..scenario.repairs {
        let (mut pages, mut patches) = (Vec::new(), BTreeSet::new());
        medium.change(|block, page, bytes| {
            let is_opening = page == OPENING_PAGE && bytes.starts_with(OPENING);
            if is_opening && bytes.get(KIND_AT) == Some(&KIND_OF_PATCH) {
                patches.insert(block);
            }
            if page >= FIRST_PAGE && patches.contains(&block) {
                pages.push((block, page));
            }
        })?;
        let of_metadata = rng.chance(OF_METADATA);
        pages.retain(|(_, page)| (*page == FIRST_PAGE) == of_metadata);
        let chosen = rng.below(pages.len().max(1) as u64) as usize;
        let Some(place) = pages.get(chosen).copied() else { continue };
        let bit = rng.next_u64();
        let before = medium.change(|block, page, bytes| {
            let at = (bit >> 3) as usize % bytes.len();
            if (block, page) == place
                && let Some(byte) = bytes.get_mut(at)
            {
                *byte ^= 1 << (bit & 7);
            }
        })?;
        repaired(scenario, medium, wall_ms, &expected)
            .map_err(|what| format!("page {} of block {} is damaged: {what}", place.1, place.0))?;
        medium.restore(&Image::Flash(before))?;
    }
    Ok(())
}

/// Repairs the store and compares it.
fn repaired(
    scenario: &Scenario,
    medium: &Medium,
    wall_ms: u64,
    expected: &BTreeMap<Bytes, Bytes>,
) -> Result<(), String> {
    let (device, layout) = (medium.device(), scenario.layout());
    let run = |what| format!("a repair: {what}");
    let plan = {
        let executor = virtual_time::executor(wall_ms);
        let runtime = executor.handle();
        let planned = repair::plan(&device, &layout, &runtime, OnLogLoss::Refuse);
        executor.try_block_on(planned).map_err(|deadlock| run(deadlock.to_string()))?
    };
    let report = {
        let executor = virtual_time::executor(wall_ms);
        let runtime = executor.handle();
        let repaired = repair::carry_out(&plan, &device, &layout, &runtime);
        executor.try_block_on(repaired).map_err(|deadlock| run(deadlock.to_string()))?
    };
    if let Some(failure) = report.failures.first() {
        return Err(run(failure.clone()));
    }
    let executor = virtual_time::executor(wall_ms);
    let runtime = executor.handle();
    let found = executor.try_block_on(async {
        let stores = open_all(device, &layout, &scenario.options(0), &runtime).await;
        let stores = stores.map_err(|error| error.to_string())?;
        scan_all(&stores[0]).await.map_err(|failure| failure.what())
    });
    let found = found.map_err(|deadlock| deadlock.to_string())??;
    let found: BTreeMap<Bytes, Bytes> =
        found.into_iter().map(|(key, (value, _))| (key, value)).collect();
    compare(&report, expected, &found)
}

/// Each key has its value, or is missing and was reported. Where the lost keys are unknown, and the
/// report says so, it may have an older value.
fn compare(
    report: &RepairReport,
    expected: &BTreeMap<Bytes, Bytes>,
    found: &BTreeMap<Bytes, Bytes>,
) -> Result<(), String> {
    let keys: BTreeSet<&Bytes> = expected.keys().chain(found.keys()).collect();
    for key in keys {
        let (expected, found) = (expected.get(key), found.get(key));
        if expected == found {
            continue;
        }
        let text = key.escape_ascii().to_string();
        let patches = || report.patches.iter().filter(|patch| may_have_lost(patch, &text));
        let is_reported = match found {
            None => patches().next().is_some() || report.values.iter().any(|v| v.key.0 == text),
            Some(_) => patches().any(|patch| patch.older_values_may_return),
        };
        if !is_reported {
            let what = match (expected, found) {
                (_, None) => "is missing and not reported as lost",
                (None, _) => "had been deleted, and is there again",
                _ => "has another value than it had",
            };
            return Err(format!("key `{text}` {what} after a repair: {:?}", report.patches));
        }
    }
    Ok(())
}

/// Whether the report names the key as lost, or a range around it. Keys of the hunter are
/// printable, so that their texts have their order.
fn may_have_lost(patch: &RepairedPatch, key: &str) -> bool {
    let is_behind = |from: &Bound| match from {
        Bound::Inclusive(from) => *from.0 <= *key,
        Bound::Exclusive(from) => *from.0 < *key,
        Bound::Open => true,
    };
    let is_before = |to: &Bound| match to {
        Bound::Inclusive(to) => *key <= *to.0,
        Bound::Exclusive(to) => *key < *to.0,
        Bound::Open => true,
    };
    let mut ranges = patch.ranges.iter();
    ranges.any(|range| is_behind(&range.from) && is_before(&range.to))
        || patch.torn_keys.iter().any(|torn| torn.0 == key)
}
