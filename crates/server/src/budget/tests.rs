use super::*;
use futures_util::FutureExt;
use softflash_protocol::ReplyPermit;
use std::future::Future;
use std::pin::Pin;

const MIB: u64 = 1 << 20;

type Growing<'a> = Pin<Box<dyn Future<Output = Result<(), RequestTooLarge>> + 'a>>;

fn is_done(future: &mut Growing<'_>) -> bool {
    future.as_mut().now_or_never().is_some()
}

#[test]
fn the_plan_leaves_room_for_the_largest_value_and_never_exceeds_the_memory() {
    for mib in [32, 64, 256, 1024, 65536] {
        let plan = MemoryPlan::new(mib * MIB, 64 << 20);
        let store = plan.store_bytes / 8 * 7;
        let sum = store + plan.request_bytes + plan.reply_bytes + plan.device_bytes;
        assert!(sum <= mib * MIB, "{mib} MiB: {plan:?}");
        assert!(sum >= mib * MIB * 15 / 16, "{mib} MiB: {plan:?}");
        assert!(mib < 256 || plan.request_bytes >= 64 * MIB, "{mib} MiB: {plan:?}");
        let raised = MemoryPlan::new(mib * MIB, 512 << 20);
        assert!(raised.request_bytes >= (512 * MIB).min(mib * MIB / 4), "{mib} MiB: {raised:?}");
        assert!(
            raised.store_bytes / 8 * 7 + raised.device_bytes
                <= mib * MIB - 2 * raised.request_bytes
        );
    }
}

#[test]
fn requests_are_served_in_order_of_arrival() {
    let budget = RequestBudget::new(100, SpareMemory::default());
    let (mut a, mut b, mut c) = (budget.reservation(), budget.reservation(), budget.reservation());
    a.grow(60).now_or_never().unwrap().unwrap();
    let mut large: Growing<'_> = Box::pin(b.grow(50));
    let mut small: Growing<'_> = Box::pin(c.grow(10));
    assert!(!is_done(&mut large));
    assert!(!is_done(&mut small), "no overtaking");
    a.shrink(60);
    assert!(is_done(&mut large));
    assert!(is_done(&mut small));
    drop((large, small));
    assert_eq!(budget.held_bytes(), 60);
    drop((b, c));
    assert_eq!(budget.held_bytes(), 0);
}

#[test]
fn requests_with_several_large_arguments_do_not_wait_for_each_other_for_ever() {
    let budget = RequestBudget::new(100, SpareMemory::default());
    let mut holders: Vec<_> = (0..5).map(|_| budget.reservation()).collect();
    for holder in &mut holders {
        holder.grow(20).now_or_never().unwrap().unwrap();
    }
    // All memory is held, and every reservation wants three more pieces of 20 bytes.
    let mut tasks: Vec<Growing<'_>> = holders
        .into_iter()
        .map(|mut holder| -> Growing<'_> {
            Box::pin(async move {
                for _ in 0..3 {
                    holder.grow(20).await?;
                }
                Ok(())
            })
        })
        .collect();
    let mut most = 0;
    for round in 0.. {
        assert!(round < 100, "they wait for each other");
        most = most.max(budget.held_bytes());
        tasks.retain_mut(|task| !is_done(task));
        if tasks.is_empty() {
            break;
        }
    }
    assert!(most <= 100 + 60, "the budget and one request, not {most}");
    assert_eq!(budget.held_bytes(), 0);
}

#[test]
fn a_request_that_can_never_fit_is_refused_at_once() {
    let budget = RequestBudget::new(100, SpareMemory::default());
    let mut held = budget.reservation();
    held.grow(60).now_or_never().unwrap().unwrap();
    let refused = held.grow(41).now_or_never().unwrap().unwrap_err();
    assert_eq!((refused.bytes, refused.limit), (101, 100));
    assert_eq!(held.held_bytes(), 60);
}

#[test]
fn waiting_may_be_given_up_at_any_point() {
    let budget = RequestBudget::new(100, SpareMemory::default());
    let (mut a, mut b, mut c) = (budget.reservation(), budget.reservation(), budget.reservation());
    a.grow(50).now_or_never().unwrap().unwrap();
    b.grow(50).now_or_never().unwrap().unwrap();
    let mut grows: Growing<'_> = Box::pin(b.grow(10));
    let mut starts: Growing<'_> = Box::pin(c.grow(10));
    assert!(!is_done(&mut grows) && !is_done(&mut starts));
    drop((grows, starts));
    let mut grows: Growing<'_> = Box::pin(b.grow(10));
    assert!(!is_done(&mut grows));
    a.shrink(50);
    // Granted, and dropped before it was polled.
    drop(grows);
    assert_eq!(budget.held_bytes(), 50);
    drop((a, b, c));
    assert_eq!(budget.held_bytes(), 0);
}

#[test]
fn random_requests_all_end_within_the_bound() {
    use softflash_base::random::Rng;
    for seed in 0..200 {
        let mut random = Rng::seeded(seed);
        let budget = RequestBudget::new(1000, SpareMemory::default());
        let mut tasks: Vec<Growing<'_>> = (0..20)
            .map(|_| -> Growing<'_> {
                let mut holder = budget.reservation();
                let pieces: Vec<u64> =
                    (0..1 + random.below(5)).map(|_| 1 + random.below(200)).collect();
                Box::pin(async move {
                    for piece in pieces {
                        holder.grow(piece).await?;
                        tokio::task::yield_now().await;
                    }
                    Ok(())
                })
            })
            .collect();
        let mut rounds = 0;
        while !tasks.is_empty() {
            rounds += 1;
            assert!(rounds < 1000, "seed {seed}: they wait for each other");
            assert!(budget.held_bytes() <= 2000, "seed {seed}: {}", budget.held_bytes());
            let at = random.below(tasks.len() as u64) as usize;
            // Sometimes a client disconnects in the middle.
            if random.below(20) == 0 || is_done(&mut tasks[at]) {
                drop(tasks.swap_remove(at));
            }
        }
        assert_eq!(budget.held_bytes(), 0, "seed {seed}");
    }
}

#[test]
fn large_replies_are_made_one_at_a_time_and_small_ones_together() {
    let budget = ReplyBudget::new(100 * MIB, SpareMemory::default());
    let mut first = budget.begin().now_or_never().unwrap();
    let mut second = Box::pin(budget.begin());
    assert!(second.as_mut().now_or_never().is_none(), "nothing is known of the length yet");
    first.settle(64 * MIB, 1);
    assert!(second.as_mut().now_or_never().is_none(), "64 MiB twice is too much");
    drop(first);
    let mut second = second.now_or_never().unwrap();
    for _ in 0..1000 {
        second.settle(1000, 1);
    }
    let many: Vec<_> = (0..1000).map(|_| budget.begin().now_or_never()).collect();
    assert!(many.iter().all(Option::is_some), "short replies run together");
    drop((many, second));
    assert_eq!(budget.charged_bytes(), 0);
}

#[test]
fn a_reply_is_charged_until_it_is_sent() {
    let budget = ReplyBudget::new(100 * MIB, SpareMemory::default());
    let mut slow = budget.begin().now_or_never().unwrap();
    slow.settle(90 * MIB, 1);
    let mut next = Box::pin(budget.begin());
    assert!(next.as_mut().now_or_never().is_none());
    assert_eq!(budget.waiting(), 1);
    slow.recharge(5 * MIB);
    let given_up = next;
    drop(given_up);
    assert_eq!(budget.waiting(), 0);
    drop(slow);
    assert_eq!(budget.charged_bytes(), 0);
}

#[test]
fn values_written_are_expected_to_be_read() {
    let budget = ReplyBudget::new(100 * MIB, SpareMemory::default());
    let mut permit = budget.begin().now_or_never().unwrap();
    (0..1000).for_each(|_| permit.settle(5, 1));
    assert!(permit.try_extend(), "short replies run together");
    permit.settle(10, 2);
    permit.expect(80 * MIB);
    permit.settle(5, 1);
    assert!(permit.try_extend() && !permit.try_extend());
}

#[test]
fn requests_and_replies_take_their_bytes_from_the_spare_memory() {
    let spare = SpareMemory::new(100 * MIB);
    let requests = RequestBudget::new(50 * MIB, spare.clone());
    let replies = ReplyBudget::new(50 * MIB, spare.clone());
    let mut request = requests.reservation();
    request.grow(20 * MIB).now_or_never().unwrap().unwrap();
    let mut reply = replies.begin().now_or_never().unwrap();
    reply.settle(30 * MIB, 1);
    assert_eq!(spare.taken_bytes(), 70 * MIB, "a request counts twice");
    request.shrink(15 * MIB);
    reply.recharge(0);
    assert_eq!(spare.taken_bytes(), 10 * MIB);
    drop(request);
    assert_eq!(spare.taken_bytes(), 0);
}

#[test]
fn small_replies_neither_wait_nor_are_charged() {
    let budget = ReplyBudget::new(10 * MIB, SpareMemory::default());
    let mut unread = budget.try_begin().unwrap();
    unread.settle(8 * MIB, 1);
    assert!(budget.try_begin().is_none(), "the next may be as large");
    let mut waits = Box::pin(budget.begin());
    assert!((&mut waits).now_or_never().is_none());
    let mut little = budget.begin_little();
    little.recharge(5 * MIB);
    assert_eq!(budget.charged_bytes(), 8 * MIB);
    assert_eq!(budget.waiting(), 1);
    drop(unread);
    assert!(waits.now_or_never().is_some(), "nor does the next one wait for them");
    drop(little);
    assert_eq!(budget.charged_bytes(), 0);
}

#[test]
fn what_sessions_keep_is_granted_at_once_or_never_and_leaves_half_to_requests() {
    use softflash_protocol::KeptMemory;
    let budget = RequestBudget::new(100, SpareMemory::default());
    assert!(budget.try_take(40, 0) && !budget.try_take(11, 0) && budget.try_take(10, 0));
    let mut request = budget.reservation();
    request.grow(50).now_or_never().unwrap().unwrap();
    assert_eq!((budget.held_bytes(), budget.waiting()), (100, 0));
    budget.give_back(20);
    assert!(budget.try_take(20, 0), "of its share");
    budget.give_back(30);
    let mut other = budget.reservation();
    other.grow(25).now_or_never().unwrap().unwrap();
    assert!(!budget.try_take(25, 0), "requests have it");
    assert!(budget.try_take(25, 20), "the request that brings it gives it back");
    let mut waits: Growing<'_> = Box::pin(request.grow(10));
    assert!(!is_done(&mut waits));
    assert_eq!(budget.waiting(), 1);
    budget.give_back(45);
    assert!(is_done(&mut waits));
}
