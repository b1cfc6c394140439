//! The subcommands, one file each.

pub mod bench;
pub mod check;
mod check_volumes;
pub mod clock;
pub mod dump;
pub mod format;
pub mod info;
pub mod lab;
pub mod load;
mod progress;
pub mod record;
mod repair;
pub mod replay;
pub mod serve;
mod simulated;
pub mod trace;
pub mod units;
pub mod volume;
