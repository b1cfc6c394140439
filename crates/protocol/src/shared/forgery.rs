//! HTTP on a port for commands: a web page, or a program that fetches addresses for others, can
//! send lines of its choice there (cross-protocol request forgery). Like Redis, the connection is
//! closed at the first word that only HTTP has, before the body of the request.

use crate::shared::lock::lock;
use softflash_base::Time;
use std::sync::Mutex;
use std::time::Duration;

/// The log has at most one line within this time.
const QUIET: Duration = Duration::from_secs(60);

/// Whether a request with this first word is a line of HTTP: the method of requests with a body, or
/// the header that every request has.
#[inline]
pub(crate) fn is_http(name: &[u8]) -> bool {
    match name.len() {
        4 => name.eq_ignore_ascii_case(b"POST"),
        5 => name.eq_ignore_ascii_case(b"HOST:"),
        _ => false,
    }
}

/// The log's lines about such connections.
#[derive(Debug, Default)]
pub(crate) struct ForgeryLog {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    told_at: Option<Time>,
    /// Connections closed since then.
    untold: u64,
}

impl ForgeryLog {
    /// The connection of the client at `address` is closed.
    pub fn tell(&self, address: &str, now: Time) {
        if let Some(untold) = self.untold(now) {
            tracing::warn!(
                address,
                untold,
                "a client sent HTTP to the port for Redis commands, and its connection was closed: \
                 a web page or a redirected request may try to run commands (docs/security.md); \
                 `untold` more since the last such line, and the next line comes in a minute at \
                 the earliest"
            );
        }
    }

    /// The number of connections since the last line, if a line is due.
    fn untold(&self, now: Time) -> Option<u64> {
        let mut state = lock(&self.state);
        if state.told_at.is_some_and(|at| now < at + QUIET) {
            state.untold += 1;
            return None;
        }
        state.told_at = Some(now);
        Some(std::mem::take(&mut state.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_http_are_taken_for_it() {
        for name in ["POST", "post", "PoSt", "Host:", "host:", "HOST:"] {
            assert!(is_http(name.as_bytes()), "{name}");
        }
        for name in ["GET", "HOST", "POSTS", "PING", "Host", "Accept:", ""] {
            assert!(!is_http(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn the_log_has_one_line_a_minute_and_counts_the_others() {
        let log = ForgeryLog::default();
        let at = |seconds| Time(0) + Duration::from_secs(seconds);
        assert_eq!(log.untold(at(5)), Some(0));
        assert_eq!((log.untold(at(6)), log.untold(at(64))), (None, None));
        assert_eq!(log.untold(at(65)), Some(2));
        assert_eq!(log.untold(at(300)), Some(0));
    }
}
