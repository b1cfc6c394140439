//! Tests of the block layer.

mod owners;
mod rewrites;
mod space;
