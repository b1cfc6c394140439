//! An HTTP client.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// The whole response, with its header.
pub fn get(address: SocketAddr, path: &str) -> String {
    ask(address, "GET", path)
}

/// As [`get`], with another method.
pub fn ask(address: SocketAddr, method: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("HTTP is served");
    let request = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("a request is taken");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("an answer comes");
    page
}
