//! One session, from power on to power off: the store opens, all its contents are compared with the
//! reference, and the clients work.

use crate::client::Client;
use crate::fullness::{self, REST};
use crate::invariants::{SpaceAccounting, groups_are_on_different_units};
use crate::live_values::DeadValues;
use crate::medium::Medium;
use crate::planned_faults::{self, PlannedFaults};
use crate::reference::{Breach, Contents};
use crate::resp;
use crate::resp::ledger::{Found, Slack};
use crate::resp::semantics::Window;
use crate::scenario::Scenario;
use crate::session_failure::SessionFailure;
use crate::store_sets::{HandOvers, StoreSets};
use crate::virtual_time;
use bytes::Bytes;
use futures_util::future::{Either, select, try_join, try_join_all};
use softflash_base::{SliceId, Time};
use softflash_runtime::RuntimeHandle;
use softflash_store::check::{Finding, Progress, check};
use softflash_store::{Store, StoreLayout, open_all};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

/// Keys that one scan step returns.
const SCANNED: usize = 50;
/// With interval durability, the longest time from the moment at which a sync is due to its end,
/// and from the acknowledgement of a write to the moment from which the interval counts.
const LONGEST_SYNC: Duration = Duration::from_millis(40);

/// The task of a session after the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// The clients work.
    Work,
    /// The clients work and must finish in time; then the store closes cleanly.
    Prove,
    /// The store is left idle for a while and closes cleanly.
    Close,
}

/// When the power is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// After this many requests have started; none: regardless of requests.
    pub requests: Option<u64>,
    /// And after this many removals of all keys have started.
    pub removals: Option<u64>,
    /// Delay after that, or after power on.
    pub then: Time,
    /// Seed of the outcome of operations in flight.
    pub seed: u64,
}

/// Parameters of a session.
pub struct Plan<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The medium of its store.
    pub medium: &'a Medium,
    /// Sequence number of the session within the scenario.
    pub number: u64,
    /// Its clients.
    pub clients: &'a ClientGroup,
    /// The task of the session.
    pub task: Task,
    /// The power cut, if there is one.
    pub cut: Option<Cut>,
    /// Wall clock at the start.
    pub wall_ms: u64,
    /// Planned faults of the flash.
    pub planned_faults: PlannedFaults,
    /// Number of silent program faults up to the last comparison.
    pub silent_before: u64,
    /// The units of each shard.
    pub sets: &'a RefCell<StoreSets>,
}

impl Plan<'_> {
    /// The data that may be lost without an error. In scenarios that may lose data: the last page
    /// of each log, because it looks like a page whose program was cut by a power loss; one more
    /// for each silent program fault. The loss of a whole unit allows no silent loss.
    fn slack(&self) -> Slack {
        if self.scenario.store.interval_ms > 0 {
            return Slack::INTERVAL;
        }
        if !self.scenario.may_lose() || self.scenario.fault_plan.replacements > 0.0 {
            return Slack::NONE;
        }
        let silent = silent_programs(self.medium) - self.silent_before;
        Slack { exchanges: usize::try_from(silent + 1).unwrap_or(usize::MAX), together: false }
    }
}

/// The result of a session.
#[derive(Debug)]
pub struct Session {
    /// When it ended, since its start.
    pub ended_at: Time,
    /// Why it ended early.
    pub failure: Option<SessionFailure>,
    /// State of the flash at the comparison, if there was one.
    pub compared: Option<Comparison>,
    /// The store refused writes for lack of space, and rightly so.
    pub full: bool,
    /// When it closed, a shard had too little space for a rewrite of degraded blocks.
    pub lacks_room: bool,
}

/// State of the flash when all contents were compared with the reference.
#[derive(Debug)]
pub struct Comparison {
    /// The space accounting, if the shards had all of their units.
    pub accounting: Option<SpaceAccounting>,
    /// Number of silent program faults so far.
    pub silent: u64,
}

/// All clients of a scenario.
pub enum ClientGroup {
    /// Clients that call the store.
    Direct(Vec<Client>),
    /// Clients that send RESP.
    Resp(resp::RespClients),
}

impl ClientGroup {
    /// The clients of a scenario.
    pub fn of(scenario: &Scenario) -> ClientGroup {
        resp::RespClients::of(scenario)
            .map_or_else(|| ClientGroup::Direct(Client::all(scenario)), ClientGroup::Resp)
    }

    fn has_removed(&self) -> bool {
        matches!(self, ClientGroup::Resp(clients) if clients.common.has_removed())
    }

    fn begins_session(&self) {
        if let ClientGroup::Resp(clients) = self {
            clients.common.begins_session();
        }
    }

    /// A session ends.
    fn ends_session(&self, stores: &[Store], now: Time) {
        match self {
            ClientGroup::Direct(clients) => {
                clients.iter().for_each(|client| client.promise.borrow_mut().ends(now));
            }
            ClientGroup::Resp(clients) => {
                stores.iter().for_each(|store| clients.common.note_clock(store.now_ms()));
            }
        }
    }

    /// The highest expiry clock of earlier sessions.
    fn latest_ms(&self) -> u64 {
        match self {
            ClientGroup::Direct(_) => 0,
            ClientGroup::Resp(clients) => clients.common.latest_ms(),
        }
    }

    async fn work(&self, stores: &[Store], scenario: &Scenario) -> Result<(), SessionFailure> {
        match self {
            ClientGroup::Direct(clients) => {
                let durable = scenario.store.interval_ms == 0;
                let workload = &scenario.clients;
                let work =
                    clients.iter().map(|client| client.work(stores, clients, workload, durable));
                try_join_all(work).await.map(drop)
            }
            ClientGroup::Resp(clients) => clients.work(stores, scenario).await,
        }
    }

    /// Requests and pauses of this session, where they are counted.
    fn steps_made(&self) -> u64 {
        match self {
            ClientGroup::Direct(_) => 0,
            ClientGroup::Resp(clients) => clients.common.steps_made(),
        }
    }

    fn keys(&self, scenario: &Scenario) -> Vec<Bytes> {
        match self {
            ClientGroup::Direct(clients) => clients.iter().flat_map(Client::keys).collect(),
            ClientGroup::Resp(clients) => clients.keys(scenario),
        }
    }

    /// Compares the contents found with the reference; `slack` defines the permitted losses.
    fn judge(
        &self,
        scenario: &Scenario,
        store: &Store,
        found: Found,
        at: Window,
        slack: Slack,
    ) -> Result<(), String> {
        match self {
            ClientGroup::Direct(clients) => judge_direct(clients, found, scenario),
            ClientGroup::Resp(clients) => {
                clients.judge(scenario, &found, at, store.layout(), slack)
            }
        }
    }

    /// Compares each key by itself, except those that the store reports as lost.
    fn judge_rest(
        &self,
        store: &Store,
        found: &Found,
        unreadable: &BTreeSet<Bytes>,
        at: Window,
        slack: Slack,
    ) -> Result<(), String> {
        match self {
            ClientGroup::Direct(_) => Ok(()),
            ClientGroup::Resp(clients) => {
                clients.judge_rest(found, unreadable, at, store.layout(), slack)
            }
        }
    }

    /// Hash of everything that clients received.
    pub fn trace(&self) -> u64 {
        match self {
            ClientGroup::Direct(_) => 0,
            ClientGroup::Resp(clients) => clients.common.trace(),
        }
    }
}

/// Runs a session to its end or its cut.
pub fn run(plan: &Plan<'_>) -> Session {
    let Plan { scenario, medium, number, clients, task, cut, wall_ms, planned_faults, .. } = plan;
    let executor = virtual_time::executor(*wall_ms);
    let runtime = executor.handle();
    let (compared, lacks_room) = (Cell::new(None), Cell::new(false));
    let opened = RefCell::new(Vec::new());
    let mut hand_overs = HandOvers::drawn(scenario, medium, plan.sets, *number);
    clients.begins_session();
    medium.plan(planned_faults, &runtime);
    medium.fail_flushes(scenario, cut.is_some(), cut.map_or(0, |cut| cut.seed));
    let work = async {
        let options = scenario.options(*number);
        hand_overs.come_back(*task != Task::Work, &runtime).await?;
        let layout = plan.sets.borrow().layout();
        let stores = open_all(medium.device(), &layout, &options, &runtime).await?;
        *opened.borrow_mut() = stores.clone();
        compare(&stores, plan).await?;
        fullness::free_blocks_fit(&stores, scenario)?;
        let has_all_units = plan.sets.borrow().are_full();
        let accounting = SpaceAccounting::of(&stores[0]).await?;
        let accounting = has_all_units.then_some(accounting);
        compared.set(Some(Comparison { accounting, silent: silent_programs(medium) }));
        match task {
            Task::Work => {
                let work = clients.work(&stores, scenario);
                try_join(work, hand_overs.leave(&stores, &runtime)).await?;
                fullness::free_blocks_are_known(&stores, scenario)?;
                watches_are_swept(&stores, plan)
            }
            Task::Prove => {
                let dead_values = DeadValues::of(&stores[0], scenario).await?;
                let work = pin!(clients.work(&stores, scenario));
                match select(work, pin!(stall(clients, scenario, &runtime))).await {
                    Either::Left((outcome, _)) => outcome?,
                    Either::Right((failure, _)) => return Err(failure),
                }
                watches_are_swept(&stores, plan)?;
                hand_overs.end(&stores, &runtime).await?;
                runtime.sleep_until(runtime.now() + REST).await;
                fullness::free_blocks_are_known(&stores, scenario)?;
                SpaceAccounting::of(&stores[0])
                    .await?
                    .have_no_leak(scenario)
                    .map_err(SessionFailure::Wrong)?;
                if let Some(before) = dead_values {
                    before.have_not_grown(&stores[0], scenario).await?;
                }
                close(&stores).await
            }
            Task::Close => {
                // Data under compaction use space twice.
                runtime.sleep_until(runtime.now() + REST).await;
                let accounting = SpaceAccounting::of(&stores[0]).await?;
                fullness::free_blocks_are_known(&stores, scenario)?;
                accounting.have_no_leak(scenario).map_err(SessionFailure::Wrong)?;
                let dead = planned_faults::dead_dies(planned_faults);
                lacks_room.set(fullness::lacks_room(&stores));
                if !lacks_room.get() {
                    accounting.have_all_copies(scenario, &dead).map_err(SessionFailure::Wrong)?;
                    if accounting.units_left(scenario, &dead) >= 2 {
                        groups_are_on_different_units(&stores).map_err(SessionFailure::Wrong)?;
                    }
                }
                close(&stores).await
            }
        }
    };
    let whole = async {
        let outcome = until(*cut, work, (clients, scenario), &runtime).await;
        let stores = opened.take();
        clients.ends_session(&stores, runtime.now());
        let is_full = outcome == Err(SessionFailure::Full);
        // Units that leave take space with them.
        if is_full && !scenario.may_lose() && scenario.store.hand_overs == 0.0 {
            // A removal of all keys may release much space between the refusal and this check.
            if !clients.has_removed() {
                fullness::is_low_on_space(&stores, scenario).await?;
            }
            // In half of these sessions the power is cut without the idle time.
            if cut.is_none_or(|cut| cut.seed % 2 == 0) {
                fullness::takes_writes_again(&stores, scenario).await?;
            }
        }
        if is_full { Ok(true) } else { outcome.map(|()| false) }
    };
    let outcome = executor.try_block_on(whole);
    let ended_at = executor.now();
    // Before any task is dropped: a dropped task withdraws its commands.
    let cut = cut.map_or(Ok(()), |cut| medium.power_cut(ended_at, cut.seed));
    let (failure, full) = match outcome {
        Ok(Ok(full)) => (None, full),
        Ok(Err(failure)) => (Some(failure), false),
        Err(deadlock) => (Some(SessionFailure::Wrong(deadlock.to_string())), false),
    };
    // Nothing is acknowledged after a failed flush, until the next start.
    let has_stopped = matches!(failure, Some(SessionFailure::Lost(_) | SessionFailure::Refused(_)));
    let failure = failure.filter(|_| !(has_stopped && medium.has_failed_flush()));
    let failure = match cut {
        Ok(()) => failure,
        Err(error) => Some(SessionFailure::Wrong(format!("the cut: {error}"))),
    };
    Session { ended_at, failure, compared: compared.take(), full, lacks_room: lacks_room.get() }
}

/// Ends when no request was made, and no pause begun, for longer than a request can take between
/// two pauses: a minute per client, for slow flash and for cleaning, and a pause. Where requests
/// are not counted, all of them must finish within that time each.
async fn stall(
    clients: &ClientGroup,
    scenario: &Scenario,
    runtime: &RuntimeHandle,
) -> SessionFailure {
    let minutes = Duration::from_secs(60) * u32::from(scenario.clients.count);
    let patience = match clients {
        ClientGroup::Resp(_) => minutes + Duration::from_millis(scenario.pace.longest_pause_ms),
        ClientGroup::Direct(_) => minutes * scenario.clients.requests,
    };
    loop {
        let made = clients.steps_made();
        runtime.sleep_until(runtime.now() + patience).await;
        if clients.steps_made() == made {
            return SessionFailure::Wrong("requests do not complete".to_owned());
        }
    }
}

/// Without connections, the store keeps at most the watches created since the last sweep and those
/// in use at that sweep: for each client, the keys of a few `WATCH`es on its last connections.
fn watches_are_swept(stores: &[Store], plan: &Plan<'_>) -> Result<(), SessionFailure> {
    let watched = plan.scenario.resp.as_ref().map_or(1, |resp| resp.watched);
    let held = u64::from(plan.scenario.clients.count) * 4 * (watched + 1);
    let most = plan.scenario.options(plan.number).watch_sweep + held as usize;
    match stores.iter().map(|store| store.watch_tokens()).max() {
        Some(kept) if kept > most => {
            Err(SessionFailure::Wrong(format!("{kept} watches are kept, the limit is {most}")))
        }
        _ => Ok(()),
    }
}

async fn close(stores: &[Store]) -> Result<(), SessionFailure> {
    Ok(try_join_all(stores.iter().map(Store::close)).await.map(drop)?)
}

/// Works until it is done or the power is cut.
async fn until(
    cut: Option<Cut>,
    work: impl Future<Output = Result<(), SessionFailure>>,
    (clients, scenario): (&ClientGroup, &Scenario),
    runtime: &RuntimeHandle,
) -> Result<(), SessionFailure> {
    let Some(Cut { requests, removals, then, .. }) = cut else { return work.await };
    let due = async {
        if let ClientGroup::Resp(counting) = clients
            && requests.or(removals).is_some()
        {
            let (requests, removals) = (requests.unwrap_or(0), removals.unwrap_or(0));
            let begun = pin!(counting.common.begun(requests, removals));
            if let Either::Right((failure, _)) =
                select(begun, pin!(stall(clients, scenario, runtime))).await
            {
                return Err(failure);
            }
        }
        runtime.sleep_until(runtime.now() + then.0).await;
        Ok(())
    };
    select(pin!(work), pin!(due)).await.factor_first().0
}

/// Looks up every key and scans every slice: both must return the promised contents and nothing
/// else. Where the flash may lose data, each key is as promised or the store returns an error that
/// reports the loss.
async fn compare(stores: &[Store], plan: &Plan<'_>) -> Result<(), SessionFailure> {
    let (store, clients, scenario) = (&stores[0], plan.clients, plan.scenario);
    let from_ms = store.runtime().wall_ms();
    let (mut found, mut lost) = match scan_all(store).await {
        Err(SessionFailure::Lost(what)) if scenario.may_lose() => (None, Some(what)),
        found => (Some(found?), None),
    };
    let mut looked_up = Found::new();
    let mut unreadable = BTreeSet::new();
    if let Some(found) = &mut found {
        // Their outcome is unknown and does not matter.
        found.retain(|key, _| !fullness::is_probe(key));
    }
    let mut keys: BTreeSet<Bytes> = clients.keys(scenario).into_iter().collect();
    keys.extend(found.iter().flat_map(Found::keys).cloned());
    for key in keys {
        match store.begin().get(&key).await.map_err(SessionFailure::from) {
            Ok(Some(entry)) => {
                looked_up.insert(key, (entry.value.to_bytes(), entry.expires_at_ms));
            }
            Ok(None) => {}
            Err(SessionFailure::Lost(what)) if scenario.may_lose() => {
                lost = Some(what);
                unreadable.insert(key);
            }
            Err(failure) => return Err(failure),
        }
    }
    // A key that expires between the scan and the lookup is in the scan only. The store's clocks
    // may be ahead of the wall clock, and a key that expired before the cut may have been dropped,
    // although the clocks that recovery found in the log are earlier.
    let wall_ms = store.runtime().wall_ms().max(clients.latest_ms());
    let to_ms = stores.iter().map(Store::now_ms).fold(wall_ms, u64::max);
    let at = Window { from_ms, to_ms };
    for key in found.iter().flat_map(Found::keys).chain(looked_up.keys()) {
        let Some(found) = &found else { break };
        let (scanned, looked_up) = (found.get(key), looked_up.get(key));
        let may_expire = |ms: u64| (1..=at.to_ms).contains(&ms);
        let expired = scanned.is_some_and(|(_, ms)| may_expire(*ms)) && looked_up.is_none();
        if scanned != looked_up && !expired && !unreadable.contains(key) {
            let key = key.escape_ascii();
            return Err(SessionFailure::Wrong(format!("key `{key}`: a lookup and a scan differ")));
        }
    }
    let slack = plan.slack();
    match lost {
        None => clients.judge(scenario, store, looked_up, at, slack).map_err(SessionFailure::Wrong),
        Some(what) => {
            let judged = clients.judge_rest(store, &looked_up, &unreadable, at, slack);
            judged.map_err(SessionFailure::Wrong)?;
            Err(SessionFailure::Lost(what))
        }
    }
}

/// Number of acknowledged programs that did something else.
fn silent_programs(medium: &Medium) -> u64 {
    let Some(device) = medium.flash() else { return 0 };
    let injected = device.injected_faults();
    injected.phantom_programs + injected.misdirected_programs
}

/// All keys with their entries, by scans.
pub(crate) async fn scan_all(store: &Store) -> Result<Found, SessionFailure> {
    let mut found = Found::new();
    for slice in 0..store.layout().slices {
        let mut after = None;
        loop {
            let page = store.scan(SliceId(slice), after, SCANNED).await?;
            for (key, entry) in page.items {
                let held = (entry.value.to_bytes(), entry.expires_at_ms);
                if found.insert(key.clone(), held).is_some() {
                    let key = key.escape_ascii();
                    return Err(SessionFailure::Wrong(format!("key `{key}` is in two slices")));
                }
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
    }
    Ok(found)
}

fn judge_direct(clients: &[Client], found: Found, scenario: &Scenario) -> Result<(), String> {
    let mut contents: Vec<Contents> = vec![Contents::new(); clients.len()];
    for (key, (value, _)) in found {
        let owner = Client::owner(&key).map(usize::from);
        let Some(contents) = owner.and_then(|owner| contents.get_mut(owner)) else {
            return Err(format!("key `{}` was never written", key.escape_ascii()));
        };
        contents.insert(key, value);
    }
    for (client, contents) in clients.iter().zip(contents) {
        let lost = client.promise.borrow_mut().found(contents).map_err(|Breach(what)| what)?;
        let Some(interval) = scenario.steady_interval() else { continue };
        let most = 2 * interval + LONGEST_SYNC;
        if let Some(age) = lost.filter(|age| *age > most) {
            return Err(format!(
                "a write is lost that was acknowledged {age:?} before the cut, with an interval of {interval:?}"
            ));
        }
    }
    Ok(())
}

/// Checks the medium offline with these planned faults; returns the errors found. Blocks may lack
/// redundancy where the store `lacks_room`.
pub fn check_offline(
    scenario: &Scenario,
    (medium, layout): (&Medium, &StoreLayout),
    planned_faults: &PlannedFaults,
    wall_ms: u64,
    lacks_room: bool,
) -> Option<String> {
    let executor = virtual_time::executor(wall_ms);
    let runtime = executor.handle();
    medium.plan(planned_faults, &runtime);
    let device = medium.device();
    let progress = Progress::default();
    let checked = executor.try_block_on(check(device, layout, &runtime, &progress));
    match checked {
        Ok(report) if report.ok => None,
        Ok(report) => {
            // A misdirected program may overwrite the erase header of any superblock of its unit, a
            // cut costs older pages of a word line, and a header that a cut interrupted may decay
            // when the superblock is in use: only a repair moves the contents away from there.
            let faults = &scenario.faults;
            let may_overwrite = scenario.fault_plan.planned_faults > 0
                || faults.paired_page_loss > 0.0
                || faults.cut_pages.unstable > 0.0;
            let is_overwritten =
                |finding: &Finding| finding.problem.starts_with("the erase header");
            let is_wrong = |finding: &&Finding| {
                finding.is_error
                    && !(lacks_room && finding.is_degraded)
                    && !(may_overwrite && is_overwritten(finding))
            };
            let wrong = report.findings.iter().filter(is_wrong);
            let wrong: Vec<String> =
                wrong.map(|finding| format!("{}: {}", finding.place, finding.problem)).collect();
            (!wrong.is_empty()).then(|| format!("check: {}", wrong.join("; ")))
        }
        Err(deadlock) => Some(format!("check: {deadlock}")),
    }
}
