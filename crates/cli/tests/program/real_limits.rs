//! Limits of a server: a full device, signals, restarts, formats of the future.

use crate::support::noise;
use crate::support::program::{Backend, check_clean, format, said, softflash};
use crate::support::resp::Reply;
use crate::support::server::Server;
use crate::support::setting;
use softflash_base::checksum64;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;

/// The operations allowed on a full device, and its return to normal use.
#[test]
fn a_full_device_refuses_writes_until_deletes_have_made_room() {
    const DEVICE: u64 = 512 * MIB;
    const VALUE: u64 = 64 << 10;
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    format(&data, Backend::File, DEVICE);
    let server = Server::start(&data, &["--memory", "32MiB"]);
    let mut client = server.client();
    let key = |number: u64| format!("key:{number}").into_bytes();
    let value = |number: u64| noise(number, VALUE as usize);

    // In batches, until a write is refused.
    let (mut stored, mut refused) = (Vec::new(), Vec::new());
    for batch in (0..DEVICE / VALUE).step_by(16) {
        for number in batch..batch + 16 {
            client.send(&[b"SET", &key(number), &value(number)]).unwrap();
        }
        for number in batch..batch + 16 {
            match client.receive().unwrap() {
                reply if reply.is_ok() => stored.push(number),
                reply => {
                    assert!(reply.is_full(), "a full device answers OOM, not {reply:?}");
                    refused.push(number);
                }
            }
        }
        if !refused.is_empty() {
            break;
        }
    }
    let bytes = stored.len() as u64 * VALUE;
    eprintln!("full after {} of {} MiB", bytes / MIB, DEVICE / MIB);
    assert!(!refused.is_empty(), "the device takes more than its size");
    assert!(bytes > DEVICE / 8, "full after only {bytes} bytes");

    // Acknowledged values can be read, and refused writes have left nothing.
    for number in stored.iter().step_by(37) {
        assert_eq!(client.get(&key(*number)), Some(value(*number)), "value {number}");
    }
    for number in refused {
        assert_eq!(client.get(&key(number)), None, "value {number}");
    }

    // Deletes are accepted and free space.
    let kept = stored.split_off(stored.len() / 2);
    for number in stored {
        assert_eq!(client.call(&[b"DEL", &key(number)]), Reply::Integer(1), "delete {number}");
    }
    let started = Instant::now();
    let mut written = 0;
    while written < 100 {
        match client.set(&format!("again:{written}").into_bytes(), &value(written)) {
            reply if reply.is_ok() => written += 1,
            reply => {
                assert!(reply.is_full(), "{reply:?}");
                assert!(started.elapsed() < Duration::from_secs(60), "deletes make no room");
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }
    for number in kept.iter().step_by(29) {
        assert_eq!(client.get(&key(*number)), Some(value(*number)), "value {number}");
    }
    drop(client);
    assert!(server.terminate().success());
    check_clean(&data);

    let server = Server::start(&data, &["--memory", "32MiB"]);
    let mut client = server.client();
    assert_eq!(client.call(&[b"DBSIZE"]).integer() as usize, kept.len() + 100);
    assert_eq!(client.get(b"again:99"), Some(value(99)));
}

/// Repeated starts, alternating between clean ends and kills; each start finds the contents of the
/// last.
#[test]
fn restarts_find_the_contents_of_the_last_run() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    format(&data, Backend::File, 512 * MIB);
    for round in 0..setting("SOFTFLASH_RESTARTS", 8) {
        let server = Server::start(&data, &["--memory", "32MiB"]);
        let mut client = server.client();
        assert_eq!(client.call(&[b"INCR", b"rounds"]).integer() as u64, round + 1);
        for earlier in 0..round {
            let key = format!("round:{earlier}").into_bytes();
            assert_eq!(client.get(&key), Some(noise(earlier, 100_000)), "round {earlier}");
        }
        let key = format!("round:{round}").into_bytes();
        assert!(client.set(&key, &noise(round, 100_000)).is_ok());
        match round % 2 {
            0 => server.kill(),
            _ => assert!(server.terminate().success()),
        }
    }
    check_clean(&data);
}

/// Every command answered before SIGTERM counts, also with interval durability; commands in
/// progress are answered or the connection ends, and the process exits with 0.
#[test]
fn sigterm_drains_and_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    format(&data, Backend::File, 512 * MIB);
    let mut server = Server::start(&data, &["--memory", "32MiB", "--durability", "30s"]);
    let acknowledged: Vec<u64> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..3_u64)
            .map(|writer| {
                let mut client = server.client();
                scope.spawn(move || {
                    let mut count = 0;
                    loop {
                        let key = format!("{writer}:{count}").into_bytes();
                        match client.try_call(&[b"SET", &key, &noise(count, 1000)]) {
                            Ok(reply) if reply.is_ok() => count += 1,
                            // Later commands are refused with an error or by closing the
                            // connection.
                            Ok(_) | Err(_) => return count,
                        }
                    }
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(500));
        server.signal_term();
        let status = server.wait();
        assert!(status.success(), "after SIGTERM: {status}");
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    assert!(acknowledged.iter().all(|count| *count > 10), "{acknowledged:?}");
    check_clean(&data);

    let server = Server::start(&data, &["--memory", "32MiB"]);
    let mut client = server.client();
    for (writer, count) in acknowledged.iter().enumerate() {
        for number in 0..*count {
            let key = format!("{writer}:{number}").into_bytes();
            assert_eq!(client.get(&key), Some(noise(number, 1000)), "{writer}:{number}");
        }
    }
}

/// Expected behaviour of a command with a directory of a newer version: name it, say what to do,
/// and change nothing.
fn refuses(data: &Path, words: &[&str]) {
    let before = contents(data);
    let data_text = data.to_str().unwrap();
    let commands: [&[&str]; 3] = [
        &["serve", "--data", data_text, "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0"],
        &["units", data_text],
        &["check", data_text],
    ];
    for arguments in commands {
        let output = softflash(arguments);
        let said = said(&output);
        assert!(!output.status.success(), "{arguments:?}: {said}");
        for word in words.iter().chain([&data_text]) {
            assert!(said.contains(word), "{arguments:?} names `{word}`: {said}");
        }
    }
    assert!(before == contents(data), "something was written to {data_text}");
}

/// Names and contents of all files except the lock.
fn contents(data: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(data).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<_> = entries
        .filter(|entry| entry.file_name() != "lock")
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn a_directory_of_a_newer_version_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    format(&data, Backend::File, 256 * MIB);
    let manifest = data.join("softflash.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    assert!(text.contains("format_version = 4"), "{text}");
    fs::write(&manifest, text.replace("format_version = 4", "format_version = 8")).unwrap();
    refuses(&data, &["8", "newer softflash"]);
}

#[test]
fn a_device_of_a_newer_version_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    format(&data, Backend::File, 256 * MIB);
    let device = data.join("flash.sfd");
    let mut bytes = fs::read(&device).unwrap();
    for copy in [0, 512 << 10] {
        make_label_newer(&mut bytes[copy..]);
    }
    fs::write(&device, bytes).unwrap();
    refuses(&data, &["2", "newer softflash"]);
}

/// Rewrites a copy of the device label as a later version would: another version number, and a
/// valid checksum.
fn make_label_newer(copy: &mut [u8]) {
    let word = |copy: &[u8], at: usize| u32::from_le_bytes(copy[at..at + 4].try_into().unwrap());
    assert_eq!(&copy[..8], b"SFLABEL\x1a");
    assert_eq!(word(copy, 8), 1);
    copy[8..12].copy_from_slice(&2_u32.to_le_bytes());
    let end = 40 + word(copy, 12) as usize + 8 * word(copy, 24) as usize;
    let covered = [&copy[..32], &copy[40..end]].concat();
    let sum = checksum64(u64::from_le_bytes(*b"SFLABEL\x1a"), &covered);
    copy[32..40].copy_from_slice(&sum.to_le_bytes());
}
