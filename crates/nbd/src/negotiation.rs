//! The handshake: greeting, client flags, and options, however the bytes are split.

use crate::error::CloseReason;
use crate::export::Exports;
use crate::haggling::{Haggling, Outcome};
use crate::limits::HandshakeLimits;
use crate::session::Session;
use crate::tls::TlsMode;
use crate::wire::{Fields, handshake, magic};
use softflash_base::cast;

const CLIENT_FLAGS_BYTES: u32 = 4;
const OPTION_HEADER_BYTES: u32 = 16;

/// The server's side of a handshake.
#[derive(Debug)]
pub struct Negotiation {
    limits: HandshakeLimits,
    haggling: Haggling,
    stage: Stage,
    /// The part of the current message that has been received.
    buffer: Vec<u8>,
    options: u32,
    handshake_bytes: u64,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    ClientFlags,
    OptionHeader,
    Data {
        option: u32,
        bytes: u32,
    },
    /// Data that are too long to keep.
    Skip {
        option: u32,
        missing_bytes: u32,
    },
    Tls,
    Closed(CloseReason),
}

/// What the owner has to do next. In every case the output is to be sent first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Call again with the rest of the input, or with more. There is at most one answer in the
    /// output, so that a client that reads nothing uses no memory for more.
    Continue,
    /// Begin the TLS handshake, to which the rest of the input belongs. When it succeeds, call
    /// [`Negotiation::tls_started`] and go on with decrypted bytes; when it fails, close the
    /// connection.
    StartTls,
    /// The client has chosen an export; the rest of the input belongs to the
    /// [`Transmission`](crate::Transmission).
    Begin(Session),
    /// Shut down TLS if it is running, and close the connection.
    Close(CloseReason),
}

impl Negotiation {
    /// A handshake that begins.
    pub fn new(tls: TlsMode, limits: HandshakeLimits) -> Negotiation {
        Negotiation {
            limits,
            haggling: Haggling::new(tls),
            stage: Stage::ClientFlags,
            buffer: Vec::new(),
            options: 0,
            handshake_bytes: 0,
        }
    }

    /// What the server sends first.
    pub fn greeting(&self) -> [u8; 18] {
        let mut greeting = [0; 18];
        let flags = handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES;
        greeting[..8].copy_from_slice(&magic::GREETING.to_be_bytes());
        greeting[8..16].copy_from_slice(&magic::OPTION.to_be_bytes());
        greeting[16..].copy_from_slice(&flags.to_be_bytes());
        greeting
    }

    /// Takes bytes from the front of the input, up to the end of one option, and appends the answer
    /// to the output.
    pub fn advance(
        &mut self,
        input: &mut &[u8],
        exports: &impl Exports,
        output: &mut Vec<u8>,
    ) -> Step {
        loop {
            match self.stage {
                Stage::Tls => return Step::StartTls,
                Stage::Closed(reason) => return Step::Close(reason),
                Stage::ClientFlags => {
                    if !self.receive(CLIENT_FLAGS_BYTES, input) {
                        return Step::Continue;
                    }
                    self.take_client_flags();
                }
                Stage::OptionHeader => {
                    if !self.receive(OPTION_HEADER_BYTES, input) {
                        return Step::Continue;
                    }
                    self.take_option_header();
                }
                Stage::Data { option, bytes } => {
                    if !self.receive(bytes, input) {
                        return Step::Continue;
                    }
                    let data = std::mem::take(&mut self.buffer);
                    return self.answer(option, Some(&data), exports, output);
                }
                Stage::Skip { option, missing_bytes } => {
                    let skipped = cast::saturating_u32(input.len()).min(missing_bytes);
                    *input = input.get(cast::index(skipped)..).unwrap_or_default();
                    let missing_bytes = missing_bytes - skipped;
                    if missing_bytes > 0 {
                        self.stage = Stage::Skip { option, missing_bytes };
                        return Step::Continue;
                    }
                    return self.answer(option, None, exports, output);
                }
            }
        }
    }

    /// TLS is running. The client has to begin anew with all options.
    pub fn tls_started(&mut self) {
        if matches!(self.stage, Stage::Tls) {
            self.haggling.begin_tls();
            self.stage = Stage::OptionHeader;
        }
    }

    /// From now on options are refused, because the server is being shut down; an abort is not.
    pub fn shut_down(&mut self) {
        self.haggling.shutting_down = true;
    }

    /// Moves input to the buffer until it has this many bytes, and tells whether it has.
    fn receive(&mut self, bytes: u32, input: &mut &[u8]) -> bool {
        let missing = cast::index(bytes).saturating_sub(self.buffer.len());
        let (head, rest) = input.split_at(missing.min(input.len()));
        self.buffer.extend_from_slice(head);
        *input = rest;
        head.len() == missing
    }

    fn take_client_flags(&mut self) {
        let flags = Fields(&self.buffer).u32().unwrap_or_default();
        self.buffer.clear();
        let [fixed, zeroes] = [handshake::FIXED_NEWSTYLE, handshake::NO_ZEROES].map(u32::from);
        self.stage = match flags & !(fixed | zeroes) {
            0 => Stage::OptionHeader,
            _ => Stage::Closed(CloseReason::UnknownClientFlags(flags)),
        };
        self.haggling.fixed_newstyle = flags & fixed != 0;
        self.haggling.no_zeroes = flags & zeroes != 0;
        self.handshake_bytes = u64::from(CLIENT_FLAGS_BYTES);
    }

    fn take_option_header(&mut self) {
        let mut fields = Fields(&self.buffer);
        let found = fields.u64().unwrap_or_default();
        let option = fields.u32().unwrap_or_default();
        let bytes = fields.u32().unwrap_or_default();
        self.buffer.clear();
        self.options = self.options.saturating_add(1);
        let announced = u64::from(OPTION_HEADER_BYTES) + u64::from(bytes);
        self.handshake_bytes = self.handshake_bytes.saturating_add(announced);
        let HandshakeLimits { max_options, max_option_bytes, max_handshake_bytes } = self.limits;
        self.stage = if found != magic::OPTION {
            Stage::Closed(CloseReason::NotAnOption(found))
        } else if self.options > max_options {
            Stage::Closed(CloseReason::TooManyOptions(max_options))
        } else if self.handshake_bytes > max_handshake_bytes {
            Stage::Closed(CloseReason::TooManyBytes(max_handshake_bytes))
        } else if bytes > max_option_bytes {
            Stage::Skip { option, missing_bytes: bytes }
        } else {
            Stage::Data { option, bytes }
        };
    }

    fn answer(
        &mut self,
        option: u32,
        data: Option<&[u8]>,
        exports: &impl Exports,
        output: &mut Vec<u8>,
    ) -> Step {
        let (stage, step) = match self.haggling.answer(option, data, exports, output) {
            Outcome::NextOption => (Stage::OptionHeader, Step::Continue),
            Outcome::StartTls => (Stage::Tls, Step::StartTls),
            Outcome::Begin(session) => (Stage::Closed(CloseReason::Ended), Step::Begin(session)),
            Outcome::Close(reason) => (Stage::Closed(reason), Step::Close(reason)),
        };
        self.stage = stage;
        step
    }
}
