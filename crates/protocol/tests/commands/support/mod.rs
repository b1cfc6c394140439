//! Shared parts of this crate's tests: a client of a connection in this process, a client of a real
//! redis-server, and replies as trees.

pub mod frame;
pub mod ours;
pub mod redis;
pub mod store;

/// A command as a client sends it.
pub fn encode<W: AsRef<[u8]>>(words: &[W]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        let word = word.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// The words of a line, split at spaces; `""` is the empty word.
pub fn words(line: &str) -> Vec<Vec<u8>> {
    let words = line.split(' ').filter(|word| !word.is_empty());
    words.map(|word| if word == "\"\"" { Vec::new() } else { word.as_bytes().to_vec() }).collect()
}

/// Bytes as text for messages.
pub fn shown(bytes: &[u8]) -> String {
    let text = bytes.escape_ascii().to_string();
    match text.char_indices().nth(300) {
        Some((end, _)) => format!("{}... ({} bytes)", &text[..end], bytes.len()),
        None => text,
    }
}

/// A seed from the environment, or this one; printed, so that a failure can be repeated.
pub fn seed(name: &str, default: u64) -> u64 {
    let seed = std::env::var(name).ok().and_then(|seed| seed.parse().ok()).unwrap_or(default);
    println!("{name}={seed}");
    seed
}
