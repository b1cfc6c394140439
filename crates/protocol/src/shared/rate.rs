//! The rate of events in the last moments, for the `instantaneous` fields of INFO.

use softflash_base::Time;
use std::sync::atomic::{AtomicU64, Ordering};

/// The span of a slot; Redis' interval between two samples.
const SLOT_NS: u64 = 100_000_000;
/// The slots of a rate: that of 1.6 s, as in Redis.
const COUNTED: u32 = 16;
/// A power of two, above the counted slots and the current one.
const SLOTS: usize = 32;

/// Events by the time at which they came, in slots that are used again and again. All threads add to
/// them without locks.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    /// The number of the slot's time, and of its events: 32 bits each.
    slots: [AtomicU64; SLOTS],
}

/// The number of a time, which returns after thirteen years.
fn number_at(time: Time) -> u32 {
    (time.0 / SLOT_NS) as u32
}

fn split(slot: u64) -> (u32, u32) {
    ((slot >> 32) as u32, slot as u32)
}

impl Rate {
    /// Events came at `now`.
    pub fn add(&self, events: u64, now: Time) {
        let (number, events) = (number_at(now), u32::try_from(events).unwrap_or(u32::MAX));
        let Some(slot) = self.slots.get(number as usize % SLOTS) else { return };
        let mut old = slot.load(Ordering::Relaxed);
        loop {
            let (of, before) = split(old);
            let count = if of == number { before.saturating_add(events) } else { events };
            let new = u64::from(number) << 32 | u64::from(count);
            match slot.compare_exchange_weak(old, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => old = other,
            }
        }
    }

    /// Events in a second, over the last complete slots.
    pub fn per_second(&self, now: Time) -> f64 {
        let last = number_at(now);
        let events = (1..=COUNTED).filter_map(|back| {
            let number = last.checked_sub(back)?;
            let slot = self.slots.get(number as usize % SLOTS)?.load(Ordering::Relaxed);
            let (of, count) = split(slot);
            (of == number).then_some(u64::from(count))
        });
        events.sum::<u64>() as f64 / (f64::from(COUNTED) * SLOT_NS as f64 / 1e9)
    }

    /// Forgets all events.
    pub fn reset(&self) {
        self.slots.iter().for_each(|slot| slot.store(0, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_that_of_the_last_seconds_and_ends_with_the_events() {
        let rate = Rate::default();
        let at = |ms: u64| Time(ms * 1_000_000);
        (0..5000).for_each(|ms| rate.add(2, at(ms)));
        assert_eq!(rate.per_second(at(5000)), 2000.0);
        assert_eq!(rate.per_second(at(5800)), 1000.0, "half of the time nothing came");
        assert_eq!(rate.per_second(at(6600)), 0.0);
        assert_eq!(rate.per_second(at(1_000_000)), 0.0, "the slots are from another time");
        rate.add(u64::MAX, at(1_000_000));
        rate.add(1, at(1_000_001));
        assert_eq!(rate.per_second(at(1_000_100)), f64::from(u32::MAX) / 1.6);
        rate.reset();
        assert_eq!(rate.per_second(at(1_000_100)), 0.0);
        assert_eq!(rate.per_second(at(50)), 0.0, "before the first complete slot");
    }
}
