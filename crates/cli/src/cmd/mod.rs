//! The subcommands, one file each.

pub mod bench;
pub mod check;
mod check_volumes;
pub mod clock;
pub mod dump;
pub mod format;
pub mod grow;
pub mod info;
pub mod load;
pub mod record;
mod repair;
pub mod serve;
pub mod set;
pub mod units;
pub mod volume;
