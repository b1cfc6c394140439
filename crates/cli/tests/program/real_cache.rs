//! A server as a cache: values with expiry are written without end to a small device.

use crate::support::noise;
use crate::support::program::{Backend, check_clean, format};
use crate::support::server::Server;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

/// Values that live for half a second are written as fast as they go, for several times the size of
/// the device: none is refused, because the space of expired ones is taken back in time.
#[test]
fn a_cache_does_not_fill_up() {
    const DEVICE: u64 = 512 * MIB;
    const VALUE: usize = 64 << 10;
    const PIPELINE: u64 = 8;
    /// Slow machines write less: the device is written at least twice.
    const WRITTEN: u64 = 2 * DEVICE / VALUE as u64;
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    format(&data, Backend::File, DEVICE);
    let server = Server::start(&data, &["--memory", "64MiB", "--durability", "1s"]);
    let mut client = server.client();
    let value = noise(7, VALUE);
    let (began, mut number, mut longest) = (Instant::now(), 0, Duration::ZERO);
    while number < WRITTEN || number < 8 * WRITTEN && began.elapsed() < Duration::from_secs(6) {
        let sent = Instant::now();
        for key in number..number + PIPELINE {
            let key = format!("key:{key}").into_bytes();
            client.send(&[b"SET", &key, &value, b"PX", b"500"]).unwrap();
        }
        for _ in 0..PIPELINE {
            let reply = client.receive().unwrap();
            assert!(reply.is_ok(), "value {number}: {reply:?}");
        }
        number += PIPELINE;
        longest = longest.max(sent.elapsed());
    }
    let written = number * VALUE as u64;
    eprintln!("{} MiB to {} MiB, longest wait {longest:?}", written / MIB, DEVICE / MIB);
    assert_eq!(client.flash_stat("refused_writes"), 0);
    assert!(client.flash_stat("value_bytes_written") >= written);
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(client.get(b"key:1"), None, "expired");
    assert!(client.set(b"last", &value).is_ok());
    server.terminate();
    check_clean(&data);
}
