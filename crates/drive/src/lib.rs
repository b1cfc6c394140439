//! A conventional drive in virtual time.

pub mod spec;
