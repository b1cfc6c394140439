//! Properties of a connection with arbitrary bytes, for the fuzzers of `fuzz` and for the tests
//! that replay their findings.

use crate::{
    BlockSizes, CloseReason, Command, Event, Export, Exports, Extent, Features, HandshakeLimits,
    LookupError, Negotiation, Rejection, Replies, Request, Session, Step, TlsMode, Transmission,
    Violation,
};

const EXPORT_BYTES: u64 = 1 << 20;

/// The events of a connection. Payloads are whole, however they were received.
#[derive(Debug, Default, PartialEq, Eq)]
struct Transcript {
    output: Vec<u8>,
    requests: Vec<(Request, Vec<u8>)>,
    rejections: Vec<Rejection>,
    closed: Option<CloseReason>,
    violated: Option<Violation>,
    disconnected: bool,
}

struct View;

impl Exports for View {
    fn names(&self) -> Option<Vec<String>> {
        Some(["", "a", "tls", "closed"].map(str::to_owned).to_vec())
    }

    fn lookup(&self, name: &str) -> Result<Export, LookupError> {
        match name {
            "" | "a" | "tls" => Ok(export(name == "tls")),
            "closed" => Err(LookupError::Policy),
            _ => Err(LookupError::Unknown),
        }
    }
}

fn export(tls_required: bool) -> Export {
    Export {
        name: "a".to_owned(),
        description: "an export".to_owned(),
        size_bytes: EXPORT_BYTES,
        tls_required,
        block_sizes: BlockSizes::new(16, 4096, 1 << 16).unwrap_or_default(),
        features: Features {
            flush: true,
            fua: true,
            trim: true,
            write_zeroes: true,
            fast_zero: true,
            cache: true,
            multi_conn: true,
        },
        ..Export::default()
    }
}

/// A connection that begins with the first byte's TLS mode, or in the transmission phase. It does
/// the same however the input is split, accepts only valid requests, and never keeps or sends more
/// than a small multiple of the input.
pub fn nbd(data: &[u8]) {
    let [kind, piece, input @ ..] = data else { return };
    let piece = usize::from(*piece) + 1;
    let whole = connection(*kind, input, input.len().max(1));
    assert_eq!(whole, connection(*kind, input, piece), "in pieces of {piece}");
    let received: usize = whole.requests.iter().map(|(_, payload)| payload.len()).sum();
    assert!(received <= input.len());
}

fn connection(kind: u8, input: &[u8], piece: usize) -> Transcript {
    let mut transcript = Transcript::default();
    let tls = [TlsMode::Off, TlsMode::Optional, TlsMode::Required, TlsMode::Off];
    let tls = tls[usize::from(kind % 4)];
    let limits = HandshakeLimits { max_options: 20, max_option_bytes: 600, ..Default::default() };
    let mut negotiation = Some(Negotiation::new(tls, limits));
    let mut transmission = None;
    if kind % 4 == 3 {
        let (structured, context) = (kind & 4 != 0, (kind & 12 == 12).then_some(1));
        let session = Session { export: export(false), structured, allocation_context: context };
        transmission = Some(Transmission::new(session));
    }
    for mut rest in input.chunks(piece) {
        while !rest.is_empty() {
            if let Some(transmission) = &mut transmission {
                if !transmit(transmission, &mut rest, &mut transcript) {
                    return transcript;
                }
            } else if let Some(handshake) = &mut negotiation {
                let before = transcript.output.len();
                match handshake.advance(&mut rest, &View, &mut transcript.output) {
                    Step::Continue => {}
                    Step::StartTls => handshake.tls_started(),
                    Step::Begin(session) => transmission = Some(Transmission::new(session)),
                    Step::Close(reason) => {
                        transcript.closed = Some(reason);
                        return transcript;
                    }
                }
                assert!(transcript.output.len() - before < 1000, "one answer at a time");
            }
        }
    }
    transcript
}

/// Takes all events from the input; false at the end of the connection.
fn transmit(from: &mut Transmission, input: &mut &[u8], transcript: &mut Transcript) -> bool {
    let replies = from.session().replies();
    loop {
        match from.next(input) {
            Ok(Event::NeedInput) => return true,
            Ok(Event::Request(request)) => {
                check(&request);
                assert_eq!(from.payload_missing_bytes(), request.command.payload_bytes());
                answer(&replies, &request, &mut transcript.output);
                transcript.requests.push((request, Vec::new()));
            }
            Ok(Event::Payload { bytes, is_last }) => {
                assert!(!bytes.is_empty());
                assert_eq!(is_last, from.payload_missing_bytes() == 0);
                let last = transcript.requests.last_mut();
                last.into_iter().for_each(|(_, payload)| payload.extend_from_slice(bytes));
            }
            Ok(Event::Rejected(rejection)) => {
                replies.reject(&rejection, &mut transcript.output);
                transcript.rejections.push(rejection);
            }
            Ok(Event::Disconnect) => {
                transcript.disconnected = true;
                return false;
            }
            Err(violation) => {
                transcript.violated = Some(violation);
                return false;
            }
        }
    }
}

fn check(request: &Request) {
    let Some(range) = request.command.range() else { return };
    assert!(range.bytes > 0 && range.end() <= EXPORT_BYTES, "{request:?}");
    assert!(range.offset % 16 == 0 && range.bytes % 16 == 0, "{request:?}");
    if matches!(request.command, Command::Read { .. } | Command::Write { .. }) {
        assert!(range.bytes <= 1 << 16, "{request:?}");
    }
}

fn answer(replies: &Replies, request: &Request, output: &mut Vec<u8>) {
    match request.command {
        Command::Read { range, .. } => {
            let mut reply = replies.read(request);
            reply.data(range.bytes.min(8), output);
            output.extend([7; 8]);
            reply.hole(reply.missing_bytes() / 2, output);
            let left = reply.missing_bytes();
            reply.data(left, output);
            output.resize(output.len() + usize::try_from(left).unwrap_or_default(), 7);
            assert_eq!(reply.finish(output), Ok(()));
        }
        Command::BlockStatus { .. } => {
            let extent = |is_hole| Extent { bytes: 4096, is_hole, is_zero: is_hole };
            replies.block_status(request, [false, true].map(extent), output);
        }
        _ => replies.done(request, output),
    }
}

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    use super::replay::replay;
    use super::*;
    use crate::wire::{cmd, cmd_flag, magic, opt};

    fn option(option: u32, data: &[u8]) -> Vec<u8> {
        let mut bytes = magic::OPTION.to_be_bytes().to_vec();
        bytes.extend(option.to_be_bytes());
        bytes.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
        bytes.extend(data);
        bytes
    }

    fn request(kind: u16, flags: u16, offset: u64, bytes: u32, payload: &[u8]) -> Vec<u8> {
        let mut header = magic::REQUEST.to_be_bytes().to_vec();
        header.extend([flags, kind].map(u16::to_be_bytes).concat());
        header.extend([0x1234, offset].map(u64::to_be_bytes).concat());
        header.extend(bytes.to_be_bytes());
        header.extend(payload);
        header
    }

    fn requests() -> Vec<u8> {
        [
            request(cmd::WRITE, cmd_flag::FUA, 16, 32, &[5; 32]),
            request(cmd::READ, cmd_flag::DF, 16, 32, &[]),
            request(cmd::FLUSH, 0, 0, 0, &[]),
            request(cmd::WRITE_ZEROES, cmd_flag::NO_HOLE | cmd_flag::FAST_ZERO, 64, 4096, &[]),
            request(cmd::WRITE, 0, EXPORT_BYTES, 16, &[6; 16]),
            request(cmd::BLOCK_STATUS, cmd_flag::REQ_ONE, 0, 1 << 16, &[]),
            request(cmd::TRIM, 0, 0, 1 << 20, &[]),
            request(cmd::CACHE, 0, 32, 16, &[]),
            request(9, 0, 0, 0, &[]),
            request(cmd::DISC, 0, 0, 0, &[]),
        ]
        .concat()
    }

    #[test]
    fn connections() {
        let begin = |kind: u8, piece: u8| vec![kind, piece, 0, 0, 0, 3];
        let context = b"\0\0\0\x01a\0\0\0\x01\0\0\0\x0fbase:allocation";
        let go = option(opt::GO, b"\0\0\0\x01a\0\x03\0\x01\0\x02\0\x03");
        let plain = [
            begin(0, 6),
            option(opt::LIST, b""),
            option(opt::INFO, b"\0\0\0\x01a\0\x01\0\x03"),
            option(99, b"unknown"),
            go.clone(),
            requests(),
        ];
        let extensions = [
            begin(1, 0),
            option(opt::STRUCTURED_REPLY, b""),
            option(opt::LIST_META_CONTEXT, b"\0\0\0\x01a\0\0\0\0"),
            option(opt::SET_META_CONTEXT, context),
            go.clone(),
            requests(),
        ];
        let tls = [
            begin(2, 40),
            option(opt::LIST, b""),
            option(opt::STARTTLS, b""),
            option(opt::INFO, b"\0\0\0\x03tls\0\0"),
            option(opt::ABORT, &[1; 700]),
        ];
        let old = [vec![0, 17, 0, 0, 0, 0], option(opt::EXPORT_NAME, b"a"), requests()];
        let direct = |kind: u8, piece: u8| [vec![kind, piece], requests()].concat();
        let seeds = [
            plain.concat(),
            extensions.concat(),
            tls.concat(),
            old.concat(),
            direct(3, 30),
            direct(15, 4),
        ];
        for seed in &seeds[..2] {
            let seen = connection(seed[0], &seed[2..], seed.len());
            assert!(seen.disconnected && seen.requests.len() >= 5, "{seen:?}");
        }
        replay("nbd", &seeds, nbd);
    }
}
