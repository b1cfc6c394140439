//! A small Redis client for `dump`, `load` and `record`.

mod access;
mod address;
mod tls;
mod verifier;

pub use access::Access;
pub use address::ServerAddress;

use bytes::{Buf, Bytes, BytesMut};
use rustls::{AlertDescription, CertificateError};
use softflash_base::UserError;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use thiserror::Error;

const READ_BYTES: usize = 256 << 10;

/// Why a request to a server failed.
#[derive(Debug, Error)]
pub enum RespError {
    /// The connection failed.
    #[error("{address}: {source}; {}", question(source))]
    Io {
        /// The server.
        address: SocketAddr,
        /// The error.
        source: io::Error,
    },
    /// TLS failed.
    #[error("{address}: TLS: {source}{}", remedy(source))]
    Tls {
        /// The server.
        address: SocketAddr,
        /// The error.
        source: rustls::Error,
    },
    /// An error reply.
    #[error("{address} replies: {message}")]
    Refused {
        /// The server.
        address: SocketAddr,
        /// The message.
        message: String,
    },
    /// A reply of an unexpected type.
    #[error("{address}: unexpected reply to {command}; is it a Redis-compatible server?")]
    Unexpected {
        /// The server.
        address: SocketAddr,
        /// The request.
        command: &'static str,
    },
}

impl UserError for RespError {}

/// The kinds of replies that this client uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// A status line.
    Status(Bytes),
    /// An error line.
    Error(Bytes),
    /// An integer.
    Integer(i64),
    /// A string; none for null.
    Bulk(Option<Bytes>),
    /// A list.
    Array(Vec<Reply>),
}

/// The bytes of a connection, with or without TLS.
pub trait Transport: Read + Write {}

impl<T: Read + Write> Transport for T {}

/// A connection to a server. Requests are queued and sent together.
pub struct Client {
    address: SocketAddr,
    transport: Box<dyn Transport>,
    requests: Vec<u8>,
    received: BytesMut,
}

impl Client {
    fn new(address: SocketAddr, transport: Box<dyn Transport>) -> Client {
        Client { address, transport, requests: Vec::new(), received: BytesMut::new() }
    }

    /// Queues a request for [`Client::send`].
    pub fn queue(&mut self, arguments: &[&[u8]]) {
        self.requests.extend_from_slice(format!("*{}\r\n", arguments.len()).as_bytes());
        for argument in arguments {
            self.requests.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
            self.requests.extend_from_slice(argument);
            self.requests.extend_from_slice(b"\r\n");
        }
    }

    /// Bytes of queued requests.
    pub fn queued_bytes(&self) -> usize {
        self.requests.len()
    }

    /// Sends the queued requests.
    pub fn send(&mut self) -> Result<(), RespError> {
        let sent = self.transport.write_all(&self.requests).and_then(|()| self.transport.flush());
        self.requests.clear();
        sent.map_err(|source| self.io(source))
    }

    /// The next reply; an error reply is an error.
    pub fn receive(&mut self) -> Result<Reply, RespError> {
        loop {
            let mut parser = Parser { input: &self.received, at: 0 };
            if let Some(reply) = parser.reply(0).map_err(|()| self.unexpected("a request"))? {
                let length = parser.at;
                self.received.advance(length);
                return match reply {
                    Reply::Error(text) => {
                        let message = String::from_utf8_lossy(&text).into_owned();
                        Err(RespError::Refused { address: self.address, message })
                    }
                    reply => Ok(reply),
                };
            }
            let before = self.received.len();
            self.received.resize(before + READ_BYTES.max(before), 0);
            let place = self.received.get_mut(before..).unwrap_or_default();
            let read = self.transport.read(place);
            let count = *read.as_ref().unwrap_or(&0);
            self.received.truncate(before + count);
            // A read is interrupted when the process was suspended and continues.
            if read.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::Interrupted) {
                continue;
            }
            if read.map_err(|source| self.io(source))? == 0 {
                return Err(self.io(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    /// Sends one request and waits for its reply.
    pub fn ask(&mut self, arguments: &[&[u8]]) -> Result<Reply, RespError> {
        self.queue(arguments);
        self.send()?;
        self.receive()
    }

    /// The error for an unexpected reply to `command`.
    pub fn unexpected(&self, command: &'static str) -> RespError {
        RespError::Unexpected { address: self.address, command }
    }

    fn io(&self, source: io::Error) -> RespError {
        io_error(self.address, source)
    }
}

/// The error of a connection; TLS reports its own as those of the operating system, which reports
/// the end of the time limit as if a later attempt could succeed.
fn io_error(address: SocketAddr, source: io::Error) -> RespError {
    match source.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(error) => RespError::Tls { address, source: error.clone() },
        None if source.kind() == io::ErrorKind::WouldBlock => {
            let late = format!("no reply within {} s", access::PATIENCE.as_secs());
            RespError::Io { address, source: io::Error::new(source.kind(), late) }
        }
        None => RespError::Io { address, source },
    }
}

/// What may be the cause of an error of a connection.
fn question(error: &io::Error) -> &'static str {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof, WouldBlock};
    match error.kind() {
        BrokenPipe | ConnectionReset | UnexpectedEof => {
            "has the server stopped, or is its port for TLS (--tls)?"
        }
        WouldBlock => "is the server overloaded or suspended?",
        _ => "is a server running there?",
    }
}

/// What may help after an error of TLS.
fn remedy(error: &rustls::Error) -> &'static str {
    use rustls::Error::{AlertReceived, InvalidCertificate, InvalidMessage};
    match error {
        InvalidCertificate(CertificateError::UnknownIssuer) => {
            "; name the file of the authority that signed it with --tls-ca"
        }
        InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "; if it is the right server, name it as its certificate does with --tls-name",
        AlertReceived(AlertDescription::CertificateRequired) => {
            "; the server requires a certificate: give --tls-cert and --tls-key"
        }
        InvalidMessage(_) => "; is it the server's port for TLS?",
        _ => "",
    }
}

struct Parser<'a> {
    input: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    /// A complete reply, none if more input is needed, an error if it is not RESP.
    fn reply(&mut self, depth: u8) -> Result<Option<Reply>, ()> {
        let Some(line) = self.line() else { return Ok(None) };
        let (kind, text) = line.split_first().ok_or(())?;
        let text = Bytes::copy_from_slice(text);
        let number = || std::str::from_utf8(&text).ok().and_then(|text| text.parse::<i64>().ok());
        match kind {
            b'+' => Ok(Some(Reply::Status(text))),
            b'-' => Ok(Some(Reply::Error(text))),
            b':' => Ok(Some(Reply::Integer(number().ok_or(())?))),
            b'$' => match usize::try_from(number().ok_or(())?) {
                Err(_) => Ok(Some(Reply::Bulk(None))),
                Ok(length) => Ok(self.bulk(length).map(|bulk| Reply::Bulk(Some(bulk)))),
            },
            b'*' if depth < 8 => {
                let mut items = Vec::new();
                for _ in 0..number().ok_or(())? {
                    match self.reply(depth + 1)? {
                        Some(item) => items.push(item),
                        None => return Ok(None),
                    }
                }
                Ok(Some(Reply::Array(items)))
            }
            _ => Err(()),
        }
    }

    fn line(&mut self) -> Option<&[u8]> {
        let rest = self.input.get(self.at..)?;
        let length = rest.windows(2).position(|pair| pair == b"\r\n")?;
        self.at += length + 2;
        rest.get(..length)
    }

    fn bulk(&mut self, length: usize) -> Option<Bytes> {
        // The length comes from the server: an impossible one counts as incomplete.
        let end = self.at.checked_add(length)?.checked_add(2)?;
        let bulk = self.input.get(self.at..end)?.get(..length)?;
        self.at = end;
        Some(Bytes::copy_from_slice(bulk))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(input: &[u8]) -> Result<Option<Reply>, ()> {
        Parser { input, at: 0 }.reply(0)
    }

    #[test]
    fn replies_are_read_whole_or_not_at_all() {
        let whole = b"*4\r\n$1\r\n0\r\n*1\r\n$3\r\na\r\n\r\n$-1\r\n:-7\r\n";
        let expected = Reply::Array(vec![
            Reply::Bulk(Some(Bytes::from_static(b"0"))),
            Reply::Array(vec![Reply::Bulk(Some(Bytes::from_static(b"a\r\n")))]),
            Reply::Bulk(None),
            Reply::Integer(-7),
        ]);
        assert_eq!(parse(whole), Ok(Some(expected)));
        for length in 0..whole.len() {
            assert_eq!(parse(&whole[..length]), Ok(None), "{length} bytes");
        }
        assert_eq!(parse(b"HTTP/1.1 400 Bad Request\r\n"), Err(()));
    }
}
