//! What a command answers, before it is written in the connection's version of the protocol.

use crate::error::CommandError;
use bytes::Bytes;
use softflash_store::Value;

/// The version of RESP that a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// The version every connection begins with.
    #[default]
    Resp2,
    /// Chosen with `HELLO 3`.
    Resp3,
}

impl Protocol {
    /// The version as a number.
    pub fn number(self) -> i64 {
        match self {
            Protocol::Resp2 => 2,
            Protocol::Resp3 => 3,
        }
    }
}

/// An answer. Where RESP2 lacks a type, [`Output`](crate::Output) writes what Redis writes there.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Nothing at all.
    None,
    /// `+OK`.
    Ok,
    /// `+PONG` and its like.
    Status(&'static str),
    /// An error.
    Error(CommandError),
    /// A number.
    Integer(i64),
    /// A value of the store; large pieces are not copied.
    Value(Value),
    /// A string of bytes.
    Bulk(Bytes),
    /// A constant string.
    Text(&'static str),
    /// Text for people.
    Verbatim(String),
    /// No value.
    Null,
    /// No array: what a transaction answers that was not run.
    NullArray,
    /// A list.
    Array(Vec<Reply>),
    /// Pairs; a flat list in RESP2.
    Map(Vec<(Reply, Reply)>),
    /// A list without order; an ordinary one in RESP2.
    Set(Vec<Reply>),
    /// A number with a fraction; a string in RESP2.
    Double(f64),
    /// Yes or no; 1 or 0 in RESP2.
    Boolean(bool),
    /// From here on the connection speaks another version, beginning with this reply.
    Switch(Protocol, Box<Reply>),
}

impl Reply {
    /// A count.
    pub fn count(count: usize) -> Reply {
        Reply::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// 1 for yes, 0 for no, as commands older than RESP3 answer.
    pub fn yes(yes: bool) -> Reply {
        Reply::Integer(i64::from(yes))
    }

    /// A value, or none.
    pub fn value(value: Option<Value>) -> Reply {
        value.map_or(Reply::Null, Reply::Value)
    }

    /// Lines of status replies, as HELP answers.
    pub fn lines(lines: &[&'static str]) -> Reply {
        Reply::Array(lines.iter().map(|line| Reply::Status(line)).collect())
    }

    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        matches!(self, Reply::Error(_))
    }
}

impl From<CommandError> for Reply {
    fn from(error: CommandError) -> Reply {
        Reply::Error(error)
    }
}

impl From<Result<Reply, CommandError>> for Reply {
    fn from(result: Result<Reply, CommandError>) -> Reply {
        result.unwrap_or_else(Reply::Error)
    }
}
