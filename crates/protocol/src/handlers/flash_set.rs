//! FLASH.SET and FLASH.GROW: the sets of units, and more units.

use crate::error::{CommandError, Result};
use crate::handlers::keyspace_context::KeyspaceContext;
use crate::handlers::volume::{refused, size};
use crate::resp::reply::Reply;
use crate::session::Session;
use crate::sets::{Growth, SetChange};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use softflash_store::Store;
use std::str::FromStr;

const NO_SETS: CommandError =
    CommandError::Known("ERR this server has no data directory, and so no sets of units");

/// FLASH.SET LIST
pub(crate) fn list(keyspace: KeyspaceContext<'_>) -> LocalBoxFuture<'_, Result<Reply>> {
    async move {
        let sets = keyspace.context.services.sets.as_ref().ok_or(NO_SETS)?;
        let store = keyspace.store.shard_states().await?;
        Ok(Reply::Array(sets.list(store).await))
    }
    .boxed_local()
}

/// FLASH.SET CREATE, RESIZE, DELETE, PAIR and WINDOW
pub(crate) fn change<'a>(
    session: &'a mut Session,
    _: &'a Store,
    args: &'a [Bytes],
) -> LocalBoxFuture<'a, Result<Reply>> {
    make(session, parse(args))
}

/// FLASH.GROW
pub(crate) fn grow<'a>(
    session: &'a mut Session,
    _: &'a Store,
    args: &'a [Bytes],
) -> LocalBoxFuture<'a, Result<Reply>> {
    make(session, growth(args).map(SetChange::Grow))
}

fn make(session: &Session, change: Result<SetChange>) -> LocalBoxFuture<'_, Result<Reply>> {
    let begun = match &session.context.services.sets {
        Some(sets) => change.map(|change| sets.change(change)),
        None => Err(NO_SETS),
    };
    async move { begun?.await.map(|()| Reply::Ok).map_err(refused) }.boxed_local()
}

fn growth(args: &[Bytes]) -> Result<Growth> {
    let [_, bytes, shares @ ..] = args else { return Err(CommandError::SYNTAX) };
    let size_bytes = match &bytes.to_ascii_lowercase()[..] {
        b"all" => None,
        _ => Some(size(bytes)?),
    };
    let mut growth = Growth { size_bytes, ..Growth::default() };
    for share in shares.chunks(2) {
        let [word, units] = share else { return Err(CommandError::SYNTAX) };
        let units = Some(number(units, "number of units")?);
        match &word.to_ascii_lowercase()[..] {
            b"store" => growth.store = units,
            b"volumes" => growth.volumes = units,
            b"spare" => growth.spare = units,
            _ => return Err(CommandError::SYNTAX),
        }
    }
    Ok(growth)
}

fn parse(args: &[Bytes]) -> Result<SetChange> {
    let [_, subcommand, name, more @ ..] = args else { return Err(CommandError::SYNTAX) };
    let name = String::from_utf8_lossy(name).into_owned();
    match (&subcommand.to_ascii_lowercase()[..], more) {
        (b"create", [units, options @ ..]) => {
            let (mut shard, mut op_percent) = (None, None);
            for option in options.chunks(2) {
                let [word, value] = option else { return Err(CommandError::SYNTAX) };
                match &word.to_ascii_lowercase()[..] {
                    b"shard" => shard = Some(number(value, "shard")?),
                    b"op" => op_percent = Some(number(value, "spare space in percent")?),
                    _ => return Err(CommandError::SYNTAX),
                }
            }
            Ok(SetChange::Create { name, units: units_of(units)?, shard, op_percent })
        }
        (b"resize", [units]) => Ok(SetChange::Resize { name, units: units_of(units)? }),
        (b"delete", []) => Ok(SetChange::Delete { name }),
        (b"pair", [second]) => {
            let second = String::from_utf8_lossy(second).into_owned();
            Ok(SetChange::Pair { first: name, second })
        }
        (b"window", [time]) => {
            let length = String::from_utf8_lossy(time).into_owned();
            Ok(SetChange::Window { name, length })
        }
        _ => Err(CommandError::SYNTAX),
    }
}

fn units_of(word: &Bytes) -> Result<u16> {
    match number(word, "number of units")? {
        0 => Err(CommandError::Known("ERR a set has at least one unit")),
        units => Ok(units),
    }
}

fn number<T: FromStr>(word: &Bytes, what: &str) -> Result<T> {
    let parsed = str::from_utf8(word).ok().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| {
        CommandError::quoting(&[b"ERR '", word.as_ref(), b"' is no ", what.as_bytes()])
    })
}

/// FLASH.SET HELP
pub(crate) fn help(_: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    Ok(Reply::lines(&[
        "FLASH.SET <subcommand> [<arg> [value] ...]. Subcommands are:",
        "CREATE <name> <units> [SHARD <shard>] [OP <percent>]",
        "    Create a set for volumes of so many spare units, which are erased first.",
        "RESIZE <name> <units>",
        "    Give a set, of volumes or of the keys of a shard, more of the spare units, or fewer: then",
        "    data move to the others first, under load. It goes on if the client leaves.",
        "DELETE <name>",
        "    Delete a set that holds no volumes. Its units become spare.",
        "PAIR <name> <name>",
        "    Make a pair of two sets of a shard: each has a copy of all volumes. One of them holds no",
        "    volumes, and gets a copy of everything under load.",
        "WINDOW <name> <time>|none",
        "    One set of a pair takes writes for so long (as 100ms), while the other one only reads, in",
        "    turns; without windows both take every write.",
        "LIST",
        "    All sets of units: id, name, shard, kind (store or mapped), units, op_percent (spare",
        "    space for collection), used_bytes, usable_bytes, erases_mean (of a block), waf (bytes",
        "    programmed for each byte that clients wrote, since the start), pair, window, and",
        "    draining_bytes (data in units that leave it).",
        "HELP",
        "    Prints this help.",
    ]))
}
