//! How a device uses its flash: what an experiment varies while the hardware stays the same.

use serde::{Deserialize, Serialize};
use softflash_drive::spec::PageMapped;

/// A layout, as a preset in TOML states it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Layout {
    /// One line: what it is.
    #[serde(default)]
    pub title: String,
    /// Of which kind, with the fields of that kind.
    #[serde(flatten)]
    pub kind: LayoutKind,
}

/// Kinds of layouts; `kind` says which.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum LayoutKind {
    /// A conventional drive: pages are mapped by firmware behind a block interface.
    PageMapped(PageMapped),
    /// Software-defined: units with explicit erase, run by the host's FTL and store.
    Units(Units),
}

/// Units with explicit erase, as the host's software sees them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Units {
    /// Channels that make up a unit.
    #[serde(default = "one")]
    pub unit_channels: u16,
    /// Which unit takes the next write.
    #[serde(default)]
    pub scheduler: Scheduler,
    /// The order of the commands of a die.
    #[serde(default)]
    pub order: Order,
}

/// Which unit takes the next write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// One after the other.
    #[default]
    RoundRobin,
    /// The one with the least to do.
    LoadAware,
}

/// The order of the commands of a die.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Reads before writes and erases that wait.
    #[default]
    ReadsFirst,
    /// In the order of arrival.
    Fifo,
}

fn one() -> u16 {
    1
}

impl Layout {
    /// Over-provisioning in percent, unless an experiment says otherwise.
    pub fn op_percent(&self) -> f64 {
        match &self.kind {
            LayoutKind::PageMapped(layout) => layout.op_percent,
            LayoutKind::Units(_) => 0.0,
        }
    }
}
