//! The hunter: deterministic simulation testing (DST) of the whole store. It draws scenarios from
//! seeds, runs the store in virtual time, cuts the power repeatedly, and compares the recovered
//! data with an independent reference.
//!
//! - [`scenario`]: the parameters of a run, read from a file or drawn from a seed, which `draw`,
//!   `width`, `contention`, `value_log` and `long_events` do;
//! - [`reference`](mod@reference): the acknowledged writes, and which contents are correct after a
//!   cut;
//! - [`client`]: calls the store and records each write in the reference; `client_scan`: compares
//!   scans with the writes of all clients meanwhile;
//! - [`resp`]: clients that send RESP to the server's command layer, with references of their own;
//! - [`client_model`]: the behaviour of clients and the passage of time; [`memory`]: the server's
//!   memory for requests and replies;
//! - [`medium`]: the simulated flash array, or a [drive] with a volatile cache;
//! - [`session`]: one run of the store from power on to power off;
//! - [`profile`]: which faults are injected, by name; [`size`]: how large scenarios are;
//! - [`fault_plan`]: how often dies fail and units are restored from an old image; `fault_state`:
//!   draws these faults for each session; `planned_faults`: those of one session;
//! - [`invariants`]: invariants of the flash's space accounting, and `headers`: of the headers on
//!   flash between sessions;
//! - `live_values`: whether the ledgers of value blocks list exactly the live values;
//! - [`session_failure`]: why a session ends early; [`fullness`]: whether a store that reports a
//!   full device is full;
//! - [`trial`]: one scenario from beginning to end;
//! - [`shrink`]: finds a smaller scenario that fails in the same way;
//! - [`volumes`]: scenarios of volumes, as [`volume_shape`] has them, with clients and references
//!   of their own;
//! - `repaired`: whether a repair of damaged patches returns what it should;
//! - [`superblocks`]: scenarios of the FTL alone;
//! - [`exhaustive`]: all small scenarios, which [`small_scenario`] defines;
//! - [`campaign`]: many seeds on all cores, and their results;
//! - `planted`, with the feature of that name: hunts for bugs planted to test the hunter.
//!
//! A scenario runs on one thread with one clock, so equal scenarios have equal traces. A trace is
//! identified by its hash.

pub mod campaign;
pub mod client;
pub mod client_model;
mod client_scan;
mod contention;
mod draw;
pub mod drive;
pub mod duration;
pub mod exhaustive;
pub mod fault_plan;
mod fault_state;
pub mod fullness;
mod headers;
pub mod invariants;
mod live_values;
mod long_events;
pub mod medium;
pub mod memory;
mod pair_shape;
mod planned_faults;
#[cfg(feature = "planted")]
pub mod planted;
pub mod profile;
pub mod reference;
mod repaired;
pub mod resp;
pub mod scenario;
pub mod session;
pub mod session_failure;
pub mod shrink;
pub mod size;
pub mod small_scenario;
pub mod store_sets;
pub mod superblock_shape;
pub mod superblocks;
pub mod trial;
mod value_log;
mod virtual_time;
pub mod volume_shape;
pub mod volumes;
mod width;
