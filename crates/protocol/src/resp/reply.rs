//! A reply before it is encoded in the connection's version of the protocol.

use crate::error::CommandError;
use bytes::Bytes;
use softflash_store::value::Value;

/// The RESP version of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// The initial version of every connection.
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

/// A reply. Where RESP2 lacks a type, [`Output`](crate::Output) encodes it as Redis does.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// No reply.
    None,
    /// `+OK`.
    Ok,
    /// `+PONG` and others.
    Status(&'static str),
    /// An error.
    Error(CommandError),
    /// A number.
    Integer(i64),
    /// A value of the store; large parts are not copied.
    Value(Value),
    /// A string of bytes.
    Bulk(Bytes),
    /// A constant string.
    Text(&'static str),
    /// Text, such as INFO.
    Verbatim(String),
    /// Null.
    Null,
    /// Null array: the reply of an aborted transaction.
    NullArray,
    /// A list.
    Array(Vec<Reply>),
    /// The items of a list without its header: of an EXEC whose own reply the client has switched
    /// off, the replies of the commands that have switched them on again.
    Unannounced(Vec<Reply>),
    /// A map; a flat list in RESP2.
    Map(Vec<(Reply, Reply)>),
    /// A set; a list in RESP2.
    Set(Vec<Reply>),
    /// A double; a string in RESP2.
    Double(f64),
    /// A Boolean; 1 or 0 in RESP2.
    Boolean(bool),
    /// Switches the protocol version, beginning with this reply.
    Switch(Protocol, Box<Reply>),
}

impl Reply {
    /// Bytes of the values in it.
    pub(crate) fn value_bytes(&self) -> u64 {
        match self {
            Reply::Value(value) => value.len() as u64,
            Reply::Array(items) => items.iter().map(Reply::value_bytes).sum(),
            _ => 0,
        }
    }

    /// A count.
    pub fn count(count: usize) -> Reply {
        Reply::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// 1 for true, 0 for false, as commands older than RESP3 reply.
    pub fn yes(yes: bool) -> Reply {
        Reply::Integer(i64::from(yes))
    }

    /// A value or null.
    pub fn value(value: Option<Value>) -> Reply {
        value.map_or(Reply::Null, Reply::Value)
    }

    /// A list of status replies, as HELP replies.
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
