//! The connection itself: PING, ECHO, AUTH, HELLO, SELECT, QUIT, RESET.

use crate::acl::DEFAULT_USER;
use crate::error::{CommandError, Result};
use crate::handlers::client::check_name;
use crate::handlers::rename::check_database;
use crate::resp::number::parse_i64;
use crate::resp::reply::{Protocol, Reply};
use crate::resp::words::{is, own};
use crate::session::Session;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use softflash_store::Store;

/// The Redis version whose commands are implemented.
pub(crate) const REDIS_VERSION: &str = "7.0.15";

/// PING [message]
pub(crate) fn ping(_: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    match args {
        [_] => Ok(Reply::Status("PONG")),
        [_, message] => Ok(Reply::Bulk(message.clone())),
        _ => Err(CommandError::WrongArity("ping")),
    }
}

/// ECHO message
pub(crate) fn echo(_: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    Ok(args.get(1).cloned().map_or(Reply::Null, Reply::Bulk))
}

/// AUTH [username] password
pub(crate) fn auth<'a>(
    session: &'a mut Session,
    store: &'a Store,
    args: &'a [Bytes],
) -> LocalBoxFuture<'a, Result<Reply>> {
    async move {
        match args {
            [_, _] if session.context.acl.is_default_open() => Err(CommandError::Known(
                "ERR AUTH <password> called without any password configured for the default user. \
                 Are you sure your configuration is correct?",
            )),
            [_, password] => session.log_in(store, DEFAULT_USER.as_bytes(), password, "AUTH").await,
            [_, user, password] => session.log_in(store, user, password, "AUTH").await,
            _ => Err(CommandError::SYNTAX),
        }?;
        Ok(Reply::Ok)
    }
    .boxed_local()
}

/// Whether a HELLO checks a password.
pub(crate) fn logs_in(args: &[Bytes]) -> bool {
    args.iter().any(|word| is(word, "AUTH"))
}

/// HELLO [2 | 3 [AUTH username password] [SETNAME name]]
pub(crate) fn hello<'a>(
    session: &'a mut Session,
    store: &'a Store,
    args: &'a [Bytes],
) -> LocalBoxFuture<'a, Result<Reply>> {
    greet(session, store, args).boxed_local()
}

async fn greet(session: &mut Session, store: &Store, args: &[Bytes]) -> Result<Reply> {
    let protocol = match args.get(1).map(|version| parse_i64(version)) {
        None => session.protocol,
        Some(None) => {
            return Err(CommandError::Known(
                "ERR Protocol version is not an integer or out of range",
            ));
        }
        Some(Some(2)) => Protocol::Resp2,
        Some(Some(3)) => Protocol::Resp3,
        Some(Some(_)) => return Err(CommandError::Known("NOPROTO unsupported protocol version")),
    };
    let (mut login, mut name, mut index) = (None, None, 2);
    while let Some(option) = args.get(index) {
        match args.get(index + 1..).unwrap_or_default() {
            [user, password, ..] if is(option, "AUTH") => {
                login = Some((user, password));
                index += 3;
            }
            [given, ..] if is(option, "SETNAME") => {
                check_name(given)?;
                name = Some(given);
                index += 2;
            }
            _ => {
                let text = option.split(|byte| *byte == 0).next().unwrap_or_default();
                return Err(CommandError::quoting(&[
                    b"ERR Syntax error in HELLO option '",
                    text,
                    b"'",
                ]));
            }
        }
    }
    if let Some((user, password)) = login {
        session.log_in(store, user, password, "HELLO").await?;
    }
    if !session.is_authenticated() {
        return Err(CommandError::Known(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO \
             <proto> AUTH <user> <pass> option can be used to authenticate the client and select the \
             RESP protocol version at the same time",
        ));
    }
    if let Some(name) = name {
        session.set_name(own(name));
    }
    session.protocol = protocol;
    session.publish(store);
    let id = i64::try_from(session.client.id).unwrap_or(i64::MAX);
    let fields = Reply::Map(vec![
        (Reply::Text("server"), Reply::Text("redis")),
        (Reply::Text("version"), Reply::Text(REDIS_VERSION)),
        (Reply::Text("proto"), Reply::Integer(protocol.number())),
        (Reply::Text("id"), Reply::Integer(id)),
        (Reply::Text("mode"), Reply::Text("standalone")),
        (Reply::Text("role"), Reply::Text("master")),
        (Reply::Text("modules"), Reply::Array(Vec::new())),
    ]);
    Ok(Reply::Switch(protocol, Box::new(fields)))
}

/// SELECT index
pub(crate) fn select(_: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    let index = args.get(1).and_then(|index| parse_i64(index));
    check_database(index.ok_or(CommandError::NOT_AN_INTEGER)?)?;
    Ok(Reply::Ok)
}

/// QUIT
pub(crate) fn quit(session: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    session.close();
    Ok(Reply::Ok)
}

/// RESET
pub(crate) fn reset(session: &mut Session, store: &Store, _: &[Bytes]) -> Result<Reply> {
    session.reset();
    session.publish(store);
    Ok(Reply::Switch(Protocol::Resp2, Box::new(Reply::Status("RESET"))))
}
