//! One request on a volume, and its reply.

use super::target::Target;
use crate::seldom::Seldom;
use softflash_nbd::{ByteRange, Command, ErrorCode, Extent, Replies, Request};
use softflash_volume::VolumeError;
use std::ops::Range;

/// The status of more bytes than this is not told at once, so that the other tasks of the thread do
/// not wait for long. The client asks again for the rest.
const STATUS_BYTES: u64 = 256 << 20;

/// An encoded reply: a head, and then a part of a buffer.
#[derive(Debug, Default)]
pub(super) struct Reply {
    pub head: Vec<u8>,
    pub body: Vec<u8>,
    pub sent: Range<usize>,
}

impl From<Vec<u8>> for Reply {
    fn from(head: Vec<u8>) -> Reply {
        Reply { head, ..Reply::default() }
    }
}

impl Reply {
    /// The bytes after the head.
    pub fn body(&self) -> &[u8] {
        self.body.get(self.sent.clone()).unwrap_or_default()
    }
}

fn bytes(range: ByteRange) -> Range<u64> {
    range.offset..range.end()
}

/// Carries a request out. `payload` are the data of a write.
pub(super) async fn carry_out(
    target: &Target,
    replies: Replies,
    has_holes: bool,
    request: &Request,
    payload: &[u8],
) -> Reply {
    let outcome = match request.command {
        Command::Read { range, dont_fragment } => {
            let has_holes = has_holes && !dont_fragment;
            read(target, replies, has_holes, request, range).await
        }
        Command::BlockStatus { range, .. } => block_status(target, replies, request, range),
        _ => change(target, replies, request, payload).await,
    };
    outcome.unwrap_or_else(|(error, message)| {
        let mut head = Vec::new();
        replies.fail(request, error, &message, &mut head);
        head.into()
    })
}

type Failure = (ErrorCode, String);

fn failure(error: &VolumeError) -> Failure {
    let code = match error {
        VolumeError::OutOfSpace { .. } | VolumeError::QuotaExceeded { .. } => ErrorCode::NoSpace,
        VolumeError::ReadOnly => ErrorCode::NotPermitted,
        VolumeError::BeyondEnd { .. } | VolumeError::Unaligned { .. } => ErrorCode::Invalid,
        VolumeError::Stopped => ErrorCode::ShuttingDown,
        // Lost data, a failing device, a volume that was deleted.
        _ => ErrorCode::Io,
    };
    if code == ErrorCode::Io {
        static LINE: Seldom = Seldom::new();
        if let Some(more_before) = LINE.line() {
            tracing::warn!(%error, more_before, "a request of an NBD client failed");
        }
    }
    (code, error.to_string())
}

async fn read(
    target: &Target,
    replies: Replies,
    has_holes: bool,
    request: &Request,
    range: ByteRange,
) -> Result<Reply, Failure> {
    let failed = |error| failure(&error);
    let runs = match has_holes {
        true => target.runs(bytes(range)).map_err(failed)?,
        false => Vec::new(),
    };
    let mut head = Vec::new();
    if let [(_, false)] = runs[..] {
        target.read_hole(range.offset).await.map_err(failed)?;
        let mut reply = replies.read(request);
        reply.hole(range.bytes, &mut head);
        return end_of_read(reply, head);
    }
    let read = target.read(bytes(range)).await.map_err(failed)?;
    if runs.len() <= 1 {
        replies.whole_read(request, &mut head);
        return Ok(Reply { head, body: read.units, sent: read.wanted });
    }
    let mut data = read.units.get(read.wanted).unwrap_or_default();
    let mut reply = replies.read(request);
    for (length, is_held) in runs {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        let (part, rest) = data.split_at(data.len().min(length as usize));
        if is_held {
            reply.data(length, &mut head);
            head.extend_from_slice(part);
        } else {
            reply.hole(length, &mut head);
        }
        data = rest;
    }
    end_of_read(reply, head)
}

/// All of a structured reply is in memory, so it cannot fail after its beginning.
fn end_of_read(reply: softflash_nbd::ReadReply, mut head: Vec<u8>) -> Result<Reply, Failure> {
    match reply.finish(&mut head) {
        Ok(()) => Ok(head.into()),
        Err(error) => Err((ErrorCode::Io, error.to_string())),
    }
}

fn block_status(
    target: &Target,
    replies: Replies,
    request: &Request,
    range: ByteRange,
) -> Result<Reply, Failure> {
    let told = range.offset..range.end().min(range.offset.saturating_add(STATUS_BYTES));
    let runs = target.runs(told).map_err(|error| failure(&error))?;
    let extents = runs.into_iter().map(|(bytes, is_held)| Extent {
        bytes,
        is_hole: !is_held,
        is_zero: !is_held,
    });
    let mut head = Vec::new();
    replies.block_status(request, extents, &mut head);
    Ok(head.into())
}

async fn change(
    target: &Target,
    replies: Replies,
    request: &Request,
    payload: &[u8],
) -> Result<Reply, Failure> {
    let changed = match request.command {
        Command::Write { range } => target.write(range.offset, payload).await,
        Command::Flush => target.flush().await,
        Command::Trim { range } => target.trim(bytes(range)).await,
        Command::WriteZeroes { no_hole: true, fast: true, .. } => {
            let reason = "zeros that keep their space are no faster than a write";
            return Err((ErrorCode::NotSupported, reason.to_owned()));
        }
        Command::WriteZeroes { range, no_hole: true, .. } => target.fill(bytes(range)).await,
        Command::WriteZeroes { range, .. } => target.punch(bytes(range)).await,
        // There is no cache of volumes, and reads and their status are answered elsewhere.
        Command::Cache { .. } | Command::Read { .. } | Command::BlockStatus { .. } => Ok(()),
    };
    let durable = match changed {
        Ok(()) if request.fua => target.flush().await,
        changed => changed,
    };
    durable.map_err(|error| failure(&error))?;
    let mut head = Vec::new();
    replies.done(request, &mut head);
    Ok(head.into())
}
