//! Errors of traces.

use crate::adapt::AdaptError;
use crate::foreign::Foreign;
use crate::format::Format;
use crate::malformed::Malformed;
use softflash_base::UserError;
use std::io;
use std::sync::Arc;
use thiserror::Error;

/// Why a trace cannot be read, changed or written.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The stream failed, or is not a complete gzip or zstd stream.
    #[error("{file}: {source}")]
    Read {
        /// The trace.
        file: Arc<str>,
        /// The error.
        source: io::Error,
    },
    /// A line does not match the format.
    #[error("{0}; without --strict such lines are counted and left out")]
    Malformed(Malformed),
    /// The first lines match no known format.
    #[error("{file}: its first lines are of no known format; name it: {}", Format::names())]
    UnknownFormat {
        /// The trace.
        file: Arc<str>,
    },
    /// An archive, or a compression that is not read.
    #[error("{file} is {foreign}; {remedy}")]
    Foreign {
        /// The file.
        file: Arc<str>,
        /// What it is.
        foreign: Foreign,
        /// How to read it.
        remedy: String,
    },
    /// A trace of white space only.
    #[error("{file}: it is empty")]
    Empty {
        /// The trace.
        file: Arc<str>,
    },
    /// No line is a request.
    #[error(
        "{first}; none of its {lines} lines is a request of format {format}; name another format: {}",
        Format::names()
    )]
    NothingRead {
        /// The first of the lines.
        first: Malformed,
        /// The number of lines.
        lines: u64,
        /// The format that they were read as.
        format: Format,
    },
    /// A request cannot be adapted.
    #[error(transparent)]
    Adapt(#[from] AdaptError),
}

impl UserError for TraceError {
    fn is_usage(&self) -> bool {
        matches!(
            self,
            TraceError::Adapt(
                AdaptError::Speed(_) | AdaptError::NoCopies | AdaptError::EmptyDevice
            )
        )
    }
}
