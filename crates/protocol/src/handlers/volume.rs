//! FLASH.VOLUME: creates, changes and lists volumes.

use crate::error::{CommandError, Result};
use crate::resp::reply::Reply;
use crate::session::Session;
use crate::volumes::{Moving, NotMounted, SettingText, VolumeChange, VolumeEntry, VolumeList};
use bytes::Bytes;
use bytesize::ByteSize;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use softflash_store::Store;

pub(super) const NO_VOLUMES: CommandError = CommandError::Known(
    "ERR this server has no volumes: its data directory is without volume units; if FLASH.SET LIST \
     leaves units to no set, `softflash set create` gives them to volumes; otherwise create a \
     directory that has some with `softflash format DIR --size SIZE --volume-units M`",
);

/// FLASH.VOLUME CREATE, SET, RESIZE, RENAME, MOVE, DELETE, SNAPSHOT, DELETESNAPSHOT, ROLLBACK,
/// CLONE and PROMOTE
pub(crate) fn change<'a>(
    session: &'a mut Session,
    _: &'a Store,
    args: &'a [Bytes],
) -> LocalBoxFuture<'a, Result<Reply>> {
    let begun = match &session.context.services.volumes {
        Some(volumes) => parse(args).map(|change| volumes.change(change)),
        None => Err(NO_VOLUMES),
    };
    async move { begun?.await.map(|()| Reply::Ok).map_err(refused) }.boxed_local()
}

/// FLASH.VOLUME LIST
pub(crate) fn list<'a>(
    session: &'a mut Session,
    _: &'a Store,
    _: &'a [Bytes],
) -> LocalBoxFuture<'a, Result<Reply>> {
    let listed = session.context.services.volumes.as_ref().map(|volumes| volumes.list());
    async move {
        let VolumeList { volumes, not_mounted } =
            listed.ok_or(NO_VOLUMES)?.await.map_err(refused)?;
        let entries = volumes.into_iter().map(entry).chain(not_mounted.into_iter().map(missing));
        Ok(Reply::Array(entries.collect()))
    }
    .boxed_local()
}

/// FLASH.VOLUME HELP
pub(crate) fn help(_: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    Ok(Reply::lines(&[
        "FLASH.VOLUME <subcommand> [<arg> [value] ...]. Subcommands are:",
        "CREATE <name> <size> [SET <set>] [COPIES 1|2] [<setting> <value> ...]",
        "    Create a thin volume; the size is in bytes, or with KiB, MiB, GiB or TiB. It is in this",
        "    set of units, else in the one with the most unused space; two copies need a pair of sets.",
        "SET <name> <setting> <value> [<setting> <value> ...]",
        "    Change settings of a volume: quota (bytes that it and its snapshots may hold), iops",
        "    and bandwidth (limits a second; `none` removes one, and a quota), weight (1 to 1000),",
        "    temperature (hot, warm or cold) and stream (0 to 7).",
        "RESIZE <name> <size> [SHRINK]",
        "    Change the size of a volume. Where data lie beyond it, that needs SHRINK, and they are",
        "    lost.",
        "RENAME <name> <new>",
        "    Give a volume another name; its snapshots, clones and settings stay.",
        "MOVE <name> <set>",
        "    Move a volume to another set of units while clients use it, with its snapshots and with",
        "    all volumes that share data with it. LIST shows how far it is.",
        "DELETE <name>",
        "    Delete a volume without snapshots, which no NBD client uses.",
        "SNAPSHOT <name> <snapshot>",
        "    Take a snapshot of all writes that have completed.",
        "DELETESNAPSHOT <name> <snapshot>",
        "    Delete a snapshot without clones, which no NBD client uses.",
        "ROLLBACK <name> <snapshot>",
        "    Give a volume that no NBD client uses the contents and size of its newest snapshot;",
        "    what was written since is lost.",
        "CLONE <name> <snapshot> <new>",
        "    Create a volume that begins with the contents of a snapshot.",
        "PROMOTE <clone>",
        "    Let a clone own the snapshot that it was made from, and the older ones; the volume that",
        "    had them becomes a clone of that snapshot.",
        "LIST",
        "    All volumes with name, size_bytes, used_bytes, settings, snapshots, set, and of those that",
        "    move moving_to, copied_bytes and left_bytes; shard and error of those shards whose volumes",
        "    cannot be served.",
        "HELP",
        "    Prints this help.",
    ]))
}

fn parse(args: &[Bytes]) -> Result<VolumeChange> {
    let [_, subcommand, name, more @ ..] = args else { return Err(CommandError::SYNTAX) };
    let name = text(name);
    match (&subcommand.to_ascii_lowercase()[..], more) {
        (b"create", [bytes, words @ ..]) => {
            let mut settings = settings(words)?;
            let set = take_one(&mut settings, "set")?;
            let copies = match take_one(&mut settings, "copies")?.as_deref() {
                None | Some("1") => 1,
                Some("2") => 2,
                Some(_) => return Err(CommandError::Known("ERR a volume has 1 or 2 copies")),
            };
            let size_bytes = size(bytes)?;
            Ok(VolumeChange::Create { name, size_bytes, settings, set, copies })
        }
        (b"set", words @ [_, ..]) => Ok(VolumeChange::Set { name, settings: settings(words)? }),
        (b"resize", [bytes, words @ ..]) => {
            let shrink = match words {
                [] => false,
                [word] if word.eq_ignore_ascii_case(b"shrink") => true,
                _ => return Err(CommandError::SYNTAX),
            };
            Ok(VolumeChange::Resize { name, size_bytes: size(bytes)?, shrink })
        }
        (b"rename", [new]) => Ok(VolumeChange::Rename { name, new: text(new) }),
        (b"rollback", [snapshot]) => {
            Ok(VolumeChange::RollBack { volume: name, snapshot: text(snapshot) })
        }
        (b"move", [set]) => Ok(VolumeChange::Move { name, set: text(set) }),
        (b"promote", []) => Ok(VolumeChange::Promote { name }),
        (b"delete", []) => Ok(VolumeChange::Delete { name }),
        (b"snapshot", [snapshot]) => {
            Ok(VolumeChange::Snapshot { volume: name, name: text(snapshot) })
        }
        (b"deletesnapshot", [snapshot]) => {
            Ok(VolumeChange::DeleteSnapshot { volume: name, name: text(snapshot) })
        }
        (b"clone", [snapshot, new]) => {
            Ok(VolumeChange::Clone { volume: name, snapshot: text(snapshot), name: text(new) })
        }
        _ => Err(CommandError::SYNTAX),
    }
}

/// Takes the value of a word out of settings, which may be there once.
fn take_one(settings: &mut Vec<SettingText>, word: &str) -> Result<Option<String>> {
    let is_it = |(name, _): &mut SettingText| name.eq_ignore_ascii_case(word);
    let mut found = settings.extract_if(.., is_it);
    let value = found.next().map(|(_, value)| value);
    match found.next() {
        None => Ok(value),
        Some(_) => Err(CommandError::SYNTAX),
    }
}

/// Settings as pairs of name and value.
fn settings(words: &[Bytes]) -> Result<Vec<SettingText>> {
    let (pairs, rest) = words.as_chunks::<2>();
    match rest {
        [] => Ok(pairs.iter().map(|[name, value]| (text(name), text(value))).collect()),
        _ => Err(CommandError::SYNTAX),
    }
}

pub(super) fn refused(reason: String) -> CommandError {
    CommandError::quoting(&[b"ERR ", reason.as_bytes()])
}

/// A word as text. A name that is not UTF-8 is none, and no volume has it.
fn text(word: &Bytes) -> String {
    String::from_utf8_lossy(word).into_owned()
}

pub(crate) fn size(word: &Bytes) -> Result<u64> {
    let text = text(word);
    let size: Result<ByteSize, _> = text.parse();
    size.map(|size| size.as_u64()).map_err(|_| {
        refused(format!(
            "`{text}` is not a size; write bytes, or a number with KiB, MiB, GiB or TiB"
        ))
    })
}

fn entry(volume: VolumeEntry) -> Reply {
    let text = |text: String| Reply::Bulk(text.into());
    let number = |number: u64| Reply::Integer(i64::try_from(number).unwrap_or(i64::MAX));
    let limit = |limit: Option<u64>| limit.map_or(Reply::Null, number);
    let mut fields = vec![
        (Reply::Text("name"), text(volume.name)),
        (Reply::Text("size_bytes"), number(volume.size_bytes)),
        (Reply::Text("used_bytes"), number(volume.used_bytes)),
        (Reply::Text("quota_bytes"), limit(volume.quota_bytes)),
        (Reply::Text("iops"), limit(volume.iops.map(u64::from))),
        (Reply::Text("bandwidth_bytes_per_second"), limit(volume.bandwidth_bytes_per_second)),
        (Reply::Text("weight"), number(volume.weight.into())),
        (Reply::Text("temperature"), text(volume.temperature)),
        (Reply::Text("stream"), number(volume.stream.into())),
        (Reply::Text("snapshots"), Reply::Array(volume.snapshots.into_iter().map(text).collect())),
        (Reply::Text("set"), text(volume.set)),
    ];
    if let Some(Moving { set, copied_bytes, left_bytes }) = volume.moving {
        fields.extend([
            (Reply::Text("moving_to"), text(set)),
            (Reply::Text("copied_bytes"), number(copied_bytes)),
            (Reply::Text("left_bytes"), number(left_bytes)),
        ]);
    }
    Reply::Map(fields)
}

fn missing(shard: NotMounted) -> Reply {
    let number = i64::try_from(shard.shard).unwrap_or(i64::MAX);
    Reply::Map(vec![
        (Reply::Text("shard"), Reply::Integer(number)),
        (Reply::Text("error"), Reply::Bulk(shard.error.into())),
    ])
}
