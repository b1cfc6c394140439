//! What the layers above say of a command: its priority, the lifetime of its data, and its origin.
//!
//! A front end or a task makes a [`Hint`]; every layer hands it on with the request, down to the
//! [`Command`](crate::Command).

/// The hints of a request. They change when and where it is carried out, never what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Hint {
    /// The urgency.
    pub priority: Priority,
    /// How long the data of a program will live.
    pub lifetime: LifetimeClass,
    /// What causes it.
    pub origin: Origin,
}

/// The urgency of a request. The default order of a die, `reads-first`, serves reads before
/// programs before erases, and each kind by priority, with a limit on the wait of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    /// A client waits for it.
    #[default]
    Foreground,
    /// A client may soon wait for it: a flush of a memtable.
    Normal,
    /// No client waits for it: compaction, scrub.
    Background,
}

/// How long data are expected to live until they are overwritten or deleted. Data of one class
/// belong together on the flash, as they become invalid at about the same time. The classes are an
/// order, not durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LifetimeClass(u8);

impl LifetimeClass {
    /// Nothing is known.
    pub const UNKNOWN: LifetimeClass = LifetimeClass(0);
    /// The log: it is released with the next flush.
    pub const SHORTEST: LifetimeClass = LifetimeClass(1);
    /// What the next compaction or checkpoint replaces; data that are overwritten soon.
    pub const SHORT: LifetimeClass = LifetimeClass(2);
    /// Neither short nor long.
    pub const MEDIUM: LifetimeClass = LifetimeClass(4);
    /// Data that stay.
    pub const LONG: LifetimeClass = LifetimeClass(6);
    /// Data that have stayed longest.
    pub const LONGEST: LifetimeClass = LifetimeClass(MOST_CLASSES);

    /// The class that is so many steps longer, at most the longest one. Data of unknown lifetime
    /// count as medium.
    pub const fn longer_by(self, steps: u8) -> LifetimeClass {
        match self.known().0.saturating_add(steps) {
            MOST_CLASSES.. => LifetimeClass::LONGEST,
            class => LifetimeClass(class),
        }
    }

    /// Steps from one class to another. Data of unknown lifetime count as medium.
    pub const fn steps_to(self, other: LifetimeClass) -> u8 {
        self.known().0.abs_diff(other.known().0)
    }

    const fn known(self) -> LifetimeClass {
        if self.0 == 0 { LifetimeClass::MEDIUM } else { self }
    }

    /// The placement identifier of the class on a device with so many: neighbouring classes share
    /// one where there are fewer than classes.
    pub fn placement_id(self, ids: u16) -> u16 {
        let place = u32::from(self.known().0 - 1) * u32::from(ids.min(MOST_CLASSES.into()));
        (place / u32::from(MOST_CLASSES)) as u16
    }
}

/// Classes besides the unknown one: as many as drives commonly have placement handles.
const MOST_CLASSES: u8 = 8;

/// What causes a request. Bytes are counted by it, so that write amplification is known by cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Origin {
    /// Requests of a client.
    #[default]
    Host,
    /// The write-ahead log.
    Log,
    /// The flush of a memtable.
    Flush,
    /// Compaction.
    Compaction,
    /// Collection of value blocks or of superblocks of volumes.
    Collection,
    /// Parity.
    Parity,
    /// Scrub, and rewrites of data that are hard to read.
    Refresh,
    /// Moves of data that lag behind in wear.
    Levelling,
    /// Rewrites of data that lack a copy or are reconstructed from parity.
    Rebuild,
    /// The map of volumes.
    Map,
    /// The FTL's own work: headers of superblocks, erases, records of bad blocks.
    Header,
}

impl Hint {
    /// A request that a client waits for.
    pub const FOREGROUND: Hint = Hint {
        priority: Priority::Foreground,
        lifetime: LifetimeClass::UNKNOWN,
        origin: Origin::Host,
    };
    /// Data of clients that no client waits for yet.
    pub const HOST_SOON: Hint = Hint { priority: Priority::Normal, ..Hint::FOREGROUND };
    /// A long request of a client, such as an export, that leaves the way to the others.
    pub const HOST_LATER: Hint = Hint { priority: Priority::Background, ..Hint::FOREGROUND };
    /// The log.
    pub const LOG: Hint = Hint {
        priority: Priority::Foreground,
        lifetime: LifetimeClass::SHORTEST,
        origin: Origin::Log,
    };
    /// The flush of a memtable.
    pub const FLUSH: Hint =
        Hint { priority: Priority::Normal, lifetime: LifetimeClass::SHORT, origin: Origin::Flush };
    /// The map of volumes.
    pub const MAP: Hint = Hint { origin: Origin::Map, ..Hint::FLUSH };
    /// Compaction.
    pub const COMPACTION: Hint = Hint::task(Origin::Compaction);
    /// Data that collection moves.
    pub const COLLECTION: Hint = Hint::task(Origin::Collection);
    /// Scrub, and data that are rewritten because they are hard to read.
    pub const REFRESH: Hint = Hint::task(Origin::Refresh);
    /// Data that move because they lag behind in wear.
    pub const LEVELLING: Hint = Hint::task(Origin::Levelling);
    /// Data that get back a copy, or are reconstructed.
    pub const REBUILD: Hint = Hint::task(Origin::Rebuild);
    /// Parity that no client waits for.
    pub const PARITY: Hint = Hint::task(Origin::Parity);
    /// The FTL's own work.
    pub const HEADER: Hint = Hint::task(Origin::Header);

    /// A task that no client waits for.
    const fn task(origin: Origin) -> Hint {
        Hint { priority: Priority::Background, lifetime: LifetimeClass::UNKNOWN, origin }
    }

    /// The hint of a command that carries the data of both requests: as urgent as the more urgent
    /// one, of the longer lifetime, and a client's if one of them is a client's.
    pub fn join(self, other: Hint) -> Hint {
        Hint {
            priority: self.priority.min(other.priority),
            lifetime: self.lifetime.max(other.lifetime),
            origin: self.origin.min(other.origin),
        }
    }

    /// The same request, of another origin.
    pub const fn of(self, origin: Origin) -> Hint {
        Hint { origin, ..self }
    }

    /// The same request, with data of another lifetime.
    pub const fn lasting(self, lifetime: LifetimeClass) -> Hint {
        Hint { lifetime, ..self }
    }

    /// The same request, with another priority.
    pub const fn at(self, priority: Priority) -> Hint {
        Hint { priority, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_small() {
        assert_eq!(size_of::<Hint>(), 3);
    }

    #[test]
    fn classes_get_longer_up_to_the_longest() {
        assert_eq!(LifetimeClass::SHORT.longer_by(2), LifetimeClass::MEDIUM);
        assert_eq!(LifetimeClass::LONG.longer_by(200), LifetimeClass::LONGEST);
        assert_eq!(LifetimeClass::UNKNOWN.longer_by(2), LifetimeClass::LONG);
    }

    #[test]
    fn a_command_for_two_requests_serves_the_more_urgent_one() {
        let (hot, later) = (Hint::HOST_SOON.lasting(LifetimeClass::SHORT), Hint::HOST_LATER);
        assert_eq!(hot.join(later), hot);
        assert_eq!(later.join(hot), hot);
        assert_eq!(Hint::REBUILD.join(later), later);
        assert_eq!(hot.join(Hint::MAP.lasting(LifetimeClass::LONG)).lifetime, LifetimeClass::LONG);
    }

    #[test]
    fn an_unknown_lifetime_is_a_medium_one() {
        assert_eq!(LifetimeClass::UNKNOWN.steps_to(LifetimeClass::SHORT), 2);
        assert_eq!(LifetimeClass::LONG.steps_to(LifetimeClass::UNKNOWN), 2);
        assert_eq!(LifetimeClass::MEDIUM.steps_to(LifetimeClass::UNKNOWN), 0);
    }

    #[test]
    fn placement_ids_keep_the_order_of_lifetimes_and_are_all_used() {
        let classes = (0..MOST_CLASSES).map(|steps| LifetimeClass::SHORTEST.longer_by(steps));
        for ids in [1, 2, 3, 8, 64] {
            let placed: Vec<u16> = classes.clone().map(|class| class.placement_id(ids)).collect();
            assert!(placed.is_sorted(), "{placed:?}");
            assert_eq!(placed.first(), Some(&0));
            assert_eq!(placed.last(), Some(&(ids.min(8) - 1)));
        }
        assert_eq!(LifetimeClass::UNKNOWN.placement_id(8), LifetimeClass::MEDIUM.placement_id(8));
        assert_eq!(LifetimeClass::LONGEST.placement_id(0), 0);
    }
}
