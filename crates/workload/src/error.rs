//! Errors of workloads.

use softflash_base::random::ZipfError;
use thiserror::Error;

/// Why a workload is not valid.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("workload '{workload}': {problem}")]
pub struct WorkloadError {
    /// The workload's name.
    pub workload: String,
    /// The problem.
    pub problem: Problem,
}

/// The problem, its field, and the remedy.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Problem {
    /// A share that is not between 0 and 1.
    #[error("{field} = {value} is not between 0 and 1; 0.5 is half of them")]
    Share {
        /// The field.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// A share that must be above 0.
    #[error("{field} = {value} is not above 0 and at most 1; 1 is all of it")]
    EmptyShare {
        /// The field.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// Shares whose sum is more than 1.
    #[error("the sum of read_fraction and trim_fraction is {0}, more than 1 (the rest are writes)")]
    TooMuch(f64),
    /// A number that may not be 0.
    #[error("{field} is 0; it must be at least 1")]
    Zero {
        /// The field.
        field: &'static str,
    },
    /// A number that is too large.
    #[error("{field} = {value} is more than {limit}")]
    TooLarge {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// The possible values.
        limit: u64,
    },
    /// A rate that is not valid.
    #[error("{field} = {value} is not a number above 0 and at most 1e9 a second")]
    Rate {
        /// The field.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// A weight that is not valid.
    #[error("{field}: weight {value} of {bytes} bytes is not a number of at least 0")]
    Weight {
        /// The field.
        field: &'static str,
        /// The size that it belongs to.
        bytes: u32,
        /// Its value.
        value: f64,
    },
    /// Nothing to choose from.
    #[error("{field} has no size with a weight above 0; give one, or a number of bytes")]
    NoSizes {
        /// The field.
        field: &'static str,
    },
    /// No size for a kind of requests.
    #[error("{kind} have no size; give size or {field}")]
    SizeMissing {
        /// The kind of requests.
        kind: &'static str,
        /// The field for this kind alone.
        field: &'static str,
    },
    /// A share of a Pareto pattern that is not valid.
    #[error("pattern.pareto.share = {0} is not above 0 and below 1; 0.2 is 80:20")]
    ParetoShare(f64),
    /// A Zipf exponent that is not valid.
    #[error("pattern: {0}")]
    Zipf(ZipfError),
    /// The device is too small.
    #[error(
        "a request of {bytes} bytes, aligned to {align_bytes}, does not fit into the span of {span_bytes} bytes \
         on a capacity of {capacity_bytes} bytes; take a larger device or span, or smaller requests"
    )]
    TooSmall {
        /// The largest request.
        bytes: u32,
        /// Its alignment.
        align_bytes: u32,
        /// The bytes of the span.
        span_bytes: u64,
        /// The capacity in bytes.
        capacity_bytes: u64,
    },
    /// The span is larger than the capacity.
    #[error(
        "span = {span_bytes} bytes from {begin_bytes} on ends beyond the capacity of {capacity_bytes} bytes; take a \
         smaller span, or a share such as {{ share = 1.0 }}"
    )]
    SpanBeyond {
        /// The bytes of the span.
        span_bytes: u64,
        /// Its beginning.
        begin_bytes: u64,
        /// The capacity in bytes.
        capacity_bytes: u64,
    },
    /// The span begins behind the end of the device.
    #[error(
        "begin = {begin_bytes} bytes is not below the capacity of {capacity_bytes} bytes; take a smaller one, or a share \
         such as {{ share = 0.5 }}"
    )]
    BeginBeyond {
        /// The beginning of the span.
        begin_bytes: u64,
        /// The capacity in bytes.
        capacity_bytes: u64,
    },
    /// A workload of several flows without one.
    #[error("it has no flow; add a table [[flow]] for each")]
    NoFlows,
    /// A flow without a name.
    #[error("flow {number} has no name; give each flow one, as name = \"reader\"")]
    Unnamed {
        /// The number of the flow, from 1.
        number: usize,
    },
    /// Two flows with the same name.
    #[error("two flows have the name `{name}`; give each its own")]
    SameName {
        /// The name.
        name: String,
    },
    /// A flow that others wait for, without a limit.
    #[error(
        "flow `{flow}` never ends, and flows behind it wait for its end (`after_previous`); give it requests, passes or duration_ns"
    )]
    Endless {
        /// The flow.
        flow: String,
    },
    /// A problem of one of several flows.
    #[error("flow `{flow}`: {problem}")]
    OfFlow {
        /// The flow.
        flow: String,
        /// Its problem.
        problem: Box<Problem>,
    },
    /// The span is too small for so many streams.
    #[error(
        "{streams} sequential streams of requests of up to {bytes} bytes do not fit side by side into {span_bytes} bytes; \
         take fewer streams or smaller requests"
    )]
    TooManyStreams {
        /// The number of streams.
        streams: u32,
        /// The largest request.
        bytes: u32,
        /// The bytes of the span.
        span_bytes: u64,
    },
    /// Neither or both of two fields.
    #[error("give either {one} or {other}, and not both")]
    EitherOr {
        /// A field.
        one: &'static str,
        /// Another.
        other: &'static str,
    },
    /// A range whose ends are reversed.
    #[error("{field}: min = {min} is more than max = {max}")]
    Range {
        /// The field.
        field: &'static str,
        /// The lower end.
        min: u64,
        /// The upper end.
        max: u64,
    },
    /// A key too short for its number.
    #[error(
        "key_bytes = {key_bytes} is too short for a prefix of {prefix_bytes} bytes and the {digits} digits of {keys} keys; \
         take at least {}",
        prefix_bytes + digits
    )]
    KeyTooShort {
        /// The length of keys.
        key_bytes: u32,
        /// The length of the prefix.
        prefix_bytes: u32,
        /// The digits of the largest number.
        digits: u32,
        /// The number of keys.
        keys: u64,
    },
    /// A number that drives cannot share evenly.
    #[error(
        "{field} = {value} cannot be shared evenly by {drives} drives; take a multiple of {drives}, such as {}",
        value.div_ceil(u64::from(*drives)) * u64::from(*drives)
    )]
    Uneven {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// The drives.
        drives: u32,
    },
    /// A slice or client that the workload does not have.
    #[error("{what} {index} does not exist; the workload has {count}, counted from 0")]
    NoSuch {
        /// Slice or client.
        what: &'static str,
        /// Its index.
        index: u32,
        /// The number of slices or clients.
        count: u32,
    },
}

impl Problem {
    /// The problem, of a workload.
    pub(crate) fn of(self, workload: &str) -> WorkloadError {
        WorkloadError { workload: workload.to_owned(), problem: self }
    }
}

/// A share of 0 to 1.
pub(crate) fn share(field: &'static str, value: f64) -> Result<(), Problem> {
    if (0.0..=1.0).contains(&value) { Ok(()) } else { Err(Problem::Share { field, value }) }
}

/// A share above 0.
pub(crate) fn some_share(field: &'static str, value: f64) -> Result<(), Problem> {
    if value > 0.0 && value <= 1.0 { Ok(()) } else { Err(Problem::EmptyShare { field, value }) }
}

/// A number of 1 to `limit`.
pub(crate) fn count(field: &'static str, value: u64, limit: u64) -> Result<(), Problem> {
    match value {
        0 => Err(Problem::Zero { field }),
        _ if value > limit => Err(Problem::TooLarge { field, value, limit }),
        _ => Ok(()),
    }
}
