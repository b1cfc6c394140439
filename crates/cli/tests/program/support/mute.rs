//! A server that answers some requests and then falls silent, so that a client waits for it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// The server; its connection stays open until it is dropped.
pub struct Mute {
    pub address: SocketAddr,
    silent: Receiver<TcpStream>,
}

impl Mute {
    /// Sends one of `replies` for each part of a request that arrives, then nothing more.
    pub fn start(replies: &'static [&'static [u8]]) -> Mute {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (sender, silent) = channel();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut buffer = [0; 4096];
            for reply in replies {
                assert!(stream.read(&mut buffer).expect("a request") > 0, "a request");
                stream.write_all(reply).expect("the client listens");
            }
            // The next request arrives, and gets no reply.
            let _ = stream.read(&mut buffer);
            let _ = sender.send(stream);
        });
        Mute { address, silent }
    }

    /// Waits until a client waits in vain; the connection stays open as long as the result.
    pub fn await_silence(&self) -> TcpStream {
        self.silent.recv_timeout(Duration::from_secs(60)).expect("the client asks")
    }
}
