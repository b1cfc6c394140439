//! Failures that end a session.

use crate::resp::wire::Reply;
use softflash_store::StoreError;

/// Why a session ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionFailure {
    /// The store refuses writes for lack of space; it may be behind with cleaning.
    Full,
    /// The store reports lost data or failed flash.
    Lost(String),
    /// The store reports that too much of the flash has gone bad for further writes.
    WornOut(String),
    /// The store returned another error.
    Refused(String),
    /// The store did something wrong.
    Wrong(String),
}

/// Message of a shard that is worn out, or has a transaction with a worn-out shard.
const WORN_OUT: &str = "the flash is worn out";

impl From<StoreError> for SessionFailure {
    fn from(error: StoreError) -> SessionFailure {
        match &error {
            StoreError::OutOfSpace => SessionFailure::Full,
            StoreError::WornOut { .. } => SessionFailure::WornOut(error.to_string()),
            StoreError::LogFailed(reason) if reason.contains(WORN_OUT) => {
                SessionFailure::WornOut(error.to_string())
            }
            StoreError::DataLoss(_) | StoreError::Flash(_) | StoreError::LogFailed(_) => {
                SessionFailure::Lost(error.to_string())
            }
            // Another shard could not be opened, for the same reason or another.
            StoreError::Unusable(reason) => {
                let typed = ["data loss", "flash: ", "the log has failed"];
                match typed
                    .iter()
                    .any(|begin| reason.contains(&format!("could not be opened: {begin}")))
                {
                    true => SessionFailure::Lost(reason.clone()),
                    false => SessionFailure::Refused(error.to_string()),
                }
            }
            _ => SessionFailure::Refused(error.to_string()),
        }
    }
}

impl SessionFailure {
    /// The store's error in a reply, or in a reply to one of the commands of a transaction; none
    /// where the error is the command's own.
    pub fn of_reply(reply: &Reply) -> Option<SessionFailure> {
        let text = match reply {
            Reply::Error(text) => text,
            Reply::Array(replies) => return replies.iter().find_map(SessionFailure::of_reply),
            _ => return None,
        };
        let begins = |begins: &[&str]| {
            let text = text.strip_prefix("EXECABORT Transaction discarded because of: ");
            let own = text.is_some();
            let text = text.or(reply_text(reply)).unwrap_or_default();
            begins.iter().any(|begin| {
                text.strip_prefix("ERR ").unwrap_or(text).starts_with(begin)
                    || own && text.starts_with(begin)
            })
        };
        if begins(&["OOM ", "the flash is full"]) {
            Some(SessionFailure::Full)
        } else if text.contains(WORN_OUT) {
            Some(SessionFailure::WornOut(text.clone()))
        } else if begins(&["data loss", "flash: ", "the log has failed"]) {
            Some(SessionFailure::Lost(text.clone()))
        } else if begins(&["the store is shutting down", "the keys read were changed"]) {
            Some(SessionFailure::Refused(text.clone()))
        } else {
            None
        }
    }

    /// As text.
    pub fn what(&self) -> String {
        match self {
            SessionFailure::Full => "the flash is full".to_owned(),
            SessionFailure::Lost(what)
            | SessionFailure::WornOut(what)
            | SessionFailure::Refused(what) => {
                format!("the store returns an error: {what}")
            }
            SessionFailure::Wrong(what) => what.clone(),
        }
    }
}

fn reply_text(reply: &Reply) -> Option<&str> {
    match reply {
        Reply::Error(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_store_differ_from_those_of_commands() {
        let of = |text: &str| SessionFailure::of_reply(&Reply::Error(text.to_owned()));
        assert_eq!(of("OOM command not allowed when ..."), Some(SessionFailure::Full));
        let aborted = "EXECABORT Transaction discarded because of: ";
        assert_eq!(of(&format!("{aborted}the flash is full; ...")), Some(SessionFailure::Full));
        assert!(matches!(of(&format!("{aborted}data loss: x")), Some(SessionFailure::Lost(_))));
        assert!(matches!(of("ERR flash: unit 3"), Some(SessionFailure::Lost(_))));
        let worn_out = StoreError::WornOut { bad: 4, total: 8 }.to_string();
        assert!(matches!(of(&format!("ERR {worn_out}")), Some(SessionFailure::WornOut(_))));
        assert!(matches!(of(&format!("{aborted}{worn_out}")), Some(SessionFailure::WornOut(_))));
        assert!(matches!(of("ERR the store is shutting down"), Some(SessionFailure::Refused(_))));
        assert_eq!(of("ERR value is not an integer or out of range"), None);
        assert_eq!(of("EXECABORT Transaction discarded because of previous errors."), None);
        assert_eq!(SessionFailure::of_reply(&Reply::OK), None);
    }

    #[test]
    fn a_shard_that_waits_for_another_passes_on_its_error() {
        let of = |text: &str| SessionFailure::from(StoreError::Unusable(text.to_owned()));
        let lost = of("shard 1 could not be opened: data loss: the log ...");
        assert!(matches!(lost, SessionFailure::Lost(_)), "{lost:?}");
        assert!(matches!(of("the device is another's"), SessionFailure::Refused(_)));
    }
}
