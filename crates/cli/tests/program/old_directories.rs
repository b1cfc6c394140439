//! A directory that a program of before has written is served, with all that it holds.

use crate::support::nbd::{NbdClient, READ_ONLY};
use crate::support::program::check_clean;
use crate::support::resp::Client;
use crate::support::server::Server;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const MIB: usize = 1 << 20;

/// Unpacks the directory of a fixture, which its `make.py` has made.
fn unpack(fixture: &str, into: &Path) -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(fixture);
    let data = into.join("data");
    fs::create_dir(&data).unwrap();
    fs::copy(from.join("softflash.toml"), data.join("softflash.toml")).unwrap();
    let packed = File::open(from.join("flash.sfd.zst")).unwrap();
    let mut contents = zstd::stream::Decoder::new(packed).unwrap();
    let mut device = File::create(data.join("flash.sfd")).unwrap();
    let (mut block, mut bytes) = (vec![0; MIB], 0);
    loop {
        let count = contents.read(&mut block).unwrap();
        if count == 0 {
            break;
        }
        // Zeros are holes.
        if block[..count].iter().any(|byte| *byte != 0) {
            device.seek(SeekFrom::Start(bytes)).unwrap();
            device.write_all(&block[..count]).unwrap();
        }
        bytes += count as u64;
    }
    device.set_len(bytes).unwrap();
    data
}

/// The value of a key, as `make.py` has set it.
fn small(key: u32) -> Option<Vec<u8>> {
    match key % 4 {
        0 => Some(format!("second {key}").into_bytes()),
        1 => None,
        _ => Some(format!("first {key}").into_bytes()),
    }
}

fn check_keys(client: &mut Client) {
    for key in 0..400 {
        assert_eq!(client.get(format!("small:{key}").as_bytes()), small(key), "small:{key}");
    }
    assert_eq!(client.get(b"large:0"), Some(vec![0xaa; 200_000]));
    for key in 1..12 {
        let value = client.get(format!("large:{key}").as_bytes());
        assert_eq!(value, Some(vec![key; 100_000]), "large:{key}");
    }
    assert_eq!(client.get(b"gone"), None);
    for key in (2..400).step_by(40) {
        let expires = client.call(&[b"EXPIRETIME", format!("small:{key}").as_bytes()]);
        assert_eq!(expires.integer(), 4_102_444_800, "small:{key}");
    }
    // A key whose time has passed counts until it is removed.
    let keys = client.call(&[b"DBSIZE"]).integer();
    assert!((300 + 12..=300 + 12 + 1).contains(&keys), "{keys} keys");
}

/// Runs of equal bytes of a volume, as `make.py` has written them: (bytes, value).
fn check_volume(server: &Server, name: &str, runs: &[(usize, u8)]) {
    let mut volume = NbdClient::connect(server.address_of("nbd"), name);
    assert_eq!(volume.size_bytes, 16 * MIB as u64);
    assert_eq!(volume.flags & READ_ONLY != 0, name.contains('@'), "{name}");
    let mut at = 0;
    for &(bytes, value) in runs {
        let found = volume.read(at as u64, bytes).unwrap();
        assert!(found.iter().all(|byte| *byte == value), "{name} at {at}: {value:#x} is wanted");
        at += bytes;
    }
    assert_eq!(at, 16 * MIB, "the runs are all of {name}");
}

#[test]
fn a_directory_of_the_main_before_data_directories_were_a_library_is_served_whole() {
    let temp = TempDir::new().unwrap();
    let data = unpack("directory-of-2026-11-27", temp.path());
    // Twice: what the first opening has replayed, the second finds in patches and a root.
    for written in [false, true] {
        let server = Server::start(&data, &["--nbd", "127.0.0.1:0"]);
        check_keys(&mut server.client());
        let page = 4096;
        let monday = [(MIB, 0x11), (page, 0x12), (7 * MIB - page, 0x11), (8 * MIB, 0)];
        check_volume(&server, "disk@monday", &monday);
        let disk = [
            (MIB, 0x11),
            (page, 0x12),
            (MIB - page, 0x11),
            (MIB, 0x13),
            (MIB, 0x11),
            (MIB, 0),
            (3 * MIB, 0x11),
            (8 * MIB - page, 0),
            (page, if written { 0x31 } else { 0 }),
        ];
        check_volume(&server, "disk", &disk);
        let logs = [(MIB / 2, 0x21), (65536, 0x22), (MIB / 2 - 65536, 0x21), (15 * MIB, 0)];
        check_volume(&server, "logs", &logs);
        let mut volume = NbdClient::connect(server.address_of("nbd"), "disk");
        assert_eq!(volume.write((16 * MIB - page) as u64, &vec![0x31; page]), 0);
        assert_eq!(volume.flush(), 0);
        assert!(server.client().set(b"small:0", b"second 0").is_ok());
        assert!(server.terminate().success());
        check_clean(&data);
    }
}
