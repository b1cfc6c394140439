//! The space that the collector gains, counted while it moves the values of a block, so that
//! writers get it evenly and not a block at a time.

use super::extent;
use softflash_base::cast::wide;
use std::cell::Cell;

/// Bytes of the blocks that are being emptied, as far as their values are moved.
#[derive(Default)]
pub(crate) struct Gain(Cell<u64>);

/// A block that is being emptied, until this is dropped.
pub(super) struct Progress<'a> {
    gain: &'a Gain,
    capacity: u64,
    live: u64,
    moved: Cell<u64>,
}

impl Gain {
    /// The bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.get()
    }

    /// The live values of a block of so many bytes are going to be moved.
    pub(super) fn begin(&self, capacity: usize, live: &[(u32, u32)]) -> Progress<'_> {
        let live = live.iter().map(|place| wide(extent(*place).1)).sum();
        Progress { gain: self, capacity: wide(capacity), live, moved: Cell::new(0) }
    }
}

impl Progress<'_> {
    /// So many bytes of values have been moved.
    pub(super) fn advance(&self, bytes: usize) {
        let before = self.gained();
        self.moved.set((self.moved.get() + wide(bytes)).min(self.live));
        self.gain.0.set(self.gain.0.get() + self.gained() - before);
    }

    fn gained(&self) -> u64 {
        (self.capacity * self.moved.get()).checked_div(self.live).unwrap_or(0)
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        self.gain.0.set(self.gain.0.get() - self.gained());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_gained_in_proportion_to_the_values_that_are_moved() {
        let gain = Gain::default();
        let (one, other) =
            (gain.begin(1000, &[(0, 100), (500, 300)]), gain.begin(1000, &[(0, 10)]));
        one.advance(100);
        assert_eq!(gain.bytes(), 250);
        other.advance(10);
        one.advance(300);
        assert_eq!(gain.bytes(), 2000);
        // Now it is empty, and counts as such.
        drop(one);
        assert_eq!(gain.bytes(), 1000);
        drop(other);
        assert_eq!(gain.bytes(), 0);
        gain.begin(1000, &[]).advance(0);
    }
}
