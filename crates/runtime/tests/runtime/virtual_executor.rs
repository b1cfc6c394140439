//! The virtual executor: order, time, cancellation, deadlock, the wall clock.

use futures_util::FutureExt;
use futures_util::future::{Either, LocalBoxFuture, select};
use softflash_base::Time;
use softflash_runtime::{Notify, RuntimeHandle, VirtualExecutor, yield_now};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

const MS: u64 = 1_000_000;

type Trace = Rc<RefCell<Vec<(u64, u32, u32)>>>;

/// Tasks that sleep, yield, notify and spawn, driven by a small generator; the trace contains
/// everything that could differ.
fn busy_program(seed: u64) -> Vec<(u64, u32, u32)> {
    let executor = VirtualExecutor::new(0);
    let runtime = executor.handle();
    let trace = Trace::default();
    let bell = Notify::new();
    fn worker(
        runtime: RuntimeHandle,
        trace: Trace,
        bell: Notify,
        task: u32,
        mut state: u64,
    ) -> LocalBoxFuture<'static, ()> {
        async move {
            for step in 0..20 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                trace.borrow_mut().push((runtime.now().0, task, step));
                match (state >> 40) % 4 {
                    0 => runtime.sleep_until(runtime.now() + (state >> 60)).await,
                    1 => yield_now().await,
                    2 => bell.notify_one(),
                    _ => {
                        let nap = runtime.sleep_until(runtime.now() + 5);
                        select(nap, Box::pin(bell.notified())).await;
                    }
                }
                if step == 7 && task < 8 {
                    let child =
                        worker(runtime.clone(), trace.clone(), bell.clone(), task + 8, state);
                    runtime.spawn(child);
                }
            }
        }
        .boxed_local()
    }
    for task in 0..8 {
        let seed = seed.wrapping_add(u64::from(task) << 32);
        runtime.spawn(worker(runtime.clone(), trace.clone(), bell.clone(), task, seed));
    }
    executor.block_on(runtime.sleep_until(Time(10_000)));
    let trace = trace.borrow().clone();
    assert_eq!(trace.len(), 16 * 20, "every task ran to its end");
    trace
}

#[test]
fn the_same_program_takes_the_same_steps_at_the_same_times() {
    for seed in 1..20 {
        assert_eq!(busy_program(seed), busy_program(seed), "seed {seed}");
    }
    assert_ne!(busy_program(1), busy_program(2), "the trace depends on the program");
}

#[test]
fn timers_of_one_instant_fire_in_the_order_they_were_set() {
    let executor = VirtualExecutor::new(0);
    let runtime = executor.handle();
    let order = Rc::new(RefCell::new(Vec::new()));
    for (task, at) in [(0, 30), (1, 10), (2, 30), (3, 10), (4, 20)] {
        let (sleep, order) = (runtime.sleep_until(Time(at)), Rc::clone(&order));
        runtime.spawn(sleep.map(move |()| order.borrow_mut().push(task)).boxed_local());
    }
    executor.block_on(runtime.sleep_until(Time(31)));
    assert_eq!(*order.borrow(), [1, 3, 4, 0, 2]);
}

#[test]
fn time_jumps_and_never_runs_back() {
    let executor = VirtualExecutor::new(0);
    let runtime = executor.handle();
    executor.block_on(async {
        runtime.sleep_until(Time(3600 * 1000 * MS)).await;
        assert_eq!(runtime.now(), Time(3600 * 1000 * MS));
        runtime.sleep_until(Time(1)).await;
        assert_eq!(runtime.now(), Time(3600 * 1000 * MS), "a time that is past completes at once");
    });
}

#[test]
fn a_cancelled_timer_neither_fires_nor_moves_the_clock() {
    let executor = VirtualExecutor::new(0);
    let runtime = executor.handle();
    executor.block_on(async {
        let long = runtime.sleep_until(Time(1_000));
        let short = runtime.sleep_until(Time(10));
        match select(long, short).await {
            Either::Right(((), long)) => drop(long),
            Either::Left(_) => panic!("the longer sleep ended first"),
        }
        assert_eq!(runtime.now(), Time(10));
    });
    let deadlock = executor.try_block_on(std::future::pending::<()>()).unwrap_err();
    assert_eq!(deadlock.at, Time(10), "no timer was left");
}

#[test]
fn a_deadlock_error_has_the_number_of_waiting_tasks() {
    let executor = VirtualExecutor::new(0);
    executor.handle().spawn(std::future::pending().boxed_local());
    let deadlock = executor.try_block_on(std::future::pending::<()>()).unwrap_err();
    assert_eq!(deadlock.tasks, 1);
    assert!(deadlock.to_string().starts_with("deadlock at"));
}

#[test]
#[should_panic(expected = "deadlock")]
fn block_on_panics_on_a_deadlock() {
    VirtualExecutor::new(0).block_on(std::future::pending::<()>());
}

#[test]
#[should_panic(expected = "by a task of the same executor")]
fn block_on_inside_a_task_is_refused() {
    let executor = VirtualExecutor::new(0);
    executor.block_on(async { executor.block_on(async {}) });
}

#[test]
fn the_wall_clock_follows_time_and_can_be_stepped() {
    let executor = VirtualExecutor::new(1_000_000);
    let runtime = executor.handle();
    executor.block_on(async {
        runtime.sleep_until(Time(5 * MS)).await;
        assert_eq!(runtime.wall_ms(), 1_000_005);
        executor.step_wall(-1_000);
        assert_eq!(runtime.wall_ms(), 999_005);
        executor.set_wall_ms(77);
        runtime.sleep_until(runtime.now() + 3 * MS).await;
        assert_eq!((runtime.wall_ms(), runtime.now()), (80, Time(8 * MS)));
        executor.step_wall(-1_000);
        assert_eq!(runtime.wall_ms(), 0, "no time before the epoch");
    });
}

#[test]
fn dropping_the_executor_drops_its_tasks_even_if_they_hold_it() {
    struct DropFlag(Rc<Cell<bool>>, RuntimeHandle);
    impl Drop for DropFlag {
        fn drop(&mut self) {
            self.0.set(true);
            // A destructor may still call the runtime; the new task is refused.
            self.1.spawn(async { panic!("ran after the end") }.boxed_local());
        }
    }
    let dropped = Rc::new(Cell::new(false));
    let executor = VirtualExecutor::new(0);
    let runtime = executor.handle();
    let flag = DropFlag(Rc::clone(&dropped), runtime.clone());
    let sleep = runtime.sleep_until(Time::MAX);
    runtime.spawn(
        async move {
            sleep.await;
            drop(flag)
        }
        .boxed_local(),
    );
    executor.block_on(yield_now());
    assert!(!dropped.get());
    drop(executor);
    assert!(dropped.get());
    runtime.spawn(async { panic!("ran after the end") }.boxed_local());
}

#[test]
fn places_of_finished_tasks_are_reused_and_stale_wakes_reach_nobody() {
    let executor = VirtualExecutor::new(0);
    let runtime = executor.handle();
    let polls = Rc::new(Cell::new(0));
    let kept: Rc<RefCell<Option<std::task::Waker>>> = Rc::default();
    let keep = Rc::clone(&kept);
    runtime.spawn(
        std::future::poll_fn(move |context| {
            *keep.borrow_mut() = Some(context.waker().clone());
            std::task::Poll::Ready(())
        })
        .boxed_local(),
    );
    executor.block_on(yield_now());
    let count = Rc::clone(&polls);
    runtime.spawn(
        std::future::poll_fn(move |_| {
            count.set(count.get() + 1);
            std::task::Poll::<()>::Pending
        })
        .boxed_local(),
    );
    kept.take().expect("the first task ran").wake();
    executor.block_on(yield_now());
    assert_eq!(polls.get(), 1, "the second task was polled for its own sake only");
}

#[test]
fn real_input_takes_no_virtual_time() {
    let executor = VirtualExecutor::new(0);
    let runtime = executor.handle();
    let (reader, mut writer) = std::io::pipe().unwrap();
    std::io::Write::write_all(&mut writer, b"x").unwrap();
    executor.block_on(async {
        let readable = runtime.readable(std::os::fd::AsRawFd::as_raw_fd(&reader));
        let sleep = runtime.sleep_until(Time(1));
        assert!(matches!(select(readable, sleep).await, Either::Left(_)));
        assert_eq!(runtime.now(), Time::ZERO);
    });
}

#[test]
#[should_panic(expected = "livelock at 1ns")]
fn tasks_that_wake_each_other_without_end_are_a_livelock() {
    let executor = VirtualExecutor::new(0);
    executor.limit_polls_at_once(100_000);
    let runtime = executor.handle();
    executor.block_on(async {
        for _ in 0..50_000 {
            yield_now().await;
        }
        runtime.sleep_until(Time(1)).await;
        loop {
            yield_now().await;
        }
    });
}
