//! Credits of a unit's writers: collection earns them with each mapping unit that it moves, and the
//! writes of clients cost them while it works, so that writers slow early and evenly instead of
//! waiting for a whole superblock. The idea is that of the rate limiters of `pblk` in Linux and of
//! SPDK's FTL.
//!
//! A victim with `v` valid mapping units leaves room for `r` others: each of the `v` that moves
//! earns `r / v`. A mapping unit of a client costs one where as many superblocks are free as
//! collection aims at, and two where none but the reserve is: collection gains on the writers then.

/// Parts of a credit.
const PARTS: i64 = 1 << 10;

/// Credits, in mapping units that clients may write.
#[derive(Debug, Clone, Copy, Default)]
pub struct Credits {
    /// The balance, in parts. Below 0 clients are ahead of collection.
    balance: i64,
    /// Parts that the next mapping unit of the victim earns.
    earns: i64,
    /// Mapping units of the victim that have not moved.
    left: u32,
    /// Parts that a mapping unit of a client costs.
    price: i64,
}

impl Credits {
    /// A victim was chosen: `valid` mapping units have to move, and leave room for `room`. `free`
    /// superblocks are left of those that collection aims at, `aim`, beyond the reserve.
    pub fn victim(&mut self, valid: u32, room: u32, (free, aim): (u32, u32)) {
        // Data of the victim before that nobody needs any more did not have to move.
        self.moved(self.left);
        let room = i64::from(room) * PARTS;
        self.left = valid;
        match valid {
            0 => self.balance += room,
            _ => self.earns = room.cast_unsigned().div_ceil(u64::from(valid)).cast_signed(),
        }
        let missing = i64::from(aim.saturating_sub(free)) * PARTS;
        self.price = PARTS + missing / i64::from(aim.max(1));
    }

    /// Collection has moved so many mapping units.
    pub fn moved(&mut self, units: u32) {
        let units = units.min(self.left);
        self.left -= units;
        self.balance += i64::from(units) * self.earns;
    }

    /// Clients have written so many mapping units.
    pub fn wrote(&mut self, units: u32) {
        self.balance -= i64::from(units) * self.price;
    }

    /// Whether clients are ahead of collection by more than so many mapping units.
    pub fn owe_more_than(&self, units: u32) -> bool {
        self.balance < -i64::from(units) * PARTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENOUGH: (u32, u32) = (2, 2);

    #[test]
    fn without_a_victim_writes_cost_nothing() {
        let mut credits = Credits::default();
        credits.wrote(1000);
        assert!(!credits.owe_more_than(0));
    }

    #[test]
    fn each_move_earns_its_share_of_the_room() {
        let mut credits = Credits::default();
        credits.victim(60, 20, ENOUGH);
        credits.wrote(2);
        assert!(credits.owe_more_than(1) && !credits.owe_more_than(2));
        credits.moved(3);
        assert!(credits.owe_more_than(0) && !credits.owe_more_than(1));
        credits.moved(4);
        assert!(!credits.owe_more_than(0));
    }

    #[test]
    fn writes_cost_twice_where_only_the_reserve_is_free() {
        let mut credits = Credits::default();
        credits.victim(60, 20, (0, 2));
        credits.wrote(5);
        assert!(credits.owe_more_than(9) && !credits.owe_more_than(10));
        credits.victim(0, 10, (1, 2));
        credits.wrote(2);
        // Data that had not moved have earned the room of the first victim.
        credits.wrote(12);
        assert!(!credits.owe_more_than(1));
        credits.wrote(2);
        assert!(credits.owe_more_than(3));
    }

    #[test]
    fn no_more_is_earned_than_the_room_of_a_victim() {
        let mut credits = Credits::default();
        credits.victim(3, 9, ENOUGH);
        credits.moved(100);
        credits.wrote(9);
        assert!(!credits.owe_more_than(0));
        credits.wrote(1);
        assert!(credits.owe_more_than(0));
    }
}
