//! Devices and page-mapped layouts, as presets in TOML state them.

mod bands;
mod device;
mod layout;
mod mapping_unit;
mod slc_cache;

pub use bands::{BandChoice, Bands, Collect, GcClass, UnknownChoice};
pub use device::{ControllerSpec, DeviceSpec, HostSpec, LinkSpec, Provenance, ThermalSpec};
pub use layout::{FrontierScope, PageMapped};
pub use mapping_unit::MappingUnit;
pub use slc_cache::{Folding, SlcCache};
pub use softflash_mapping::{MapKind, Share};
pub use softflash_policy::{LifetimePolicy, PlacementPolicy, Schedule, VictimPolicy, WearPolicy};
