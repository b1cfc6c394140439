//! The log: a chain of segments, each in a block of its own, to which frames are appended.
//!
//! Events form a stream; a frame carries the part of the stream that one group commit has gathered,
//! and may split an event. To read, [`scan`] finds the frames of the segments and determines how
//! the log ends, and [`stream`] joins the events.

pub mod event;
pub mod frame;
pub mod scan;
pub mod stream;

pub use event::{PatchEntry, Replayed};
pub use frame::{FrameHeader, FrameRole};
pub use scan::{End, Frame, LogScanner, Position};
pub use stream::EventStream;

/// The version of the format of frames and events that this program writes.
pub const VERSION: u16 = 4;
