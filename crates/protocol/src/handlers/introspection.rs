//! COMMAND: the command table, for clients.

use crate::command::{COMMANDS, Flags, Keys, Spec, absent, find};
use crate::error::{CommandError, Result};
use crate::resp::reply::Reply;
use crate::session::Session;
use crate::shared::glob::Glob;
use bytes::Bytes;
use softflash_store::Store;

/// COMMAND
pub(crate) fn command(_: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    Ok(Reply::Array(COMMANDS.iter().map(info_of).collect()))
}

/// COMMAND COUNT
pub(crate) fn count(_: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    Ok(Reply::count(COMMANDS.len()))
}

/// COMMAND INFO [name ...]
pub(crate) fn info(session: &mut Session, store: &Store, args: &[Bytes]) -> Result<Reply> {
    match args.get(2..).unwrap_or_default() {
        [] => command(session, store, args),
        names => Ok(Reply::Array(
            names.iter().map(|name| named(name).map_or(Reply::Null, info_of)).collect(),
        )),
    }
}

/// The command `name`, or the subcommand `container|name`.
fn named(name: &[u8]) -> Option<&'static Spec> {
    let mut parts = name.splitn(2, |byte| *byte == b'|');
    let (_, spec) = find(parts.next()?)?;
    match parts.next() {
        Some(subcommand) => spec.subcommand(subcommand),
        None => Some(spec),
    }
}

fn info_of(spec: &Spec) -> Reply {
    let [first, last, step] = spec.keys.positions();
    Reply::Array(vec![
        Reply::Text(spec.name),
        Reply::Integer(spec.arity),
        Reply::Set(spec.flags.names().map(Reply::Status).collect()),
        Reply::Integer(first),
        Reply::Integer(last),
        Reply::Integer(step),
        Reply::Set(spec.categories().into_iter().map(Reply::Status).collect()),
        Reply::Array(Vec::new()),
        Reply::Array(Vec::new()),
        Reply::Array(spec.subcommands.iter().map(info_of).collect()),
    ])
}

/// COMMAND DOCS [name ...]
pub(crate) fn docs(_: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    let specs: Vec<&Spec> = match args.get(2..).unwrap_or_default() {
        [] => COMMANDS.iter().collect(),
        names => names.iter().filter_map(|name| named(name)).collect(),
    };
    Ok(docs_of(specs.into_iter()))
}

fn docs_of<'a>(specs: impl Iterator<Item = &'a Spec>) -> Reply {
    let docs = specs.map(|spec| {
        let mut fields = vec![
            (Reply::Text("summary"), Reply::Text(spec.summary)),
            (Reply::Text("since"), Reply::Text(spec.since)),
            (Reply::Text("group"), Reply::Text(spec.group.name())),
        ];
        if !spec.subcommands.is_empty() {
            fields.push((Reply::Text("subcommands"), docs_of(spec.subcommands.iter())));
        }
        (Reply::Text(spec.name), Reply::Map(fields))
    });
    Reply::Map(docs.collect())
}

/// COMMAND GETKEYS name [argument ...]
pub(crate) fn getkeys(_: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    let words = args.get(2..).unwrap_or_default();
    let invalid = CommandError::Known("ERR Invalid command specified");
    let found = words.first().and_then(|name| find(absent::same_keys(name).unwrap_or(name)));
    let Some((_, spec)) = found else { return Err(invalid) };
    let subcommand = words.get(1).and_then(|name| spec.subcommand(name));
    let spec = match subcommand {
        Some(subcommand) => subcommand,
        None if spec.is_container => return Err(invalid),
        None => spec,
    };
    if matches!(spec.keys, Keys::None | Keys::All) {
        return Err(CommandError::Known("ERR The command has no key arguments"));
    }
    if !spec.takes(words.len()) {
        return Err(CommandError::Known("ERR Invalid number of arguments specified for command"));
    }
    let keys: Vec<Reply> = spec.keys_of(words).cloned().map(Reply::Bulk).collect();
    if keys.is_empty() && !spec.flags.has(Flags::NO_MANDATORY_KEYS) {
        return Err(CommandError::Known("ERR Invalid arguments specified for command"));
    }
    Ok(Reply::Array(keys))
}

/// COMMAND LIST [FILTERBY PATTERN pattern | ACLCAT category | MODULE name]
pub(crate) fn list(_: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    let is = |word: &[u8], option: &str| word.eq_ignore_ascii_case(option.as_bytes());
    let fits: Box<dyn Fn(&Spec) -> bool> = match args.get(2..).unwrap_or_default() {
        [] => Box::new(|_| true),
        [by, kind, value] if is(by, "FILTERBY") && is(kind, "PATTERN") => {
            Box::new(|spec| Glob::ignoring_case(value).matches(spec.name.as_bytes()))
        }
        [by, kind, value] if is(by, "FILTERBY") && is(kind, "ACLCAT") => Box::new(|spec| {
            let category = value.to_ascii_lowercase();
            spec.categories().iter().any(|known| known.as_bytes().get(1..) == Some(&category))
        }),
        [by, kind, _] if is(by, "FILTERBY") && is(kind, "MODULE") => Box::new(|_| false),
        _ => return Err(CommandError::SYNTAX),
    };
    let specs = COMMANDS.iter().flat_map(|spec| [spec].into_iter().chain(spec.subcommands));
    let names = specs.filter(|spec| fits(spec)).map(|spec| Reply::Text(spec.name));
    Ok(Reply::Array(names.collect()))
}

/// COMMAND HELP
pub(crate) fn help(_: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    Ok(Reply::lines(&[
        "COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "(no subcommand)",
        "    Return details about all commands.",
        "COUNT",
        "    Return the total number of commands in this server.",
        "LIST",
        "    Return a list of all commands in this server.",
        "INFO [<command-name> ...]",
        "    Return details about multiple commands.",
        "DOCS [<command-name> ...]",
        "    Return documentation details about multiple commands.",
        "GETKEYS <full-command>",
        "    Return the keys from a full command.",
        "HELP",
        "    Prints this help.",
    ]))
}

/// The error for a command that is not in the table: that it is not built, for a command of Redis,
/// else Redis' text with the name and the beginning of the arguments.
pub(crate) fn unknown_command(args: &[Bytes]) -> CommandError {
    const LONGEST: usize = 128;
    let name = args.first().map(|name| printed(name, LONGEST)).unwrap_or_default();
    if let Some(reason) = absent::reason(name) {
        return not_built(&name.to_ascii_uppercase(), reason);
    }
    let mut beginning = Vec::new();
    for argument in args.iter().skip(1) {
        if beginning.len() >= LONGEST {
            break;
        }
        let shown = printed(argument, LONGEST - beginning.len());
        beginning.extend_from_slice(b"'");
        beginning.extend_from_slice(shown);
        beginning.extend_from_slice(b"' ");
    }
    CommandError::quoting(&[
        b"ERR unknown command '",
        name,
        b"', with args beginning with: ",
        &beginning,
    ])
}

fn not_built(name: &[u8], reason: &str) -> CommandError {
    CommandError::quoting(&[
        b"ERR command '",
        name,
        b"' of Redis is not built in SoftFlash: ",
        reason.as_bytes(),
        b" (docs/redis.md, \"Commands\")",
    ])
}

/// The error for an unknown subcommand, as [`unknown_command`].
pub(crate) fn unknown_subcommand(container: &Spec, name: &[u8]) -> CommandError {
    let whole = [container.name.as_bytes(), b"|", name].concat();
    if let Some(reason) = absent::reason(&whole) {
        let shown = [container.name.as_bytes(), b" ", name].concat();
        return not_built(&shown.to_ascii_uppercase(), reason);
    }
    CommandError::quoting(&[
        b"ERR unknown subcommand '",
        printed(name, 128),
        b"'. Try ",
        container.name.to_uppercase().as_bytes(),
        b" HELP.",
    ])
}

/// Like C's `%.*s`: at most this many bytes, up to the first zero byte.
fn printed(word: &[u8], limit: usize) -> &[u8] {
    let end = word.iter().position(|byte| *byte == 0).unwrap_or(word.len());
    word.get(..end.min(limit)).unwrap_or_default()
}
