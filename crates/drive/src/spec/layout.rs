//! How a page-mapped drive uses its flash.

use super::bands::{BandChoice, Bands, Collect, GcClass};
use super::device::DeviceSpec;
use super::mapping_unit::MappingUnit;
use super::slc_cache::SlcCache;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use softflash_mapping::MapKind;
use softflash_policy::lifetime;
use softflash_policy::{LifetimePolicy, PlacementPolicy, Schedule, VictimPolicy, WearPolicy};

/// A page-mapped layout, as a preset in TOML states it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageMapped {
    /// The scope of a write frontier: the blocks that are written, erased and collected together.
    /// It decides whether programs are multi-plane, and so how fast a drive writes: with `die` one
    /// command programs a page of every plane in the time of one page, with `plane` the planes of
    /// a die program one after the other.
    #[serde(default, rename = "write_frontier", alias = "gang")]
    pub frontier: FrontierScope,
    /// The least that the map places by itself: `"page"`, or so many bytes, several of which fill a
    /// flash page.
    #[serde(default)]
    pub mapping_unit: MappingUnit,
    /// How long written data wait for others that fill their flash page, after the last write; then
    /// the page is programmed with what there is. Without a write buffer nothing waits.
    #[serde(default = "ten_ms")]
    pub gather_us: u32,
    /// Over-provisioning in percent: spare / logical. Experiments override it.
    #[serde(default = "seven")]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub op_percent: f64,
    /// Which block is collected next.
    #[serde(default)]
    pub victim: VictimPolicy,
    /// How erases are levelled over the blocks of a write frontier.
    #[serde(default, skip_serializing_if = "is_fifo")]
    #[schemars(extend("default" = "fifo"))]
    pub wear: WearPolicy,
    /// The order of the commands of a die.
    #[serde(default)]
    pub schedule: Schedule,
    /// Which write frontier takes a page of the host.
    #[serde(default, skip_serializing_if = "is_static")]
    #[schemars(extend("default" = "static"))]
    pub placement: PlacementPolicy,
    /// Which pages are expected to become invalid at about the same time, and share blocks, by
    /// classes that the drive predicts. `by-hint` takes those of the host instead.
    #[serde(default, skip_serializing_if = "predicts_none")]
    #[schemars(extend("default" = "none"))]
    pub lifetime: LifetimePolicy,
    /// Blocks of several planes or dies that are written together, by their share of all. Pages of
    /// the host take the planes or dies of the open band in turn.
    #[serde(default, skip_serializing_if = "has_no_bands")]
    #[schemars(extend("default" = "none"))]
    pub bands: Bands,
    /// With `bands`: what is collected at once.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = "band"))]
    pub collect: Collect,
    /// With `bands` of two widths: which of them takes a page of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub band_choice: Option<BandChoice>,
    /// With `bands`: whether pages that are collected stay apart by their class.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = "kept"))]
    pub gc_class: GcClass,
    /// Whether the map is in memory, or on flash with a share of it in memory.
    #[serde(default, skip_serializing_if = "is_page_map")]
    #[schemars(extend("default" = "page"))]
    pub map: MapKind,
    /// Data pages for each page of parity across channels; 0: no parity.
    #[serde(default)]
    pub parity_data_pages: u32,
    /// Collected pages are moved inside their die (copyback), without crossing the channel.
    #[serde(default)]
    pub copyback: bool,
    /// Whether the device's write buffer is used.
    #[serde(default = "yes")]
    pub write_buffer: bool,
    /// Blocks that take what the host writes with one bit a cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slc_cache: Option<SlcCache>,
    /// Background scrub: the hours in which every flash page with data is read once; 0 for none.
    #[serde(default, skip_serializing_if = "is_zero_hours")]
    #[schemars(range(min = 0.0))]
    pub scrub_hours: f64,
    /// Read reclaim: the reads of a block after which its pages move to another one, before read
    /// disturb harms them; 0 for never.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub read_reclaim_reads: u32,
    /// Whether reads suspend programs and erases, where the flash can. A die then takes one read
    /// while it programs or erases, and senses it before the work that waits, in any `schedule`.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    #[schemars(extend("default" = true))]
    pub suspend: bool,
    /// Whether the dies of a chip work at the same time (multi-LUN operations of ONFI). Without it
    /// a chip takes a command only when it has none: reads and programs of one die wait for those
    /// of the others. Then `write_frontier` is `plane`, and a chip has at most 4 planes.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    #[schemars(extend("default" = true))]
    pub die_interleaving: bool,
}

impl Default for PageMapped {
    fn default() -> PageMapped {
        PageMapped {
            frontier: FrontierScope::default(),
            mapping_unit: MappingUnit::default(),
            gather_us: ten_ms(),
            op_percent: seven(),
            victim: VictimPolicy::default(),
            wear: WearPolicy::default(),
            schedule: Schedule::default(),
            placement: PlacementPolicy::default(),
            lifetime: LifetimePolicy::NONE,
            bands: Bands::None,
            collect: Collect::default(),
            band_choice: None,
            gc_class: GcClass::default(),
            map: MapKind::default(),
            parity_data_pages: 0,
            copyback: false,
            write_buffer: yes(),
            slc_cache: None,
            scrub_hours: 0.0,
            read_reclaim_reads: 0,
            suspend: yes(),
            die_interleaving: yes(),
        }
    }
}

impl PageMapped {
    /// Classes of pages that have write frontiers of their own.
    pub fn classes(&self) -> u32 {
        self.placement.classes().max(lifetime::classes(self.lifetime))
    }

    /// Bytes of a mapping unit on a device: those of a page where the layout does not fit it.
    pub fn unit_bytes(&self, device: &DeviceSpec) -> u32 {
        let page_bytes = device.geometry.page_bytes;
        self.mapping_unit.bytes_on(page_bytes).unwrap_or(page_bytes)
    }
}

fn ten_ms() -> u32 {
    10_000
}

fn seven() -> f64 {
    7.0
}

fn yes() -> bool {
    true
}

fn is_true(value: &bool) -> bool {
    *value
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn has_no_bands(bands: &Bands) -> bool {
    *bands == Bands::None
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

fn is_zero_hours(hours: &f64) -> bool {
    *hours == 0.0
}

fn is_static(placement: &PlacementPolicy) -> bool {
    *placement == PlacementPolicy::STATIC
}

fn predicts_none(lifetime: &LifetimePolicy) -> bool {
    *lifetime == LifetimePolicy::NONE
}

fn is_page_map(map: &MapKind) -> bool {
    *map == MapKind::Page
}

fn is_fifo(wear: &WearPolicy) -> bool {
    *wear == WearPolicy::FIFO
}

/// The blocks that share a write frontier, and are collected together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FrontierScope {
    /// Each block for itself; every plane has its own write frontier.
    #[default]
    Plane,
    /// The same block of every plane of a die, programmed by multi-plane commands.
    Die,
}
