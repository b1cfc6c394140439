//! Errors of commands, with the texts of Redis, because clients match on them.

use softflash_store::StoreError;
use std::borrow::Cow;
use thiserror::Error;

/// Error of a command.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CommandError {
    /// A fixed text of Redis, with its error code.
    #[error("{0}")]
    Known(&'static str),
    /// A text that quotes words of the request, which may be any bytes.
    #[error("{}", String::from_utf8_lossy(.0))]
    Quoting(Vec<u8>),
    /// Wrong number of arguments.
    #[error("ERR wrong number of arguments for '{0}' command")]
    WrongArity(&'static str),
    /// An expiry that is not positive or overflows.
    #[error("ERR invalid expire time in '{0}' command")]
    InvalidExpireTime(&'static str),
    /// A transaction that could not be committed.
    #[error("EXECABORT Transaction discarded because of: {0}")]
    TransactionFailed(StoreError),
    /// Error of the store.
    #[error("{}", store_text(.0))]
    Store(StoreError),
}

/// Result of a command.
pub type Result<T, E = CommandError> = std::result::Result<T, E>;

impl CommandError {
    /// Options that are not compatible.
    pub const SYNTAX: CommandError = CommandError::Known("ERR syntax error");
    /// An argument or a value that is not a 64-bit integer.
    pub const NOT_AN_INTEGER: CommandError =
        CommandError::Known("ERR value is not an integer or out of range");
    /// An argument or a value that is not a number.
    pub const NOT_A_FLOAT: CommandError = CommandError::Known("ERR value is not a valid float");
    /// A required key that does not exist.
    pub const NO_SUCH_KEY: CommandError = CommandError::Known("ERR no such key");
    /// A value that would become too long.
    pub const STRING_TOO_LONG: CommandError =
        CommandError::Known("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
    /// A database other than 0.
    pub const NO_SUCH_DATABASE: CommandError = CommandError::Known("ERR DB index is out of range");
    /// A command other than AUTH from a client that has not authenticated.
    pub const NOT_AUTHENTICATED: CommandError =
        CommandError::Known("NOAUTH Authentication required.");
    /// A read for a client that has left; nobody receives this text.
    pub const HAS_LEFT: CommandError = CommandError::Known("ERR the connection was reset");
    /// A wrong password.
    pub const WRONG_PASSWORD: CommandError =
        CommandError::Known("WRONGPASS invalid username-password pair or user is disabled.");

    /// An error that quotes words of the request.
    pub fn quoting(parts: &[&[u8]]) -> CommandError {
        CommandError::Quoting(parts.concat())
    }

    /// Where data were lost, if that is the error.
    pub(crate) fn data_loss(&self) -> Option<&str> {
        match self {
            CommandError::Store(StoreError::DataLoss(place))
            | CommandError::TransactionFailed(StoreError::DataLoss(place)) => Some(place),
            _ => None,
        }
    }

    /// The text of the error reply, without the `-` and the line end.
    pub fn text(&self) -> Cow<'_, [u8]> {
        match self {
            CommandError::Known(text) => Cow::Borrowed(text.as_bytes()),
            CommandError::Quoting(text) => Cow::Borrowed(text),
            other => Cow::Owned(other.to_string().into_bytes()),
        }
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> CommandError {
        CommandError::Store(error)
    }
}

fn store_text(error: &StoreError) -> Cow<'_, str> {
    match error {
        StoreError::OutOfSpace => Cow::Borrowed(
            "OOM command not allowed when used memory > 'maxmemory'. The flash is full: delete keys \
             or let them expire.",
        ),
        StoreError::KeyTooLong { bytes, limit } => Cow::Owned(format!(
            "ERR string exceeds maximum allowed size (proto-max-bulk-len): a key of {bytes} bytes, \
             at most {limit}"
        )),
        StoreError::ValueTooLong { .. } => {
            Cow::Borrowed("ERR string exceeds maximum allowed size (proto-max-bulk-len)")
        }
        other => Cow::Owned(format!("ERR {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_the_store_read_as_redis_clients_expect() {
        let text = |error: StoreError| CommandError::from(error).to_string();
        assert!(
            text(StoreError::OutOfSpace).starts_with("OOM command not allowed when used memory")
        );
        assert!(text(StoreError::OutOfSpace).contains("flash"));
        assert!(text(StoreError::DataLoss("patch 7".into())).starts_with("ERR data loss: patch 7"));
        let worn_out = text(StoreError::WornOut { bad: 20, total: 40 });
        assert!(worn_out.starts_with("ERR the flash is worn out: 20 of 40"), "{worn_out}");
        let too_long = StoreError::ValueTooLong { bytes: 2, limit: 1 };
        assert_eq!(text(too_long), CommandError::STRING_TOO_LONG.to_string());
    }
}
