//! The real executor: wakes from other threads, descriptors, timers.

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use softflash_runtime::{RealExecutor, yield_now};
use std::cell::Cell;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::rc::Rc;

const MS: u64 = 1_000_000;

#[test]
fn another_thread_wakes_a_task_that_waits() {
    let executor = RealExecutor::new().unwrap();
    let (to_executor, requests) = async_channel::bounded::<u32>(1);
    let (answers, from_executor) = async_channel::bounded::<u32>(1);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for round in 0..1_000 {
                to_executor.send_blocking(round).unwrap();
                assert_eq!(from_executor.recv_blocking().unwrap(), round + 1);
            }
        });
        executor.block_on(async {
            while let Ok(round) = requests.recv().await {
                answers.send(round + 1).await.unwrap();
            }
        });
    });
}

#[test]
fn a_sleep_ends_no_earlier_than_asked() {
    let executor = RealExecutor::new().unwrap();
    let runtime = executor.handle();
    executor.block_on(async {
        let at = runtime.now() + 20 * MS;
        runtime.sleep_until(at).await;
        assert!(runtime.now() >= at);
    });
}

#[test]
fn a_cancelled_sleep_is_not_waited_for() {
    let executor = RealExecutor::new().unwrap();
    let runtime = executor.handle();
    executor.block_on(async {
        let (long, short) = (runtime.now() + 60_000 * MS, runtime.now() + MS);
        let first = select(runtime.sleep_until(long), runtime.sleep_until(short)).await;
        assert!(matches!(first, Either::Right(_)));
        drop(first);
        runtime.sleep_until(runtime.now() + MS).await;
        assert!(runtime.now() < long);
    });
}

#[test]
fn a_descriptor_wakes_its_task_also_while_others_are_busy() {
    let executor = RealExecutor::new().unwrap();
    let runtime = executor.handle();
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    let stop = Rc::new(Cell::new(false));
    let busy = Rc::clone(&stop);
    runtime.spawn(
        async move {
            while !busy.get() {
                yield_now().await;
            }
        }
        .boxed_local(),
    );
    executor.block_on(async {
        let readable = runtime.readable(reader.as_raw_fd());
        let pause = runtime.sleep_until(runtime.now() + 5 * MS);
        let Either::Right(((), readable)) = select(readable, pause).await else {
            panic!("nothing was written yet");
        };
        writer.write_all(b"x").unwrap();
        readable.await;
        assert_eq!(reader.read(&mut [0; 8]).unwrap(), 1);
    });
    stop.set(true);
}

#[test]
fn a_closed_descriptor_counts_as_readable() {
    let executor = RealExecutor::new().unwrap();
    let runtime = executor.handle();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(writer);
    executor.block_on(runtime.readable(reader.as_raw_fd()));
    executor.block_on(runtime.readable(-1));
}

#[test]
fn the_wall_clock_shows_this_century() {
    let runtime = RealExecutor::new().unwrap().handle();
    assert!(runtime.wall_ms() > 1_700_000_000_000);
}
