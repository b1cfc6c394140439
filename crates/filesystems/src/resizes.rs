//! Resizes of the sets while a file system is at work on them: a set gives a unit up and gets it
//! back, again and again, also while its server is killed and started again.

use crate::Outcome;
use crate::interrupt;
use crate::random::Random;
use crate::resp::{Reply, request};
use crate::sets::{self, Set};
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time limit for a resize, for slow machines.
const RESIZE: Duration = Duration::from_secs(120);

/// Time limit for the next start of the server.
const START: Duration = Duration::from_secs(300);

/// Time limit for the units to be back in their sets at the end.
const GIVE_BACK: Duration = Duration::from_secs(60);

/// Bounds in milliseconds of the time between two resizes.
const PAUSE_MS: (u64, u64) = (10, 200);

/// What became of the resizes.
#[derive(Debug, Default)]
pub struct Tally {
    pub completed: u64,
    /// The server was killed while they were under way.
    pub interrupted: u64,
    /// The refused ones by the reason.
    pub refused: BTreeMap<String, u64>,
}

/// The resizes of a round.
pub struct Resizes {
    sets: &'static [Set],
    /// Where the server takes commands; none while it is down.
    server: Mutex<Option<String>>,
    completed: AtomicU64,
    has_failed: AtomicBool,
    is_over: AtomicBool,
}

/// A resize: the place of its set, and the units before and after.
struct Step {
    place: usize,
    before: u16,
    after: u16,
}

impl Resizes {
    pub fn new(sets: &'static [Set]) -> Resizes {
        Resizes {
            sets,
            server: Mutex::default(),
            completed: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        }
    }

    /// The server takes commands from now on.
    pub fn is_served(&self, address: &str) {
        *self.server() = Some(address.to_owned());
    }

    /// The server will be killed: replies need not come.
    pub fn is_down(&self) {
        *self.server() = None;
    }

    /// Whether a unit has been taken away and given back.
    pub fn have_begun(&self) -> bool {
        self.completed.load(Ordering::SeqCst) >= 2
    }

    pub fn have_failed(&self) -> bool {
        self.has_failed.load(Ordering::SeqCst)
    }

    /// No further unit is taken away.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// Resizes until the [end](Resizes::end); all sets have their units then.
    pub fn run(&self, seed: u64) -> Outcome<Tally> {
        let tally = self.resize_all(seed);
        self.has_failed.store(tally.is_err(), Ordering::SeqCst);
        tally.map_err(|error| format!("resizes: {error}"))
    }

    fn resize_all(&self, seed: u64) -> Outcome<Tally> {
        let (mut tally, mut random) = (Tally::default(), Random::new(seed));
        let mut over_since = None;
        while let Some(address) = self.address()? {
            let Some(units) = self.while_served(&address, self.units(&address))? else { continue };
            let lacks = units.iter().zip(self.sets).position(|(units, (_, all))| units < all);
            if self.is_over.load(Ordering::SeqCst) {
                let since = *over_since.get_or_insert_with(Instant::now);
                if lacks.is_none() {
                    return Ok(tally);
                }
                if since.elapsed() > GIVE_BACK {
                    return Err(format!("a set does not get its unit back: {:?}", tally.refused));
                }
            }
            let place = lacks.unwrap_or_else(|| {
                random.between(0, self.sets.len() as u64 - 1).try_into().unwrap_or(0)
            });
            let before = units.get(place).copied().unwrap_or_default();
            let after = if lacks.is_some() { before + 1 } else { before - 1 };
            self.resize(&mut tally, &address, &Step { place, before, after })?;
            let (least, most) = PAUSE_MS;
            std::thread::sleep(Duration::from_millis(random.between(least, most)));
        }
        Ok(tally)
    }

    /// One resize: it is complete, or refused, or the server was killed meanwhile.
    fn resize(&self, tally: &mut Tally, address: &str, step: &Step) -> Outcome {
        let name = self.sets.get(step.place).map_or("", |(name, _)| name);
        let words = format!("FLASH.SET RESIZE {name} {}", step.after);
        let reply = self.while_served(address, request(address, &words, RESIZE));
        let reply = reply.map_err(|error| format!("{words}: {error}"))?;
        let allowed = match &reply {
            Some(Ok(_)) => vec![step.after],
            Some(Err(_)) => vec![step.before],
            None => vec![step.before, step.after],
        };
        // The server may be killed right after its reply: what it has said still holds.
        let found = loop {
            let Some(now) = self.address()? else { break None };
            if let Some(units) = self.while_served(&now, self.units(&now))? {
                break units.get(step.place).copied();
            }
        };
        if found.is_some_and(|found| !allowed.contains(&found)) {
            let said = reply.map(|reply| format!("{reply:?}"));
            let said = said.unwrap_or_else(|| "killed before its reply".to_owned());
            return Err(format!("{words}: {said}, and the set has {found:?} units"));
        }
        match reply {
            Some(Ok(_)) => {
                tally.completed += 1;
                self.completed.store(tally.completed, Ordering::SeqCst);
            }
            Some(Err(reason)) => *tally.refused.entry(reason).or_default() += 1,
            None => tally.interrupted += 1,
        }
        Ok(())
    }

    fn units(&self, address: &str) -> io::Result<Vec<u16>> {
        sets::units(&sets::list(address)?, self.sets).map_err(io::Error::other)
    }

    /// A result of the server at `address`; none if it was killed before.
    fn while_served<T: Settled>(&self, address: &str, result: io::Result<T>) -> Outcome<Option<T>> {
        let is_served = self.server().as_deref() == Some(address);
        match result {
            // A server whose disk has gone may refuse anything.
            Ok(result) if is_served || result.is_settled() => Ok(Some(result)),
            Err(error) if is_served => Err(error.to_string()),
            _ => Ok(None),
        }
    }

    /// Where the server takes commands, once it does; none at the end.
    fn address(&self) -> Outcome<Option<String>> {
        let mut address = None;
        interrupt::wait(START, || {
            address.clone_from(&self.server());
            address.is_some() || self.is_over.load(Ordering::SeqCst)
        })?;
        match address.is_some() || self.is_over.load(Ordering::SeqCst) {
            true => Ok(address),
            false => Err("the server has not started again".to_owned()),
        }
    }

    fn server(&self) -> MutexGuard<'_, Option<String>> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a result counts although the server was killed at about the same time.
trait Settled {
    fn is_settled(&self) -> bool;
}

impl Settled for Reply {
    fn is_settled(&self) -> bool {
        self.is_ok()
    }
}

impl Settled for Vec<u16> {
    fn is_settled(&self) -> bool {
        true
    }
}
