//! A client: encodes options and requests, decodes replies.

use softflash_nbd::{
    BlockSizes, CloseReason, Export, Exports, Features, HandshakeLimits, LookupError, Negotiation,
    Session, Step, TlsMode,
};

pub const FIXED: u32 = 1;
pub const NO_ZEROES: u32 = 2;

pub const EXPORT_NAME: u32 = 1;
pub const ABORT: u32 = 2;
pub const LIST: u32 = 3;
pub const STARTTLS: u32 = 5;
pub const INFO: u32 = 6;
pub const GO: u32 = 7;
pub const STRUCTURED_REPLY: u32 = 8;
pub const LIST_META_CONTEXT: u32 = 9;
pub const SET_META_CONTEXT: u32 = 10;
pub const EXTENDED_HEADERS: u32 = 11;

pub const ACK: u32 = 1;
pub const SERVER: u32 = 2;
pub const INFORMATION: u32 = 3;
pub const META_CONTEXT: u32 = 4;
pub const UNSUP: u32 = 0x8000_0001;
pub const POLICY: u32 = 0x8000_0002;
pub const INVALID: u32 = 0x8000_0003;
pub const TLS_REQD: u32 = 0x8000_0005;
pub const UNKNOWN: u32 = 0x8000_0006;
pub const SHUTDOWN: u32 = 0x8000_0007;
pub const TOO_BIG: u32 = 0x8000_0009;

/// Every feature.
pub const ALL: Features = Features {
    flush: true,
    fua: true,
    trim: true,
    write_zeroes: true,
    fast_zero: true,
    cache: true,
    multi_conn: true,
};

/// A writable export of a mebibyte with blocks of 512 bytes and all features.
pub fn export(name: &str) -> Export {
    Export {
        id: 42,
        name: name.to_owned(),
        size_bytes: 1 << 20,
        block_sizes: BlockSizes::new(512, 4096, 1 << 17).unwrap(),
        features: ALL,
        ..Export::default()
    }
}

/// The exports of a server. The first one is the default; `forbidden` exists for others only, and
/// `damaged` is not served.
pub struct Table {
    pub exports: Vec<Export>,
    pub is_listed: bool,
}

impl Exports for Table {
    fn names(&self) -> Option<Vec<String>> {
        let names = self.exports.iter().map(|export| export.name.clone());
        self.is_listed.then(|| names.chain(["forbidden".to_owned()]).collect())
    }

    fn lookup(&self, name: &str) -> Result<Export, LookupError> {
        let wanted = |export: &&Export| export.name == name || name.is_empty();
        match self.exports.iter().find(wanted) {
            Some(export) => Ok(export.clone()),
            None if name == "forbidden" => Err(LookupError::Policy),
            None if name == "damaged" => Err(LookupError::NotServed("it is damaged".to_owned())),
            None => Err(LookupError::Unknown),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionReply {
    pub option: u32,
    pub kind: u32,
    pub data: Vec<u8>,
}

/// A client that has connected to the exports `vol` and `secret`, which requires TLS.
pub struct Client {
    pub server: Negotiation,
    pub table: Table,
}

impl Client {
    /// With fixed newstyle and without zeroes, as any client of today.
    pub fn new(tls: TlsMode) -> Client {
        Client::with_flags(tls, FIXED | NO_ZEROES)
    }

    pub fn with_flags(tls: TlsMode, flags: u32) -> Client {
        let mut client = Client::silent(tls);
        assert_eq!(client.send(&flags.to_be_bytes()), (Step::Continue, Vec::new()));
        client
    }

    /// Before the client flags.
    pub fn silent(tls: TlsMode) -> Client {
        let secret = Export { tls_required: true, ..export("secret") };
        let table = Table { exports: vec![export("vol"), secret], is_listed: true };
        Client { server: Negotiation::new(tls, HandshakeLimits::default()), table }
    }

    /// The steps up to the end of the bytes, or to one that ends the handshake.
    pub fn send(&mut self, mut bytes: &[u8]) -> (Step, Vec<u8>) {
        let mut output = Vec::new();
        loop {
            let step = self.server.advance(&mut bytes, &self.table, &mut output);
            if step != Step::Continue || bytes.is_empty() {
                assert!(bytes.is_empty(), "{} bytes are left after {step:?}", bytes.len());
                return (step, output);
            }
        }
    }

    pub fn option(&mut self, number: u32, data: &[u8]) -> (Step, Vec<OptionReply>) {
        let (step, output) = self.send(&option(number, data));
        let replies = option_replies(&output);
        let answers = |reply: &OptionReply| reply.option == number;
        assert!(replies.iter().all(answers), "{replies:?}");
        (step, replies)
    }

    /// The only reply to an option after which the handshake goes on.
    pub fn one(&mut self, number: u32, data: &[u8]) -> u32 {
        let (step, replies) = self.option(number, data);
        assert_eq!(step, Step::Continue);
        let [OptionReply { kind, .. }] = replies[..] else { panic!("{replies:?}") };
        kind
    }

    /// The final reply to an option after which the handshake goes on, and those before it.
    pub fn many(&mut self, number: u32, data: &[u8]) -> (u32, Vec<OptionReply>) {
        let (step, mut replies) = self.option(number, data);
        assert_eq!(step, Step::Continue);
        let last = replies.pop().unwrap();
        (last.kind, replies)
    }

    pub fn start_tls(&mut self) {
        let (step, replies) = self.option(STARTTLS, &[]);
        assert_eq!((step, replies[0].kind, replies.len()), (Step::StartTls, ACK, 1));
        self.server.tls_started();
    }

    pub fn go(&mut self, name: &str) -> Session {
        match self.option(GO, &info_data(name, &[])) {
            (Step::Begin(session), _) => session,
            other => panic!("{other:?}"),
        }
    }

    /// What an option does that ends the handshake without an answer.
    pub fn closed_by(&mut self, bytes: &[u8]) -> CloseReason {
        match self.send(bytes) {
            (Step::Close(reason), output) if output.is_empty() => reason,
            other => panic!("{other:?}"),
        }
    }
}

/// A session with an export, after structured replies and the block status if wanted.
pub fn session(export: Export, structured: bool) -> Session {
    let mut client = Client::new(TlsMode::Off);
    let name = export.name.clone();
    client.table.exports = vec![export];
    if structured {
        assert_eq!(client.one(STRUCTURED_REPLY, &[]), ACK);
        let query = context_data(&name, &["base:allocation"]);
        assert_eq!(client.many(SET_META_CONTEXT, &query).0, ACK);
    }
    client.go(&name)
}

pub fn option(number: u32, data: &[u8]) -> Vec<u8> {
    let length = u32::try_from(data.len()).unwrap();
    [b"IHAVEOPT", &number.to_be_bytes()[..], &length.to_be_bytes(), data].concat()
}

pub fn info_data(name: &str, wanted: &[u16]) -> Vec<u8> {
    let length = u32::try_from(name.len()).unwrap();
    let count = u16::try_from(wanted.len()).unwrap();
    let mut data = [&length.to_be_bytes(), name.as_bytes(), &count.to_be_bytes()].concat();
    data.extend(wanted.iter().flat_map(|kind| kind.to_be_bytes()));
    data
}

pub fn context_data(name: &str, queries: &[&str]) -> Vec<u8> {
    let sized = |text: &str| {
        let length = u32::try_from(text.len()).unwrap();
        [&length.to_be_bytes(), text.as_bytes()].concat()
    };
    let count = u32::try_from(queries.len()).unwrap();
    let mut data = [sized(name), count.to_be_bytes().to_vec()].concat();
    data.extend(queries.iter().flat_map(|query| sized(query)));
    data
}

pub fn option_replies(mut bytes: &[u8]) -> Vec<OptionReply> {
    let mut replies = Vec::new();
    while !bytes.is_empty() {
        assert_eq!(bytes[..8], 0x0003_e889_0455_65a9_u64.to_be_bytes());
        let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        let end = 20 + usize::try_from(number(16)).unwrap();
        let data = bytes[20..end].to_vec();
        replies.push(OptionReply { option: number(8), kind: number(12), data });
        bytes = &bytes[end..];
    }
    replies
}

/// A request without its payload.
pub fn request(kind: u16, flags: u16, cookie: u64, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = 0x2560_9513_u32.to_be_bytes().to_vec();
    bytes.extend(flags.to_be_bytes());
    bytes.extend(kind.to_be_bytes());
    bytes.extend(cookie.to_be_bytes());
    bytes.extend(offset.to_be_bytes());
    bytes.extend(length.to_be_bytes());
    bytes
}

pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const DISC: u16 = 2;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const CACHE: u16 = 5;
pub const WRITE_ZEROES: u16 = 6;
pub const BLOCK_STATUS: u16 = 7;

pub const FUA: u16 = 1;
pub const NO_HOLE: u16 = 2;
pub const DF: u16 = 4;
pub const REQ_ONE: u16 = 8;
pub const FAST_ZERO: u16 = 16;

pub const EPERM: u32 = 1;
pub const EIO: u32 = 5;
pub const EINVAL: u32 = 22;
pub const ENOSPC: u32 = 28;
pub const EOVERFLOW: u32 = 75;
pub const ENOTSUP: u32 = 95;
pub const ESHUTDOWN: u32 = 108;

/// A reply in the transmission phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Simple { error: u32, cookie: u64, data: Vec<u8> },
    Chunk { is_done: bool, kind: u16, cookie: u64, payload: Vec<u8> },
}

/// Decodes replies; a simple reply without error has this much data for the cookies of reads.
pub fn replies(mut bytes: &[u8], data_bytes: impl Fn(u64) -> usize) -> Vec<Reply> {
    let mut replies = Vec::new();
    while !bytes.is_empty() {
        let u16_at = |at: usize| u16::from_be_bytes(bytes[at..at + 2].try_into().unwrap());
        let u32_at = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        let u64_at = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap());
        let cookie = u64_at(8);
        let (end, reply) = match u32_at(0) {
            0x6744_6698 => {
                let error = u32_at(4);
                let end = 16 + if error == 0 { data_bytes(cookie) } else { 0 };
                (end, Reply::Simple { error, cookie, data: bytes[16..end].to_vec() })
            }
            0x668e_33ef => {
                let end = 20 + usize::try_from(u32_at(16)).unwrap();
                assert!(u16_at(4) <= 1, "unknown flags {:#x}", u16_at(4));
                let (is_done, kind) = (u16_at(4) == 1, u16_at(6));
                (end, Reply::Chunk { is_done, kind, cookie, payload: bytes[20..end].to_vec() })
            }
            magic => panic!("{magic:#x} is not a reply"),
        };
        replies.push(reply);
        bytes = &bytes[end..];
    }
    replies
}
