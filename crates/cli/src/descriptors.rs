//! The limit of open files: a server admits at most as many clients as it has descriptors for.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use softflash_console::host;
use softflash_console::output;

/// Descriptors that a server needs besides its clients: rings, files and wakers of each thread, and
/// some for the process.
const OF_A_THREAD: u64 = 16;
const OF_THE_REST: u64 = 32;

/// Raises the limit of open files as far as these clients need and the system allows. Returns the
/// number of clients that fit: further clients would wait without a reply.
pub fn room_for(max_clients: usize) -> usize {
    let own = OF_THE_REST + OF_A_THREAD * u64::from(host::cores());
    let wanted = own.saturating_add(max_clients as u64);
    let limit = getrlimit(Resource::Nofile);
    let unlimited = u64::MAX;
    let (mut current, most) =
        (limit.current.unwrap_or(unlimited), limit.maximum.unwrap_or(unlimited));
    if current < wanted {
        let raised = wanted.min(most);
        let limit = Rlimit { current: Some(raised), maximum: limit.maximum };
        if setrlimit(Resource::Nofile, limit).is_ok() {
            current = raised;
        }
    }
    if current >= wanted {
        return max_clients;
    }
    let room = current.saturating_sub(own).max(1) as usize;
    output::say(&format!(
        "at most {room} clients at a time, not {max_clients}: the limit is {current} open files (`ulimit -n`)"
    ));
    room
}
