//! Mapped domains on a modelled array in virtual time.

mod bed;
mod cuts;
mod full;
mod images;
mod reads_and_writes;
