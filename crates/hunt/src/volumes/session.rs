//! A session: from power on to power off.

use super::client::{Client, Ended, UNIT, state};
use super::contest::contest;
use super::hand_overs::HandOvers;
use super::paces::Paces;
use super::reading::{read_units, rest};
use super::reference::{Name, Pending, Reference};
use super::sets::{Set, SetTable};
use crate::medium::Medium;
use crate::planned_faults::PlannedFaults;
use crate::scenario::Scenario;
use crate::session_failure::SessionFailure;
use crate::virtual_time;
use crate::volume_shape::VolumeShape;
use futures_util::future::{Either, pending, select, try_join, try_join_all};
use softflash_base::random::Rng;
use softflash_base::{Time, UnitSet};
use softflash_device::QueuePair;
use softflash_flash::Flash;
use softflash_ftl::{FtlConfig, Owners, ProgramBytes};
use softflash_runtime::RuntimeHandle;
use softflash_volume::{Domain, DomainConfig, VolumeError, VolumeSettings};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::pin;
use std::rc::Rc;

pub struct Session<'a> {
    pub planned_faults: PlannedFaults,
    pub scenario: &'a Scenario,
    pub shape: &'a VolumeShape,
    pub medium: &'a Medium,
    /// Those of the clients; behind them that of the second set, where units pass between sets.
    pub references: &'a [Rc<RefCell<Reference>>],
    pub sets: &'a RefCell<SetTable>,
    /// When the power fails; none: after the clients' requests.
    pub cut: Option<Time>,
    /// Set while both sets of a pair have everything.
    pub is_whole: &'a Cell<bool>,
    /// Whether three volumes compete at the end.
    pub contest: bool,
    pub seed: u64,
}

/// The end of a session.
pub struct SessionEnd {
    pub at: Time,
    /// Everything was compared with the references.
    pub compared: bool,
    /// A write was refused for lack of space.
    pub full: bool,
    pub failure: Option<SessionFailure>,
}

/// Requests under way for each unit while volumes compete, and the least of all: as the
/// documents of `DomainConfig` say.
const SLOTS_OF_UNIT: u16 = 4;
const LEAST_SLOTS: u16 = 16;

/// The requests of a session that is not cut have ended by then: with low limits of their rates
/// they take more than ten minutes.
const LATEST_END: Time = Time(2 * 3600 * 1_000_000_000);
/// Wall clock of all sessions.
pub(super) const WALL_MS: u64 = 1_000_000_000_000;

/// The configuration of the domains in every session, without their sets.
pub(super) fn domain_config(scenario: &Scenario, shape: &VolumeShape) -> DomainConfig {
    DomainConfig {
        frame_units: shape.frame_units,
        checkpoint_entries: shape.checkpoint_entries,
        competing_per_unit: SLOTS_OF_UNIT.into(),
        lifetime: shape.lifetime,
        seed: scenario.seed,
        ..DomainConfig::default()
    }
}

impl<'a> Session<'a> {
    pub fn run(&self) -> SessionEnd {
        let executor = virtual_time::executor(WALL_MS);
        let runtime = executor.handle();
        let (compared, full) = (Cell::new(false), Cell::new(false));
        self.medium.fail_flushes(self.scenario, self.cut.is_some(), self.seed);
        let failure = executor.block_on(async {
            let work = self.work(&runtime, &compared, &full);
            let end = self.cut.unwrap_or(LATEST_END);
            match select(pin!(work), runtime.sleep_until(end)).await {
                Either::Left((ended, _)) => ended.err(),
                Either::Right(_) if self.cut.is_some() => None,
                Either::Right(_) => Some(SessionFailure::Wrong(format!(
                    "requests have not ended by {LATEST_END:?}"
                ))),
            }
        });
        let at = executor.now();
        drop(executor);
        // Nothing is acknowledged after a failed flush, until the next start, and no space is made.
        let has_stopped = matches!(
            failure,
            Some(SessionFailure::Lost(_) | SessionFailure::Refused(_) | SessionFailure::Full)
        );
        let failure = failure.filter(|_| !(has_stopped && self.medium.has_failed_flush()));
        let cut = self.medium.power_cut(at, self.seed).err().map(SessionFailure::Wrong);
        SessionEnd { at, compared: compared.get(), full: full.get(), failure: failure.or(cut) }
    }

    async fn work(
        &self,
        runtime: &RuntimeHandle,
        compared: &Cell<bool>,
        full: &Cell<bool>,
    ) -> Result<(), SessionFailure> {
        self.medium.plan(&self.planned_faults, runtime);
        let mut hand_overs = HandOvers::drawn(self);
        hand_overs.join(runtime).await?;
        let domains = self.mount(runtime).await?;
        if let Some(pair) = &self.shape.pair {
            let paired = domains[0].pair(&domains[1], PAIR, pair.window()).await;
            paired.map_err(|error| self.not_mounted(error))?;
        }
        let references = self.references_of(&domains);
        for (domain, reference) in &references {
            self.compare(domain, reference, runtime).await?;
        }
        domains.iter().try_for_each(Domain::check_map).map_err(SessionFailure::Wrong)?;
        compare_copies(&domains[0]).await?;
        compared.set(true);
        let requests = self.cut.is_none().then_some(self.scenario.clients.requests);
        let clients = (0_u64..).zip(&references).map(|(number, &(domain, reference))| {
            let domain_rng = Rng::seeded(self.seed);
            let reads = self.scenario.clients.reads;
            async move {
                let rng = domain_rng.fork(format!("client {number}"));
                let mut client = Client {
                    domain,
                    runtime,
                    shape: self.shape,
                    reads,
                    reference,
                    medium: self.medium,
                    rng,
                    paces: Paces::from(runtime.now()),
                    may_fail_flushes: self.scenario.drive.is_some_and(|d| d.failed_flushes > 0.0),
                    may_lose: self.scenario.may_lose(),
                    slowdown: self.scenario.faults.slow.mean_factor(),
                    full: false,
                };
                let ended = client.run(requests).await;
                full.set(full.get() || client.full);
                ended
            }
        });
        // The first error ends the session: in one with a cut, clients work until then.
        let clients = try_join_all(clients);
        let work = try_join(hand_overs.leave(runtime, &domains), clients);
        let watch = pin!(self.watch(&domains, runtime));
        match select(pin!(work), watch).await {
            Either::Left((ended, _)) => drop(ended.map_err(ended_by)?),
            Either::Right((failure, _)) => return Err(failure),
        }
        let domain = &domains[0];
        compare_copies(domain).await?;
        if self.contest {
            let slots = u64::from(LEAST_SLOTS.max(SLOTS_OF_UNIT * self.scenario.flash.channels));
            let rng = Rng::seeded(self.seed).fork("contest");
            contest(domain, slots, rng).await.map_err(ended_by)?;
        }
        for domain in &domains {
            domain.check_map().map_err(SessionFailure::Wrong)?;
            domain.flush().await.map_err(failure)?;
        }
        if self.shape.pair.is_some() {
            domain.prove().await.map_err(failure)?;
        }
        if self.scenario.may_lose() || self.scenario.repairs > 0 {
            rest(runtime).await;
        }
        self.references.iter().for_each(|reference| reference.borrow_mut().settle());
        domains.iter().for_each(Domain::stop);
        Ok(())
    }

    /// Looks at a pair again and again: a set that only reads programs and erases nothing. Ends
    /// with the first failure.
    async fn watch(&self, domains: &[Domain], runtime: &RuntimeHandle) -> SessionFailure {
        if self.shape.pair.is_none() {
            return pending().await;
        }
        let mut before = None;
        loop {
            let now = at_rest(domains);
            self.is_whole.set(domains[0].pair_figures().is_some_and(|figures| figures.is_whole));
            if let (Some(before), Some(now)) = (&before, &now)
                && is_same_rest(before, now)
                && before != now
            {
                return SessionFailure::Wrong(format!("a set at rest works: {before:?}, {now:?}"));
            }
            before = now;
            runtime.sleep_until(runtime.now() + LOOK_NS).await;
        }
    }

    /// Mounts the domain of each set, on one FTL.
    async fn mount(&self, runtime: &RuntimeHandle) -> Result<Vec<Domain>, SessionFailure> {
        let sets = self.sets.borrow().clone();
        let ownership = |set: &Set| (set.units(), Domain::ownership(set.domain()));
        let owners = sets.sets().iter().map(ownership).collect();
        let owners = Owners::new(owners).at_epoch(sets.epoch());
        let queue = self.queue_pair(&owners.units())?;
        let first = sets.config(&sets.sets()[0], self.scenario, self.shape);
        let config = FtlConfig { wear: first.wear, order: first.order, ..FtlConfig::default() };
        let views = Flash::mount_for(queue, config, owners, Rc::clone(runtime)).await;
        let views = views.map_err(|error| self.not_mounted(error.into()))?;
        let mut domains = Vec::new();
        for (set, view) in sets.sets().iter().zip(views) {
            let config = sets.config(set, self.scenario, self.shape);
            let mounted = Domain::mount_on(view, config, Rc::clone(runtime)).await;
            domains.push(mounted.map_err(|error| self.not_mounted(error))?.0);
        }
        Ok(domains)
    }

    pub(super) fn queue_pair(&self, units: &UnitSet) -> Result<Box<dyn QueuePair>, SessionFailure> {
        let queue = self.medium.device().open_queue_pair(units);
        queue.map_err(|error| SessionFailure::Wrong(error.to_string()))
    }

    /// The references, with the domain of each.
    fn references_of<'d>(
        &self,
        domains: &'d [Domain],
    ) -> Vec<(&'d Domain, &'a Rc<RefCell<Reference>>)> {
        let clients = usize::from(self.scenario.clients.count);
        let (of_clients, of_second) = self.references.split_at(clients);
        let of_clients = of_clients.iter().map(|reference| (&domains[0], reference));
        let second = if self.shape.pair.is_some() { &[] } else { &domains[1..] };
        of_clients.chain(second.iter().zip(of_second)).collect()
    }

    /// Of several units, one may be lost: the others say which data it held.
    fn not_mounted(&self, error: VolumeError) -> SessionFailure {
        match error {
            VolumeError::Damaged { reason } if self.scenario.loses_one_unit_at_most() => {
                SessionFailure::Wrong(format!(
                    "one unit was replaced, and the domain is lost: {reason}"
                ))
            }
            error => failure(error),
        }
    }

    /// Compares the images of a client with its reference, and creates its volume if that does not
    /// exist yet.
    async fn compare(
        &self,
        domain: &Domain,
        reference: &RefCell<Reference>,
        runtime: &RuntimeHandle,
    ) -> Result<(), SessionFailure> {
        let may_lose = self.scenario.may_lose();
        let found = images(domain, &reference.borrow())?;
        let settings = settings(domain, &reference.borrow());
        let first = reference.borrow().volume_name();
        let created = found.keys().any(|name| name.volume == first);
        let pending = reference.borrow().pending.clone();
        if let (false, Some(Pending::Appears(name, contents))) = (created, pending)
            && name.volume == first
            && name.snapshot.is_none()
        {
            let bytes = u64::from(contents.len()) * UNIT;
            domain.create(&first, bytes).await.map_err(failure)?;
            if may_lose {
                rest(runtime).await;
            }
            reference.borrow_mut().complete();
            return Ok(());
        }
        reference.borrow_mut().reconcile(&found, &settings).map_err(SessionFailure::Wrong)?;
        for (name, units) in found {
            let states = states(domain, &name, units, may_lose).await?;
            let mut reference = reference.borrow_mut();
            reference.decide(&name, &states).map_err(SessionFailure::Wrong)?;
            for (lba, state) in (0..).zip(states) {
                let Some(state) = state else {
                    reference.unreadable(&name, lba);
                    continue;
                };
                reference.found(&name, lba, state).map_err(SessionFailure::Wrong)?;
            }
        }
        Ok(())
    }
}

/// The number of the pair.
const PAIR: u64 = 7 << 32;

/// Time between two looks at a pair, in nanoseconds.
const LOOK_NS: u64 = 200_000;

/// The set of a pair that only reads, the operations and turns so far, and what it has programmed
/// and erased.
type AtRest = (usize, [u64; 2], (ProgramBytes, u64));

fn at_rest(domains: &[Domain]) -> Option<AtRest> {
    let rests = |domain: &Domain| domain.window().is_some_and(|window| window.is_deterministic);
    let set = domains.iter().position(rests)?;
    let figures = domains[0].pair_figures()?;
    let work = (domains[set].programmed(), domains[set].erases());
    Some((set, [figures.turns, figures.operations], work))
}

/// Whether a set has only read in between, as far as it says.
fn is_same_rest((before, since, _): &AtRest, (now, until, _): &AtRest) -> bool {
    before == now && since == until
}

/// Both sets of a pair have the same data.
async fn compare_copies(domain: &Domain) -> Result<(), SessionFailure> {
    match domain.compare_copies().await.map_err(failure)? {
        None => Ok(()),
        Some(difference) => {
            Err(SessionFailure::Wrong(format!("the sets of a pair differ: {difference}")))
        }
    }
}

/// The images of a client, with their mapping units.
pub(super) fn images(
    domain: &Domain,
    reference: &Reference,
) -> Result<BTreeMap<Name, u32>, SessionFailure> {
    let mut found = BTreeMap::new();
    for info in domain.list().into_iter().filter(|info| reference.owns(&info.name)) {
        let units = |bytes: u64| (bytes / UNIT) as u32;
        for snapshot in info.snapshots {
            let opened = domain.open_snapshot(&info.name, &snapshot).map_err(failure)?;
            let size = units(opened.size_bytes().map_err(failure)?);
            found.insert(Name { volume: info.name.clone(), snapshot: Some(snapshot) }, size);
        }
        found.insert(Name { volume: info.name, snapshot: None }, units(info.size_bytes));
    }
    Ok(found)
}

/// The settings of the volumes of a client.
pub(super) fn settings(domain: &Domain, reference: &Reference) -> BTreeMap<Name, VolumeSettings> {
    let volumes = domain.list().into_iter().filter(|info| reference.owns(&info.name));
    volumes.map(|info| (Name { volume: info.name, snapshot: None }, info.settings)).collect()
}

/// The states of all mapping units of an image; none of those whose data are lost, where that may
/// be.
pub(super) async fn states(
    domain: &Domain,
    name: &Name,
    units: u32,
    may_lose: bool,
) -> Result<Vec<Option<u64>>, SessionFailure> {
    let opened = match &name.snapshot {
        Some(snapshot) => domain.open_snapshot(&name.volume, snapshot),
        None => domain.volume(&name.volume),
    };
    let read = read_units(&opened.map_err(failure)?, 0, units, may_lose).await.map_err(failure)?;
    let states = read.into_iter().map(|unit| unit.map(|bytes| state(&bytes)).transpose());
    states.collect::<Result<Vec<_>, String>>().map_err(SessionFailure::Wrong)
}

fn ended_by(ended: Ended) -> SessionFailure {
    match ended {
        Ended::Failed(error) => failure(error),
        Ended::Unproven => {
            SessionFailure::Refused("the end of the frames is not proved".to_owned())
        }
        Ended::Wrong(what) => SessionFailure::Wrong(what),
    }
}

fn failure(error: VolumeError) -> SessionFailure {
    let text = error.to_string();
    match error {
        VolumeError::OutOfSpace { .. } => SessionFailure::Full,
        VolumeError::DataLoss { .. } | VolumeError::Damaged { .. } | VolumeError::Flash(_) => {
            SessionFailure::Lost(text)
        }
        VolumeError::WornOut => SessionFailure::WornOut(text),
        _ => SessionFailure::Refused(text),
    }
}
