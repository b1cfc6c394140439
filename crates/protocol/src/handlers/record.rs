//! FLASH.RECORD: records the keys that clients read and change, or the requests to a volume, for
//! `softflash record` and other tools.

use crate::error::{CommandError, Result};
use crate::handlers::volume::NO_VOLUMES;
use crate::resp::number::parse_i64;
use crate::resp::reply::Reply;
use crate::resp::words::is;
use crate::session::Session;
use crate::shared::recording::{DEFAULT_CAPACITY, MAX_CAPACITY, NOT_RECORDING};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use softflash_store::Store;

/// Default number of events in a reply.
const DEFAULT_COUNT: usize = 4096;

/// FLASH.RECORD START [VOLUME name] [CAPACITY events]
pub(crate) fn start<'a>(
    session: &'a mut Session,
    _: &'a Store,
    args: &'a [Bytes],
) -> LocalBoxFuture<'a, Result<Reply>> {
    async move {
        let options = Options::parse(args, &[VOLUME, CAPACITY])?;
        let capacity = options.number.unwrap_or(DEFAULT_CAPACITY);
        let client = session.client.id;
        match options.volume {
            Some(volume) => {
                check_export(session, &volume).await?;
                session.context.volume_recordings.start(client, &volume, capacity)?;
                session.context.recordings.stop(client);
            }
            None => {
                session.context.recordings.start(client, capacity)?;
                session.context.volume_recordings.stop(client);
            }
        }
        Ok(Reply::Ok)
    }
    .boxed_local()
}

/// A recording of what does not exist would stay empty.
async fn check_export(session: &Session, name: &str) -> Result<()> {
    let refused = |reason: &str| CommandError::quoting(&[b"ERR ", reason.as_bytes()]);
    let volumes = session.context.services.volumes.as_ref();
    let volumes = volumes.ok_or(NO_VOLUMES)?;
    let listed = volumes.list().await.map_err(|reason| refused(&reason))?;
    let (volume, snapshot) = match name.split_once('@') {
        Some((volume, snapshot)) => (volume, Some(snapshot)),
        None => (name, None),
    };
    let found = listed.volumes.iter().find(|entry| entry.name == volume).is_some_and(|entry| {
        snapshot.is_none_or(|snapshot| entry.snapshots.iter().any(|it| it == snapshot))
    });
    match found {
        true => Ok(()),
        false => Err(refused(&format!(
            "there is no volume or snapshot `{name}`; FLASH.VOLUME LIST has all"
        ))),
    }
}

/// FLASH.RECORD READ [COUNT events] [ALL]
pub(crate) fn read(session: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    let options = Options::parse(args, &[COUNT, ALL])?;
    let count = options.number.unwrap_or(DEFAULT_COUNT);
    let client = session.client.id;
    let context = &session.context;
    let of_volume = || context.volume_recordings.take(client, count, options.all);
    let taken = context.recordings.take(client, count).or_else(of_volume).ok_or(NOT_RECORDING)?;
    let dropped = Reply::Integer(i64::try_from(taken.dropped).unwrap_or(i64::MAX));
    Ok(Reply::Array(vec![dropped, Reply::Bulk(taken.lines.into())]))
}

/// FLASH.RECORD STOP
pub(crate) fn stop(session: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    session.context.stop_recording(session.client.id);
    Ok(Reply::Ok)
}

/// FLASH.RECORD HELP
pub(crate) fn help(_: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    Ok(Reply::lines(&[
        "FLASH.RECORD <subcommand> [<arg> [value] ...]. Subcommands are:",
        "START [VOLUME <name>] [CAPACITY <events>]",
        "    Record the keys that all clients read and change, or the requests of NBD clients to",
        "    a volume or snapshot, for this connection (default: 65536 events; events that do",
        "    not fit are dropped and counted).",
        "READ [COUNT <events>] [ALL]",
        "    Take the recorded events, the oldest first (default: 4096). The reply is the",
        "    number of events dropped since the last READ, and one line per event:",
        "    nanoseconds, read|write|delete|clear, hash of the key, bytes of key and of value;",
        "    of a volume: nanoseconds, read|write|discard|flush, offset, bytes, nanoseconds of",
        "    latency. With ALL also requests under way, with `-` for their latency.",
        "STOP",
        "    Stop recording; the end of the connection does the same.",
        "HELP",
        "    Prints this help.",
    ]))
}

const VOLUME: &str = "VOLUME";
const CAPACITY: &str = "CAPACITY";
const COUNT: &str = "COUNT";
const ALL: &str = "ALL";

/// The options of a subcommand.
#[derive(Debug, Default)]
struct Options {
    volume: Option<String>,
    number: Option<usize>,
    all: bool,
}

impl Options {
    /// The options after the subcommand, each of which must be `allowed` and may come once.
    fn parse(args: &[Bytes], allowed: &[&str]) -> Result<Options> {
        let mut options = Options::default();
        let mut rest = args.get(2..).unwrap_or_default();
        while let [option, more @ ..] = rest {
            let name = allowed.iter().find(|name| is(option, name)).ok_or(CommandError::SYNTAX)?;
            rest = match (*name, more) {
                (ALL, more) if !options.all => {
                    options.all = true;
                    more
                }
                (VOLUME, [volume, more @ ..]) if options.volume.is_none() => {
                    // No volume has a name that is not UTF-8.
                    options.volume = Some(String::from_utf8_lossy(volume).into_owned());
                    more
                }
                (CAPACITY | COUNT, [number, more @ ..]) if options.number.is_none() => {
                    options.number = Some(events(name, number)?);
                    more
                }
                _ => return Err(CommandError::SYNTAX),
            };
        }
        Ok(options)
    }
}

/// A number of events.
fn events(name: &str, number: &[u8]) -> Result<usize> {
    let number = parse_i64(number).ok_or(CommandError::NOT_AN_INTEGER)?;
    let number = usize::try_from(number).unwrap_or(0);
    if !(1..=MAX_CAPACITY).contains(&number) {
        let limit = MAX_CAPACITY.to_string();
        let range: [&[u8]; 4] =
            [b"ERR ", name.as_bytes(), b" must be between 1 and ", limit.as_bytes()];
        return Err(CommandError::quoting(&range));
    }
    Ok(number)
}
