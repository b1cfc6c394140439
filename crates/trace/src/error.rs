//! Errors of traces.

use crate::adapt::AdaptError;
use crate::format::Format;
use crate::malformed::Malformed;
use std::io;
use std::sync::Arc;
use thiserror::Error;

/// Why a trace cannot be read, changed or written.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The stream failed, or is no whole gzip or zstd stream.
    #[error("{file}: {source}")]
    Read {
        /// The trace.
        file: Arc<str>,
        /// Why.
        source: io::Error,
    },
    /// A line is not what the format says.
    #[error("{0}; without --strict such lines are counted and left out")]
    Malformed(Malformed),
    /// The first lines are of no known format.
    #[error("{file}: its first lines are of no known format; name it: {}", Format::names())]
    UnknownFormat {
        /// The trace.
        file: Arc<str>,
    },
    /// Nothing but white space.
    #[error("{file}: it is empty")]
    Empty {
        /// The trace.
        file: Arc<str>,
    },
    /// Not one line is a request.
    #[error(
        "{first}; none of its {lines} lines is a request of format {format}, so another is meant: {}",
        Format::names()
    )]
    NothingRead {
        /// The first of the lines.
        first: Malformed,
        /// How many there are.
        lines: u64,
        /// The format that they were read as.
        format: Format,
    },
    /// A request cannot be changed as asked.
    #[error(transparent)]
    Adapt(#[from] AdaptError),
}
