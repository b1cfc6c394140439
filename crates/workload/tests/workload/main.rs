//! Tests of the workloads.

mod bad_input;
mod block;
mod flows;
mod kv;
mod presets;
