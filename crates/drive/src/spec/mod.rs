//! Devices and page-mapped layouts, as presets in TOML state them.

mod device;
mod layout;

pub use device::{ControllerSpec, DeviceSpec, HostSpec, LinkSpec, Provenance};
pub use layout::{FrontierScope, PageMapped};
pub use softflash_mapping::{MapKind, Share};
pub use softflash_policy::{PlacementPolicy, Schedule, VictimPolicy, WearPolicy};
