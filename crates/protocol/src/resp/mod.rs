//! RESP at the level of bytes: parses requests, encodes replies.

mod inline;
pub(crate) mod long_double;
pub(crate) mod number;
pub mod output;
pub mod reply;
pub mod request;
pub(crate) mod words;
