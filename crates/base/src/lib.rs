//! Types that every layer of SoftFlash uses: ids, sets of units, time, aligned buffers, seeded
//! random generators, checksums, integer conversions and histograms. No I/O, no clock, no policy.

pub mod access;
pub mod cast;
pub mod checksum;
pub mod histogram;
pub mod id;
pub mod io_buf;
mod latency_edges;
pub mod planted;
pub mod random;
mod shell;
pub mod time;
mod unit_set;
mod user_error;

pub use access::{AccessKind, Durability};
pub use checksum::checksum64;
pub use id::{ShardId, SliceId, UnitId};
pub use io_buf::{BufferPool, IoBuf};
pub use latency_edges::EDGES_US;
pub use shell::shell_word;
pub use time::Time;
pub use unit_set::{UnitSet, UnitSetError};
pub use user_error::UserError;
