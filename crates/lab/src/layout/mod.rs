//! Layouts: how a device uses its flash. Experiments vary the layout on the same hardware.

mod sets;

pub use sets::Sets;

use crate::toml_text::of_kind;
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use softflash_device::model::UnitKind;
use softflash_drive::spec::PageMapped;
use softflash_policy::{LifetimePolicy, PlacementPolicy, Schedule, VictimPolicy};
use toml::{Table, Value};

/// A layout, as a preset in TOML states it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Layout {
    /// A description in one line.
    #[serde(default)]
    pub title: String,
    /// Its sets.
    #[serde(flatten)]
    pub sets: Sets,
    /// The kind, with its fields.
    #[serde(flatten)]
    pub kind: LayoutKind,
}

impl<'de> Deserialize<'de> for Layout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Layout, D::Error> {
        let mut table = Table::deserialize(deserializer)?;
        let of_sets = Sets::KEYS.iter().filter_map(|&key| table.remove_entry(key)).collect();
        let sets: Sets = of_kind(of_sets)?;
        let mut text = |key| match table.remove(key) {
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(D::Error::custom(format!("{key}: expected a text in quotes"))),
            None => Ok(None),
        };
        let title = text("title")?.unwrap_or_default();
        let missing = "kind is missing; write kind = \"page-mapped\" or kind = \"units\"";
        let kind = text("kind")?.ok_or_else(|| D::Error::custom(missing))?;
        let kind = match kind.as_str() {
            "page-mapped" => of_kind(table).map(LayoutKind::PageMapped),
            "units" => of_kind(table).map(LayoutKind::Units),
            _ => return Err(D::Error::unknown_variant(&kind, &["page-mapped", "units"])),
        };
        Ok(Layout { title, sets, kind: kind.map_err(Sets::named_in)? })
    }
}

/// Kinds of layouts, selected by `kind`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum LayoutKind {
    /// A conventional drive: pages are mapped by firmware behind a block interface.
    PageMapped(PageMapped),
    /// Software-defined: units with explicit erase, managed by the host's FTL and store.
    Units(Units),
}

/// Units with explicit erase, as the host's software sees them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Units {
    /// The flash of a unit.
    #[serde(default)]
    pub unit: UnitKind,
    /// Which unit takes the next write. Not `static` or `by-hint`: those place pages.
    #[serde(default = "round_robin", deserialize_with = "placement_of_units")]
    pub scheduler: PlacementPolicy,
    /// The order of the commands that wait for a die. Not `weighted-fair`: the host does not know
    /// how long the flash takes for a command.
    #[serde(default = "reads_first", deserialize_with = "order_of_units")]
    pub order: Schedule,
    /// What takes requests of blocks.
    #[serde(default)]
    pub interface: Interface,
    /// Of a volume: spare / logical of all flash, in percent, as of a drive. Unless given, what
    /// `serve` takes: 7 % of its room, beside what the domain keeps free for itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1000.0))]
    pub op_percent: Option<f64>,
    /// Of a volume: which superblock of a unit is collected next.
    #[serde(default)]
    pub victim: VictimPolicy,
    /// Of a volume: which of its data share superblocks. Not `oracle`: a host does not know what
    /// its clients will write.
    #[serde(default, deserialize_with = "lifetime_of_units")]
    pub lifetime: LifetimePolicy,
}

/// What takes requests of blocks to units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Interface {
    /// A volume for traces, on sets, and for workloads with writes of other sizes than a
    /// superblock, trims beside other requests, or threads that only write; else the superblocks.
    #[default]
    Auto,
    /// The superblocks: a write fills one and includes its erase.
    Superblocks,
    /// A volume over all units, which maps 4 KiB, as `serve` has them.
    Volume,
}

impl Default for Units {
    fn default() -> Units {
        Units {
            unit: UnitKind::default(),
            scheduler: round_robin(),
            order: reads_first(),
            interface: Interface::default(),
            op_percent: None,
            victim: VictimPolicy::default(),
            lifetime: LifetimePolicy::default(),
        }
    }
}

fn round_robin() -> PlacementPolicy {
    PlacementPolicy::ROUND_ROBIN
}

fn placement_of_units<'de, D: Deserializer<'de>>(text: D) -> Result<PlacementPolicy, D::Error> {
    let policy = PlacementPolicy::deserialize(text)?;
    match policy.is_static() {
        false => Ok(policy),
        true => Err(D::Error::custom(format!(
            "the placement `{policy}` depends on the numbers of pages, so it is for page-mapped \
             drives only"
        ))),
    }
}

fn lifetime_of_units<'de, D: Deserializer<'de>>(text: D) -> Result<LifetimePolicy, D::Error> {
    let policy = LifetimePolicy::deserialize(text)?;
    match policy.is_foretold() {
        false => Ok(policy),
        true => Err(D::Error::custom(format!(
            "the lifetime policy `{policy}` needs the requests to come, so it is for page-mapped \
             drives only"
        ))),
    }
}

fn reads_first() -> Schedule {
    Schedule::READS_FIRST
}

fn order_of_units<'de, D: Deserializer<'de>>(text: D) -> Result<Schedule, D::Error> {
    let order = Schedule::deserialize(text)?;
    match order.allowances() {
        Some(_) => Ok(order),
        None => Err(D::Error::custom(format!(
            "the order `{order}` is for page-mapped drives only; units take `fifo`, `reads-first` or `deadline:MS`"
        ))),
    }
}

impl Layout {
    /// Default over-provisioning in percent, 0 of units unless they give it; experiments can
    /// override it.
    pub fn op_percent(&self) -> f64 {
        match &self.kind {
            LayoutKind::PageMapped(layout) => layout.op_percent,
            LayoutKind::Units(layout) => layout.op_percent.unwrap_or(0.0),
        }
    }
}
