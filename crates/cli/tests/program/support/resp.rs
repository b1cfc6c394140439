//! A plain RESP2 client over a blocking socket.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// `+OK`
    Simple(String),
    /// `-ERR ...`
    Error(String),
    /// `:1`
    Integer(i64),
    /// `$3`; `None` for the null bulk string.
    Bulk(Option<Vec<u8>>),
    /// `*2`; a null array becomes an empty one.
    Array(Vec<Reply>),
}

impl Reply {
    /// Whether it is `+OK`.
    pub fn is_ok(&self) -> bool {
        matches!(self, Reply::Simple(text) if text == "OK")
    }

    /// The text of an error.
    pub fn error(&self) -> Option<&str> {
        match self {
            Reply::Error(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it is an out-of-memory error.
    pub fn is_full(&self) -> bool {
        self.error().is_some_and(|text| text.starts_with("OOM "))
    }

    /// The number.
    pub fn integer(&self) -> i64 {
        match self {
            Reply::Integer(number) => *number,
            other => panic!("a number was expected, not {other:?}"),
        }
    }

    /// The bytes of a bulk string, `None` for the null one.
    pub fn bulk(self) -> Option<Vec<u8>> {
        match self {
            Reply::Bulk(bytes) => bytes,
            other => panic!("a bulk string was expected, not {other:?}"),
        }
    }

    /// The text of a bulk string.
    pub fn text(self) -> String {
        String::from_utf8(self.bulk().expect("a value")).expect("text")
    }
}

/// A connection.
pub struct Client {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
}

impl Client {
    /// Connects.
    pub fn connect(address: SocketAddr) -> Client {
        Client::on(TcpStream::connect(address).expect("the server accepts connections"))
    }

    /// A client on a connection.
    pub fn on(writer: TcpStream) -> Client {
        writer.set_nodelay(true).expect("a socket without delay");
        writer.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket with a timeout");
        let reader =
            BufReader::with_capacity(1 << 16, writer.try_clone().expect("a second handle"));
        Client { reader, writer }
    }

    /// Sends a command and waits for its reply; a broken connection fails the test.
    pub fn call(&mut self, parts: &[&[u8]]) -> Reply {
        self.try_call(parts).expect("the connection holds")
    }

    /// As [`Client::call`], on a connection that may break.
    pub fn try_call(&mut self, parts: &[&[u8]]) -> io::Result<Reply> {
        self.send(parts)?;
        self.receive()
    }

    /// `SET`, whatever the reply.
    pub fn set(&mut self, key: &[u8], value: &[u8]) -> Reply {
        self.call(&[b"SET", key, value])
    }

    /// `GET` of a key that may be absent; an error fails the test.
    pub fn get(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        self.call(&[b"GET", key]).bulk()
    }

    /// The counters of `FLASH.STATS`.
    pub fn flash_stat(&mut self, name: &str) -> u64 {
        let stats = self.call(&[b"FLASH.STATS"]).text();
        let value = stats.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let value = value.unwrap_or_else(|| panic!("no {name} in {stats}"));
        value.trim().parse().expect("a number")
    }

    /// Sends a command without waiting.
    pub fn send(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        self.writer.write_all(&encode(parts))
    }

    /// The next reply.
    pub fn receive(&mut self) -> io::Result<Reply> {
        let mut line = Vec::new();
        self.reader.read_until(b'\n', &mut line)?;
        let text = String::from_utf8_lossy(&line);
        let Some(text) = text.strip_suffix("\r\n") else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let (kind, rest) = text.split_at(1);
        Ok(match kind {
            "+" => Reply::Simple(rest.to_owned()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Integer(number(rest)?),
            "$" => Reply::Bulk(match number(rest)? {
                -1 => None,
                len => Some(self.bytes(usize::try_from(len).map_err(io::Error::other)?)?),
            }),
            "*" => {
                let count = number(rest)?.max(0);
                Reply::Array((0..count).map(|_| self.receive()).collect::<io::Result<_>>()?)
            }
            _ => return Err(io::Error::other(format!("`{text}` is no reply"))),
        })
    }

    fn bytes(&mut self, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len + 2];
        self.reader.read_exact(&mut bytes)?;
        match bytes.split_off(len).as_slice() {
            b"\r\n" => Ok(bytes),
            other => Err(io::Error::other(format!("{other:?} ends a bulk string"))),
        }
    }
}

fn number(text: &str) -> io::Result<i64> {
    text.parse().map_err(|error| io::Error::other(format!("`{text}`: {error}")))
}

/// A command as clients send it.
pub fn encode(parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", parts.len()).into_bytes();
    for part in parts {
        bytes.extend_from_slice(format!("${}\r\n", part.len()).as_bytes());
        bytes.extend_from_slice(part);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}
