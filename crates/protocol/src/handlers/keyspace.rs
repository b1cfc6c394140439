//! Commands on the whole key space: KEYS, SCAN, RANDOMKEY, DBSIZE, FLUSHALL.

use crate::error::{CommandError, Result};
use crate::handlers::Call;
use crate::handlers::keyspace_context::{KeyspaceContext, PAGE_KEYS};
use crate::resp::number::{parse_cursor, parse_i64};
use crate::resp::reply::Reply;
use crate::resp::words::{is, own};
use crate::shared::cursors::Place;
use crate::shared::glob::Glob;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use softflash_base::SliceId;

/// KEYS pattern
pub(crate) fn keys(keyspace: KeyspaceContext<'_>) -> LocalBoxFuture<'_, Result<Reply>> {
    async move {
        let glob = Glob::new(keyspace.args.get(1).map_or(b"", |pattern| pattern));
        let keys = keyspace.keys(|key| glob.matches(key)).await?;
        Ok(Reply::Array(keys.into_iter().map(Reply::Bulk).collect()))
    }
    .boxed_local()
}

struct ScanOptions<'a> {
    pattern: Option<&'a [u8]>,
    count: usize,
    strings: bool,
}

impl ScanOptions<'_> {
    fn parse(args: &[Bytes]) -> Result<ScanOptions<'_>> {
        let mut options = ScanOptions { pattern: None, count: 10, strings: true };
        for pair in args.chunks(2) {
            let [option, value] = pair else { return Call::syntax() };
            if is(option, "COUNT") {
                let count = parse_i64(value).ok_or(CommandError::NOT_AN_INTEGER)?;
                options.count = usize::try_from(count).unwrap_or(0);
                if options.count == 0 {
                    return Call::syntax();
                }
            } else if is(option, "MATCH") {
                options.pattern = Some(value);
            } else if is(option, "TYPE") {
                options.strings = is(value, "string");
            } else {
                return Call::syntax();
            }
        }
        Ok(options)
    }
}

/// A SCAN of at most this many keys ends early where they are long.
const LITTLE_COUNT: usize = 1000;
/// ... once it has this many bytes of keys, which leaves room for one more key.
const LITTLE_SCAN_BYTES: usize = 48 << 10;

/// Whether the reply of SCAN with these words is short.
pub(crate) fn scans_little(args: &[Bytes]) -> bool {
    let options = ScanOptions::parse(args.get(2..).unwrap_or_default());
    options.is_ok_and(|options| options.count <= LITTLE_COUNT)
}

/// SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]
pub(crate) fn scan(keyspace: KeyspaceContext<'_>) -> LocalBoxFuture<'_, Result<Reply>> {
    async move {
        let cursor = keyspace.args.get(1).and_then(|cursor| parse_cursor(cursor));
        let cursor = cursor.ok_or(CommandError::Known("ERR invalid cursor"))?;
        let options = ScanOptions::parse(keyspace.args.get(2..).unwrap_or_default())?;
        let Place { mut slice, mut after } = keyspace.context.cursors.place(cursor);
        let glob = options.pattern.map(Glob::new);
        let fits = |key: &[u8]| {
            options.strings && glob.is_none_or(|glob| glob.matches(key)) && keyspace.shows(key)
        };

        let mut keys = Vec::new();
        let mut left = options.count;
        let most_bytes = if left <= LITTLE_COUNT { LITTLE_SCAN_BYTES } else { usize::MAX };
        let mut bytes = 0;
        let slices = if keyspace.is_cleared() { 0 } else { keyspace.store.layout().slices };
        let mut turns = keyspace.turns();
        while left > 0 && bytes < most_bytes && slice.0 < slices {
            let page = keyspace.page(slice, after.take(), left.min(PAGE_KEYS)).await?;
            turns.take().await;
            left = left.saturating_sub(page.items.len());
            bytes += page.items.iter().map(|(key, _)| key.len()).sum::<usize>();
            keys.extend(page.items.into_iter().map(|(key, _)| key).filter(|key| fits(key)));
            after = page.next;
            if after.is_some() && left > 0 {
                // Fewer keys than requested, although there are more: they are long.
                continue;
            }
            if after.is_none() {
                slice = SliceId(slice.0 + 1);
            }
        }
        let next = if slice.0 < slices {
            keyspace.context.cursors.add(Place { slice, after: after.as_ref().map(own) })
        } else {
            0
        };
        Ok(Reply::Array(vec![
            Reply::Bulk(next.to_string().into()),
            Reply::Array(keys.into_iter().map(Reply::Bulk).collect()),
        ]))
    }
    .boxed_local()
}

/// RANDOMKEY
pub(crate) fn randomkey(keyspace: KeyspaceContext<'_>) -> LocalBoxFuture<'_, Result<Reply>> {
    async move {
        let random = keyspace.context.random();
        if keyspace.overlay.is_some() {
            let keys = keyspace.keys(|_| true).await?;
            let index = random as usize % keys.len().max(1);
            return Ok(keys.get(index).cloned().map_or(Reply::Null, Reply::Bulk));
        }
        if keyspace.viewer.is_some() {
            return Ok(random_shown(&keyspace, random).await?.map_or(Reply::Null, Reply::Bulk));
        }
        Ok(keyspace.store.random_key(random).await?.map_or(Reply::Null, Reply::Bulk))
    }
    .boxed_local()
}

/// A visible key: chosen at random, or else the first from a random slice on.
async fn random_shown(keyspace: &KeyspaceContext<'_>, random: u64) -> Result<Option<Bytes>> {
    const TRIES: u32 = 16;
    for _ in 0..TRIES {
        match keyspace.store.random_key(keyspace.context.random()).await? {
            Some(key) if keyspace.shows(&key) => return Ok(Some(key)),
            Some(_) => {}
            None => return Ok(None),
        }
    }
    let slices = keyspace.store.layout().slices;
    let first = (random % u64::from(slices.max(1))) as u16;
    for slice in (first..slices).chain(0..first).map(SliceId) {
        let mut after = None;
        loop {
            let page = keyspace.page(slice, after, PAGE_KEYS).await?;
            let shown = page.items.into_iter().map(|(key, _)| key).find(|key| keyspace.shows(key));
            match (shown, page.next) {
                (Some(key), _) => return Ok(Some(key)),
                (None, Some(last)) => after = Some(last),
                (None, None) => break,
            }
        }
    }
    Ok(None)
}

/// DBSIZE
pub(crate) fn dbsize(keyspace: KeyspaceContext<'_>) -> LocalBoxFuture<'_, Result<Reply>> {
    async move {
        let count = keyspace.key_count().await?.keys;
        Ok(Reply::Integer(i64::try_from(count).unwrap_or(i64::MAX)))
    }
    .boxed_local()
}

/// FLUSHALL [ASYNC | SYNC]; with one database FLUSHDB is the same
pub(crate) fn flush(call: &mut Call<'_>) -> Result<Reply> {
    match call.args {
        [_] => {}
        [_, option] if is(option, "ASYNC") || is(option, "SYNC") => {}
        _ => return Call::syntax(),
    }
    call.effects.clear = true;
    Ok(Reply::Ok)
}
