//! From power on to power off: the store opens, everything in it is compared with what was promised, and the clients
//! work.

use crate::client::Client;
use crate::reference::{Breach, Contents};
use crate::resp;
use crate::resp::ledger::Found;
use crate::resp::semantics::Window;
use crate::trouble::Trouble;
use crate::world::World;
use futures_util::future::{Either, select, try_join_all};
use softflash_base::{SliceId, Time};
use softflash_device::{Device, ModelDevice};
use softflash_runtime::{RuntimeHandle, VirtualExecutor};
use softflash_store::check::Progress;
use softflash_store::{Store, check, open_all};
use std::cell::Cell;
use std::pin::pin;
use std::sync::Arc;

/// Keys that one look at a slice brings.
const SCANNED: usize = 50;

/// What a session is to do after everything was compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// The clients work.
    Work,
    /// The store closes as it should.
    Close,
}

/// When a session is cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// So many requests have been begun; none: it does not matter.
    pub requests: Option<u64>,
    /// So long after that, or after power on.
    pub then: Time,
}

/// How a session went.
#[derive(Debug)]
pub struct Session {
    /// Everything was compared with what was promised.
    pub compared: bool,
    /// When it ended, from its beginning.
    pub ended_at: Time,
    /// Why it ended early.
    pub trouble: Option<Trouble>,
}

/// All clients of a world.
pub enum Crew {
    /// They call the store.
    Direct(Vec<Client>),
    /// They speak RESP.
    Resp(resp::Crew),
}

impl Crew {
    /// The clients of a world.
    pub fn of(world: &World) -> Crew {
        resp::Crew::of(world).map_or_else(|| Crew::Direct(Client::all(world)), Crew::Resp)
    }

    fn begins_session(&self) {
        if let Crew::Resp(crew) = self {
            crew.begins_session();
        }
    }

    async fn work(&self, stores: &[Store], world: &World) -> Result<(), Trouble> {
        match self {
            Crew::Direct(clients) => {
                let durable = world.store.interval_ms == 0;
                let work =
                    clients.iter().map(|client| client.work(stores, &world.clients, durable));
                try_join_all(work).await.map(drop)
            }
            Crew::Resp(crew) => crew.work(stores, world).await,
        }
    }

    fn keys(&self, world: &World) -> Vec<bytes::Bytes> {
        match self {
            Crew::Direct(clients) => clients.iter().flat_map(Client::keys).collect(),
            Crew::Resp(crew) => crew.keys(world),
        }
    }

    fn judge(&self, world: &World, store: &Store, found: Found, at: Window) -> Result<(), String> {
        match self {
            Crew::Direct(clients) => judge_direct(clients, found),
            Crew::Resp(crew) => {
                let may_lose = if world.store.interval_ms == 0 { 0 } else { usize::MAX };
                crew.judge(world, &found, at, store.layout(), may_lose)
            }
        }
    }

    /// Of everything that clients were told.
    pub fn trace(&self) -> u64 {
        match self {
            Crew::Direct(_) => 0,
            Crew::Resp(crew) => crew.trace(),
        }
    }
}

/// Runs a session to its end, or until `cut`, from `wall_ms` on the wall clock on.
pub fn run(
    world: &World,
    device: &Arc<ModelDevice>,
    crew: &Crew,
    task: Task,
    cut: Option<Cut>,
    wall_ms: u64,
) -> Session {
    let executor = VirtualExecutor::new(wall_ms);
    let runtime = executor.handle();
    let compared = Cell::new(false);
    crew.begins_session();
    let work = async {
        let device = Arc::clone(device) as Arc<dyn Device>;
        let stores = open_all(device, &world.layout(), &world.options(), &runtime).await?;
        compare(&stores, crew, world).await?;
        compared.set(true);
        match task {
            Task::Work => crew.work(&stores, world).await,
            Task::Close => Ok(try_join_all(stores.iter().map(Store::close)).await.map(drop)?),
        }
    };
    let outcome = executor.try_block_on(until(cut, work, crew, &runtime));
    let ended_at = executor.now();
    let trouble = match outcome {
        Ok(Ok(()) | Err(Trouble::Full)) => None,
        Ok(Err(trouble)) => Some(trouble),
        Err(deadlock) => Some(Trouble::Wrong(deadlock.to_string())),
    };
    Session { compared: compared.get(), ended_at, trouble }
}

/// Works until it is done, or until the time of the cut.
async fn until(
    cut: Option<Cut>,
    work: impl Future<Output = Result<(), Trouble>>,
    crew: &Crew,
    runtime: &RuntimeHandle,
) -> Result<(), Trouble> {
    let Some(Cut { requests, then }) = cut else { return work.await };
    let due = async {
        if let (Some(requests), Crew::Resp(crew)) = (requests, crew) {
            crew.begun(requests).await;
        }
        runtime.sleep_until(runtime.now() + then.0).await;
    };
    match select(pin!(work), pin!(due)).await {
        Either::Left((outcome, _)) => outcome,
        Either::Right(_) => Ok(()),
    }
}

/// Looks every key up, and scans every slice: both must show what was promised, and nothing else.
async fn compare(stores: &[Store], crew: &Crew, world: &World) -> Result<(), Trouble> {
    let store = &stores[0];
    let from_ms = store.runtime().wall_ms();
    let found = scan_all(store).await?;
    let mut looked_up = Found::new();
    for key in crew.keys(world) {
        if let Some(entry) = store.view().get(&key).await? {
            looked_up.insert(key, (entry.value.to_bytes(), entry.expires_at_ms));
        }
    }
    // What expires between the two looks is in the first only. The clocks of the store may be ahead of the wall's.
    let wall_ms = store.runtime().wall_ms();
    let to_ms = stores.iter().map(Store::now_ms).fold(wall_ms, u64::max);
    let at = Window { from_ms, to_ms };
    for key in found.keys().chain(looked_up.keys()) {
        let (scanned, looked_up) = (found.get(key), looked_up.get(key));
        let expired = scanned.is_some_and(|(_, ms)| *ms != 0) && looked_up.is_none();
        if scanned != looked_up && !expired {
            let key = key.escape_ascii();
            return Err(Trouble::Wrong(format!("key `{key}`: a lookup and a scan differ")));
        }
    }
    crew.judge(world, store, looked_up, at).map_err(Trouble::Wrong)
}

async fn scan_all(store: &Store) -> Result<Found, Trouble> {
    let mut found = Found::new();
    for slice in 0..store.layout().slices {
        let mut after = None;
        loop {
            let page = store.scan(SliceId(slice), after, SCANNED).await?;
            for (key, entry) in page.items {
                let held = (entry.value.to_bytes(), entry.expires_at_ms);
                if found.insert(key.clone(), held).is_some() {
                    let key = key.escape_ascii();
                    return Err(Trouble::Wrong(format!("key `{key}` is in two slices")));
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

fn judge_direct(clients: &[Client], found: Found) -> Result<(), String> {
    let mut contents: Vec<Contents> = vec![Contents::new(); clients.len()];
    for (key, (value, _)) in found {
        let owner = Client::owner(&key).map(usize::from);
        let Some(contents) = owner.and_then(|owner| contents.get_mut(owner)) else {
            return Err(format!("key `{}` was written by nobody", key.escape_ascii()));
        };
        contents.insert(key, value);
    }
    for (client, contents) in clients.iter().zip(contents) {
        client.promise.borrow_mut().found(contents).map_err(|Breach(what)| what)?;
    }
    Ok(())
}

/// Checks the device offline; returns what is wrong.
pub fn check_offline(world: &World, device: &Arc<ModelDevice>, wall_ms: u64) -> Option<String> {
    let executor = VirtualExecutor::new(wall_ms);
    let runtime = executor.handle();
    let device = Arc::clone(device) as Arc<dyn Device>;
    let layout = world.layout();
    let progress = Progress::default();
    let checked = executor.try_block_on(check(device, &layout, &runtime, &progress));
    match checked {
        Ok(report) if report.ok => None,
        Ok(report) => {
            let wrong = report.findings.iter().filter(|finding| finding.is_error);
            let wrong: Vec<String> =
                wrong.map(|finding| format!("{}: {}", finding.place, finding.problem)).collect();
            Some(format!("check: {}", wrong.join("; ")))
        }
        Err(deadlock) => Some(format!("check: {deadlock}")),
    }
}
