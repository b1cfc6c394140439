//! How long clients pause before a request and between its steps.

use super::session::Session;
use softflash_base::random::Rng;
use std::time::Duration;

/// Longest pause of a client between two steps of a request, as a power of two nanoseconds.
const LONGEST_THOUGHT: u64 = 23;

impl Session<'_> {
    /// Pauses as long as the pace of the scenario says, mostly not at all.
    pub(super) async fn pause(&self, rng: &mut Rng) {
        let pace = &self.scenario.pace;
        if !rng.chance(pace.pauses) {
            return;
        }
        let longest = (pace.longest_pause_ms.max(1) as f64).log2();
        let ms = (longest * rng.unit_f64()).exp2() as u64;
        self.common.note_pause();
        self.sleep(Duration::from_millis(ms)).await;
    }

    /// Pauses briefly, so that other clients may interfere.
    pub(super) async fn linger(&self, rng: &mut Rng) {
        let Some(resp) = &self.scenario.resp else { return };
        if (resp.clears_beside || resp.unused_watches > 0.0) && rng.chance(0.5) {
            self.sleep(Duration::from_nanos(1 << rng.below(LONGEST_THOUGHT))).await;
        }
    }

    /// Sleeps in virtual time.
    pub(super) async fn sleep(&self, pause: Duration) {
        let runtime = self.stores[0].runtime();
        runtime.sleep_until(runtime.now() + pause).await;
    }
}
