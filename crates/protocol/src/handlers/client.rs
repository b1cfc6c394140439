//! CLIENT: the connected clients.

use crate::acl::Acl;
use crate::error::{CommandError, Result};
use crate::resp::number::parse_i64;
use crate::resp::reply::Reply;
use crate::resp::words::{is, own};
use crate::session::Session;
use crate::shared::clients::Client;
use bytes::Bytes;
use softflash_store::Store;
use std::sync::Arc;

/// CLIENT ID
pub(crate) fn id(session: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    Ok(Reply::Integer(i64::try_from(session.client.id).unwrap_or(i64::MAX)))
}

/// CLIENT GETNAME
pub(crate) fn getname(session: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    let name = session.name.clone();
    Ok(if name.is_empty() { Reply::Null } else { Reply::Bulk(name) })
}

/// CLIENT SETNAME name
pub(crate) fn setname(session: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    if let [_, _, name] = args {
        check_name(name)?;
        session.set_name(own(name));
    }
    Ok(Reply::Ok)
}

/// A name is one printable word.
pub(crate) fn check_name(name: &[u8]) -> Result<()> {
    if name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Ok(());
    }
    Err(CommandError::Known(
        "ERR Client names cannot contain spaces, newlines or special characters.",
    ))
}

/// CLIENT SETINFO LIB-NAME name | LIB-VER version: accepted, because libraries send it unasked
pub(crate) fn setinfo(_: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    let [_, _, attribute, value] = args else { return Err(CommandError::SYNTAX) };
    if !is(attribute, "LIB-NAME") && !is(attribute, "LIB-VER") {
        return Err(CommandError::quoting(&[b"ERR Unrecognized option '", attribute, b"'"]));
    }
    if value.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return Ok(Reply::Ok);
    }
    Err(CommandError::quoting(&[
        b"ERR ",
        attribute,
        b" cannot contain spaces, newlines or special characters.",
    ]))
}

/// CLIENT INFO
pub(crate) fn info(session: &mut Session, store: &Store, _: &[Bytes]) -> Result<Reply> {
    session.publish(store);
    Ok(Reply::Verbatim(session.client.line(store.now_ms())))
}

/// CLIENT LIST [TYPE type] [ID id [id ...]]
pub(crate) fn list(session: &mut Session, store: &Store, args: &[Bytes]) -> Result<Reply> {
    session.publish(store);
    let chosen: Box<dyn Fn(&Client) -> bool> = match args.get(2..).unwrap_or_default() {
        [] => Box::new(|_| true),
        [option, kind] if is(option, "TYPE") => {
            let normal = is_normal(kind)?;
            Box::new(move |_| normal)
        }
        [option, ids @ ..] if is(option, "ID") && !ids.is_empty() => {
            let ids: Vec<u64> = ids
                .iter()
                .map(|id| parse_i64(id).and_then(|id| u64::try_from(id).ok()))
                .collect::<Option<_>>()
                .ok_or(CommandError::Known("ERR Invalid client ID"))?;
            Box::new(move |client| ids.contains(&client.id))
        }
        _ => return Err(CommandError::SYNTAX),
    };
    let now_ms = store.now_ms();
    let clients = session.context.clients.all();
    let lines = clients.iter().filter(|client| chosen(client)).map(|client| client.line(now_ms));
    Ok(Reply::Verbatim(lines.collect()))
}

/// Whether this is the type of client that all clients here have.
fn is_normal(kind: &[u8]) -> Result<bool> {
    if is(kind, "normal") {
        return Ok(true);
    }
    if ["master", "replica", "slave", "pubsub"].iter().any(|known| is(kind, known)) {
        return Ok(false);
    }
    Err(CommandError::quoting(&[b"ERR Unknown client type '", kind, b"'"]))
}

#[derive(Default)]
struct Victims<'a> {
    address: Option<&'a [u8]>,
    local_address: Option<&'a [u8]>,
    id: Option<u64>,
    normal: Option<bool>,
    user: Option<&'a [u8]>,
    spares_self: bool,
}

impl<'a> Victims<'a> {
    fn parse(options: &'a [Bytes], acl: &Acl) -> Result<Victims<'a>> {
        let mut victims = Victims { spares_self: true, ..Victims::default() };
        for pair in options.chunks(2) {
            let [option, value] = pair else { return Err(CommandError::SYNTAX) };
            if is(option, "ID") {
                let id = parse_i64(value).and_then(|id| u64::try_from(id).ok());
                let id = id.filter(|id| *id > 0);
                victims.id =
                    Some(id.ok_or(CommandError::Known("ERR client-id should be greater than 0"))?);
            } else if is(option, "TYPE") {
                victims.normal = Some(is_normal(value)?);
            } else if is(option, "ADDR") {
                victims.address = Some(value);
            } else if is(option, "LADDR") {
                victims.local_address = Some(value);
            } else if is(option, "USER") {
                if acl.user(value).is_none() {
                    return Err(CommandError::quoting(&[b"ERR No such user '", value, b"'"]));
                }
                victims.user = Some(value);
            } else if is(option, "SKIPME") && (is(value, "yes") || is(value, "no")) {
                victims.spares_self = is(value, "yes");
            } else {
                return Err(CommandError::SYNTAX);
            }
        }
        Ok(victims)
    }

    fn includes(&self, client: &Client) -> bool {
        self.address.is_none_or(|address| client.address.as_bytes() == address)
            && self.local_address.is_none_or(|local| client.local_address.as_bytes() == local)
            && self.id.is_none_or(|id| client.id == id)
            && self.normal.unwrap_or(true)
            && self.user.is_none_or(|user| {
                client.activity().user.is_some_and(|name| name.as_bytes() == user)
            })
    }
}

/// CLIENT KILL address | option value [option value ...]
pub(crate) fn kill(session: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    let old_form = args.len() == 3;
    let victims = match args.get(2..).unwrap_or_default() {
        [address] => Victims { address: Some(address), ..Victims::default() },
        options => Victims::parse(options, &session.context.acl)?,
    };
    let clients: Vec<Arc<Client>> = session.context.clients.all();
    let mut killed = 0;
    for client in clients.iter().filter(|client| victims.includes(client)) {
        if client.id != session.client.id {
            client.kill();
        } else if victims.spares_self {
            continue;
        } else {
            session.close();
        }
        killed += 1;
    }
    match (old_form, killed) {
        (true, 0) => Err(CommandError::Known("ERR No such client")),
        (true, _) => Ok(Reply::Ok),
        (false, killed) => Ok(Reply::Integer(killed)),
    }
}

/// CLIENT REPLY ON | OFF | SKIP
pub(crate) fn reply(session: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    let Some(mode) = args.get(2) else { return Err(CommandError::SYNTAX) };
    if is(mode, "ON") {
        session.reply_mode.switch_on();
        Ok(Reply::Ok)
    } else if is(mode, "OFF") {
        session.reply_mode.switch_off();
        Ok(Reply::None)
    } else if is(mode, "SKIP") {
        session.reply_mode.skip_next();
        Ok(Reply::None)
    } else {
        Err(CommandError::SYNTAX)
    }
}

/// CLIENT NO-EVICT ON | OFF and CLIENT NO-TOUCH ON | OFF: nothing is evicted here
pub(crate) fn on_or_off(_: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    match args.get(2) {
        Some(mode) if is(mode, "ON") || is(mode, "OFF") => Ok(Reply::Ok),
        _ => Err(CommandError::SYNTAX),
    }
}

/// CLIENT HELP
pub(crate) fn help(_: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    Ok(Reply::lines(&[
        "CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "GETNAME",
        "    Return the name of the current connection.",
        "ID",
        "    Return the ID of the current connection.",
        "INFO",
        "    Return information about the current client connection.",
        "KILL <ip:port>",
        "    Kill connection made from <ip:port>.",
        "KILL <option> <value> [<option> <value> [...]]",
        "    Kill connections. Options are: ADDR, LADDR, TYPE, USER, ID, SKIPME.",
        "LIST [options ...]",
        "    Return information about client connections. Options: TYPE, ID.",
        "REPLY (ON|OFF|SKIP)",
        "    Control the replies sent to the current connection.",
        "SETNAME <name>",
        "    Assign the name <name> to the current connection.",
        "NO-EVICT (ON|OFF)",
        "    Accepted; nothing is evicted.",
        "NO-TOUCH (ON|OFF)",
        "    Accepted; nothing keeps access times.",
        "SETINFO <option> <value>",
        "    Accepted; not kept.",
        "HELP",
        "    Prints this help.",
    ]))
}
