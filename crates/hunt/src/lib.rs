//! The hunter: draws scenarios from seeds, runs the whole store in them in virtual time, cuts their power again and
//! again, and compares what comes back with an independent reference.
//!
//! - [`scenario`]: what a scenario is made of, drawn from its seed or read from a file;
//! - [`reference`](mod@reference): what clients were promised, and what may be found after a cut;
//! - [`client`]: calls the store, and tells the reference;
//! - [`resp`]: clients that speak RESP to the server's own command layer, with references of their own;
//! - [`client_model`]: how clients behave, and how time passes; [`memory`]: what a server has for requests and replies;
//! - [`medium`]: the flash that its store lives on, or a [drive] with a volatile cache;
//! - [`session`]: from power on to power off;
//! - [`profile`]: what goes wrong, by name; [`size`]: how large scenarios are;
//! - [`fault_plan`]: dies that die, units that come back old;
//! - [`invariants`]: what must hold of the flash's books, and `headers` of what the flash tells while the power is away;
//! - [`trouble`]: why a session ends early; [`fullness`]: whether a store is full that says so;
//! - [`trial`]: one scenario from its beginning to its end;
//! - [`shrink`]: a smaller scenario that fails as well;
//! - [`exhaustive`]: all small scenarios, whose parts are in [`small_scenario`];
//! - [`campaign`]: many seeds on all cores, and what came out;
//! - `planted`, with the feature of that name: hunts for bugs that were put there for it to find.
//!
//! A scenario is one thread and one clock, so equal scenarios give equal traces, told by their hash.

pub mod campaign;
pub mod client;
pub mod client_model;
pub mod drive;
pub mod duration;
pub mod exhaustive;
pub mod fault_plan;
pub mod fullness;
mod headers;
pub mod invariants;
pub mod medium;
pub mod memory;
#[cfg(feature = "planted")]
pub mod planted;
pub mod profile;
pub mod reference;
pub mod resp;
pub mod scenario;
pub mod session;
pub mod shrink;
pub mod size;
pub mod small_scenario;
pub mod trial;
pub mod trouble;
mod width;
