use super::*;
use rustix::io::{read, write};
use std::cell::RefCell;
use std::future::Future;
use std::os::fd::AsRawFd;
use std::sync::mpsc;
use std::time::Duration;

/// Runs a task on a thread of its own, so that a task that waits for ever fails its test instead of
/// blocking it.
fn run<T, F>(task: impl FnOnce(RuntimeHandle) -> F + Send + 'static) -> T
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let (done, ended) = mpsc::channel();
    #[expect(
        clippy::disallowed_methods,
        reason = "the test must not be blocked by the tested task"
    )]
    std::thread::spawn(move || done.send(TokioRuntime::run(task)));
    let ended = ended.recv_timeout(Duration::from_secs(30));
    ended.expect("the task has ended").unwrap()
}

#[test]
fn short_sleeps_are_exact_and_end_in_order() {
    let (late_ns, order) = run(|runtime| {
        let order = Rc::new(RefCell::new(Vec::new()));
        async move {
            let start = runtime.now();
            for (name, us) in [("c", 900), ("a", 200), ("b", 500)] {
                let (order, sleep) = (Rc::clone(&order), runtime.sleep_until(start + us * 1000));
                runtime.spawn(Box::pin(async move {
                    sleep.await;
                    order.borrow_mut().push(name);
                }));
            }
            runtime.sleep_until(start + 2_000_000).await;
            let mut best = u64::MAX;
            for _ in 0..20 {
                let until = runtime.now() + 100_000;
                runtime.sleep_until(until).await;
                assert!(runtime.now() >= until, "never early");
                best = best.min(runtime.now().since_ns(until));
            }
            (best, order.take())
        }
    });
    assert_eq!(order, ["a", "b", "c"]);
    assert!(late_ns < 900_000, "the best of 20 sleeps of 100 us was {late_ns} ns late");
}

#[test]
fn a_dropped_sleep_is_forgotten() {
    run(|runtime| async move {
        let far = runtime.sleep_until(runtime.now() + 3_600_000_000_000);
        let near = runtime.sleep_until(runtime.now() + 1_000_000);
        futures_util::future::select(far, near).await;
        runtime.sleep_until(runtime.now() + 1_000_000).await;
    });
}

#[test]
fn descriptors_are_waited_for_again_and_again() {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    run(move |runtime| async move {
        for round in 0..100u8 {
            let fd = reader.as_raw_fd();
            let (wait, writing) = (runtime.readable(fd), writer.try_clone().unwrap());
            let later = runtime.sleep_until(runtime.now() + u64::from(round % 3) * 50_000);
            runtime.spawn(Box::pin(async move {
                later.await;
                write(&writing, &[round, round]).unwrap();
            }));
            wait.await;
            let mut byte = [0];
            read(&reader, &mut byte).unwrap();
            assert_eq!(byte, [round]);
            // One byte is left: still readable, without a new event.
            runtime.readable(fd).await;
            read(&reader, &mut byte).unwrap();
        }
    });
}

#[test]
fn a_number_that_was_forgotten_may_mean_another_file() {
    run(|runtime| async move {
        let mut numbers = std::collections::BTreeSet::new();
        for _ in 0..8 {
            let (reader, writer) = rustix::pipe::pipe().unwrap();
            let (fd, later) = (reader.as_raw_fd(), runtime.sleep_until(runtime.now() + 100_000));
            runtime.spawn(Box::pin(async move {
                later.await;
                write(&writer, &[1]).unwrap();
            }));
            runtime.readable(fd).await;
            runtime.forget(fd);
            numbers.insert(fd);
        }
        assert!(numbers.len() < 8, "numbers are used again: {numbers:?}");
    });
}

#[test]
fn a_closed_descriptor_does_not_hang() {
    run(|runtime| async move { runtime.readable(-1).await });
}

/// Of the tasks that always have work, one continues each time that the others have run.
#[test]
fn a_short_task_waits_for_one_long_one_at_a_time() {
    const LONG: usize = 20;
    let (before, after) = run(|runtime| {
        let turns = Rc::new(std::cell::Cell::new(0));
        async move {
            for _ in 0..LONG {
                let (turns, long) = (Rc::clone(&turns), Rc::clone(&runtime));
                runtime.spawn(Box::pin(async move {
                    loop {
                        turns.set(turns.get() + 1);
                        long.turn().await;
                    }
                }));
            }
            let (done, ended) = tokio::sync::oneshot::channel();
            runtime.spawn(Box::pin(async move {
                let before = turns.get();
                for _ in 0..LONG {
                    yield_now().await;
                }
                let _ = done.send((before, turns.get()));
            }));
            ended.await.unwrap()
        }
    });
    assert!(before >= LONG, "{before}: each has begun");
    let more = after - before;
    assert!((1..=2 * LONG).contains(&more), "{more} turns of {LONG} tasks in {LONG} rounds");
}
