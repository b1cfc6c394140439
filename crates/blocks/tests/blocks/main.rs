//! Tests of the block layer.

mod failed_programs;
mod owners;
mod rewrites;
mod space;
