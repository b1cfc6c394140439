//! Which requests are valid, and the error for the others.

use crate::error::ErrorCode;
use crate::request::{ByteRange, Command, RawRequest, Rejection, Request};
use crate::session::Session;
use crate::wire::{cmd, cmd_flag};

type Refusal = (ErrorCode, &'static str);

/// Checks a request against the session. A disconnect is not a request in this sense.
pub(crate) fn check(session: &Session, raw: &RawRequest) -> Result<Request, Rejection> {
    let reject = |(error, reason)| Rejection { cookie: raw.cookie, error, reason };
    let command = command(session, raw).map_err(reject)?;
    let fua = raw.flags & cmd_flag::FUA != 0;
    Ok(Request { cookie: raw.cookie, fua, command })
}

fn command(session: &Session, raw: &RawRequest) -> Result<Command, Refusal> {
    let (range, offers) = (raw.range, session.export.offers());
    let has = |flag| raw.flags & flag != 0;
    let writes = [cmd::WRITE, cmd::TRIM, cmd::WRITE_ZEROES].contains(&raw.kind);
    if writes && session.export.read_only {
        return Err((ErrorCode::NotPermitted, "the export is read-only"));
    }
    let df = if session.structured { cmd_flag::DF } else { 0 };
    let fast_zero = if offers.fast_zero { cmd_flag::FAST_ZERO } else { 0 };
    let (is_offered, flags, command) = match raw.kind {
        cmd::READ => (true, df, Command::Read { range, dont_fragment: has(cmd_flag::DF) }),
        cmd::WRITE => (true, 0, Command::Write { range }),
        cmd::FLUSH => (offers.flush, 0, Command::Flush),
        cmd::TRIM => (offers.trim, 0, Command::Trim { range }),
        cmd::CACHE => (offers.cache, 0, Command::Cache { range }),
        cmd::WRITE_ZEROES => {
            let (no_hole, fast) = (has(cmd_flag::NO_HOLE), has(cmd_flag::FAST_ZERO));
            let command = Command::WriteZeroes { range, no_hole, fast };
            (offers.write_zeroes, cmd_flag::NO_HOLE | fast_zero, command)
        }
        cmd::BLOCK_STATUS => {
            let command = Command::BlockStatus { range, one_extent: has(cmd_flag::REQ_ONE) };
            (session.has_block_status(), cmd_flag::REQ_ONE, command)
        }
        _ => return Err((ErrorCode::Invalid, "unknown command")),
    };
    if !is_offered {
        return Err((ErrorCode::Invalid, "the command was not negotiated"));
    }
    let fua = if offers.fua { cmd_flag::FUA } else { 0 };
    if raw.flags & !(flags | fua) != 0 {
        return Err((ErrorCode::Invalid, "a flag that is unknown or not for this command"));
    }
    match command {
        Command::Flush if range != (ByteRange { offset: 0, bytes: 0 }) => {
            Err((ErrorCode::Invalid, "offset and length of a flush must be 0"))
        }
        Command::Flush => Ok(command),
        _ => check_range(session, &command, range).map(|()| command),
    }
}

fn check_range(session: &Session, command: &Command, range: ByteRange) -> Result<(), Refusal> {
    let sizes = session.export.block_sizes;
    let end = range.offset.checked_add(u64::from(range.bytes));
    if end.is_none_or(|end| end > session.export.size_bytes) {
        let writes = matches!(command, Command::Write { .. } | Command::WriteZeroes { .. });
        let error = if writes { ErrorCode::NoSpace } else { ErrorCode::Invalid };
        return Err((error, "beyond the end of the export"));
    }
    if range.bytes == 0 {
        return Err((ErrorCode::Invalid, "a length of 0"));
    }
    let minimum = u64::from(sizes.minimum_bytes());
    if !range.offset.is_multiple_of(minimum) || !u64::from(range.bytes).is_multiple_of(minimum) {
        return Err((ErrorCode::Invalid, "not aligned to the minimum block size"));
    }
    // A too long request has this error only where the client can ask for unfragmented reads.
    let too_long = range.bytes > sizes.max_payload_bytes();
    match command {
        Command::Read { .. } if too_long && session.structured => {
            Err((ErrorCode::Overflow, "longer than the maximum payload"))
        }
        Command::Read { .. } | Command::Write { .. } if too_long => {
            Err((ErrorCode::Invalid, "longer than the maximum payload"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_size::BlockSizes;
    use crate::export::{Export, Features};
    use crate::request::Cookie;

    fn session() -> Session {
        let features = Features { flush: true, trim: true, cache: true, ..Features::default() };
        let block_sizes = BlockSizes::new(512, 4096, 65_536).unwrap();
        let export = Export { size_bytes: 1 << 20, features, block_sizes, ..Export::default() };
        Session { export, structured: false, allocation_context: None }
    }

    fn error(session: &Session, kind: u16, flags: u16, offset: u64, bytes: u32) -> Option<u32> {
        let range = ByteRange { offset, bytes };
        let raw = RawRequest { flags, kind, cookie: Cookie(7), range };
        check(session, &raw).err().map(|rejection| rejection.error.number())
    }

    #[test]
    fn the_last_block_is_within_the_export_and_the_next_is_not() {
        let last = (1 << 20) - 512;
        assert_eq!(error(&session(), cmd::READ, 0, last, 512), None);
        assert_eq!(error(&session(), cmd::READ, 0, last, 1024), Some(22));
        assert_eq!(error(&session(), cmd::WRITE, 0, last, 1024), Some(28));
        assert_eq!(error(&session(), cmd::WRITE, 0, u64::MAX - 511, 512), Some(28));
        assert_eq!(error(&session(), cmd::TRIM, 0, 1 << 20, 512), Some(22));
    }

    #[test]
    fn offsets_and_lengths_are_aligned() {
        assert_eq!(error(&session(), cmd::READ, 0, 511, 512), Some(22));
        assert_eq!(error(&session(), cmd::WRITE, 0, 512, 511), Some(22));
        assert_eq!(error(&session(), cmd::CACHE, 0, 512, 0), Some(22));
    }

    #[test]
    fn only_commands_with_a_payload_are_limited_in_length() {
        assert_eq!(error(&session(), cmd::READ, 0, 0, 65_536), None);
        assert_eq!(error(&session(), cmd::READ, 0, 0, 65_536 + 512), Some(22));
        assert_eq!(error(&session(), cmd::WRITE, 0, 0, 65_536 + 512), Some(22));
        assert_eq!(error(&session(), cmd::TRIM, 0, 0, 1 << 20), None);
        let structured = Session { structured: true, ..session() };
        assert_eq!(error(&structured, cmd::READ, 0, 0, 65_536 + 512), Some(75));
    }

    #[test]
    fn a_command_or_flag_that_was_not_offered_is_invalid() {
        assert_eq!(error(&session(), cmd::WRITE_ZEROES, 0, 0, 512), Some(22));
        assert_eq!(error(&session(), cmd::BLOCK_STATUS, 0, 0, 512), Some(22));
        assert_eq!(error(&session(), cmd::WRITE, cmd_flag::FUA, 0, 512), Some(22));
        assert_eq!(error(&session(), cmd::READ, cmd_flag::DF, 0, 512), Some(22));
        assert_eq!(error(&session(), 8, 0, 0, 512), Some(22));
    }
}
