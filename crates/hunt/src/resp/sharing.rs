//! Requests to keys that all clients write.

use super::client::{expect, unexpected};
use super::command::Command;
use super::line::Line;
use super::lists::Look;
use super::session::Session;
use super::wire::Reply;
use crate::session_failure::SessionFailure;
use bytes::Bytes;
use softflash_base::random::Rng;

/// A request to a key that all clients write.
pub(super) async fn request(
    session: &Session<'_>,
    line: &mut Line<'_>,
    rng: &mut Rng,
) -> Result<(), SessionFailure> {
    let keys = &session.common.list_keys;
    let key = &keys[rng.below(keys.len() as u64) as usize];
    let room = keys.iter().all(|key| session.common.lists.borrow().has_room(key));
    match rng.below(4) {
        0 if keys.len() > 1 && rng.chance(0.5) => read_lists(session, line, rng).await,
        0 => read_list(session, line, key, rng).await.map(drop),
        _ if !room => read_list(session, line, key, rng).await.map(drop),
        1 => append_to_list(session, line, key, rng).await,
        2 => append_to_lists(session, line, rng).await,
        _ => replace_list(session, line, key, rng).await,
    }
}

async fn read_list(
    session: &Session<'_>,
    line: &mut Line<'_>,
    key: &Bytes,
    rng: &mut Rng,
) -> Result<Bytes, SessionFailure> {
    let look = session.common.lists.borrow().look(key);
    let reply = line.ask(&[Command::Get(key.clone()).words()], rng).await?.pop();
    let value = list_value("GET", reply)?;
    let read = session.common.lists.borrow_mut().read(key, &value, &look);
    read.map_err(SessionFailure::Wrong)?;
    Ok(value)
}

/// Reads all lists in one transaction.
async fn read_lists(
    session: &Session<'_>,
    line: &mut Line<'_>,
    rng: &mut Rng,
) -> Result<(), SessionFailure> {
    let keys = &session.common.list_keys;
    let looks: Vec<Look> = {
        let lists = session.common.lists.borrow();
        keys.iter().map(|key| lists.look(key)).collect()
    };
    let reply = line.ask(&[Command::Mget(keys.clone()).words()], rng).await?.pop();
    let values: Vec<Bytes> = match reply {
        Some(Reply::Array(values)) if values.len() == keys.len() => values
            .into_iter()
            .map(|value| list_value("MGET", Some(value)))
            .collect::<Result<_, _>>()?,
        other => return unexpected("MGET", other),
    };
    let mut lists = session.common.lists.borrow_mut();
    for ((key, value), look) in keys.iter().zip(&values).zip(&looks) {
        lists.read(key, value, look).map_err(SessionFailure::Wrong)?;
    }
    lists.read_at_once(keys.iter().zip(&values)).map_err(SessionFailure::Wrong)
}

async fn append_to_list(
    session: &Session<'_>,
    line: &mut Line<'_>,
    key: &Bytes,
    rng: &mut Rng,
) -> Result<(), SessionFailure> {
    let mark = session.common.lists.borrow_mut().mark();
    let keys = [key.clone()];
    session.common.lists.borrow_mut().begins(&mark, &keys);
    let append = Command::Append(key.clone(), mark.clone());
    let reply = line.ask(&[append.words()], rng).await?.pop();
    let lengths = match reply.as_ref().and_then(length) {
        Some(length) => Ok(vec![length]),
        None => unexpected("APPEND", reply),
    };
    list_answered(session, &mark, &keys, lengths)
}

/// Appends the same mark to all lists in one transaction.
async fn append_to_lists(
    session: &Session<'_>,
    line: &mut Line<'_>,
    rng: &mut Rng,
) -> Result<(), SessionFailure> {
    let keys = &session.common.list_keys;
    let mark = session.common.lists.borrow_mut().mark();
    session.common.lists.borrow_mut().begins(&mark, keys);
    let mut words = vec![vec![Bytes::from("MULTI")]];
    words.extend(keys.iter().map(|key| Command::Append(key.clone(), mark.clone()).words()));
    words.push(vec!["EXEC".into()]);
    let reply = line.ask(&words, rng).await?.pop();
    let lengths = match &reply {
        Some(Reply::Array(replies)) => replies.iter().map(length).collect(),
        _ => None,
    };
    let lengths = match lengths.filter(|lengths: &Vec<usize>| lengths.len() == keys.len()) {
        Some(lengths) => Ok(lengths),
        None => unexpected("EXEC", reply),
    };
    list_answered(session, &mark, keys, lengths)
}

fn list_answered(
    session: &Session<'_>,
    mark: &Bytes,
    keys: &[Bytes],
    lengths: Result<Vec<usize>, SessionFailure>,
) -> Result<(), SessionFailure> {
    let mut lists = session.common.lists.borrow_mut();
    match &lengths {
        Ok(lengths) => {
            let lengths = lengths.iter().copied();
            let lengths: Vec<(Bytes, usize)> = keys.iter().cloned().zip(lengths).collect();
            lists.appended(mark, &lengths);
        }
        Err(SessionFailure::Full) => lists.refused(mark, keys),
        Err(_) => {}
    }
    lengths.map(drop)
}

/// Reads a list and writes it with one more mark, unless another client wrote it meanwhile.
async fn replace_list(
    session: &Session<'_>,
    line: &mut Line<'_>,
    key: &Bytes,
    rng: &mut Rng,
) -> Result<(), SessionFailure> {
    let since = session.common.removals();
    let before = session.common.lists.borrow().look(key);
    expect(line.ask(&[vec!["WATCH".into(), key.clone()]], rng).await?, &[Reply::OK])?;
    let watched = session.common.removals();
    let old = read_list(session, line, key, rng).await?;
    if rng.chance(0.5) {
        session.pause(rng).await;
    }
    session.linger(rng).await;
    let removed = watched.surely_precede(session.common.removals());
    let alone = session.common.lists.borrow().untouched_since(key, &before);
    let mark = session.common.lists.borrow_mut().mark();
    let keys = [key.clone()];
    session.common.lists.borrow_mut().begins(&mark, &keys);
    let ours = session.common.lists.borrow().look(key);
    let new = Bytes::from([&old[..], &mark].concat());
    let length = new.len();
    let words = [vec!["MULTI".into()], vec!["SET".into(), key.clone(), new], vec!["EXEC".into()]];
    let outcome = line.ask(&words, rng).await?.pop();
    let alone = alone
        && session.common.lists.borrow().begun_since(key, &ours) == 0
        && !since.may_precede(session.common.removals());
    let happened = match outcome {
        Some(Reply::Array(_)) if removed => {
            return Err(SessionFailure::Wrong(format!(
                "a transaction ran although all keys were removed after WATCH `{}`",
                key.escape_ascii()
            )));
        }
        Some(Reply::Array(replies)) if replies == [Reply::OK] => Ok(vec![length]),
        Some(Reply::Nil) if !alone => {
            session.common.lists.borrow_mut().refused(&mark, &keys);
            return Ok(());
        }
        Some(Reply::Nil) => {
            let key = key.escape_ascii();
            return Err(SessionFailure::Wrong(format!(
                "a transaction was refused, but the watched key `{key}` was not written"
            )));
        }
        other => unexpected("EXEC", other),
    };
    list_answered(session, &mark, &keys, happened)
}

/// The length in a reply to APPEND.
fn length(reply: &Reply) -> Option<usize> {
    match reply {
        Reply::Integer(length) => usize::try_from(*length).ok(),
        _ => None,
    }
}

/// The value of a list in a reply; a missing list is empty.
fn list_value(command: &str, reply: Option<Reply>) -> Result<Bytes, SessionFailure> {
    match reply {
        Some(Reply::Bulk(value)) => Ok(value),
        Some(Reply::Nil) => Ok(Bytes::new()),
        other => unexpected(command, other),
    }
}
