//! `kill -9` at random moments, also during recovery, with an oracle outside of the server process
//! that knows which writes were acknowledged.
//!
//! `SOFTFLASH_KILL_SECONDS` sets the duration (`cargo xtask kill9`), `SOFTFLASH_TEST_SEED` the seed
//! of all choices; the exact moment of a kill is not reproducible.

#[path = "kills/oracle.rs"]
mod oracle;

use crate::support::program::{Backend, check_clean, format_with};
use crate::support::resp::{Client, Reply};
use crate::support::server::Server;
use crate::support::setting;
use oracle::{Change, Oracle};
use softflash_base::random::Rng;
use std::io;
use std::time::{Duration, Instant};

/// Number of clients, each with its own keys.
const CLIENTS: u64 = 4;
/// Maximum number of requests in a pipeline.
const MOST_IN_PIPELINE: u64 = 4;
/// Little memory, so that flushes and compactions run all the time.
const ARGUMENTS: [&str; 2] = ["--memory", "32MiB"];

#[test]
fn acknowledged_writes_survive_kills_at_any_moment() {
    let fresh = u64::from(std::process::id()) << 20 | u64::from(crate::support::time_of_day_us());
    let seed = setting("SOFTFLASH_TEST_SEED", fresh);
    let seconds = setting("SOFTFLASH_KILL_SECONDS", 0);
    println!("replay with SOFTFLASH_TEST_SEED={seed}");
    let mut rng = Rng::seeded(seed);
    let temp = tempfile::tempdir().unwrap();
    let data = temp.path().join("data");
    format_with(&data, Backend::File, 512 << 20, &["--units", "4", "--shards", "2"]);
    let mut oracles: Vec<Oracle> = (0..CLIENTS)
        .map(|client| Oracle::new(client, rng.fork(format!("client {client}"))))
        .collect();
    let (started, mut kills, mut in_recovery) = (Instant::now(), 0, 0);
    while kills < 4 || started.elapsed() < Duration::from_secs(seconds) {
        while rng.chance(0.4) {
            Server::kill_while_starting(&data, &ARGUMENTS, Duration::from_millis(rng.below(150)));
            in_recovery += 1;
        }
        let server = Server::start(&data, &ARGUMENTS);
        compare(&server, &mut oracles);
        let life = Duration::from_millis(1 + rng.below(700));
        std::thread::scope(|scope| {
            for oracle in &mut oracles {
                let client = server.client();
                scope.spawn(|| write_until_killed(client, oracle));
            }
            std::thread::sleep(life);
            server.kill();
        });
        kills += 1;
    }
    let server = Server::start(&data, &ARGUMENTS);
    let keys = compare(&server, &mut oracles);
    assert!(server.terminate().success());
    check_clean(&data);
    let answered: u64 = oracles.iter().map(|oracle| oracle.answered).sum();
    println!(
        "{kills} kills of a server at work and {in_recovery} of one that starts, {answered} requests \
         acknowledged, {keys} keys at the end, 0 failures"
    );
    assert!(answered > 100, "the server was hardly at work: {answered} requests");
}

/// Looks up every key and asks the oracles; returns the number of keys.
fn compare(server: &Server, oracles: &mut [Oracle]) -> usize {
    let mut client = server.client();
    let (mut there, mut wrong) = (0, Vec::new());
    for oracle in oracles {
        let found: Vec<_> = oracle.keys().iter().map(|key| client.get(key)).collect();
        there += found.iter().flatten().count();
        wrong.extend(oracle.judge(&found));
    }
    assert!(wrong.is_empty(), "after a kill:\n{}", wrong.join("\n"));
    there
}

/// Sends requests in small pipelines until the connection breaks.
fn write_until_killed(mut client: Client, oracle: &mut Oracle) {
    loop {
        let count = 1 + oracle.pick(MOST_IN_PIPELINE);
        let changes: Vec<Change> = (0..count).map(|_| oracle.change()).collect();
        let commands = || changes.iter().flat_map(|change| &change.commands);
        for command in commands() {
            let words: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
            if client.send(&words).is_err() {
                return;
            }
        }
        for change in &changes {
            match answered(&mut client, change.commands.len()) {
                Ok(()) => oracle.answer(),
                Err(_) => return,
            }
        }
    }
}

/// Receives the replies of a request. No request may be refused.
fn answered(client: &mut Client, replies: usize) -> io::Result<()> {
    for _ in 0..replies {
        let reply = client.receive()?;
        assert!(!matches!(reply, Reply::Error(_)), "{reply:?}");
    }
    Ok(())
}

#[test]
fn a_directory_that_is_being_made_when_the_server_is_killed_is_made_again() {
    let fresh = u64::from(crate::support::time_of_day_us());
    let seed = setting("SOFTFLASH_TEST_SEED", fresh);
    println!("replay with SOFTFLASH_TEST_SEED={seed}");
    let mut rng = Rng::seeded(seed);
    for round in 0..setting("SOFTFLASH_RESTARTS", 8).min(50) {
        let temp = tempfile::tempdir().unwrap();
        let data = temp.path().join("data");
        Server::kill_while_starting(&data, &ARGUMENTS, Duration::from_millis(rng.below(60)));
        let server = Server::start(&data, &ARGUMENTS);
        assert!(server.client().set(b"k", b"v").is_ok(), "round {round}");
        assert!(server.terminate().success());
    }
}
