//! Which requests are small: those whose reply, and the values that they load for it, are short.
//! They do not wait for the memory of replies, so that clients who leave large replies unread hold
//! up only each other.

use crate::command::{Command, CommandId, Flags, KeyList, find};
use crate::handlers::{Handler, handler_of, loads, scans_little, wanted};
use crate::resp::request::{FREE_REQUEST_BYTES, Request};
use crate::session::Session;
use bytes::Bytes;
use softflash_store::Store;
use softflash_store::value::Wanted;

/// The replies of a batch of small requests have at most about this many bytes: as much as a
/// request has without a reservation.
pub const LITTLE_BYTES: u64 = FREE_REQUEST_BYTES;

/// A reply without data of the store: a number, a status, an error.
const SHORT_REPLY_BYTES: u64 = 128;
/// A text about the server, such as that of INFO.
const TEXT_BYTES: u64 = 16 << 10;
/// CLIENT LIST of at most so many clients counts as small: who looks for the cause of a wait needs
/// it.
const LISTED_CLIENTS: usize = 1024;
/// With more keys than this, a request is not small.
const MOST_KEYS: usize = 1024;

/// What a request's reply may need.
#[derive(Debug, PartialEq, Eq)]
enum Need {
    /// At most about this many bytes.
    Bytes(u64),
    /// These, and the values of these keys.
    Values(u64, KeyList),
    /// Its size is not known before it is made.
    Unknown,
}

impl Need {
    fn and(self, other: Need) -> Need {
        let (mut bytes, mut keys) = match self {
            Need::Bytes(bytes) => (bytes, KeyList::new()),
            Need::Values(bytes, keys) => (bytes, keys),
            Need::Unknown => return Need::Unknown,
        };
        match other {
            Need::Bytes(more) => bytes += more,
            Need::Values(more, more_keys) => {
                bytes += more;
                keys.extend(more_keys);
            }
            Need::Unknown => return Need::Unknown,
        }
        match keys.len() {
            0 => Need::Bytes(bytes),
            1..=MOST_KEYS => Need::Values(bytes, keys),
            _ => Need::Unknown,
        }
    }
}

/// The bytes of the reply to a small request, if it can be told without the store.
pub(crate) fn little_bytes(session: &Session, request: &Request) -> Option<u64> {
    match need_of(session, request) {
        Need::Bytes(bytes) if bytes <= LITTLE_BYTES => Some(bytes),
        _ => None,
    }
}

/// Whether a request is small. The lengths of values are looked up; the values are not read.
pub(crate) async fn is_little(session: &Session, store: &Store, request: &Request) -> bool {
    match need_of(session, request) {
        Need::Bytes(bytes) => bytes <= LITTLE_BYTES,
        Need::Values(bytes, keys) => {
            let values = store.value_bytes(&keys).await;
            // The request itself will get an error.
            values.is_ok_and(|values| bytes + values <= LITTLE_BYTES)
        }
        Need::Unknown => false,
    }
}

fn need_of(session: &Session, request: &Request) -> Need {
    let args = &request.args;
    let found = args.first().and_then(|name| find(name));
    let (None, Some((_, mut spec))) = (&request.refused, found) else {
        return Need::Bytes(SHORT_REPLY_BYTES);
    };
    if let Some(subcommand) = args.get(1).and_then(|name| spec.subcommand(name)) {
        spec = subcommand;
    }
    let command = Command { spec, args: args.clone(), silent: false };
    match (handler_of(spec), &session.transaction) {
        (Handler::Exec, Some(queue)) => need_of_transaction(session, &queue.commands),
        (_, Some(_)) if !spec.flags.has(Flags::UNQUEUED) => Need::Bytes(SHORT_REPLY_BYTES),
        _ => need_of_command(session, &command),
    }
}

/// The lengths of values that the transaction writes before it reads them are not known: each read
/// may return all words of its writes, and more where a write is not made of its words.
fn need_of_transaction(session: &Session, commands: &[Command]) -> Need {
    let reads = |command: &&Command| {
        matches!(handler_of(command.spec), Handler::Keyed(_)) && wanted(command) == Wanted::Entries
    };
    let writes = || commands.iter().filter(|command| command.spec.flags.has(Flags::WRITE));
    let exceeds_its_words = |command: &Command| {
        let id = command.spec.id;
        matches!(
            id,
            CommandId::Setrange | CommandId::Copy | CommandId::Rename | CommandId::Renamenx
        )
    };
    let reads = commands.iter().filter(reads).count() as u64;
    if reads > 0 && writes().any(exceeds_its_words) {
        return Need::Unknown;
    }
    let words: u64 = writes().flat_map(|command| &command.args).map(length).sum();
    let own = Need::Bytes(SHORT_REPLY_BYTES + reads.saturating_mul(words));
    commands.iter().map(|command| need_of_command(session, command)).fold(own, Need::and)
}

fn need_of_command(session: &Session, command: &Command) -> Need {
    match handler_of(command.spec) {
        Handler::Keyed(_) => {
            let keys =
                if wanted(command) == Wanted::Entries { loads(command) } else { KeyList::new() };
            Need::Bytes(SHORT_REPLY_BYTES).and(Need::Values(0, keys))
        }
        Handler::Session(_) | Handler::Keyspace(_) => match command.spec.id {
            CommandId::Keys | CommandId::FlashRecordRead => Need::Unknown,
            CommandId::Scan if !scans_little(&command.args) => Need::Unknown,
            CommandId::Scan => Need::Bytes(LITTLE_BYTES),
            CommandId::ClientList if session.context.clients.count() > LISTED_CLIENTS => {
                Need::Unknown
            }
            CommandId::ClientList | CommandId::Command | CommandId::CommandDocs => {
                Need::Bytes(LITTLE_BYTES)
            }
            // It may repeat its words.
            _ => Need::Bytes(text_bytes(command) + command.args.iter().map(length).sum::<u64>()),
        },
        // They end the batch.
        Handler::Waiting(_) => Need::Bytes(TEXT_BYTES),
        Handler::Watch | Handler::Exec | Handler::Container => Need::Bytes(SHORT_REPLY_BYTES),
    }
}

fn text_bytes(command: &Command) -> u64 {
    match command.spec.id {
        CommandId::Ping | CommandId::Echo | CommandId::Multi | CommandId::Discard => {
            SHORT_REPLY_BYTES
        }
        _ => TEXT_BYTES,
    }
}

fn length(word: &Bytes) -> u64 {
    word.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_add_up_and_many_keys_are_not_little() {
        let keys = |count: usize| -> KeyList { (0..count).map(|_| Bytes::new()).collect() };
        assert_eq!(Need::Bytes(1).and(Need::Bytes(2)), Need::Bytes(3));
        assert_eq!(Need::Bytes(1).and(Need::Values(2, keys(0))), Need::Bytes(3));
        let all = Need::Values(1, keys(MOST_KEYS));
        assert_eq!(all.and(Need::Bytes(1)), Need::Values(2, keys(MOST_KEYS)));
        assert_eq!(Need::Values(1, keys(MOST_KEYS)).and(Need::Values(0, keys(1))), Need::Unknown);
        assert_eq!(Need::Unknown.and(Need::Bytes(1)), Need::Unknown);
    }
}
