//! Writes the replies of a connection in the order of their completion.

use super::budget::ExportBudget;
use super::carry_out::Reply;
use crate::registry::{PROGRESS_BYTES, REPLY_TIMEOUT, SWEEP_INTERVAL, reply_timeout};
use crate::transport::Transport;
use softflash_runtime::{BytePermit, Event};
use std::io;
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncWriteExt, WriteHalf};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep, timeout};

/// Replies are gathered up to this size.
const BATCH_BYTES: usize = 256 << 10;

/// A longer head or body is not copied.
const COPIED_BYTES: usize = 32 << 10;

/// A reply, and what its request holds until it is sent.
pub(super) struct Outgoing {
    pub reply: Reply,
    pub held: Vec<BytePermit>,
}

/// Sends replies until no sender of replies is left; returns the socket. If a send fails, `lost` is
/// set, and further replies are dropped.
pub(super) async fn send(
    mut socket: WriteHalf<Transport>,
    mut replies: UnboundedReceiver<Outgoing>,
    budget: ExportBudget,
    lost: Event,
) -> WriteHalf<Transport> {
    let mut patience = Patience { budget, paused: Duration::ZERO, sent_bytes: 0 };
    let mut batch = Vec::new();
    while let Some(first) = replies.recv().await {
        if lost.is_set() {
            continue;
        }
        if let Err(error) =
            send_batch(&mut socket, &mut batch, first, &mut replies, &mut patience).await
        {
            tracing::debug!(%error, "NBD client lost");
            lost.set();
        }
    }
    socket
}

/// Closes a connection.
pub(super) async fn close(mut socket: WriteHalf<Transport>) {
    // A client that has gone does not need the end.
    let _ = timeout(REPLY_TIMEOUT, socket.shutdown()).await;
}

/// Sends a reply and those that wait behind it.
async fn send_batch(
    socket: &mut WriteHalf<Transport>,
    batch: &mut Vec<u8>,
    first: Outgoing,
    replies: &mut UnboundedReceiver<Outgoing>,
    patience: &mut Patience,
) -> io::Result<()> {
    batch.clear();
    patience.restart();
    let mut held = Vec::new();
    let mut next = Some(first);
    while let Some(Outgoing { reply, held: more }) = next {
        held.extend(more);
        for part in [&reply.head[..], reply.body()] {
            if part.len() <= COPIED_BYTES {
                batch.extend_from_slice(part);
            } else {
                write_all(socket, batch, patience).await?;
                batch.clear();
                write_all(socket, part, patience).await?;
            }
        }
        next = (batch.len() < BATCH_BYTES).then(|| replies.try_recv().ok()).flatten();
    }
    write_all(socket, batch, patience).await?;
    // TLS may have buffered the last part.
    timeout(REPLY_TIMEOUT, socket.flush()).await?
}

/// How long a client may take for its replies: the limits are those of RESP, and get shorter while
/// reads of the export wait.
struct Patience {
    budget: ExportBudget,
    /// Since the last progress.
    paused: Duration,
    sent_bytes: usize,
}

impl Patience {
    fn restart(&mut self) {
        (self.paused, self.sent_bytes) = (Duration::ZERO, 0);
    }

    fn sent(&mut self, bytes: usize) {
        self.sent_bytes += bytes;
        if self.sent_bytes >= PROGRESS_BYTES {
            self.restart();
        }
    }

    /// The client has taken nothing for another [`SWEEP_INTERVAL`], or less than is progress.
    fn pause(&mut self) -> io::Result<()> {
        self.paused += SWEEP_INTERVAL;
        match self.paused < reply_timeout(self.budget.waiting_reads()) {
            true => Ok(()),
            false => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Writes all, as long as the client takes some of it in time.
async fn write_all(
    socket: &mut WriteHalf<Transport>,
    mut bytes: &[u8],
    patience: &mut Patience,
) -> io::Result<()> {
    let mut next_look = pin!(sleep(SWEEP_INTERVAL));
    while !bytes.is_empty() {
        let written = tokio::select! {
            written = socket.write(bytes) => written?,
            () = &mut next_look => {
                patience.pause()?;
                next_look.as_mut().reset(Instant::now() + SWEEP_INTERVAL);
                continue;
            }
        };
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        patience.sent(written);
        bytes = bytes.get(written..).unwrap_or_default();
    }
    Ok(())
}
