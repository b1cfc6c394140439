//! The sets of units of a data directory, and their state.

use crate::capacity;
use crate::manifest::Manifest;
use crate::set_table::{SetTable, store_name};
use serde::Serialize;
use softflash_base::{ShardId, UnitSet};
use softflash_device::{DeviceInfo, UnitGeometry};
use softflash_ftl::{Ownership, UnitTelemetry};
use softflash_volume::{Domain, PairFigures, WindowState};

/// Who uses the units of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SetKind {
    /// The store: the keys of a shard.
    Store,
    /// A mapped domain: volumes.
    Mapped,
}

impl SetKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            SetKind::Store => "store",
            SetKind::Mapped => "mapped",
        }
    }
}

/// A set of units, all of one shard and of one owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlashSet {
    /// Its number: 0 for the store of each shard; that of the domain for a mapped one.
    pub id: u16,
    /// Its name, unique in the directory.
    pub name: String,
    /// Its shard.
    pub shard: ShardId,
    /// Who uses it.
    pub kind: SetKind,
    /// Its units.
    pub units: UnitSet,
    /// Spare space for collection in percent of the usable space; of mapped sets.
    pub op_percent: Option<u8>,
    /// Bytes of data that its flash has room for.
    pub usable_bytes: u64,
    /// The set with the other copy of its volumes.
    pub pair: Option<String>,
    /// The time for which it takes writes, or only reads, in milliseconds.
    pub window_ms: Option<u32>,
}

/// The state of a set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SetState {
    /// Its number.
    pub id: u16,
    /// Its name.
    pub name: String,
    /// The number of its shard.
    pub shard: u16,
    /// Who uses it.
    pub kind: SetKind,
    /// Its units.
    pub units: Vec<u16>,
    /// Spare space for collection in percent of the usable space; of mapped sets.
    pub op_percent: Option<u8>,
    /// Bytes of its data: of a store those of superblocks with data, with redundancy and metadata;
    /// of a mapped set those that volumes and snapshots hold. `None` if it cannot be mounted.
    pub used_bytes: Option<u64>,
    /// Bytes that these may become.
    pub usable_bytes: u64,
    /// Mean erases of a block of its units. `None` if it cannot be mounted.
    pub erases_mean: Option<f64>,
    /// Bytes programmed for each byte that clients wrote, since the mount; `None` before the first.
    pub waf: Option<f64>,
    /// The set with the other copy of its volumes.
    pub pair: Option<String>,
    /// The time for which it takes writes, or only reads, in milliseconds.
    pub window: Option<u64>,
    /// Bytes of data in units that leave it; of a store those of superblocks with data.
    pub draining_bytes: Option<u64>,
    /// Of a mounted pair: `whole`, `building` while a copy of everything is made for a set, or
    /// `alone` while only one set takes writes.
    pub pair_state: Option<PairStanding>,
    /// Of a mounted pair: bytes that one of the sets has still to get.
    pub behind_bytes: Option<u64>,
    /// Of a set with windows: whether it only reads, or takes writes.
    pub window_state: Option<WindowKind>,
    /// The time until the window ends, if nothing ends it before, in milliseconds.
    pub window_left_ms: Option<u64>,
    /// Bytes that clients may write before the window has to end.
    pub window_writes_left_bytes: Option<u64>,
}

/// How many copies a pair has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairStanding {
    /// Two copies of everything.
    Whole,
    /// A copy of everything is being made for one of the sets.
    Building,
    /// One set takes no writes.
    Alone,
}

impl PairStanding {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            PairStanding::Whole => "whole",
            PairStanding::Building => "building",
            PairStanding::Alone => "alone",
        }
    }
}

/// The window of a set, by the names of NVM Express.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowKind {
    /// It only reads.
    Deterministic,
    /// It takes writes and collects.
    NonDeterministic,
}

impl WindowKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            WindowKind::Deterministic => "deterministic",
            WindowKind::NonDeterministic => "non-deterministic",
        }
    }
}

/// What a mounted set tells of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetFigures {
    /// Bytes that volumes and snapshots hold, and may hold; of mapped sets.
    pub mapped_bytes: Option<(u64, u64)>,
    /// Bytes that clients have written since the mount.
    pub client_bytes_written: u64,
    /// Bytes of data in units that leave the set.
    pub draining_bytes: u64,
    /// The state of its pair.
    pub pair: Option<PairFigures>,
    /// Its window.
    pub window: Option<WindowState>,
}

impl Manifest {
    /// The sets on a device: those of the store before the mapped ones, each in the order of the
    /// shards; none if the layout does not fit the device, which its opening reports.
    pub fn sets(&self, device: &DeviceInfo) -> Vec<FlashSet> {
        match self.problem(device.units) {
            None => self.sets_of(device.units, &device.geometry),
            Some(_) => Vec::new(),
        }
    }

    fn sets_of(&self, device_units: u16, geometry: &UnitGeometry) -> Vec<FlashSet> {
        let table = self.table(device_units);
        let pair_of = |set: u16| {
            let pair = table.pair_of(set)?;
            let other = table.mapped.iter().find(|other| other.id == pair.partner_of(set))?;
            Some((other.name.clone(), pair.window_ms))
        };
        let SetTable { store, mapped, .. } = table.clone();
        let store_bytes = capacity::data_bytes_of_shards(self, device_units, geometry);
        let of_store = (0..).zip(store).zip(store_bytes).map(|((shard, units), bytes)| FlashSet {
            id: 0,
            name: store_name(shard),
            shard: ShardId(shard),
            kind: SetKind::Store,
            units,
            op_percent: None,
            usable_bytes: bytes,
            pair: None,
            window_ms: None,
        });
        let rooms = capacity::volume_rooms(self, device_units, geometry);
        let of_volumes = mapped.into_iter().zip(rooms).map(|(set, room)| FlashSet {
            id: set.id,
            units: set.slots.units(),
            name: set.name,
            shard: ShardId(set.shard),
            kind: SetKind::Mapped,
            op_percent: Some(set.op_percent),
            usable_bytes: room,
            pair: pair_of(set.id).map(|(name, _)| name),
            window_ms: pair_of(set.id).and_then(|(_, window_ms)| window_ms),
        });
        of_store.chain(of_volumes).collect()
    }
}

impl FlashSet {
    /// How its owner has its units.
    pub fn ownership(&self) -> Ownership {
        match self.kind {
            SetKind::Store => Ownership::BLOCKS,
            SetKind::Mapped => Ownership::of(Domain::owner(self.id)),
        }
    }

    /// Its state, by its figures and the telemetry of units, of which others may be among them;
    /// `None` for the figures of a set that is not mounted.
    pub fn state(&self, figures: Option<SetFigures>, units: &[UnitTelemetry]) -> SetState {
        let FlashSet { id, name, shard, kind, units: numbers, op_percent, usable_bytes, .. } =
            self.clone();
        let own: Vec<_> = units.iter().filter(|unit| numbers.contains(unit.unit.0)).collect();
        let used = |unit: &&UnitTelemetry| {
            u64::from(unit.space.open + unit.space.live) * unit.superblock_payload_bytes
        };
        let programmed: u64 = own.iter().map(|unit| unit.programmed.total()).sum();
        let of_units = || (own.iter().map(used).sum(), usable_bytes);
        let bytes = figures.map(|figures| figures.mapped_bytes.unwrap_or_else(of_units));
        let written = figures.map_or(0, |figures| figures.client_bytes_written);
        let pair = figures.and_then(|figures| figures.pair);
        let window = figures.and_then(|figures| figures.window);
        let erases: f64 = own.iter().map(|unit| unit.erase_count_mean).sum();
        SetState {
            id,
            name,
            shard: shard.0,
            kind,
            units: numbers.iter().collect(),
            op_percent,
            used_bytes: bytes.map(|(used, _)| used),
            usable_bytes: bytes.map_or(usable_bytes, |(_, usable)| usable),
            erases_mean: (!own.is_empty()).then(|| erases / own.len() as f64),
            waf: (written > 0).then(|| programmed as f64 / written as f64),
            pair: self.pair.clone(),
            window: self.window_ms.map(u64::from),
            draining_bytes: figures.map(|figures| figures.draining_bytes),
            pair_state: pair.map(|pair| match (pair.is_whole, pair.is_building) {
                (true, _) => PairStanding::Whole,
                (false, true) => PairStanding::Building,
                (false, false) => PairStanding::Alone,
            }),
            behind_bytes: pair.map(|pair| pair.behind_bytes),
            window_state: window.map(|window| match window.is_deterministic {
                true => WindowKind::Deterministic,
                false => WindowKind::NonDeterministic,
            }),
            window_left_ms: window.map(|window| window.left_ns / 1_000_000),
            window_writes_left_bytes: window.map(|window| window.writes_left_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::StoreSection;
    use crate::volume_units::VolumeSection;

    fn sets(shards: u16, volume_units: Option<u16>) -> Vec<FlashSet> {
        let store = StoreSection {
            shards,
            slices: 8 * shards,
            compression: Vec::new(),
            copies: 1,
            parity: 0,
        };
        let volumes = volume_units.map(|units| VolumeSection { units, op_percent: 7 });
        let geometry = UnitGeometry {
            dies: 1,
            planes: 1,
            blocks_per_plane: 256,
            pages_per_block: 256,
            page_bytes: 4096,
            die_queue_depth: 32,
        };
        Manifest::new("flash", store, volumes).sets_of(8, &geometry)
    }

    #[test]
    fn the_static_split_has_a_set_for_each_owner() {
        let line =
            |set: &FlashSet| format!("{} {} {} {}", set.id, set.name, set.kind.name(), set.units);
        let lines = |sets: &[FlashSet]| sets.iter().map(line).collect::<Vec<_>>();
        assert_eq!(
            lines(&sets(2, Some(4))),
            [
                "0 store-0 store 0-1",
                "0 store-1 store 2-3",
                "1 vol-0 mapped 4-5",
                "2 vol-1 mapped 6-7"
            ]
        );
        assert_eq!(lines(&sets(1, None)), ["0 store-0 store 0-7"]);
        assert!(sets(2, Some(4)).iter().all(|set| set.usable_bytes > 0));
    }

    #[test]
    fn a_set_that_is_not_mounted_has_no_figures() {
        let [.., set] = &sets(2, Some(4))[..] else { panic!("there are sets") };
        let state = set.state(None, &[]);
        assert_eq!((state.used_bytes, state.erases_mean, state.waf), (None, None, None));
        assert_eq!((state.op_percent, state.usable_bytes), (Some(7), set.usable_bytes));
        let figures = SetFigures { mapped_bytes: Some((4096, 8192)), ..SetFigures::default() };
        let state = set.state(Some(figures), &[]);
        assert_eq!((state.used_bytes, state.usable_bytes, state.waf), (Some(4096), 8192, None));
    }
}
