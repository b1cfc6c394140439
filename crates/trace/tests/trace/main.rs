//! Tests of the trace formats.

mod adaptors;
mod malformed;
mod round_trips;
mod samples;
mod summary;
mod support;
