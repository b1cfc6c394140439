//! Mapped domains on a modelled array in virtual time.

#![expect(clippy::unwrap_used, reason = "a test ends at the first error")]

mod bed;
mod failed_checkpoints;
mod full;
mod hints;
mod images;
mod limits;
mod quota;
mod reads_and_writes;
mod settings;
mod weights;
