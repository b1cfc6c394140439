//! A whole server over a volume in memory.

use crate::client::{Table, export};
use softflash_nbd::{
    Command, ErrorCode, Event, Extent, HandshakeLimits, Negotiation, Output, Replies, Request,
    Session, Step, TlsMode, Transmission, Violation,
};

pub struct Disk {
    pub bytes: Vec<u8>,
    pub table: Table,
    handshake: Negotiation,
    transmission: Option<Transmission>,
    /// The write whose payload is being received, and its position.
    write: Option<(Request, usize)>,
    pub requests: Vec<Request>,
    pub violation: Option<Violation>,
    pub is_closed: bool,
}

impl Disk {
    pub fn new() -> Disk {
        Disk {
            bytes: vec![0; 1 << 20],
            table: Table { exports: vec![export("vol")], is_listed: true },
            handshake: Negotiation::new(TlsMode::Off, HandshakeLimits::default()),
            transmission: None,
            write: None,
            requests: Vec::new(),
            violation: None,
            is_closed: false,
        }
    }

    /// After a handshake.
    pub fn with_session(session: Session) -> Disk {
        Disk { transmission: Some(Transmission::new(session)), ..Disk::new() }
    }

    /// Receives bytes and returns what is sent.
    pub fn feed(&mut self, mut input: &[u8]) -> Vec<u8> {
        let mut output = Vec::new();
        while !input.is_empty() && !self.is_closed {
            let Some(mut transmission) = self.transmission.take() else {
                match self.handshake.advance(&mut input, &self.table, &mut output) {
                    Step::Continue => {}
                    Step::Begin(session) => self.transmission = Some(Transmission::new(session)),
                    Step::Close(_) => self.is_closed = true,
                    Step::StartTls => panic!("there is no TLS"),
                }
                continue;
            };
            self.transmit(&mut transmission, &mut input, &mut output);
            self.transmission = Some(transmission);
        }
        output
    }

    fn transmit(&mut self, from: &mut Transmission, input: &mut &[u8], output: &mut Vec<u8>) {
        let replies = from.session().replies();
        loop {
            match from.next(input) {
                Ok(Event::NeedInput) => return,
                Ok(Event::Request(request)) => {
                    self.requests.push(request);
                    match request.command {
                        Command::Write { range } => {
                            self.write = Some((request, usize::try_from(range.offset).unwrap()));
                        }
                        _ => self.carry_out(&replies, &request, output),
                    }
                }
                Ok(Event::Payload { bytes, is_last }) => {
                    let (request, at) = self.write.as_mut().unwrap();
                    self.bytes[*at..*at + bytes.len()].copy_from_slice(bytes);
                    *at += bytes.len();
                    if is_last {
                        replies.done(request, output);
                        self.write = None;
                    }
                }
                Ok(Event::Rejected(rejection)) => replies.reject(&rejection, output),
                Ok(Event::Disconnect) => {
                    self.is_closed = true;
                    return;
                }
                Err(violation) => {
                    (self.is_closed, self.violation) = (true, Some(violation));
                    return;
                }
            }
        }
    }

    fn carry_out(&mut self, replies: &Replies, request: &Request, output: &mut Vec<u8>) {
        let range = request.command.range().unwrap_or_default();
        let part = usize::try_from(range.offset).unwrap()..usize::try_from(range.end()).unwrap();
        match request.command {
            Command::Read { .. } => {
                replies.whole_read(request, output);
                output.put(&self.bytes[part]);
            }
            Command::WriteZeroes { fast: true, .. } => {
                replies.fail(request, ErrorCode::NotSupported, "not faster", output);
            }
            Command::WriteZeroes { .. } => {
                self.bytes[part].fill(0);
                replies.done(request, output);
            }
            Command::BlockStatus { .. } => {
                let blocks = self.bytes[part].chunks(512);
                let extents = blocks.map(|block| Extent {
                    bytes: 512,
                    is_hole: false,
                    is_zero: block.iter().all(|byte| *byte == 0),
                });
                replies.block_status(request, extents, output);
            }
            _ => replies.done(request, output),
        }
    }
}
