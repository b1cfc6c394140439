//! `softflash format`: completely or not at all, whatever ends it, and checked before anything is
//! lost.

use crate::support::clients::skip;
use crate::support::program::{Backend, binary, fails, format, said, softflash};
use crate::support::server::Server;
use crate::support::{setting, signals, time_of_day_us};
use softflash_base::random::Rng;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const MIB: u64 = 1 << 20;
const SHARES: [&str; 6] = ["--units", "4", "--shards", "1", "--volume-units", "1"];

fn formatting(directory: &Path, backend: &str, more: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.arg("format").arg(directory).args(["--backend", backend, "--size", "256MiB"]);
    command.args(SHARES).args(more).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Kills formats at random moments of their lives. Returns how many had begun and not ended.
fn kill_formats(backend: &str, rng: &mut Rng, rounds: u64) -> u64 {
    let temp = tempfile::tempdir().unwrap();
    let began = Instant::now();
    let whole = formatting(&temp.path().join("whole"), backend, &[]).output().unwrap();
    assert!(whole.status.success(), "{}", said(&whole));
    let life_us = began.elapsed().as_micros() as u64;
    let mut unfinished = 0;
    for round in 0..rounds {
        let data = temp.path().join(format!("data{round}"));
        let mut child = formatting(&data, backend, &[]).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(rng.below(life_us)));
        child.kill().unwrap();
        child.wait().unwrap();
        if data.join("softflash.toml").exists() {
            let info = softflash(["info".as_ref(), data.as_os_str()]);
            assert!(info.status.success(), "round {round}: {}", said(&info));
        } else {
            unfinished += u64::from(data.exists());
            // Every second remains are left to `serve`, which makes its default directory.
            if round.is_multiple_of(2) {
                let again = formatting(&data, backend, &[]).output().unwrap();
                assert!(again.status.success(), "round {round}: {}", said(&again));
            }
        }
        let server = Server::start(&data, &["--memory", "32MiB"]);
        assert!(server.client().set(b"k", b"v").is_ok(), "round {round}");
        assert!(server.terminate().success());
        fs::remove_dir_all(&data).unwrap();
    }
    unfinished
}

#[test]
fn a_killed_format_leaves_a_whole_directory_or_one_that_format_and_serve_take() {
    let seed = setting("SOFTFLASH_TEST_SEED", u64::from(time_of_day_us()));
    println!("replay with SOFTFLASH_TEST_SEED={seed}");
    let mut rng = Rng::seeded(seed);
    let rounds = setting("SOFTFLASH_RESTARTS", 8);
    let unfinished = ["file", "model"].map(|backend| kill_formats(backend, &mut rng, rounds));
    println!("of {rounds} formats each, {unfinished:?} were killed half-way");
}

/// Runs a command and sends it a signal after a random time, if it has not ended by then. It must
/// end.
fn signalled(command: &mut Command, signal: libc::c_int, after: Duration) {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(after);
    if child.try_wait().unwrap().is_none() {
        signals::send(&child, signal);
    }
    let deadline = Instant::now() + Duration::from_secs(30);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("signal {signal} after {after:?} is lost: {command:?}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_signal_while_a_directory_is_made_ends_the_program_and_leaves_all_or_nothing() {
    let seed = setting("SOFTFLASH_TEST_SEED", u64::from(time_of_day_us()));
    println!("replay with SOFTFLASH_TEST_SEED={seed}");
    let mut rng = Rng::seeded(seed);
    let temp = tempfile::tempdir().unwrap();
    for round in 0..setting("SOFTFLASH_RESTARTS", 8) * 5 {
        let data = temp.path().join(format!("data{round}"));
        let is_there = rng.chance(0.5);
        if is_there {
            fs::create_dir(&data).unwrap();
        }
        let mut command = match rng.chance(0.5) {
            true => formatting(&data, "file", &[]),
            false => {
                let mut serve = Command::new(binary());
                serve.args(["serve", "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data"]);
                serve.arg(&data);
                serve
            }
        };
        let signal = if rng.chance(0.5) { libc::SIGINT } else { libc::SIGTERM };
        signalled(&mut command, signal, Duration::from_micros(rng.below(60_000)));
        if !data.join("softflash.toml").exists() {
            let left = fs::read_dir(&data).map_or(0, Iterator::count);
            assert_eq!(left, 0, "round {round}: {command:?} with signal {signal}");
            assert_eq!(data.exists(), is_there, "round {round}: {command:?}");
        }
        // A server's default device has 8 GiB.
        if data.exists() {
            fs::remove_dir_all(&data).unwrap();
        }
    }
}

#[test]
fn a_format_with_force_that_is_killed_leaves_the_old_directory_or_one_that_format_takes() {
    let seed = setting("SOFTFLASH_TEST_SEED", u64::from(time_of_day_us()));
    println!("replay with SOFTFLASH_TEST_SEED={seed}");
    let mut rng = Rng::seeded(seed);
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format(&data, Backend::File, 256 * MIB);
    for round in 0..setting("SOFTFLASH_RESTARTS", 8) {
        let mut child = formatting(&data, "file", &["--force"]).spawn().unwrap();
        std::thread::sleep(Duration::from_micros(rng.below(40_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let is_whole = data.join("softflash.toml").exists();
        let force: &[&str] = if is_whole { &["--force"] } else { &[] };
        let again = formatting(&data, "file", force).output().unwrap();
        assert!(again.status.success(), "round {round}, whole: {is_whole}: {}", said(&again));
    }
}

#[test]
fn what_a_format_with_force_cannot_do_is_refused_before_anything_is_deleted() {
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format(&data, Backend::File, 256 * MIB);
    let server = Server::start(&data, &["--memory", "32MiB"]);
    assert!(server.client().set(b"k", b"v").is_ok());
    assert!(server.terminate().success());
    let path = data.to_str().unwrap();
    let refused = |code: i32, more: &[&str], parts: &[&str]| {
        fails(code, &[&["format", path, "--force"], more].concat(), parts);
        assert!(
            data.join("flash.sfd").exists() && data.join("softflash.toml").exists(),
            "{more:?}"
        );
    };
    refused(2, &["--size", "1MiB"], &["too few", "are needed"]);
    refused(
        2,
        &["--size", "32MiB", "--units", "2", "--shards", "2"],
        &["holds no data", "at least"],
    );
    refused(1, &["--size", "4EiB"], &["no space for"]);
    let no_volumes = ["--units", "4", "--shards", "1", "--volume-units", "1"];
    refused(2, &[&["--size", "50MiB"], &no_volumes[..]].concat(), &["leave no space for data"]);
    refused(2, &["--size", "256MiB", "--units", "0"], &["0 units cannot be spread"]);
    refused(2, &["--backend", "model", "--size", "1MiB"], &["multiple of"]);
    refused(2, &["--backend", "model", "--size", "1EiB", "--preset", "tlc"], &["the most is"]);
    refused(1, &["--block-device", "/dev/null"], &["neither a regular file nor a block device"]);
    refused(1, &["--block-device", "/dev/nothing"], &["/dev/nothing", "not found"]);
    let mistyped = ["--block-device", "/dev/nothing", "--size", "1GiB"];
    refused(1, &mistyped, &["/dev/nothing", "not found"]);
    assert!(!Path::new("/dev/nothing").exists());
    let server = Server::start(&data, &["--memory", "32MiB"]);
    assert_eq!(server.client().get(b"k").as_deref(), Some(&b"v"[..]), "the data are there");
    assert!(server.terminate().success());
}

/// A file system of 80 MiB with a device of 64 MiB, of which a process keeps the file open for a
/// moment, as the kernel does for one that has ended: a new device has room only in its place. Then
/// a second name keeps the old file.
const IN_PLACE: &str = r#"
    mount -t tmpfs -o size=80m tmpfs "$0" || exit 77
    new() { "$1" format "$2/data" --size 64MiB --units 2 --shards 1 $3; }
    new "$1" "$0" "" || exit 78
    exec 3<"$0/data/flash.sfd"; sleep 1 <&3 & exec 3<&-
    new "$1" "$0" --force || exit 79
    wait; ln "$0/data/flash.sfd" "$0/second"
    new "$1" "$0" --force && exit 80
    "$1" check "$0/data"
"#;

#[test]
fn forced_format_takes_the_space_of_the_old_device_or_leaves_it() {
    let temp = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    command.args(["-rm", "sh", "-c", IN_PLACE]).arg(temp.path()).arg(binary());
    let output = command.output().unwrap();
    if output.status.code() == Some(77) || said(&output).contains("unshare failed") {
        return skip("namespaces for mounts");
    }
    assert!(output.status.success(), "{}: {}", output.status, said(&output));
    assert!(said(&output).contains("no space for"), "the second name: {}", said(&output));
}
