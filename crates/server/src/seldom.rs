//! Lines of the log that clients can cause as often as they like: each kind is written seldom, and
//! the next line counts those that were left out.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The shortest time between two lines of a kind.
const PERIOD: Duration = Duration::from_secs(10);

/// One kind of line.
pub(crate) struct Seldom {
    state: Mutex<State>,
}

struct State {
    last: Option<Instant>,
    left_out: u64,
}

impl Seldom {
    /// A kind that was not written yet.
    pub const fn new() -> Seldom {
        Seldom { state: Mutex::new(State { last: None, left_out: 0 }) }
    }

    /// Whether a line is written now, and how many were left out before it.
    pub fn line(&self) -> Option<u64> {
        self.line_at(Instant::now())
    }

    fn line_at(&self, now: Instant) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.last.is_some_and(|last| now.duration_since(last) < PERIOD) {
            state.left_out += 1;
            return None;
        }
        state.last = Some(now);
        Some(std::mem::take(&mut state.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_one_line_and_the_next_line_counts_it() {
        let (kind, start) = (Seldom::new(), Instant::now());
        assert_eq!(kind.line_at(start), Some(0));
        let within = (1..=5000).filter_map(|ms| kind.line_at(start + Duration::from_millis(ms)));
        assert_eq!(within.count(), 0);
        assert_eq!(kind.line_at(start + PERIOD), Some(5000));
        assert_eq!(kind.line_at(start + 3 * PERIOD), Some(0));
    }
}
