//! What devices and page-mapped layouts are made of, as presets in TOML state it.

mod device;
mod layout;

pub use device::{ControllerSpec, DeviceSpec, HostSpec, LinkSpec, Provenance};
pub use layout::{Gang, PageMapped, Schedule, VictimPolicy};
