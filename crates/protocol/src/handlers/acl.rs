//! ACL: users and their permissions.

use crate::acl::{
    AclError, CATEGORIES, DEFAULT_USER, Denial, Refusal, User, check_name, parse_users, users_text,
};
use crate::command::{COMMANDS, Spec, find};
use crate::error::{CommandError, Result};
use crate::resp::number::parse_i64;
use crate::resp::reply::Reply;
use crate::resp::words::is;
use crate::session::Session;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use softflash_store::Store;
use std::sync::Arc;

/// Maximum number of retries when other clients change the same user concurrently.
const TRIES: usize = 8;
/// Default number of bits of a password from GENPASS.
const PASSWORD_BITS: i64 = 256;
const MAX_PASSWORD_BITS: i64 = 4096;
/// Default number of log entries in a reply.
const LOG_ENTRIES: usize = 10;

fn text(text: impl Into<Bytes>) -> Reply {
    Reply::Bulk(text.into())
}

/// Redis' text for a subcommand with too many words.
fn wrong_number(args: &[Bytes]) -> CommandError {
    CommandError::quoting(&[
        b"ERR unknown subcommand or wrong number of arguments for '",
        args.get(1).map_or(b"", |name| name),
        b"'. Try ACL HELP.",
    ])
}

/// ACL WHOAMI
pub(crate) fn whoami(session: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    let name = session.identity.user().map(|user| user.name().to_owned());
    Ok(name.map_or(Reply::Null, text))
}

/// ACL USERS
pub(crate) fn users(session: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    let users = session.context.acl.users();
    Ok(Reply::Array(users.keys().map(|name| text(name.to_string())).collect()))
}

/// ACL LIST
pub(crate) fn list(session: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    let all = users_text(&session.context.acl.users());
    Ok(Reply::Array(all.lines().map(|line| text(line.to_owned())).collect()))
}

/// ACL GETUSER name
pub(crate) fn getuser(session: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    let user = args.get(2).and_then(|name| session.context.acl.user(name));
    let Some(user) = user else { return Ok(Reply::Null) };
    let flags = user.flags().into_iter().map(Reply::Text).collect();
    let hashes = user.hashes().into_iter().map(text).collect();
    Ok(Reply::Map(vec![
        (Reply::Text("flags"), Reply::Set(flags)),
        (Reply::Text("passwords"), Reply::Array(hashes)),
        (Reply::Text("commands"), text(user.command_rules())),
        (Reply::Text("keys"), text(user.key_rules().join(" "))),
        (Reply::Text("channels"), Reply::Text("")),
        (Reply::Text("selectors"), Reply::Array(Vec::new())),
    ]))
}

/// ACL SETUSER name [rule ...]: all rules, or none and an error
pub(crate) fn setuser<'a>(
    session: &'a mut Session,
    _: &'a Store,
    args: &'a [Bytes],
) -> LocalBoxFuture<'a, Result<Reply>> {
    async move {
        let name = check_name(args.get(2).map_or(b"", |name| name)).map_err(refused)?.to_owned();
        let rules: Vec<Bytes> = args.get(3..).unwrap_or_default().to_vec();
        for _ in 0..TRIES {
            let (context, rules) = (Arc::clone(&session.context), rules.clone());
            let before = context.acl.user(name.as_bytes());
            let mut user = before.as_deref().cloned().unwrap_or_else(|| User::new(&name));
            let changed = session.slowly(move || {
                rules
                    .iter()
                    .try_for_each(|rule| user.apply(rule, &*context.services.salts))
                    .map(|()| user)
            });
            let user = changed.await?.map_err(refused)?;
            if session.context.acl.replace(before.as_ref(), user) {
                return Ok(Reply::Ok);
            }
        }
        Err(CommandError::Known("ERR the user is being changed by other clients, try again"))
    }
    .boxed_local()
}

fn refused(error: AclError) -> CommandError {
    CommandError::quoting(&[b"ERR ", error.to_string().as_bytes()])
}

/// ACL DELUSER name [name ...]
pub(crate) fn deluser(session: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    let names = args.get(2..).unwrap_or_default();
    if names.iter().any(|name| &name[..] == DEFAULT_USER.as_bytes()) {
        return Err(CommandError::Known("ERR The 'default' user cannot be removed"));
    }
    let known = names.iter().filter_map(|name| std::str::from_utf8(name).ok());
    let removed = known.filter(|name| session.context.acl.remove(name)).count();
    end_orphans(session);
    Ok(Reply::count(removed))
}

/// Ends the connections of removed users.
fn end_orphans(session: &mut Session) {
    let context = Arc::clone(&session.context);
    for client in context.clients.all() {
        let is_orphan =
            client.activity().user.is_some_and(|user| context.acl.user(user.as_bytes()).is_none());
        if !is_orphan {
            continue;
        }
        if client.id == session.client.id {
            // The client itself still gets its reply.
            session.close();
        } else {
            client.kill();
        }
    }
}

/// ACL LOAD: all users as the file has them, or an error and nothing changes
pub(crate) fn load<'a>(
    session: &'a mut Session,
    _: &'a Store,
    _: &'a [Bytes],
) -> LocalBoxFuture<'a, Result<Reply>> {
    async move {
        let context = Arc::clone(&session.context);
        let read = session.slowly(move || {
            let file = context.services.user_file.as_ref().ok_or_else(|| NO_FILE.to_owned())?;
            let text = file.read()?;
            let mut users =
                parse_users(&text, &*context.services.salts).map_err(|error| error.to_string())?;
            context.keep_default_password(&mut users);
            context.acl.replace_all(users);
            Ok::<(), String>(())
        });
        read.await?.map_err(|reason| failed(&reason))?;
        end_orphans(session);
        Ok(Reply::Ok)
    }
    .boxed_local()
}

/// ACL SAVE
pub(crate) fn save<'a>(
    session: &'a mut Session,
    _: &'a Store,
    _: &'a [Bytes],
) -> LocalBoxFuture<'a, Result<Reply>> {
    async move {
        let context = Arc::clone(&session.context);
        let written = session.slowly(move || {
            let file = context.services.user_file.as_ref().ok_or_else(|| NO_FILE.to_owned())?;
            file.write(&users_text(&context.acl.users()))
        });
        written.await?.map_err(|reason| failed(&reason))?;
        Ok(Reply::Ok)
    }
    .boxed_local()
}

const NO_FILE: &str = "This server is not configured to use an ACL file";

fn failed(reason: &str) -> CommandError {
    CommandError::quoting(&[b"ERR ", reason.replace(['\r', '\n'], " ").as_bytes()])
}

/// ACL CAT [category]
pub(crate) fn cat(_: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    let category = match args {
        [_, _] => {
            return Ok(Reply::Array(CATEGORIES.iter().map(|name| Reply::Text(name)).collect()));
        }
        [_, _, category] => category.to_ascii_lowercase(),
        _ => return Err(wrong_number(args)),
    };
    if !CATEGORIES.iter().any(|known| known.as_bytes() == category) {
        return Err(CommandError::quoting(&[b"ERR Unknown category '", &category, b"'"]));
    }
    let belongs = |spec: &&Spec| {
        spec.categories().iter().any(|known| known.as_bytes().get(1..) == Some(&category))
    };
    let specs = COMMANDS.iter().flat_map(|spec| [spec].into_iter().chain(spec.subcommands));
    Ok(Reply::Array(specs.filter(belongs).map(|spec| Reply::Text(spec.name)).collect()))
}

/// ACL GENPASS [bits]
pub(crate) fn genpass(session: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    let bits = match args {
        [_, _] => PASSWORD_BITS,
        [_, _, bits] => parse_i64(bits).ok_or(CommandError::NOT_AN_INTEGER)?,
        _ => return Err(wrong_number(args)),
    };
    if !(1..=MAX_PASSWORD_BITS).contains(&bits) {
        return Err(CommandError::Known(
            "ERR ACL GENPASS argument must be the number of bits for the output password, a positive \
             number up to 4096",
        ));
    }
    let digits = usize::try_from(bits).unwrap_or(0).div_ceil(4);
    let mut random = vec![0; digits.div_ceil(2)];
    (session.context.services.salts)(&mut random);
    let mut password: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    password.truncate(digits);
    Ok(text(password))
}

/// ACL LOG [count | RESET]
pub(crate) fn log(session: &mut Session, store: &Store, args: &[Bytes]) -> Result<Reply> {
    let count = match args {
        [_, _] => LOG_ENTRIES,
        [_, _, reset] if is(reset, "RESET") => {
            session.context.acl.log.reset();
            return Ok(Reply::Ok);
        }
        [_, _, count] => {
            let count = parse_i64(count).ok_or(CommandError::NOT_AN_INTEGER)?;
            usize::try_from(count).unwrap_or(0)
        }
        _ => return Err(wrong_number(args)),
    };
    let now_ms = store.now_ms();
    let entry = |denial: Denial| {
        let age_seconds = now_ms.saturating_sub(denial.at_ms) as f64 / 1e3;
        let count = i64::try_from(denial.count).unwrap_or(i64::MAX);
        Reply::Map(vec![
            (Reply::Text("count"), Reply::Integer(count)),
            (Reply::Text("reason"), Reply::Text(denial.reason.name())),
            (Reply::Text("context"), Reply::Text(denial.context)),
            (Reply::Text("object"), text(denial.object)),
            (Reply::Text("username"), text(denial.user)),
            (Reply::Text("age-seconds"), Reply::Double(age_seconds)),
            (Reply::Text("client-info"), text(denial.client)),
        ])
    };
    Ok(Reply::Array(session.context.acl.log.newest(count).into_iter().map(entry).collect()))
}

/// ACL DRYRUN name command [argument ...]
pub(crate) fn dryrun(session: &mut Session, _: &Store, args: &[Bytes]) -> Result<Reply> {
    let (name, words) = match args {
        [_, _, name, words @ ..] => (name, words),
        _ => return Err(CommandError::SYNTAX),
    };
    let user = session
        .context
        .acl
        .user(name)
        .ok_or_else(|| CommandError::quoting(&[b"ERR User '", name, b"' not found"]))?;
    let unknown =
        |command: &[u8]| CommandError::quoting(&[b"ERR Command '", command, b"' not found"]);
    let command = words.first().map(|word| &word[..]).unwrap_or_default();
    let (index, mut spec) = find(command).ok_or_else(|| unknown(command))?;
    let mut place = None;
    if let (Some(subcommand), false) = (words.get(1), spec.subcommands.is_empty()) {
        place = spec.subcommand_place(subcommand);
        spec = place.and_then(|at| spec.subcommands.get(at)).ok_or_else(|| unknown(command))?;
    }
    if !spec.takes(words.len()) {
        return Err(CommandError::WrongArity(spec.name));
    }
    if spec.flags.has(crate::command::Flags::NO_AUTH) {
        return Ok(Reply::Ok);
    }
    Ok(match user.permits(spec, index, place, words) {
        Ok(()) => Reply::Ok,
        Err(Refusal::Command) => {
            text(format!("This user has no permissions to run the '{}' command", spec.name))
        }
        Err(Refusal::Key(key)) => {
            text([&b"This user has no permissions to access the '"[..], &key, b"' key"].concat())
        }
        Err(Refusal::AllKeys) => text("This user has no permissions to change all keys"),
    })
}

/// ACL HELP
pub(crate) fn help(_: &mut Session, _: &Store, _: &[Bytes]) -> Result<Reply> {
    Ok(Reply::lines(&[
        "ACL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "CAT [<category>]",
        "    List all commands that belong to <category>, or all command categories",
        "    when no category is specified.",
        "DELUSER <username> [<username> ...]",
        "    Delete a list of users.",
        "DRYRUN <username> <command> [<arg> ...]",
        "    Returns whether the user can execute the given command without executing the command.",
        "GETUSER <username>",
        "    Get the user's details.",
        "GENPASS [<bits>]",
        "    Generate a secure 256-bit user password. The optional `bits` argument can",
        "    be used to specify a different size.",
        "LIST",
        "    Show users details in config file format.",
        "LOAD",
        "    Reload users from the ACL file.",
        "LOG [<count> | RESET]",
        "    Show the ACL log entries.",
        "SAVE",
        "    Save the current config to the ACL file.",
        "SETUSER <username> <attribute> [<attribute> ...]",
        "    Create or modify a user with the specified attributes.",
        "USERS",
        "    List all the registered usernames.",
        "WHOAMI",
        "    Return the current connection username.",
        "HELP",
        "    Prints this help.",
    ]))
}
