//! Password checks: on threads other than the shards', a few at a time, and one at a time for each
//! network.
//!
//! A check takes memory and some tens of milliseconds of processor time. A client that floods the
//! server with passwords from one network occupies one of the slots, and the other networks share
//! the rest.

use crate::network::Network;
use futures_util::FutureExt;
use softflash_protocol::context::{Elsewhere, Job};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;

/// Number of concurrent password checks; each takes 7 MiB.
const SLOTS: usize = 2;

struct PasswordQueue {
    slots: Semaphore,
    networks: Mutex<HashMap<Network, Arc<Semaphore>>>,
}

/// Runs jobs on tokio's threads for blocking work; must be called inside a tokio runtime.
pub(crate) fn elsewhere() -> Box<Elsewhere> {
    let queue =
        Arc::new(PasswordQueue { slots: Semaphore::new(SLOTS), networks: Mutex::default() });
    Box::new(move |address, job| {
        let (queue, network) = (Arc::clone(&queue), Network::of_text(address));
        async move { queue.work(network, job).await }.boxed()
    })
}

impl PasswordQueue {
    async fn work(&self, network: Network, job: Job) {
        let entry = QueueEntry { queue: self, network, network_queue: self.network_queue(network) };
        // The semaphore is never closed, so it always grants. A job that panics counts as dropped.
        let own = entry.network_queue.acquire().await;
        let slot = self.slots.acquire().await;
        let _ = tokio::task::spawn_blocking(job).await;
        drop((slot, own));
    }

    fn networks(&self) -> MutexGuard<'_, HashMap<Network, Arc<Semaphore>>> {
        self.networks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The queue of a network.
    fn network_queue(&self, network: Network) -> Arc<Semaphore> {
        let mut networks = self.networks();
        Arc::clone(networks.entry(network).or_insert_with(|| Arc::new(Semaphore::new(1))))
    }
}

/// Keeps the queue of a network while a job waits in it.
struct QueueEntry<'a> {
    queue: &'a PasswordQueue,
    network: Network,
    network_queue: Arc<Semaphore>,
}

impl Drop for QueueEntry<'_> {
    fn drop(&mut self) {
        let mut networks = self.queue.networks();
        // This reference and the table's.
        if Arc::strong_count(&self.network_queue) <= 2 {
            networks.remove(&self.network);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    #[tokio::test]
    async fn few_are_tried_at_a_time_and_one_of_each_network() {
        let queue = PasswordQueue { slots: Semaphore::new(SLOTS), networks: Mutex::default() };
        let (now, most, done) = <(Arc<AtomicUsize>, Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
        let job = || -> Job {
            let (now, most, done) = (Arc::clone(&now), Arc::clone(&most), Arc::clone(&done));
            Box::new(move || {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                let (_sender, receiver) = std::sync::mpsc::channel::<()>();
                let _ = receiver.recv_timeout(Duration::from_millis(5));
                now.fetch_sub(1, Ordering::SeqCst);
                done.fetch_add(1, Ordering::SeqCst);
            })
        };
        let one = Network::of_text("10.0.0.1:5");
        futures_util::future::join_all((0..8).map(|_| queue.work(one, job()))).await;
        assert_eq!((most.swap(0, Ordering::SeqCst), done.load(Ordering::SeqCst)), (1, 8));
        let from = |number: usize| Network::of_text(&format!("10.0.0.{number}:5"));
        futures_util::future::join_all((0..8).map(|number| queue.work(from(number), job()))).await;
        assert_eq!((most.load(Ordering::SeqCst), done.load(Ordering::SeqCst)), (SLOTS, 16));
        assert!(queue.networks().is_empty(), "no waiters, no entries");
    }
}
