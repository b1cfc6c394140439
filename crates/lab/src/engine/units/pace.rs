//! The times of requests: closed loops of clients, or open arrivals.

use super::clients::{Client, Phase, Place};
use super::testbed::TestbedHandle;
use crate::engine::client_loop;
use crate::engine::quota::Quota;
use crate::error::LabError;
use futures_util::future::try_join_all;
use softflash_base::random::Rng;
use softflash_policy::PlacementPolicy;
use softflash_workload::{BlockWorkload, Load, Span};

/// The clients of a run, in the warm-up and in the measured part.
pub struct Clients<'a> {
    testbed: &'a TestbedHandle,
    workload: BlockWorkload,
    scheduler: PlacementPolicy,
    rng: Rng,
    pace: Pace,
}

enum Pace {
    /// Clients in a closed loop; the requests of a batch wait for each other.
    Closed { batches: Vec<Vec<Client>>, think_ns: u64 },
    /// An open loop: the idle clients, and the number of all clients.
    Open { idle: Vec<Client>, made: u32 },
}

impl<'a> Clients<'a> {
    /// The clients of a workload, on written blocks.
    pub fn new(
        testbed: &'a TestbedHandle,
        workload: &BlockWorkload,
        scheduler: PlacementPolicy,
        rng: Rng,
    ) -> Result<Clients<'a>, LabError> {
        let pace = Pace::Open { idle: Vec::new(), made: 0 };
        let workload = BlockWorkload { span: Span::default(), ..workload.clone() };
        let mut clients = Clients { testbed, workload, scheduler, rng, pace };
        if let Load::Closed { threads, queue_depth, batch, barrier, think_ns } =
            clients.workload.load
        {
            let batch = batch.unwrap_or(1);
            let (slots, of_batch) = match barrier {
                true => (queue_depth, batch),
                false => (queue_depth.saturating_mul(batch), 1),
            };
            let mut batches = Vec::new();
            for thread in 0..threads {
                let own = (slots == 1 && of_batch == 1)
                    .then_some(Place::Own(thread as usize % testbed.units()));
                for slot in 0..slots {
                    let numbers = slot * of_batch..(slot + 1) * of_batch;
                    let of = |number| clients.client(own, thread, number);
                    batches.push(numbers.map(of).collect::<Result<_, _>>()?);
                }
            }
            clients.pace = Pace::Closed { batches, think_ns };
        }
        Ok(clients)
    }

    fn client(&self, own: Option<Place>, thread: u32, number: u32) -> Result<Client, LabError> {
        let place = own.unwrap_or(Place::Any(self.scheduler));
        let unit = if let Place::Own(unit) = place { unit } else { 0 };
        let rng = self.rng.fork(thread.to_le_bytes()).fork(number.to_le_bytes());
        // A workload of writes only needs no data before it.
        let written = 2 * self.testbed.flash.payload_bytes() as u64;
        let capacity = self.testbed.stored_bytes(unit).max(written);
        let source = self
            .workload
            .source(capacity, rng.fork("requests"))
            .map_err(|error| LabError::Parameter(error.to_string()))?;
        Ok(Client::new(place, source, rng.fork("units")))
    }

    /// Runs all clients until their quotas are used up; `quota` returns that of a client, by its
    /// number and the number of clients. `name` seeds the arrivals of the phase.
    pub async fn work(
        &mut self,
        name: &str,
        phase: &Phase<'_>,
        quota: impl Fn(u64, u64) -> Quota,
    ) -> Result<(), LabError> {
        match &mut self.pace {
            Pace::Closed { batches, think_ns } => {
                let (count, think_ns) = (batches.len() as u64, *think_ns);
                let quotas = (0..count).map(|batch| quota(batch, count));
                let work = batches.iter().zip(quotas);
                let work = work.map(|(batch, quota)| run_batch(batch, phase, quota, think_ns));
                try_join_all(work).await.map(drop)
            }
            Pace::Open { idle, made } => {
                let mut idle = std::mem::take(idle);
                let mut made = std::mem::take(made);
                let rng = self.rng.fork("arrivals").fork(name);
                let Some(arrivals) = self.workload.load.arrivals(rng) else { return Ok(()) };
                let quota = quota(0, 1);
                let request = |idle: Option<Client>| {
                    let client = idle.map_or_else(
                        || {
                            made += 1;
                            self.client(None, 0, made)
                        },
                        Ok,
                    )?;
                    Ok(async move {
                        client.request(phase, quota.until).await?;
                        Ok(client)
                    })
                };
                client_loop::open(&pace(phase, 0), arrivals, quota, &mut idle, request).await?;
                self.pace = Pace::Open { idle, made };
                Ok(())
            }
        }
    }
}

/// Runs the clients of a batch, which wait for each other, until their quota is used up.
async fn run_batch(
    batch: &[Client],
    phase: &Phase<'_>,
    mut quota: Quota,
    think_ns: u64,
) -> Result<(), LabError> {
    let until = quota.until;
    client_loop::closed(&pace(phase, think_ns), batch.len(), |place| {
        let client = batch.get(place)?;
        quota.take(phase.testbed.now()).then(|| client.request(phase, until))
    })
    .await
}

fn pace<'a>(phase: &Phase<'a>, think_ns: u64) -> client_loop::Pace<'a> {
    client_loop::Pace { runtime: &phase.testbed.runtime, control: phase.control, think_ns }
}
