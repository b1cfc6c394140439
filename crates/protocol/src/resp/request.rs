//! The request parser: turns the bytes of a connection into requests, however the bytes are split.
//!
//! Arguments are slices of the connection's buffer; no argument is copied, and a request with few
//! arguments allocates nothing. An argument of [`LARGE_ARGUMENT_BYTES`] or more gets a buffer of
//! exactly its size that the socket reads into directly. Memory beyond a small allowance is
//! requested by [`Parsed::Need`] before any of it is used, so that the server can reserve it first.

use crate::resp::inline::split_words;
use crate::resp::number::parse_i64;
use bytes::buf::Limit;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use smallvec::SmallVec;
use softflash_store::value::DEFAULT_VALUE_BYTES;
use thiserror::Error;

/// The words of a request: a command and its arguments.
pub type Args = SmallVec<[Bytes; 4]>;

/// Arguments of at least this length, in bytes, get a buffer of their own.
pub const LARGE_ARGUMENT_BYTES: usize = 64 << 10;
/// Bytes of a request that need no reservation.
pub const FREE_REQUEST_BYTES: u64 = 64 << 10;
/// Maximum length of an inline command or a header line, in bytes.
pub const MAX_LINE_BYTES: usize = 64 << 10;
/// Maximum number of arguments of a request.
pub const MAX_ARGUMENTS: i64 = 1 << 20;
/// Maximum length of an argument that is discarded; with a longer one, the input is not RESP.
const MAX_DISCARDED_BYTES: usize = u32::MAX as usize;
/// Maximum number of arguments before authentication.
pub const MAX_ARGUMENTS_UNAUTHENTICATED: i64 = 10;
/// Maximum bytes of all arguments before authentication, and of an incomplete request.
pub const MAX_BYTES_UNAUTHENTICATED: usize = 16 << 10;

/// Overhead of an argument in bytes.
const ARGUMENT_OVERHEAD_BYTES: u64 = size_of::<Bytes>() as u64;
/// Length of a line end; like Redis, the parser does not check the two bytes after an argument.
const LINE_END_BYTES: usize = 2;
const SMALLEST_READ_BYTES: usize = 16 << 10;
const LARGEST_READ_BYTES: usize = 64 << 10;
/// The next reads are smaller after this many in a row that would have fitted into a quarter. One
/// alone may be the rest of a pipeline that was larger than the read before.
const SMALL_READS: u8 = 8;

/// A parsed request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The command and its arguments; never empty if it is from the parser.
    pub args: Args,
    /// Bytes admitted for it; they may be released once it has run.
    pub admitted_bytes: u64,
    /// The error that it gets instead of being run. Then it has at most its first word.
    pub refused: Option<String>,
}

/// Result of parsing.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A complete request.
    Request(Request),
    /// More input is needed.
    Incomplete,
    /// The request continues with an argument that needs this many bytes; call
    /// [`RequestParser::admit`] once they are reserved.
    Need {
        /// Bytes to reserve.
        bytes: u64,
    },
}

/// Input that is not RESP. The connection gets this as an error and is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// The number of arguments is not a number or out of range.
    #[error("Protocol error: invalid multibulk length")]
    InvalidMultibulkLength,
    /// The length of an argument is not a number or out of range.
    #[error("Protocol error: invalid bulk length")]
    InvalidBulkLength,
    /// An argument does not start with `$`.
    #[error("Protocol error: expected '$', got '{}'", char::from(*.0))]
    ExpectedBulk(u8),
    /// A line that is too long.
    #[error("Protocol error: too big inline request")]
    InlineTooLong,
    /// A header that is too long.
    #[error("Protocol error: too big mbulk count string")]
    MultibulkHeaderTooLong,
    /// A header that is too long.
    #[error("Protocol error: too big bulk count string")]
    BulkHeaderTooLong,
    /// An inline command with unbalanced quotes.
    #[error("Protocol error: unbalanced quotes in request")]
    UnbalancedQuotes,
    /// Too many arguments from a client that has not authenticated.
    #[error("Protocol error: unauthenticated multibulk length")]
    UnauthenticatedMultibulkLength,
    /// An argument that is too long for a client that has not authenticated.
    #[error("Protocol error: unauthenticated bulk length")]
    UnauthenticatedBulkLength,
}

impl ProtocolError {
    /// The text of the reply, with the offending byte unchanged.
    pub fn text(&self) -> Vec<u8> {
        match self {
            ProtocolError::ExpectedBulk(byte) => {
                let mut text = b"Protocol error: expected '$', got '".to_vec();
                text.push(if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte });
                text.push(b'\'');
                text
            }
            other => other.to_string().into_bytes(),
        }
    }
}

/// A large argument being received: its bytes and the line end after them.
struct Large {
    buffer: BytesMut,
    whole_bytes: usize,
}

impl Large {
    fn missing_bytes(&self) -> usize {
        self.whole_bytes - self.buffer.len()
    }
}

/// The parser of one connection.
pub struct RequestParser {
    buffer: BytesMut,
    /// Length of the prefix of `buffer` that is known to contain no line end.
    scanned_bytes: usize,
    args: Args,
    missing_args: usize,
    /// Bytes of the arguments so far, for a client that has not authenticated.
    declared_bytes: usize,
    /// Declared length of the next argument.
    body_bytes: Option<usize>,
    large: Option<Large>,
    /// Maximum length of an argument.
    max_argument_bytes: usize,
    /// The error of the current request, whose arguments are discarded.
    refused: Option<String>,
    /// Bytes of the current argument that were discarded.
    discarded_bytes: usize,
    /// Bytes of each request that need no reservation.
    free_bytes: u64,
    credit_bytes: u64,
    admitted_bytes: u64,
    wanted_bytes: u64,
    read_bytes: usize,
    /// Reads in a row that were much smaller.
    small_reads: u8,
    length_before_read: Option<usize>,
}

impl Default for RequestParser {
    fn default() -> RequestParser {
        RequestParser::with_free_bytes(FREE_REQUEST_BYTES)
    }
}

impl RequestParser {
    /// A parser for a new connection.
    pub fn new() -> RequestParser {
        RequestParser::default()
    }

    /// A parser that requests memory for a request of more than `free_bytes`.
    pub fn with_free_bytes(free_bytes: u64) -> RequestParser {
        RequestParser {
            buffer: BytesMut::new(),
            scanned_bytes: 0,
            args: Args::new(),
            missing_args: 0,
            declared_bytes: 0,
            body_bytes: None,
            large: None,
            max_argument_bytes: DEFAULT_VALUE_BYTES,
            refused: None,
            discarded_bytes: 0,
            free_bytes,
            credit_bytes: free_bytes,
            admitted_bytes: 0,
            wanted_bytes: 0,
            read_bytes: SMALLEST_READ_BYTES,
            small_reads: 0,
            length_before_read: None,
        }
    }

    /// A parser that discards requests with longer arguments, and answers them with an error.
    pub fn with_max_argument_bytes(self, max_argument_bytes: usize) -> RequestParser {
        RequestParser { max_argument_bytes, ..self }
    }

    /// The buffer for the next bytes of the connection: the connection's buffer, or that of a large
    /// argument. It always has room for at least one byte.
    pub fn read_target(&mut self) -> Limit<&mut BytesMut> {
        let missing = self.large.as_ref().map_or(0, Large::missing_bytes);
        if missing == 0 {
            self.make_room();
        }
        match &mut self.large {
            Some(large) if missing > 0 => (&mut large.buffer).limit(missing),
            _ => {
                let room = self.buffer.capacity() - self.buffer.len();
                (&mut self.buffer).limit(room)
            }
        }
    }

    fn make_room(&mut self) {
        self.adapt_read_size();
        self.buffer.reserve(self.read_bytes);
        self.length_before_read = Some(self.buffer.len());
    }

    /// A connection that fills its reads gets larger ones; an idle one releases the memory.
    fn adapt_read_size(&mut self) {
        let Some(before) = self.length_before_read.take() else { return };
        let got = self.buffer.len().saturating_sub(before);
        self.small_reads = if got < self.read_bytes / 4 { self.small_reads + 1 } else { 0 };
        if got >= self.read_bytes {
            self.read_bytes = (self.read_bytes * 2).min(LARGEST_READ_BYTES);
        } else if self.small_reads == SMALL_READS {
            self.read_bytes = (self.read_bytes / 2).max(SMALLEST_READ_BYTES);
            self.small_reads = 0;
        }
    }

    /// Frees the buffer between two requests; the size of the next read stays.
    pub fn free_buffer(&mut self) {
        self.buffer = BytesMut::new();
        self.scanned_bytes = 0;
    }

    /// The next read is small again, as for a client that has not authenticated.
    pub fn read_little(&mut self) {
        self.read_bytes = SMALLEST_READ_BYTES;
        self.length_before_read = None;
    }

    /// Adds input that is already in memory, like a socket that uses
    /// [`read_target`](Self::read_target).
    pub fn feed(&mut self, mut input: &[u8]) {
        while !input.is_empty() {
            let mut target = self.read_target();
            let length = input.len().min(target.remaining_mut());
            let (now, later) = input.split_at(length);
            target.put_slice(now);
            input = later;
        }
    }

    /// Grants the request of the last [`Parsed::Need`].
    pub fn admit(&mut self) {
        self.credit_bytes += self.wanted_bytes;
        self.admitted_bytes += self.wanted_bytes;
        self.wanted_bytes = 0;
    }

    /// Refuses the current request: what has arrived of it is dropped, what follows is discarded as
    /// it arrives, and then the request is returned with this error.
    pub fn refuse(&mut self, error: String) {
        self.refused.get_or_insert(error);
        self.args.truncate(1);
        // The word may be a part of a larger buffer.
        self.args.iter_mut().for_each(|name| *name = Bytes::copy_from_slice(name));
        self.discarded_bytes = self.large.take().map_or(0, |large| large.buffer.len());
        (self.wanted_bytes, self.admitted_bytes) = (0, 0);
    }

    /// Bytes admitted for the current request.
    pub fn admitted_bytes(&self) -> u64 {
        self.admitted_bytes
    }

    /// Bytes received and not yet parsed.
    pub fn buffered_bytes(&self) -> usize {
        self.buffer.len() + self.large.as_ref().map_or(0, |large| large.buffer.len())
    }

    /// The next request, or what is missing.
    ///
    /// # Errors
    /// [`ProtocolError`] where the input is not RESP; the rest of the input cannot be parsed.
    pub fn next(&mut self, authenticated: bool) -> Result<Parsed, ProtocolError> {
        // Before the requests are taken out of the buffer.
        self.adapt_read_size();
        loop {
            if self.missing_args == 0 {
                match self.buffer.first() {
                    None => return Ok(Parsed::Incomplete),
                    Some(b'*') => {
                        if !self.multibulk_header(authenticated)? {
                            return Ok(Parsed::Incomplete);
                        }
                    }
                    Some(_) => match self.inline_command(authenticated)? {
                        None => return Ok(Parsed::Incomplete),
                        Some(args) if args.is_empty() => {}
                        Some(args) => {
                            return Ok(Parsed::Request(Request { args, ..Request::default() }));
                        }
                    },
                }
                continue;
            }
            let body_bytes = match self.body_bytes {
                Some(bytes) => bytes,
                None => match self.bulk_header(authenticated)? {
                    Some(bytes) => *self.body_bytes.insert(bytes),
                    None => return Ok(Parsed::Incomplete),
                },
            };
            if self.refused.is_none() && body_bytes > self.max_argument_bytes {
                self.refuse(too_long(body_bytes, self.max_argument_bytes));
            }
            if self.refused.is_some() {
                if !self.discard(body_bytes) {
                    return Ok(Parsed::Incomplete);
                }
            } else {
                if self.large.is_none() && !self.pay(body_bytes) {
                    return Ok(Parsed::Need { bytes: self.wanted_bytes });
                }
                let Some(argument) = self.argument(body_bytes) else {
                    return Ok(Parsed::Incomplete);
                };
                self.args.push(argument);
            }
            self.body_bytes = None;
            self.missing_args -= 1;
            if self.missing_args == 0 {
                return Ok(Parsed::Request(self.finish()));
            }
        }
    }

    fn finish(&mut self) -> Request {
        self.credit_bytes = self.free_bytes;
        Request {
            args: std::mem::take(&mut self.args),
            admitted_bytes: std::mem::take(&mut self.admitted_bytes),
            refused: self.refused.take(),
        }
    }

    /// Drops what has arrived of an argument; true at its end.
    fn discard(&mut self, body_bytes: usize) -> bool {
        let missing = body_bytes + LINE_END_BYTES - self.discarded_bytes;
        let here = missing.min(self.buffer.len());
        self.buffer.advance(here);
        self.discarded_bytes = if here == missing { 0 } else { self.discarded_bytes + here };
        here == missing
    }

    /// Charges an argument to the request's allowance: a large one before its body is received, a
    /// small one when it is complete. False where more must be admitted first.
    fn pay(&mut self, body_bytes: usize) -> bool {
        let cost = body_bytes as u64 + ARGUMENT_OVERHEAD_BYTES;
        let Some(rest) = self.credit_bytes.checked_sub(cost) else {
            self.wanted_bytes = (cost - self.credit_bytes).max(self.free_bytes);
            return false;
        };
        let whole_bytes = body_bytes + LINE_END_BYTES;
        if body_bytes >= LARGE_ARGUMENT_BYTES {
            self.credit_bytes = rest;
            let buffer = BytesMut::with_capacity(whole_bytes);
            self.large = Some(Large { buffer, whole_bytes });
        } else if self.buffer.len() >= whole_bytes {
            self.credit_bytes = rest;
        }
        true
    }

    /// The body of the argument, if it is complete.
    fn argument(&mut self, body_bytes: usize) -> Option<Bytes> {
        let Some(mut large) = self.large.take() else {
            if self.buffer.len() < body_bytes + LINE_END_BYTES {
                return None;
            }
            let argument = self.buffer.split_to(body_bytes).freeze();
            self.buffer.advance(LINE_END_BYTES);
            return Some(argument);
        };
        let here = large.missing_bytes().min(self.buffer.len());
        large.buffer.extend_from_slice(&self.buffer.split_to(here));
        if large.missing_bytes() > 0 {
            self.large = Some(large);
            return None;
        }
        large.buffer.truncate(body_bytes);
        Some(large.buffer.freeze())
    }

    /// Parses `*COUNT`; false where the line is incomplete.
    fn multibulk_header(&mut self, authenticated: bool) -> Result<bool, ProtocolError> {
        let Some(end) = self.header_end(ProtocolError::MultibulkHeaderTooLong, authenticated)?
        else {
            return Ok(false);
        };
        let count = self.buffer.get(1..end).and_then(parse_i64);
        let count = count
            .filter(|count| *count <= MAX_ARGUMENTS)
            .ok_or(ProtocolError::InvalidMultibulkLength)?;
        if count > MAX_ARGUMENTS_UNAUTHENTICATED && !authenticated {
            return Err(ProtocolError::UnauthenticatedMultibulkLength);
        }
        self.buffer.advance(end + LINE_END_BYTES);
        self.missing_args = usize::try_from(count).unwrap_or(0);
        self.declared_bytes = 0;
        Ok(true)
    }

    /// Parses `$LENGTH`; none where the line is incomplete.
    fn bulk_header(&mut self, authenticated: bool) -> Result<Option<usize>, ProtocolError> {
        let Some(end) = self.header_end(ProtocolError::BulkHeaderTooLong, authenticated)? else {
            return Ok(None);
        };
        match self.buffer.first() {
            Some(b'$') => {}
            other => return Err(ProtocolError::ExpectedBulk(other.copied().unwrap_or_default())),
        }
        let length = self.buffer.get(1..end).and_then(parse_i64);
        let length = length
            .and_then(|length| usize::try_from(length).ok())
            .filter(|length| *length <= MAX_DISCARDED_BYTES)
            .ok_or(ProtocolError::InvalidBulkLength)?;
        if !authenticated {
            self.declared_bytes = self.declared_bytes.saturating_add(length);
            if self.declared_bytes > MAX_BYTES_UNAUTHENTICATED {
                return Err(ProtocolError::UnauthenticatedBulkLength);
            }
        }
        self.buffer.advance(end + LINE_END_BYTES);
        Ok(Some(length))
    }

    /// The position of the header line's `\r`, if it and the byte after it have been received.
    fn header_end(
        &mut self,
        too_long: ProtocolError,
        authenticated: bool,
    ) -> Result<Option<usize>, ProtocolError> {
        let longest = longest_line(authenticated);
        match self.find(b'\r') {
            Some(end) if end > longest => Err(too_long),
            Some(end) if end + LINE_END_BYTES <= self.buffer.len() => {
                self.scanned_bytes = 0;
                Ok(Some(end))
            }
            Some(end) => {
                self.scanned_bytes = end;
                Ok(None)
            }
            None if self.buffer.len() > longest => Err(too_long),
            None => Ok(None),
        }
    }

    fn find(&mut self, byte: u8) -> Option<usize> {
        let scanned = self.scanned_bytes;
        let found = memchr::memchr(byte, self.buffer.get(scanned..)?);
        self.scanned_bytes = self.buffer.len();
        found.map(|at| at + scanned)
    }

    /// A line of words, if it is complete.
    fn inline_command(&mut self, authenticated: bool) -> Result<Option<Args>, ProtocolError> {
        let longest = longest_line(authenticated);
        let Some(end) = self.find(b'\n').filter(|end| *end <= longest) else {
            let too_long = self.buffer.len() > longest;
            return if too_long { Err(ProtocolError::InlineTooLong) } else { Ok(None) };
        };
        self.scanned_bytes = 0;
        let line = self.buffer.split_to(end + 1);
        let line = line.get(..end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let most = if authenticated { MAX_ARGUMENTS } else { MAX_ARGUMENTS_UNAUTHENTICATED };
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        match split_words(line, most).ok_or(ProtocolError::UnbalancedQuotes)? {
            words if words.len() > most => Err(ProtocolError::UnauthenticatedMultibulkLength),
            words => Ok(Some(words)),
        }
    }
}

/// The error of an argument that is too long.
fn too_long(bytes: usize, limit: usize) -> String {
    format!(
        "ERR string exceeds maximum allowed size (proto-max-bulk-len): an argument of {bytes} \
         bytes, at most {limit}; `softflash serve --proto-max-bulk-len` raises the limit"
    )
}

/// Maximum length of a line.
fn longest_line(authenticated: bool) -> usize {
    if authenticated { MAX_LINE_BYTES } else { MAX_BYTES_UNAUTHENTICATED }
}
