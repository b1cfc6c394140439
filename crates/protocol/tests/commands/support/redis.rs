//! A real redis-server in a temporary directory, and its clients.

use super::encode;
use super::frame::Frame;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

/// A server on a random port of the loopback interface; stopped when dropped.
pub struct RedisServer {
    process: Child,
    port: u16,
    _directory: TempDir,
    _alone: MutexGuard<'static, ()>,
}

/// Serializes tests: a child process briefly inherits this process' locked files, and another test
/// would find its device busy.
static ALONE: Mutex<()> = Mutex::new(());

impl RedisServer {
    /// Starts a server. If none is installed, prints that the test is skipped, or fails where the
    /// environment requires the clients.
    pub fn start() -> Option<RedisServer> {
        let mut alone = Some(ALONE.lock().unwrap_or_else(PoisonError::into_inner));
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            let directory = tempfile::tempdir().unwrap();
            let process = Command::new("redis-server")
                .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--databases", "1"])
                .args(["--save", "", "--appendonly", "no", "--proto-max-bulk-len", "67108864"])
                .arg("--dir")
                .arg(directory.path())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            let Ok(process) = process else {
                softflash_testing::clients::skip("redis-server");
                return None;
            };
            let guard = alone.take().expect("given back below");
            let mut server = RedisServer { process, port, _directory: directory, _alone: guard };
            if server.is_up() {
                return Some(server);
            }
            drop(server);
            alone = Some(ALONE.lock().unwrap_or_else(PoisonError::into_inner));
        }
        panic!("redis-server does not start");
    }

    fn is_up(&mut self) -> bool {
        (0..200).any(|_| {
            let mut probe = Command::new("sleep");
            let _ = probe.arg("0.02").status();
            TcpStream::connect(("127.0.0.1", self.port)).is_ok()
        })
    }

    pub fn connect(&self) -> RedisClient {
        let socket = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        RedisClient { socket, received: Vec::new() }
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A client of the real server.
pub struct RedisClient {
    socket: TcpStream,
    received: Vec<u8>,
}

impl RedisClient {
    pub fn send(&mut self, bytes: &[u8]) {
        // The next read detects that the server has closed the connection.
        let _ = self.socket.write_all(bytes);
    }

    /// The bytes of the next reply.
    pub fn reply(&mut self) -> Vec<u8> {
        loop {
            if let Some((_, length)) = Frame::parse(&self.received) {
                return self.received.drain(..length).collect();
            }
            let mut chunk = [0; 64 << 10];
            let count = match self.socket.read(&mut chunk) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                count => count.unwrap(),
            };
            assert!(count > 0, "redis-server closed the connection");
            self.received.extend_from_slice(&chunk[..count]);
        }
    }

    /// All bytes until the server closes the connection; false if it is silent for a while.
    pub fn until_closed(&mut self) -> (Vec<u8>, bool) {
        self.socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        loop {
            let mut chunk = [0; 64 << 10];
            match self.socket.read(&mut chunk) {
                Ok(0) => return (std::mem::take(&mut self.received), true),
                Ok(count) => self.received.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    return (std::mem::take(&mut self.received), true);
                }
                Err(_) => return (std::mem::take(&mut self.received), false),
            }
        }
    }

    /// Sends a command and returns its reply.
    pub fn ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Vec<u8> {
        self.send(&encode(words));
        self.reply()
    }
}
