//! Tests of whole drives: one binary, so that the shared code is built once.

mod as_device;
mod bands;
mod cached_map;
mod durability;
mod lifetimes;
mod mapping_unit;
mod placement;
mod policies;
mod presets;
mod requests;
mod schedule;
mod sibling;
mod slc_cache;
mod store_on_drive;
mod support;
mod suspend;
mod thermal;
mod upkeep;
mod wear;
