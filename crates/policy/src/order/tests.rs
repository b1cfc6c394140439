//! Tenants that share a server, one request at a time.

use super::*;
use softflash_base::random::Rng;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// A server and the requests that wait for it.
#[derive(Default)]
struct Server {
    fair: WeightedFair,
    /// Tag, number of the arrival, tenant and cost.
    waiting: BinaryHeap<Reverse<(StartTag, u64, u32, u64)>>,
    arrived: u64,
    served: BTreeMap<u32, u64>,
}

impl Server {
    fn arrive(&mut self, tenant: u32, weight: u32, cost: u64) {
        let tag = self.fair.arrive(tenant, weight, cost);
        self.waiting.push(Reverse((tag, self.arrived, tenant, cost)));
        self.arrived += 1;
    }

    /// Serves the next request; returns its tenant.
    fn serve(&mut self) -> u32 {
        let Reverse((tag, _, tenant, cost)) = self.waiting.pop().expect("a request waits");
        self.fair.serve(tag);
        *self.served.entry(tenant).or_default() += cost;
        tenant
    }

    fn served(&self, tenant: u32) -> u64 {
        self.served.get(&tenant).copied().unwrap_or_default()
    }
}

#[test]
fn services_per_weight_of_two_waiting_tenants_differ_by_their_largest_requests_at_most() {
    for seed in 0..20 {
        println!("seed {seed}");
        let mut rng = Rng::seeded(seed);
        let largest = 64;
        let weights = [1 + rng.below(1000), 1 + rng.below(1000)];
        let mut server = Server::default();
        for _ in 0..2_000 {
            for (tenant, &weight) in (0..).zip(&weights) {
                // Two requests of each always wait.
                while server.waiting.iter().filter(|one| one.0.2 == tenant).count() < 2 {
                    server.arrive(tenant, weight as u32, 1 + rng.below(largest));
                }
            }
            server.serve();
            // |W0 / w0 - W1 / w1| <= l / w0 + l / w1, times both weights; 1 for the divisions.
            let [first, second] = [server.served(0) * weights[1], server.served(1) * weights[0]];
            let bound = largest * (weights[0] + weights[1]) + 1;
            assert!(first.abs_diff(second) <= bound, "{weights:?}: {first} and {second}");
        }
    }
}

#[test]
fn tenants_that_always_wait_are_served_by_their_weights() {
    let mut server = Server::default();
    for _ in 0..4_000 {
        server.arrive(1, 100, 8);
        server.arrive(2, 300, 8);
    }
    (0..4_000).for_each(|_| _ = server.serve());
    assert_eq!((server.served(1), server.served(2)), (8_000, 24_000));
}

#[test]
fn a_tenant_of_the_least_weight_is_served_after_one_request_of_each_other() {
    let mut server = Server::default();
    for tenant in 1..=9 {
        (0..50).for_each(|_| server.arrive(tenant, 1000, 1 << 20));
    }
    (0..100).for_each(|_| _ = server.serve());
    server.arrive(0, 1, 4096);
    let waited = (0..).take_while(|_| server.serve() != 0).count();
    assert!(waited <= 9, "{waited} requests went before");
}

#[test]
fn an_idle_tenant_saves_no_credit() {
    let mut server = Server::default();
    (0..1_000).for_each(|_| server.arrive(1, 100, 1));
    (0..500).for_each(|_| _ = server.serve());
    (0..1_000).for_each(|_| server.arrive(2, 100, 1));
    let of_the_second = (0..200).filter(|_| server.serve() == 2).count();
    assert!((99..=101).contains(&of_the_second), "{of_the_second} of 200");
}

#[test]
fn after_a_rest_all_tenants_are_equal() {
    let mut server = Server::default();
    server.arrive(1, 1, 1 << 30);
    server.serve();
    server.fair.rest();
    server.arrive(1, 1, 1);
    server.arrive(2, 1, 1);
    assert_eq!([server.serve(), server.serve()], [1, 2]);
}

#[test]
fn the_text_of_a_schedule_gives_the_schedule() {
    for (schedule, text) in [
        (Schedule::FIFO, "fifo"),
        (Schedule::READS_FIRST, "reads-first"),
        (Schedule::weighted_fair(3, 1), "weighted-fair:3:1"),
        (Schedule::deadline(5), "deadline:5"),
    ] {
        assert_eq!((schedule.to_string().as_str(), text.parse()), (text, Ok(schedule)));
        let is_ranked = text.contains(':');
        assert_eq!(schedule.waiting().is_some(), is_ranked, "{text}");
    }
    for text in [
        "",
        "deadline",
        "deadline:0",
        "weighted-fair:3",
        "weighted-fair:0:1",
        "weighted-fair:1:2:3",
    ] {
        let error = text.parse::<Schedule>().unwrap_err().to_string();
        assert!(error.contains(&format!("unknown schedule `{text}`")), "{error}");
        assert!(error.contains("`deadline:MS` (MS from 1)"), "{error}");
    }
}
