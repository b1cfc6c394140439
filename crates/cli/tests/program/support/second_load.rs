//! A second load over the first, interrupted by `kill -9`, and the required contents after it.

use super::resp::Client;
use super::server::Server;
use super::tree::{Tree, key, shown};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Pipeline depth of each connection.
const AHEAD: usize = 8;

/// The part of the second load that must survive the crash.
#[derive(Debug, Clone, Copy)]
pub enum Promise {
    /// All acknowledged writes.
    Acknowledged,
    /// All writes acknowledged this long before the crash; and of each connection's writes, a
    /// prefix. That requires that all keys are in one slot.
    PrefixUpTo(Duration),
}

/// The second load up to the crash.
pub struct SecondLoad {
    /// For each connection: its files in the order of its writes, and when each was acknowledged.
    writes: Vec<Vec<(usize, Option<Instant>)>>,
    killed_at: Instant,
}

/// The contents of the second load: different from the first and longer.
fn marked(path: &[u8], content: &[u8]) -> Vec<u8> {
    [b"second load of ", path, b"\n", content].concat()
}

/// Overwrites the tree over several connections and kills the server when half of it is
/// acknowledged.
pub fn kill_in_the_middle(
    server: Server,
    tree: &Tree,
    prefix: &[u8],
    connections: usize,
) -> SecondLoad {
    let acknowledged = AtomicUsize::new(0);
    let target = tree.files.len() / 2;
    let address = server.address();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..connections)
            .map(|first| {
                let files: Vec<usize> = (first..tree.files.len()).step_by(connections).collect();
                let acknowledged = &acknowledged;
                scope.spawn(move || write(address, tree, prefix, files, acknowledged))
            })
            .collect();
        let started = Instant::now();
        while acknowledged.load(Ordering::Relaxed) < target {
            let waited = started.elapsed();
            assert!(waited < Duration::from_secs(120), "the second load does not get to its half");
            std::thread::sleep(Duration::from_micros(200));
        }
        let killed_at = Instant::now();
        server.kill();
        let writes = writers.into_iter().map(|writer| writer.join().expect("a writer")).collect();
        let load = SecondLoad { writes, killed_at };
        assert!(load.acknowledged() < tree.files.len(), "killed after the end, not in the middle");
        load
    })
}

/// One connection; ends when it breaks.
fn write(
    address: SocketAddr,
    tree: &Tree,
    prefix: &[u8],
    files: Vec<usize>,
    acknowledged: &AtomicUsize,
) -> Vec<(usize, Option<Instant>)> {
    let mut client = Client::connect(address);
    let mut writes: Vec<_> = files.iter().map(|file| (*file, None)).collect();
    let mut waiting = VecDeque::new();
    for (place, file) in files.iter().enumerate() {
        let (path, content) = &tree.files[*file];
        let sent = client.send(&[b"SET", &key(prefix, path), &marked(path, content)]);
        if sent.is_err() {
            break;
        }
        waiting.push_back(place);
        while waiting.len() > AHEAD {
            if !receive(&mut client, &mut waiting, &mut writes, acknowledged) {
                return writes;
            }
        }
    }
    while !waiting.is_empty() && receive(&mut client, &mut waiting, &mut writes, acknowledged) {}
    writes
}

fn receive(
    client: &mut Client,
    waiting: &mut VecDeque<usize>,
    writes: &mut [(usize, Option<Instant>)],
    acknowledged: &AtomicUsize,
) -> bool {
    let Ok(reply) = client.receive() else { return false };
    assert!(reply.is_ok(), "SET: {reply:?}");
    let place = waiting.pop_front().expect("a command waits");
    writes[place].1 = Some(Instant::now());
    acknowledged.fetch_add(1, Ordering::Relaxed);
    true
}

impl SecondLoad {
    fn acknowledged(&self) -> usize {
        self.writes.iter().flatten().filter(|(_, at)| at.is_some()).count()
    }

    /// Every key has exactly the contents of the first load or those of the second, and those of
    /// the second where required.
    pub fn verify(&self, client: &mut Client, tree: &Tree, prefix: &[u8], promise: Promise) {
        let (mut old, mut new) = (0, 0);
        for writes in &self.writes {
            let mut first_old: Option<usize> = None;
            for &(file, acknowledged) in writes {
                let (path, content) = &tree.files[file];
                let got = client.get(&key(prefix, path));
                let got = got.unwrap_or_else(|| panic!("{} is gone", shown(path)));
                let is_new = got == marked(path, content);
                assert!(is_new || got == *content, "{} is neither old nor new", shown(path));
                match is_new {
                    true => new += 1,
                    false => old += 1,
                }
                let due = match promise {
                    Promise::Acknowledged => acknowledged.is_some(),
                    Promise::PrefixUpTo(span) => {
                        acknowledged.is_some_and(|at| at + span < self.killed_at)
                    }
                };
                assert!(is_new || !due, "{}: an acknowledged write is lost", shown(path));
                if let (Promise::PrefixUpTo(_), true, Some(lost)) = (promise, is_new, first_old) {
                    let lost = shown(&tree.files[lost].0);
                    panic!("{} is new although {lost}, written before it, is not", shown(path));
                }
                if !is_new {
                    first_old = first_old.or(Some(file));
                }
            }
        }
        eprintln!("{} acknowledged; after the crash {new} new, {old} old", self.acknowledged());
        assert!(old > 0, "the crash came too late to show anything");
    }
}
