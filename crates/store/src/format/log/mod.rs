//! The log: a chain of segments, each in a superblock of its own, that frames are appended to.
//!
//! Events make a stream; a frame carries what one group commit has gathered of it, cut anywhere.
//! Reading goes the other way: [`scan`] finds the frames of the segments and judges where they end,
//! [`stream`] puts the events together again.

pub mod event;
pub mod frame;
pub mod scan;
pub mod stream;

pub use event::{Checkpoint, Edit, Event, KeyChange, PatchEntry, Replayed, SliceState};
pub use frame::{FrameHeader, FrameRole};
pub use scan::{End, Frame, LogScanner, Position, Rest};
pub use stream::EventStream;

/// The version of the format of frames and events that this program writes.
pub const VERSION: u16 = 4;
