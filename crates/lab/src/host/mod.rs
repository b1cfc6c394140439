//! The host in front of a simulated device: decorators around a device, in virtual time.

pub mod path;
pub mod read_ahead;

pub use path::{HostPath, HostPathConfig, HostTraffic};
pub use read_ahead::ReadAhead;
