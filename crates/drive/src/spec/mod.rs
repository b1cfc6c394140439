//! Devices and page-mapped layouts, as presets in TOML state them.

mod device;
mod layout;
mod mapping_unit;

pub use device::{ControllerSpec, DeviceSpec, HostSpec, LinkSpec, Provenance};
pub use layout::{FrontierScope, PageMapped};
pub use mapping_unit::MappingUnit;
pub use softflash_mapping::{MapKind, Share};
pub use softflash_policy::{PlacementPolicy, Schedule, VictimPolicy, WearPolicy};
