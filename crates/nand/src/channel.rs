//! A channel's bus: one transfer at a time, and an arbiter between the waiting dies.

use crate::geometry::MAX_DIES_PER_CHANNEL;

/// The most dies on a bus.
const MAX_DIES: usize = MAX_DIES_PER_CHANNEL as usize;

/// The direction of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// From a die to the host: the end of a read.
    Out = 0,
    /// From the host to a die: the beginning of a program.
    In = 1,
}

/// A transfer in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// The die's number in the channel.
    pub(crate) place: u8,
    pub(crate) direction: Direction,
    /// Pages transferred, or [`HEAD`](crate::timing::HEAD).
    pub(crate) planes: u8,
}

/// A bus. Dies are numbered within the channel, below 64.
///
/// A die waits at most once in each direction, so the queue is a bitmap. Dies are served
/// round-robin; reads go before programs up to a limit.
#[derive(Debug, Clone)]
pub(crate) struct Channel {
    /// The dies that wait, by direction.
    waiting: [u64; 2],
    pub(crate) busy_ns: u64,
    pub(crate) first_die: u32,
    carrying: Option<Transfer>,
    /// Round-robin cursor: the next die.
    cursor: u8,
    /// Reads granted while a program waited.
    overtaken: u8,
    /// Pages that each waiting die transfers, by direction.
    planes: [[u8; 2]; MAX_DIES],
}

impl Channel {
    pub(crate) fn new(first_die: u32) -> Channel {
        Channel {
            waiting: [0; 2],
            busy_ns: 0,
            first_die,
            carrying: None,
            cursor: 0,
            overtaken: 0,
            planes: [[0; 2]; MAX_DIES],
        }
    }

    /// Puts a die into the queue.
    #[inline]
    pub(crate) fn request(&mut self, place: u8, direction: Direction, planes: u8) {
        let queue = &mut self.waiting[direction as usize];
        assert!(*queue & (1 << place) == 0, "die {place} waits for the bus already");
        *queue |= 1 << place;
        self.planes[usize::from(place) % MAX_DIES][direction as usize] = planes;
    }

    /// The transfer in progress.
    #[inline]
    pub(crate) fn carrying(&self) -> Option<Transfer> {
        self.carrying
    }

    /// Whether a die waits.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.waiting[0] | self.waiting[1] != 0
    }

    /// Grants the bus to a die at once, as no die waits for it: equivalent to
    /// [`request`](Channel::request) followed by [`grant`](Channel::grant).
    #[inline]
    pub(crate) fn take(&mut self, place: u8, direction: Direction, planes: u8) -> Transfer {
        debug_assert!(!self.is_wanted(), "die {place} would overtake those that wait for the bus");
        let reads_in_a_row = if direction == Direction::Out { self.overtaken } else { 0 };
        (self.overtaken, self.cursor) = (reads_in_a_row, (place + 1) & 63);
        let transfer = Transfer { place, direction, planes };
        self.carrying = Some(transfer);
        transfer
    }

    /// Ends the transfer in progress, if any, and starts the next one, if a die waits.
    #[inline]
    pub(crate) fn grant(&mut self, reads_ahead: u8) -> Option<Transfer> {
        // The next die is unpredictable, so only the case without a waiting die is a branch.
        let [out_waits, in_waits] = self.waiting.map(|queue| queue != 0);
        let read_first = !in_waits | (self.overtaken < reads_ahead);
        let direction = if out_waits & read_first { Direction::Out } else { Direction::In };
        let queue = &mut self.waiting[direction as usize];
        if *queue == 0 {
            self.carrying = None;
            return None;
        }
        self.overtaken =
            (self.overtaken + u8::from(in_waits)) * u8::from(direction == Direction::Out);
        let place = take_next(queue, &mut self.cursor);
        let planes = self.planes[usize::from(place) % MAX_DIES][direction as usize];
        let transfer = Some(Transfer { place, direction, planes });
        self.carrying = transfer;
        transfer
    }

    /// Drops the transfer in progress and the queue.
    pub(crate) fn power_cut(&mut self) {
        *self = Channel { busy_ns: self.busy_ns, ..Channel::new(self.first_die) };
    }
}

/// Removes the first waiting die from `cursor` on from the queue, and sets `cursor` to the die
/// after it.
#[inline]
fn take_next(queue: &mut u64, cursor: &mut u8) -> u8 {
    let ahead = queue.rotate_right(u32::from(*cursor)).trailing_zeros() as u8;
    let die = (*cursor + ahead) & 63;
    *queue &= !(1 << die);
    *cursor = (die + 1) & 63;
    die
}

#[cfg(test)]
mod tests {
    use super::*;
    use Direction::{In, Out};
    use softflash_base::random::Rng;

    fn granted(channel: &mut Channel, reads_ahead: u8) -> Option<(u8, Direction)> {
        channel.grant(reads_ahead).map(|transfer| (transfer.place, transfer.direction))
    }

    #[test]
    fn dies_take_turns() {
        let mut channel = Channel::new(0);
        [5, 0, 63].into_iter().for_each(|die| channel.request(die, Out, 1));
        assert_eq!(granted(&mut channel, 8), Some((0, Out)));
        channel.request(0, Out, 2);
        assert_eq!(granted(&mut channel, 8), Some((5, Out)));
        assert_eq!(granted(&mut channel, 8), Some((63, Out)));
        assert_eq!(channel.grant(8), Some(Transfer { place: 0, direction: Out, planes: 2 }));
        assert_eq!(granted(&mut channel, 8), None);
        assert_eq!(channel.carrying(), None);
    }

    #[test]
    fn reads_overtake_programs_up_to_the_limit() {
        let mut channel = Channel::new(0);
        channel.request(1, In, 1);
        for _ in 0..2 {
            channel.request(0, Out, 1);
            assert_eq!(granted(&mut channel, 2), Some((0, Out)));
        }
        channel.request(0, Out, 1);
        assert_eq!(granted(&mut channel, 2), Some((1, In)), "its turn");
        assert_eq!(granted(&mut channel, 2), Some((0, Out)));
    }

    #[test]
    fn taking_a_free_bus_is_asking_for_it_and_getting_it() {
        for seed in 0..50 {
            let mut rng = Rng::seeded(seed).fork("take");
            let (mut taken, mut granted) = (Channel::new(0), Channel::new(0));
            for _ in 0..100 {
                let place = rng.below(64) as u8;
                let direction = if rng.chance(0.5) { In } else { Out };
                if taken.is_wanted() {
                    taken.grant(2);
                    granted.grant(2);
                } else if rng.chance(0.7) {
                    let transfer = taken.take(place, direction, 1);
                    granted.request(place, direction, 1);
                    assert_eq!(Some(transfer), granted.grant(2), "seed {seed}");
                } else {
                    for place in [place, (place + 1) % 64] {
                        taken.request(place, direction, 1);
                        granted.request(place, direction, 1);
                    }
                }
                let state = |bus: &Channel| (bus.carrying, bus.cursor, bus.overtaken, bus.waiting);
                assert_eq!(state(&taken), state(&granted), "seed {seed}");
            }
        }
    }
}
