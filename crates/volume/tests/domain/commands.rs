//! The hints of a volume's requests reach the device.

use crate::testbed::{Testbed, UNIT, unit};
use softflash_base::random::Rng;
use softflash_base::{Time, UnitId};
use softflash_device::{Command, Completion, Decorator, Operation, QueuePair, Submit, Wake};
use softflash_ftl::{Hint, LifetimeClass, Origin, Priority};
use softflash_volume::{Domain, Setting, Temperature};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Programs and reads by their hint: priority, lifetime and origin.
type Seen = Rc<RefCell<BTreeMap<(bool, Priority, LifetimeClass, Origin), u32>>>;

/// A queue pair that records the hints.
struct Watching {
    inner: Box<dyn QueuePair>,
    seen: Seen,
}

impl Decorator for Watching {
    fn inner(&self) -> &dyn QueuePair {
        &*self.inner
    }
}

impl QueuePair for Watching {
    fn submit(&mut self, now: Time, command: Command) -> Submit {
        let Hint { priority, lifetime, origin } = command.hint;
        let is_program = matches!(command.operation, Operation::Program { .. });
        if is_program || matches!(command.operation, Operation::Read(_)) {
            let key = (is_program, priority, lifetime, origin);
            *self.seen.borrow_mut().entry(key).or_default() += 1;
        }
        self.inner.submit(now, command)
    }

    fn poll(&mut self, now: Time, completions: &mut Vec<Completion>) {
        self.inner.poll(now, completions);
    }

    fn wake(&self) -> Wake {
        self.inner.wake()
    }

    fn give_up(&mut self, unit: UnitId) {
        self.inner.give_up(unit);
    }
}

/// Runs a new domain whose commands are watched.
fn watched(testbed: &Testbed, test: impl AsyncFnOnce(&Domain, &Seen)) {
    testbed.on_flash(async |inner, config, runtime| {
        let seen = Seen::default();
        let queue = Box::new(Watching { inner, seen: Rc::clone(&seen) });
        let (domain, _) = Domain::mount(queue, config, runtime).await.unwrap();
        seen.borrow_mut().clear();
        test(&domain, &seen).await;
        domain.stop();
    });
}

async fn create_hot_and_cold(domain: &Domain) {
    for (name, temperature) in [("hot", Temperature::Hot), ("cold", Temperature::Cold)] {
        let settings = [Setting::Temperature(temperature)];
        domain.create_with(name, 1 << 20, &settings).await.unwrap();
    }
    domain.flush().await.unwrap();
}

#[test]
fn requests_of_clients_have_their_priority_and_the_lifetime_of_their_volume() {
    use Priority::{Background, Foreground};
    // Units of 192 superblocks: three classes.
    watched(&Testbed::new(192, 256), async |domain, seen| {
        create_hot_and_cold(domain).await;
        for (name, lifetime) in [("hot", LifetimeClass::SHORT), ("cold", LifetimeClass::LONG)] {
            for (hint, priority) in [(Hint::FOREGROUND, Foreground), (Hint::HOST_LATER, Background)]
            {
                let volume = domain.volume(name).unwrap().hinted(hint);
                seen.borrow_mut().clear();
                volume.write(0, &unit(7)).await.unwrap();
                let written = (true, priority, lifetime, Origin::Host);
                assert!(seen.borrow().contains_key(&written), "{written:?}: {seen:?}");
                seen.borrow_mut().clear();
                let mut read = vec![0; UNIT];
                volume.read(0, &mut read).await.unwrap();
                // The FTL erases ahead at any time.
                let mut keys: Vec<_> = seen.borrow().keys().copied().collect();
                keys.retain(|(.., origin)| *origin != Origin::Header);
                assert_eq!(keys, [(false, priority, LifetimeClass::UNKNOWN, Origin::Host)]);
            }
        }
    });
}

#[test]
fn a_write_with_a_lifetime_and_an_origin_of_its_own_goes_where_such_data_are() {
    watched(&Testbed::new(192, 256), async |domain, seen| {
        create_hot_and_cold(domain).await;
        for (asked, given) in [
            (LifetimeClass::UNKNOWN, LifetimeClass::SHORT),
            (LifetimeClass::SHORTEST, LifetimeClass::SHORT),
            (LifetimeClass::MEDIUM, LifetimeClass::UNKNOWN),
            (LifetimeClass::LONGEST, LifetimeClass::LONG),
        ] {
            let hint = Hint::REBUILD.lasting(asked);
            let volume = domain.volume("hot").unwrap().hinted(hint);
            seen.borrow_mut().clear();
            volume.write(0, &unit(7)).await.unwrap();
            let written = (true, hint.priority, given, Origin::Rebuild);
            assert!(seen.borrow().contains_key(&written), "{asked:?}: {written:?}: {seen:?}");
        }
    });
}

#[test]
fn moves_of_collection_and_the_map_have_their_origins() {
    watched(&Testbed::new(32, 256), async |domain, seen| {
        let units = domain.space().usable_bytes / UNIT as u64 * 8 / 10;
        domain.create("volume", units * UNIT as u64).await.unwrap();
        let volume = domain.volume("volume").unwrap();
        let mut rng = Rng::seeded(5);
        for step in 0..units * 3 {
            let at = if step < units { step } else { rng.below(units) };
            volume.write(at * UNIT as u64, &unit(step)).await.unwrap();
        }
        let seen = seen.borrow();
        let count = |is_program: bool, origin: Origin| -> u32 {
            let of_origin = seen
                .iter()
                .filter(|((program, .., found), _)| (*program, *found) == (is_program, origin));
            of_origin.map(|(_, count)| *count).sum()
        };
        for origin in [Origin::Host, Origin::Collection, Origin::Map, Origin::Header] {
            assert!(count(true, origin) > 0, "nothing is programmed for {origin:?}: {seen:?}");
        }
        assert!(count(false, Origin::Collection) > 0, "{seen:?}");
        // What collection moves has lived longer than what it was written with.
        let moved = LifetimeClass::UNKNOWN.longer_by(1);
        let is_moved = (true, Priority::Background, moved, Origin::Collection);
        assert!(seen.contains_key(&is_moved), "{seen:?}");
    });
}
