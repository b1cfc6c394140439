//! Writes the replies of a connection in the order of their completion.

use super::carry_out::Reply;
use crate::stream::Stream;
use softflash_runtime::{BytePermit, Event};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncWriteExt, WriteHalf};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::timeout;

/// Time limit for a client that does not receive its replies.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// Replies are gathered up to this size.
const BATCH_BYTES: usize = 256 << 10;

/// A longer head or body is not copied.
const COPIED_BYTES: usize = 32 << 10;

/// A reply, and what its request holds until it is sent.
pub(super) struct Outgoing {
    pub reply: Reply,
    pub held: Vec<BytePermit>,
}

/// Sends replies until no sender of replies is left, then closes the connection. If that fails,
/// `lost` is set, and further replies are dropped.
pub(super) async fn send(
    mut socket: WriteHalf<Stream>,
    mut replies: UnboundedReceiver<Outgoing>,
    lost: Event,
) {
    let mut batch = Vec::new();
    while let Some(first) = replies.recv().await {
        if lost.is_set() {
            continue;
        }
        if let Err(error) = send_batch(&mut socket, &mut batch, first, &mut replies).await {
            tracing::debug!(%error, "NBD client lost");
            lost.set();
        }
    }
    // A client that has gone does not need the end.
    let _ = timeout(REPLY_TIMEOUT, socket.shutdown()).await;
}

/// Sends a reply and those that wait behind it.
async fn send_batch(
    socket: &mut WriteHalf<Stream>,
    batch: &mut Vec<u8>,
    first: Outgoing,
    replies: &mut UnboundedReceiver<Outgoing>,
) -> io::Result<()> {
    batch.clear();
    let mut held = Vec::new();
    let mut next = Some(first);
    while let Some(Outgoing { reply, held: more }) = next {
        held.extend(more);
        for part in [&reply.head[..], reply.body()] {
            if part.len() <= COPIED_BYTES {
                batch.extend_from_slice(part);
            } else {
                write_all(socket, batch).await?;
                batch.clear();
                write_all(socket, part).await?;
            }
        }
        next = (batch.len() < BATCH_BYTES).then(|| replies.try_recv().ok()).flatten();
    }
    write_all(socket, batch).await?;
    // TLS may have buffered the last part.
    timeout(REPLY_TIMEOUT, socket.flush()).await?
}

/// Writes all, as long as the client takes some of it in time.
async fn write_all(socket: &mut WriteHalf<Stream>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = timeout(REPLY_TIMEOUT, socket.write(bytes)).await??;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = bytes.get(written..).unwrap_or_default();
    }
    Ok(())
}
