//! What a backend says of itself: its name in labels, what its flash can do, and how its devices
//! are opened. `opening` lists the backends.

use crate::file::OpenOptions;
use crate::label::{Configuration, LabelStore};
use crate::queue_pair::{Device, OpenError};
use serde::Serialize;
use std::sync::Arc;

/// What the flash of a backend can do: the layers above do the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Capabilities {
    /// Blocks of a unit that may be open at the same time; none for any number. A ZNS drive limits
    /// its open zones.
    pub open_blocks: Option<u32>,
    /// Placement identifiers that a program may name, as those of FDP; 0 for none.
    pub placement_ids: u16,
    /// Whether the device keeps the table of its bad blocks; otherwise the label has it.
    pub native_bad_blocks: bool,
    /// Whether the label can be rewritten in place.
    pub label_in_place: bool,
    /// Whether units can be added at the end of a device.
    pub more_units: bool,
}

/// Opens a device whose label has been read. The text is a remark about the label.
pub(crate) type Open =
    fn(LabelStore, Option<String>, OpenOptions) -> Result<Arc<dyn Device>, OpenError>;

/// A backend of formatted devices.
pub(crate) struct Backend {
    /// Its name in labels.
    pub(crate) name: &'static str,
    pub(crate) capabilities: Capabilities,
    pub(crate) open: Open,
    /// The size of a device's file; none if its configuration is wrong.
    pub(crate) bytes: fn(&Configuration) -> Option<u64>,
}
