//! Mapped domains on a modelled array in virtual time.

#![expect(clippy::unwrap_used, reason = "a test ends at the first error")]

mod commands;
mod contents;
mod damage;
mod dead_units;
mod draining;
mod failed_checkpoints;
mod full;
mod giving_up;
mod hints;
mod images;
mod limits;
mod live_sets;
mod lost_frames;
mod pairs;
mod policies;
mod pressure;
mod quota;
mod reads_and_writes;
mod reshaping;
mod settings;
mod shared_flash;
mod testbed;
mod unit_sets;
mod unit_slots;
mod weights;
