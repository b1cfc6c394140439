//! Block traces: the requests to a device with their times, in the formats of published traces.
//!
//! A [`Reader`] is an iterator of [`Request`]s over any stream of bytes, a [`Writer`] writes them;
//! [`adapt`] changes a trace in between, [`summary`] summarizes it in one pass. Everything streams:
//! memory depends on the number of devices and on stated limits, never on the length of a trace.
//! `docs/traces.md` describes formats and definitions.
//!
//! ```
//! use softflash_trace::{Compression, Format, Reader, ReadOptions, TraceExt, Writer};
//! let trace = "0,R,126703644672,4096,1577808000000026\n0,W,8192,16384,1577808000000526\n";
//! let reader = Reader::open(trace.as_bytes(), "trace.csv", ReadOptions::default())?;
//! assert_eq!(reader.format(), Format::Alibaba);
//! let mut writer = Writer::begin(Vec::new(), Format::FioV3, Compression::Plain)?;
//! for request in reader.speed(2.0)?.wrap(1 << 30)? {
//!     writer.write(&request?)?;
//! }
//! let (bytes, _) = writer.finish()?;
//! assert!(bytes.ends_with(b"250 /softflash/0 write 8192 16384\n250 /softflash/0 close\n"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod adapt;
mod compression;
mod detect;
mod error;
mod fields;
mod foreign;
mod format;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod lines;
mod malformed;
mod names;
mod reader;
mod request;
pub mod summary;
mod writer;

pub use adapt::TraceExt;
pub use compression::Compression;
pub use detect::detect;
pub use error::TraceError;
pub use foreign::Foreign;
pub use format::{Format, NoSuchFormat};
pub use lines::MAX_LINE_BYTES;
pub use malformed::{FieldError, Malformed, Problem};
pub use reader::{Jump, KEPT_MALFORMED, ReadOptions, Reader, Tally};
pub use request::{Kind, Request};
pub use summary::{Summarizer, Summary};
pub use writer::{LeftOut, Writer};
