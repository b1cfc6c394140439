//! Synchronization between tasks of one thread.

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use softflash_runtime::{ByteSemaphore, Event, Notify, VirtualExecutor, yield_now};
use std::cell::RefCell;
use std::rc::Rc;

/// The result of a future that is ready.
fn now_or_never<T>(future: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
    future.now_or_never()
}

#[test]
fn a_ring_before_the_wait_is_kept_once() {
    let executor = VirtualExecutor::new(0);
    let bell = Notify::new();
    bell.notify_one();
    bell.notify_one();
    executor.block_on(bell.notified());
    assert!(executor.try_block_on(bell.notified()).is_err(), "only one ring is kept");
}

#[test]
fn rings_reach_waiters_in_order_of_arrival() {
    let executor = VirtualExecutor::new(0);
    let runtime = executor.handle();
    let (bell, order) = (Notify::new(), Rc::new(RefCell::new(Vec::new())));
    for task in 0..4 {
        let (wait, order) = (bell.notified(), Rc::clone(&order));
        runtime.spawn(wait.map(move |()| order.borrow_mut().push(task)).boxed_local());
    }
    executor.block_on(async {
        yield_now().await;
        bell.notify_one();
        yield_now().await;
        assert_eq!(*order.borrow(), [0]);
        bell.notify_all();
        yield_now().await;
        assert_eq!(*order.borrow(), [0, 1, 2, 3]);
    });
}

#[test]
fn a_ring_that_reached_a_dropped_wait_goes_to_the_next() {
    let bell = Notify::new();
    let (mut first, mut second) = (bell.notified(), bell.notified());
    assert!(now_or_never(&mut first).is_none() && now_or_never(&mut second).is_none());
    bell.notify_one();
    drop(first);
    assert!(now_or_never(&mut second).is_some());
}

#[test]
fn an_event_lets_everyone_pass_until_it_is_reset() {
    let event = Event::new();
    let mut early = event.wait();
    assert!(now_or_never(&mut early).is_none());
    event.set();
    assert!(now_or_never(&mut early).is_some() && now_or_never(&mut event.wait()).is_some());
    event.reset();
    assert!(!event.is_set() && now_or_never(&mut event.wait()).is_none());
}

#[test]
fn a_large_demand_is_not_overtaken_by_small_ones() {
    let budget = ByteSemaphore::new(100);
    let held = budget.try_acquire(60).unwrap();
    let (mut large, mut small) = (budget.acquire(80), budget.acquire(10));
    assert!(now_or_never(&mut large).is_none());
    assert!(now_or_never(&mut small).is_none(), "small fits and still waits its turn");
    assert!(budget.try_acquire(1).is_none());
    drop(held);
    let large = now_or_never(&mut large).expect("head of the line");
    let small = now_or_never(&mut small).expect("the rest suffices");
    assert_eq!(budget.available(), 10);
    drop((large, small));
    assert_eq!(budget.available(), 100);
}

#[test]
fn a_dropped_wait_leaves_the_queue_and_returns_its_grant() {
    let budget = ByteSemaphore::new(100);
    let held = budget.try_acquire(100).unwrap();
    let (mut first, mut second, mut third) =
        (budget.acquire(100), budget.acquire(50), budget.acquire(50));
    for wait in [&mut first, &mut second, &mut third] {
        assert!(now_or_never(wait).is_none());
    }
    drop(first);
    drop(held);
    drop(second);
    let third = now_or_never(&mut third).expect("granted");
    assert_eq!((budget.available(), third.bytes()), (50, 50));
}

#[test]
fn a_demand_above_the_whole_budget_is_served_alone() {
    let budget = ByteSemaphore::new(100);
    let mut permit = budget.try_acquire(1_000).expect("all is free");
    assert_eq!((permit.bytes(), budget.available()), (100, 0));
    let mut next = budget.acquire(30);
    assert!(now_or_never(&mut next).is_none());
    permit.shrink_to(70);
    assert_eq!(now_or_never(&mut next).expect("30 were given back").bytes(), 30);
}

#[test]
fn a_wait_in_a_select_is_served_after_the_other_side_moved() {
    let executor = VirtualExecutor::new(0);
    let runtime = executor.handle();
    let bell = Notify::new();
    let ringer = bell.clone();
    let delay = runtime.sleep_until(softflash_base::Time(50));
    runtime.spawn(delay.map(move |()| ringer.notify_one()).boxed_local());
    executor.block_on(async {
        let mut wait = bell.notified();
        for tick in 1..=6_u64 {
            let nap = runtime.sleep_until(softflash_base::Time(tick * 10 + 1));
            match select(wait, nap).await {
                Either::Left(_) => return assert_eq!(tick, 5),
                Either::Right(((), pending)) => wait = pending,
            }
        }
        panic!("the ring was lost");
    });
}
