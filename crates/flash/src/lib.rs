//! Asynchronous flash: turns requests to the flash translation layer into futures.
//!
//! One *pump* task for each FTL polls it and sleeps until the device has completions. Requests are
//! submitted at once, in the order of the calls; the pump starts them together when the tasks
//! that are ready have run, so one system call serves many. See [`Flash`].
//!
//! A [`Flash`] is a view of an owner's units. They are those of one FTL, unless units have
//! [joined](Flash::join) from others.

mod erasing;
mod flash;
mod page_state;
mod pump;
mod requests;
mod resizing;
mod unit_health;
mod view;
mod waiting;

pub use erasing::erase_units;
pub use flash::{Flash, FlashSource, MountedFlash, Outcome, ReadPages};
pub use unit_health::UnitHealth;
