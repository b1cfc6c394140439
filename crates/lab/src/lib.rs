//! The laboratory.

pub mod outcome;

pub use outcome::{Outcome, Programs, Sample, Span, SpanKind};
