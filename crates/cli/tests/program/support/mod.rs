//! Shared parts of the end-to-end tests: the program, a server, a plain RESP client, a tree of real
//! files, and deliberate damage.

pub mod certificates;
pub mod clients;
pub mod damage;
pub mod http;
pub mod mute;
pub mod nbd;
pub mod program;
pub mod resp;
pub mod second_load;
pub mod server;
pub mod signals;
pub mod tls;
pub mod tree;

/// A deterministic stream of incompressible bytes, so that sizes on flash are as expected.
pub fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Whether a command writes, or has left, an unfinished file in a directory.
pub fn has_unfinished(directory: &std::path::Path) -> bool {
    let names = std::fs::read_dir(directory).expect("the directory can be read");
    let names = names.map(|entry| entry.expect("an entry").file_name());
    names.into_iter().any(|name| name.to_string_lossy().ends_with(".tmp"))
}

/// A number that differs in every run, for seeds.
pub fn time_of_day_us() -> u32 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.expect("the clock is set").subsec_micros()
}

/// A number from an environment variable, or `default`. Longer forms of tests are selected that
/// way.
pub fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text}: not a number")),
        Err(_) => default,
    }
}
