//! How fast the device serves the commands of a unit.

use crate::scheduler::OpKind;
use serde::{Serialize, Serializer};

/// Moving means over the commands of a unit that succeeded of late: those of the last 16 have two
/// thirds of the weight. 0 as long as there was none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Service {
    /// Time in the device of a read, in nanoseconds: waiting behind others of the die, and work.
    pub read_ns: MovingMean,
    /// The same of a program.
    pub program_ns: MovingMean,
    /// The same of an erase.
    pub erase_ns: MovingMean,
    /// Commands in front of a command that the device accepts, of the same die, in thousandths.
    pub queue_milli: MovingMean,
}

impl Service {
    /// Adds a command that has ended.
    pub(crate) fn add(&mut self, kind: OpKind, queue: u16, service_ns: u64) {
        let of_kind = match kind {
            OpKind::Read => &mut self.read_ns,
            OpKind::Program => &mut self.program_ns,
            OpKind::Erase => &mut self.erase_ns,
        };
        of_kind.add(service_ns);
        self.queue_milli.add(u64::from(queue) * 1000);
    }
}

/// A mean in which older values count less and less.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MovingMean {
    /// The mean times [`WEIGHT`].
    scaled: u64,
    /// Whether there was a value.
    has_any: bool,
}

/// A new value moves the mean by this fraction of the difference.
const WEIGHT: u64 = 16;

impl MovingMean {
    fn add(&mut self, value: u64) {
        self.scaled = match self.has_any {
            true => self.scaled - self.scaled / WEIGHT + value,
            false => value * WEIGHT,
        };
        self.has_any = true;
    }

    /// The mean.
    pub fn get(self) -> u64 {
        self.scaled / WEIGHT
    }
}

impl Serialize for MovingMean {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_value_is_the_mean_and_later_ones_move_it() {
        let mut mean = MovingMean::default();
        assert_eq!(mean.get(), 0);
        mean.add(1600);
        assert_eq!(mean.get(), 1600);
        mean.add(0);
        assert_eq!(mean.get(), 1500);
        (0..200).for_each(|_| mean.add(700));
        assert!((690..=710).contains(&mean.get()), "{}", mean.get());
    }

    #[test]
    fn each_kind_has_a_mean_of_its_own() {
        let mut service = Service::default();
        service.add(OpKind::Read, 3, 100);
        service.add(OpKind::Erase, 3, 5_000);
        let means = [service.read_ns, service.program_ns, service.erase_ns].map(MovingMean::get);
        assert_eq!(means, [100, 0, 5_000]);
        assert_eq!(service.queue_milli.get(), 3000);
    }
}
