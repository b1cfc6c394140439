//! A plain NBD client, without structured replies.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const OPTION_MAGIC: u64 = 0x4948_4156_454F_5054;
const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
const REQUEST_MAGIC: u32 = 0x2560_9513;
const REPLY_MAGIC: u32 = 0x6744_6698;

pub const READ: u16 = 0;
pub const WRITE: u16 = 1;
pub const DISCONNECT: u16 = 2;
pub const FLUSH: u16 = 3;
pub const TRIM: u16 = 4;
pub const CACHE: u16 = 5;
pub const WRITE_ZEROES: u16 = 6;

/// The data are durable before the reply.
pub const FUA: u16 = 1;
/// Zeros keep their space.
pub const NO_HOLE: u16 = 2;

pub const READ_ONLY: u16 = 2;

pub const EPERM: u32 = 1;
pub const EINVAL: u32 = 22;
pub const ENOSPC: u32 = 28;
pub const ESHUTDOWN: u32 = 108;

/// A connection to an export.
pub struct NbdClient {
    stream: TcpStream,
    cookie: u64,
    pub size_bytes: u64,
    pub flags: u16,
}

/// A connection in the handshake.
pub fn greet(address: SocketAddr) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting)?;
    assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
    stream.write_all(&3_u32.to_be_bytes())?;
    Ok(stream)
}

fn send_option(stream: &mut TcpStream, option: u32, data: &[u8]) -> io::Result<()> {
    let mut message = OPTION_MAGIC.to_be_bytes().to_vec();
    message.extend(option.to_be_bytes());
    message.extend((data.len() as u32).to_be_bytes());
    message.extend(data);
    stream.write_all(&message)
}

/// The type of a reply to an option, and its data.
fn option_reply(stream: &mut TcpStream) -> io::Result<(u32, Vec<u8>)> {
    let mut header = [0; 20];
    stream.read_exact(&mut header)?;
    assert_eq!(header[..8], OPTION_REPLY_MAGIC.to_be_bytes());
    let field = |from: usize| u32::from_be_bytes(header[from..from + 4].try_into().unwrap());
    let mut data = vec![0; field(16) as usize];
    stream.read_exact(&mut data)?;
    Ok((field(12), data))
}

/// The names of all exports.
pub fn list(address: SocketAddr) -> Vec<String> {
    let mut stream = greet(address).unwrap();
    send_option(&mut stream, 3, &[]).unwrap();
    let mut names = Vec::new();
    loop {
        match option_reply(&mut stream).unwrap() {
            (2, data) => names.push(String::from_utf8(data[4..].to_vec()).unwrap()),
            (1, _) => return names,
            (other, data) => panic!("{other:#x}: {}", String::from_utf8_lossy(&data)),
        }
    }
}

impl NbdClient {
    /// Connects to an export that exists.
    pub fn connect(address: SocketAddr, export: &str) -> NbdClient {
        NbdClient::try_connect(address, export).unwrap().unwrap()
    }

    /// Connects to an export, or returns the error of the option.
    pub fn try_connect(address: SocketAddr, export: &str) -> io::Result<Result<NbdClient, u32>> {
        let mut stream = greet(address)?;
        let mut data = (export.len() as u32).to_be_bytes().to_vec();
        data.extend(export.as_bytes());
        data.extend([0, 0]);
        send_option(&mut stream, 7, &data)?;
        let (mut size_bytes, mut flags) = (0, 0);
        loop {
            match option_reply(&mut stream)? {
                (1, _) => return Ok(Ok(NbdClient { stream, cookie: 0, size_bytes, flags })),
                (3, data) if data[..2] == [0, 0] => {
                    size_bytes = u64::from_be_bytes(data[2..10].try_into().unwrap());
                    flags = u16::from_be_bytes(data[10..12].try_into().unwrap());
                }
                (3, _) => {}
                (error, _) => return Ok(Err(error)),
            }
        }
    }

    /// Sends a request and returns its cookie.
    pub fn send(
        &mut self,
        kind: u16,
        flags: u16,
        offset: u64,
        bytes: u32,
        payload: &[u8],
    ) -> io::Result<u64> {
        self.cookie += 1;
        let mut message = REQUEST_MAGIC.to_be_bytes().to_vec();
        message.extend(flags.to_be_bytes());
        message.extend(kind.to_be_bytes());
        message.extend(self.cookie.to_be_bytes());
        message.extend(offset.to_be_bytes());
        message.extend(bytes.to_be_bytes());
        message.extend(payload);
        self.stream.write_all(&message)?;
        Ok(self.cookie)
    }

    /// The next reply: the error, and the cookie.
    pub fn reply(&mut self) -> io::Result<(u32, u64)> {
        let mut header = [0; 16];
        self.stream.read_exact(&mut header)?;
        assert_eq!(header[..4], REPLY_MAGIC.to_be_bytes());
        let error = u32::from_be_bytes(header[4..8].try_into().unwrap());
        Ok((error, u64::from_be_bytes(header[8..].try_into().unwrap())))
    }

    /// Carries out a request without data in its reply; returns the error, or 0.
    pub fn try_call(
        &mut self,
        kind: u16,
        flags: u16,
        offset: u64,
        bytes: u32,
        payload: &[u8],
    ) -> io::Result<u32> {
        let cookie = self.send(kind, flags, offset, bytes, payload)?;
        let (error, of) = self.reply()?;
        assert_eq!(of, cookie);
        Ok(error)
    }

    /// As [`NbdClient::try_call`], on a connection that holds.
    pub fn call(&mut self, kind: u16, flags: u16, offset: u64, bytes: u32) -> u32 {
        self.try_call(kind, flags, offset, bytes, &[]).unwrap()
    }

    pub fn write(&mut self, offset: u64, data: &[u8]) -> u32 {
        self.try_call(WRITE, 0, offset, data.len() as u32, data).unwrap()
    }

    pub fn flush(&mut self) -> u32 {
        self.call(FLUSH, 0, 0, 0)
    }

    pub fn read(&mut self, offset: u64, bytes: usize) -> Result<Vec<u8>, u32> {
        match self.call(READ, 0, offset, bytes as u32) {
            0 => Ok(self.data(bytes)),
            error => Err(error),
        }
    }

    /// The data after the reply to a read.
    pub fn data(&mut self, bytes: usize) -> Vec<u8> {
        let mut data = vec![0; bytes];
        self.stream.read_exact(&mut data).unwrap();
        data
    }

    /// Whether the server has closed the connection, once all replies are read.
    pub fn is_closed(&mut self) -> bool {
        self.stream.read(&mut [0]).is_ok_and(|count| count == 0)
    }
}
