//! From power on to power off: the store opens, everything in it is compared with what was promised, and the clients
//! work.

use crate::client::{Client, Trouble};
use crate::reference::{Breach, Contents};
use crate::world::World;
use futures_util::future::{Either, select, try_join_all};
use softflash_base::{SliceId, Time};
use softflash_device::{Device, ModelDevice};
use softflash_runtime::{RuntimeHandle, VirtualExecutor};
use softflash_store::check::Progress;
use softflash_store::{Store, StoreError, check, open_all};
use std::cell::Cell;
use std::pin::pin;
use std::sync::Arc;

/// What the wall clock shows when a world begins.
const WALL_MS: u64 = 1_000_000;

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

/// Runs a session to its end, or until `cut_after`.
pub fn run(
    world: &World,
    device: &Arc<ModelDevice>,
    clients: &[Client],
    task: Task,
    cut_after: Option<Time>,
) -> Session {
    let executor = VirtualExecutor::new(WALL_MS);
    let runtime = executor.handle();
    let compared = Cell::new(false);
    let work = async {
        let device = Arc::clone(device) as Arc<dyn Device>;
        let opened = open_all(device, &world.layout(), &world.options(), &runtime).await;
        let stores = opened.map_err(Trouble::Refused)?;
        compare(&stores[0], clients).await?;
        compared.set(true);
        match task {
            Task::Work => {
                let durable = world.store.interval_ms == 0;
                let work =
                    clients.iter().map(|client| client.work(&stores, &world.clients, durable));
                try_join_all(work).await.map(drop)
            }
            Task::Close => {
                let closed = try_join_all(stores.iter().map(Store::close)).await;
                closed.map(drop).map_err(Trouble::Refused)
            }
        }
    };
    let outcome = executor.try_block_on(until(cut_after, work, &runtime));
    let ended_at = executor.now();
    let trouble = match outcome {
        Ok(Ok(())) => None,
        // There is room for what is alive, but cleaning may be behind.
        Ok(Err(Trouble::Refused(StoreError::OutOfSpace))) => None,
        Ok(Err(trouble)) => Some(trouble),
        Err(deadlock) => Some(Trouble::Wrong(deadlock.to_string())),
    };
    Session { compared: compared.get(), ended_at, trouble }
}

/// Works until it is done, or until the time of the cut.
async fn until(
    cut_after: Option<Time>,
    work: impl Future<Output = Result<(), Trouble>>,
    runtime: &RuntimeHandle,
) -> Result<(), Trouble> {
    let Some(at) = cut_after else { return work.await };
    match select(pin!(work), runtime.sleep_until(at)).await {
        Either::Left((outcome, _)) => outcome,
        Either::Right(_) => Ok(()),
    }
}

/// Looks every key up, and scans every slice: both must show what was promised, and nothing else.
async fn compare(store: &Store, clients: &[Client]) -> Result<(), Trouble> {
    let mut found: Vec<Contents> = vec![Contents::new(); clients.len()];
    for slice in 0..store.layout().slices {
        let mut after = None;
        loop {
            let page =
                store.scan(SliceId(slice), after, SCANNED).await.map_err(Trouble::Refused)?;
            for (key, entry) in page.items {
                let owner = Client::owner(&key).map(usize::from);
                let Some(contents) = owner.and_then(|owner| found.get_mut(owner)) else {
                    let key = key.escape_ascii();
                    return Err(Trouble::Wrong(format!("key `{key}` was written by nobody")));
                };
                if contents.insert(key.clone(), entry.value.to_bytes()).is_some() {
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
    for (client, contents) in clients.iter().zip(found) {
        for key in client.keys() {
            let value = store.view().get(&key).await.map_err(Trouble::Refused)?;
            let value = value.map(|entry| entry.value.to_bytes());
            if value.as_ref() != contents.get(&key) {
                let key = key.escape_ascii();
                return Err(Trouble::Wrong(format!("key `{key}`: a lookup and a scan differ")));
            }
        }
        let judged = client.promise.borrow_mut().found(contents);
        judged.map_err(|Breach(what)| Trouble::Wrong(what))?;
    }
    Ok(())
}

/// Checks the device offline; returns what is wrong.
pub fn check_offline(world: &World, device: &Arc<ModelDevice>) -> Option<String> {
    let executor = VirtualExecutor::new(WALL_MS);
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
