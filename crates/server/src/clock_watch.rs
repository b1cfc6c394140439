//! Watches the lead of the store's clock over the wall clock, and logs it: at the start, and where it
//! changes.

use softflash_store::Store;
use softflash_store::clock::{NOTABLE_LEAD_MS, span};
use std::time::Duration;

const INTERVAL: Duration = Duration::from_secs(60);

/// What the log is told.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    /// The clock is ahead by so much.
    Ahead(u64),
    /// It is not ahead any more.
    Caught,
}

/// The line for a lead, after the one of which the log was told last.
fn line(told_ms: u64, lead_ms: u64) -> Option<Line> {
    if lead_ms.abs_diff(told_ms) < NOTABLE_LEAD_MS {
        return None;
    }
    match lead_ms < NOTABLE_LEAD_MS {
        true => Some(Line::Caught),
        false => Some(Line::Ahead(lead_ms)),
    }
}

/// Watches until the store is closed.
pub(crate) async fn watch(store: Store) {
    let mut told_ms = 0;
    while let Ok(stats) = store.stats().await {
        let lead_ms = stats.clock_lead_ms;
        match line(told_ms, lead_ms) {
            Some(Line::Ahead(lead_ms)) => {
                told_ms = lead_ms;
                tracing::warn!(
                    lead_ms,
                    "the store's clock is {} ahead of this machine's: keys expire too early, and \
                     TIME is ahead, until the machine's clock has caught up; with the server \
                     stopped, `softflash clock DIR --set-back` sets it back (docs/reliability.md, \
                     \"The clock\")",
                    span(lead_ms)
                );
            }
            Some(Line::Caught) => {
                told_ms = 0;
                tracing::warn!("the store's clock is no longer ahead of this machine's");
            }
            None => {}
        }
        let runtime = store.runtime();
        runtime.sleep_until(runtime.now() + INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lead_is_told_when_it_comes_changes_and_ends() {
        assert_eq!(line(0, 0), None);
        assert_eq!(line(0, 999), None, "a correction of the wall clock");
        assert_eq!(line(0, 1000), Some(Line::Ahead(1000)));
        assert_eq!(line(60_000, 60_500), None);
        assert_eq!(line(60_000, 61_000), Some(Line::Ahead(61_000)));
        assert_eq!(line(60_000, 50_000), Some(Line::Ahead(50_000)));
        assert_eq!(line(60_000, 20), Some(Line::Caught));
    }
}
