//! The transmission phase: bytes to requests, however the bytes are split.
//!
//! A header is copied, because it is small. A payload is not: the owner gets the bytes where they
//! are in its input, or, once [`Transmission::payload_missing_bytes`] says how many are due, reads
//! them from the socket right into the place where they are needed.

use crate::block_size::PORTABLE_PAYLOAD_BYTES;
use crate::error::Violation;
use crate::request::{ByteRange, Cookie, RawRequest, Rejection, Request};
use crate::session::Session;
use crate::validation;
use crate::wire::{Fields, cmd, magic};
use softflash_base::cast;

const HEADER_BYTES: usize = 28;

/// The parser of a client's requests.
#[derive(Debug)]
pub struct Transmission {
    session: Session,
    header: [u8; HEADER_BYTES],
    header_filled: usize,
    stage: Stage,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Header,
    Payload { missing_bytes: u32 },
    Skip { missing_bytes: u32 },
    Disconnected,
    Violated(Violation),
}

/// What the bytes of a client mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// The input is used up.
    NeedInput,
    /// A valid request. The payload of a write follows in [`Event::Payload`].
    Request(Request),
    /// The next bytes of the payload of the last request.
    Payload {
        /// Not empty.
        bytes: &'a [u8],
        /// Whether the payload is complete.
        is_last: bool,
    },
    /// A request to be answered with an error.
    Rejected(Rejection),
    /// The client goes: handle all outstanding requests, shut down TLS if it is running, and close
    /// the connection. There is no reply to this, and no request after it.
    Disconnect,
}

impl Transmission {
    /// The parser after a handshake with this result.
    pub fn new(session: Session) -> Transmission {
        Transmission { session, header: [0; HEADER_BYTES], header_filled: 0, stage: Stage::Header }
    }

    /// What the handshake has agreed.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Takes one event from the front of the input. After a violation the connection has to be
    /// closed; every further call returns it again.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Event<'a>, Violation> {
        loop {
            match self.stage {
                Stage::Header => match self.take_header(input) {
                    Some(header) => return self.begin(header),
                    None => return Ok(Event::NeedInput),
                },
                Stage::Payload { missing_bytes } => {
                    let bytes = take(input, missing_bytes);
                    if bytes.is_empty() {
                        return Ok(Event::NeedInput);
                    }
                    self.payload_received(cast::saturating_u32(bytes.len()));
                    return Ok(Event::Payload {
                        bytes,
                        is_last: self.payload_missing_bytes() == 0,
                    });
                }
                Stage::Skip { missing_bytes } => {
                    let skipped = cast::saturating_u32(take(input, missing_bytes).len());
                    match missing_bytes - skipped {
                        0 => self.stage = Stage::Header,
                        missing_bytes => {
                            self.stage = Stage::Skip { missing_bytes };
                            return Ok(Event::NeedInput);
                        }
                    }
                }
                Stage::Disconnected => {
                    *input = &[];
                    return Ok(Event::Disconnect);
                }
                Stage::Violated(violation) => return Err(violation),
            }
        }
    }

    /// The bytes of payload that the last request, a write, still needs.
    pub fn payload_missing_bytes(&self) -> u32 {
        match self.stage {
            Stage::Payload { missing_bytes } => missing_bytes,
            _ => 0,
        }
    }

    /// The owner has read this many bytes of the payload by itself, after it had used up the input.
    ///
    /// # Panics
    /// If more than [`Transmission::payload_missing_bytes`].
    pub fn payload_received(&mut self, bytes: u32) {
        let missing = self.payload_missing_bytes();
        assert!(bytes <= missing, "{bytes} bytes of payload, but only {missing} belong to it");
        if missing > 0 {
            self.stage = match missing - bytes {
                0 => Stage::Header,
                missing_bytes => Stage::Payload { missing_bytes },
            };
        }
    }

    /// A complete header.
    fn take_header(&mut self, input: &mut &[u8]) -> Option<[u8; HEADER_BYTES]> {
        let missing = HEADER_BYTES - self.header_filled;
        let bytes = take(input, cast::saturating_u32(missing));
        let filled = self.header_filled + bytes.len();
        self.header.get_mut(self.header_filled..filled)?.copy_from_slice(bytes);
        self.header_filled = filled % HEADER_BYTES;
        (filled == HEADER_BYTES).then_some(self.header)
    }

    /// Begins the request with this header.
    fn begin(&mut self, header: [u8; HEADER_BYTES]) -> Result<Event<'static>, Violation> {
        let (found, raw) = parse(&header).unwrap_or_default();
        if found != magic::REQUEST {
            return Err(self.violated(Violation::NotARequest(found)));
        }
        if raw.kind == cmd::DISC {
            self.stage = Stage::Disconnected;
            return Ok(Event::Disconnect);
        }
        let most = self.session.export.block_sizes.max_payload_bytes().max(PORTABLE_PAYLOAD_BYTES);
        let bytes = if raw.kind == cmd::WRITE { raw.range.bytes } else { 0 };
        if bytes > most {
            return Err(self.violated(Violation::PayloadTooLong { bytes, most }));
        }
        match validation::check(&self.session, &raw) {
            Ok(request) => {
                if bytes > 0 {
                    self.stage = Stage::Payload { missing_bytes: bytes };
                }
                Ok(Event::Request(request))
            }
            Err(rejection) => {
                self.stage = Stage::Skip { missing_bytes: bytes };
                Ok(Event::Rejected(rejection))
            }
        }
    }

    fn violated(&mut self, violation: Violation) -> Violation {
        self.stage = Stage::Violated(violation);
        violation
    }
}

/// The magic number and the fields of a header. There are always enough bytes.
fn parse(header: &[u8; HEADER_BYTES]) -> Option<(u32, RawRequest)> {
    let mut fields = Fields(header);
    let (magic, flags, kind) = (fields.u32()?, fields.u16()?, fields.u16()?);
    let cookie = Cookie(fields.u64()?);
    let range = ByteRange { offset: fields.u64()?, bytes: fields.u32()? };
    Some((magic, RawRequest { flags, kind, cookie, range }))
}

/// Up to `most` bytes from the front.
fn take<'a>(input: &mut &'a [u8], most: u32) -> &'a [u8] {
    let (head, rest) = input.split_at(input.len().min(cast::index(most)));
    *input = rest;
    head
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::Export;
    use crate::request::Command;

    fn transmission() -> Transmission {
        let export = Export { size_bytes: 1 << 16, ..Export::default() };
        Transmission::new(Session { export, structured: false, allocation_context: None })
    }

    fn header(kind: u16, cookie: u64, offset: u64, bytes: u32) -> Vec<u8> {
        let mut header = magic::REQUEST.to_be_bytes().to_vec();
        header.extend([0, 0]);
        header.extend(kind.to_be_bytes());
        header.extend(cookie.to_be_bytes());
        header.extend(offset.to_be_bytes());
        header.extend(bytes.to_be_bytes());
        header
    }

    #[test]
    fn a_payload_is_given_where_it_is_in_the_input() {
        let mut input = header(cmd::WRITE, 1, 0, 4);
        input.extend(*b"abcd");
        let (mut rest, mut parser) = (&input[..30], transmission());
        let range = ByteRange { offset: 0, bytes: 4 };
        let command = Command::Write { range };
        let request = Request { cookie: Cookie(1), fua: false, command };
        assert_eq!(parser.next(&mut rest), Ok(Event::Request(request)));
        assert_eq!(parser.payload_missing_bytes(), 4);
        let Ok(Event::Payload { bytes, is_last: false }) = parser.next(&mut rest) else { panic!() };
        assert_eq!(bytes.as_ptr(), input[28..].as_ptr());
        assert_eq!(parser.next(&mut rest), Ok(Event::NeedInput));
        let mut rest = &input[30..];
        let last = Event::Payload { bytes: b"cd", is_last: true };
        assert_eq!(parser.next(&mut rest), Ok(last));
        assert_eq!(parser.next(&mut rest), Ok(Event::NeedInput));
    }

    #[test]
    fn the_owner_can_read_a_payload_into_its_own_buffer() {
        let mut parser = transmission();
        assert!(matches!(
            parser.next(&mut &header(cmd::WRITE, 1, 0, 10)[..]),
            Ok(Event::Request(_))
        ));
        parser.payload_received(3);
        assert_eq!(parser.payload_missing_bytes(), 7);
        parser.payload_received(7);
        assert_eq!(parser.payload_missing_bytes(), 0);
        assert!(matches!(
            parser.next(&mut &header(cmd::READ, 2, 0, 1)[..]),
            Ok(Event::Request(Request { cookie: Cookie(2), .. }))
        ));
        parser.payload_received(0);
        assert_eq!(parser.next(&mut &[][..]), Ok(Event::NeedInput));
    }

    #[test]
    #[should_panic(expected = "11 bytes of payload, but only 10 belong to it")]
    fn more_payload_than_the_request_has_is_a_mistake_of_the_owner() {
        let mut parser = transmission();
        let _ = parser.next(&mut &header(cmd::WRITE, 1, 0, 10)[..]);
        parser.payload_received(11);
    }
}
