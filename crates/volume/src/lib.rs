//! Volumes: thin block devices on the units of a mapped domain, with snapshots and clones.
//!
//! A [`Domain`] maps *mapping units* of 4096 bytes to slots in the superblocks of its units.
//! Writes of clients are gathered in *frames* (a head with the identity and checksum of each
//! mapping unit, and the data), which are appended to the least loaded unit. Collection moves the
//! valid data out of superblocks so that they can be erased; checkpoints write the map, so that
//! recovery starts from a *root* and replays the frames behind it.

mod admission;
mod changes;
mod checkpoint;
mod classes;
mod clients;
mod collection;
mod collector;
mod config;
mod core;
mod counters;
mod domain;
mod domain_map;
mod draining;
mod ending;
mod error;
mod examination;
mod flusher;
mod format;
mod frame_scan;
mod frames;
mod frontier;
mod fullness;
mod geometry;
mod host_frames;
mod image;
mod joining;
mod latencies;
mod leaves;
mod limits;
mod listing;
mod map_space;
mod moving;
mod on_request;
mod open_frame;
mod opening;
mod operations;
mod order;
mod pair;
mod pair_link;
mod pairing;
mod placement;
mod proof;
mod quota;
mod reader;
mod recovery;
mod releases;
mod relocation;
mod repair;
mod reshaping;
mod residence;
mod resting;
mod retiring;
mod rewriting;
mod room;
mod roots;
mod settings;
mod single_read;
mod space;
mod stream;
mod superblocks;
mod tasks;
mod tenant;
mod token_bucket;
mod unit_ranges;
mod unit_slots;
mod unpaired;
mod volume;
mod writer;

pub use config::DomainConfig;
pub use counters::DomainCounters;
pub use domain::{ClosedSuperblocks, Domain, DomainSpace, VolumeFigures};
pub use error::VolumeError;
pub use examination::{Examined, ExaminedImage, Progress};
pub use format::MAPPING_UNIT_BYTES;
pub use geometry::fits_domain;
pub use latencies::{Latencies, VolumeLatencies};
pub use listing::{VolumeInfo, parents_first};
pub use pairing::{PairFigures, WindowState};
pub use recovery::{RecoveryReport, StaleUnit};
pub use repair::Repaired;
pub use room::room_bytes;
pub use settings::{Lifetime, Setting, Temperature, VolumeSettings};
pub use tenant::VolumeCounters;
pub use unit_slots::UnitSlots;
pub use volume::{Changed, Volume};
