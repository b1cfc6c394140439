use crate::testbed::{Testbed, UNIT, unit};
use futures_util::future::{Either, join, join_all, select};
use softflash_base::Time;
use softflash_runtime::{Event, RuntimeHandle};
use softflash_volume::{Domain, Setting, Volume, VolumeError};
use std::pin::pin;

const SECOND: u64 = 1_000_000_000;

/// Writes, as long as the time allows, of so many mapping units by so many tasks; returns how many
/// have completed.
async fn writes(
    runtime: &RuntimeHandle,
    volume: &Volume,
    span_ns: u64,
    tasks: u64,
    units: u64,
) -> u64 {
    let end = runtime.now() + span_ns;
    let task = async |task: u64| {
        let data = unit(task + 1).repeat(units as usize);
        let mut count = 0;
        while runtime.now() < end {
            let written = volume.write(task * units * UNIT as u64, &data);
            match select(pin!(written), runtime.sleep_until(end)).await {
                Either::Left((written, _)) => written.unwrap(),
                Either::Right(_) => break,
            }
            count += 1;
        }
        count
    };
    join_all((0..tasks).map(task)).await.into_iter().sum()
}

async fn limited(domain: &Domain, name: &str, limits: &[Setting]) -> Volume {
    domain.create_with(name, 1 << 30, limits).await.unwrap();
    domain.volume(name).unwrap()
}

#[test]
fn requests_keep_to_the_limit_of_requests() {
    Testbed::new(32, 256).run(async |domain, runtime, _| {
        let volume = limited(domain, "v", &[Setting::Iops(Some(200))]).await;
        let written = writes(runtime, &volume, 3 * SECOND, 8, 1).await;
        // A burst of 100 ms, and those that have begun.
        assert!((600..=600 + 20 + 1).contains(&written), "{written} in 3 s");
        let counters = domain.volume_counters()[0].1;
        assert!(counters.iops_waits > 500 && counters.bandwidth_waits == 0, "{counters:?}");

        // Reads and discards count, too.
        let start = runtime.now();
        for at in 0..100 {
            volume.read(at * UNIT as u64, &mut [0; UNIT]).await.unwrap();
            volume.discard(at * UNIT as u64, UNIT as u64).await.unwrap();
        }
        let ms = runtime.now().since_ns(start) / 1_000_000;
        assert!((800..=1100).contains(&ms), "200 requests in {ms} ms");
    });
}

#[test]
fn requests_keep_to_the_limit_of_bytes() {
    Testbed::new(64, 256).run(async |domain, runtime, _| {
        let volume = limited(domain, "v", &[Setting::Bandwidth(Some(2 << 20))]).await;
        let written = writes(runtime, &volume, 4 * SECOND, 8, 16).await * 16 * UNIT as u64;
        let range = 8 << 20..=(8 << 20) + (2 << 20) / 10 + 64 * 1024;
        assert!(range.contains(&written), "{written} bytes in 4 s");
        let counters = domain.volume_counters()[0].1;
        assert!(counters.bandwidth_waits > 0 && counters.iops_waits == 0, "{counters:?}");
    });
}

#[test]
fn a_limited_volume_delays_neither_others_nor_flushes_and_changes() {
    Testbed::new(32, 256).run(async |domain, runtime, _| {
        let slow = limited(domain, "slow", &[Setting::Iops(Some(1))]).await;
        let fast = limited(domain, "fast", &[]).await;
        let work = async {
            // Some requests of the other wait now.
            runtime.sleep_until(runtime.now() + SECOND).await;
            let start = runtime.now();
            for lba in 0..100 {
                fast.write(lba * UNIT as u64, &unit(1)).await.unwrap();
            }
            slow.flush().await.unwrap();
            domain.resize("slow", 1 << 29).await.unwrap();
            domain.snapshot("slow", "s").await.unwrap();
            runtime.now().since_ns(start)
        };
        let (written, ns) = join(writes(runtime, &slow, 20 * SECOND, 50, 1), work).await;
        assert!((20..=22).contains(&written), "{written}");
        assert!(ns < SECOND / 2, "{ns} ns");
    });
}

#[test]
fn waiting_requests_follow_a_change_of_the_limit_a_deletion_and_the_end() {
    Testbed::new(32, 256).run(async |domain, runtime, _| {
        let later = async |work: &dyn Fn() -> futures_util::future::LocalBoxFuture<'static, ()>| {
            runtime.sleep_until(runtime.now() + SECOND).await;
            work().await;
        };
        let waits = async |volume: &Volume| {
            let mut result = Ok(());
            for _ in 0..5 {
                result = result.and(volume.write(0, &unit(1)).await);
            }
            (result, runtime.now())
        };
        let hour = [Setting::Bandwidth(Some(4096)), Setting::Iops(Some(1))];
        let volume = limited(domain, "v", &hour).await;
        volume.write(0, &unit(1).repeat(1000)).await.unwrap();
        let start = runtime.now();
        let after = |at: Time| at.since_ns(start) < 2 * SECOND;

        let raise = || -> futures_util::future::LocalBoxFuture<'static, ()> {
            let domain = domain.clone();
            Box::pin(async move {
                let none = [Setting::Bandwidth(None), Setting::Iops(None)];
                domain.set("v", &none).await.unwrap();
            })
        };
        let ((result, at), ()) = join(waits(&volume), later(&raise)).await;
        assert!(result.is_ok() && after(at), "{result:?} at {at}");

        domain.set("v", &hour).await.unwrap();
        volume.write(0, &unit(1).repeat(1000)).await.unwrap();
        let start = runtime.now();
        let delete = || -> futures_util::future::LocalBoxFuture<'static, ()> {
            let domain = domain.clone();
            Box::pin(async move { domain.delete("v").await.unwrap() })
        };
        let ((result, at), ()) = join(waits(&volume), later(&delete)).await;
        assert_eq!(result, Err(VolumeError::Deleted));
        assert!(at.since_ns(start) < 2 * SECOND);

        let volume = limited(domain, "w", &hour).await;
        volume.write(0, &unit(1).repeat(1000)).await.unwrap();
        let stop = || -> futures_util::future::LocalBoxFuture<'static, ()> {
            let domain = domain.clone();
            Box::pin(async move { domain.stop() })
        };
        let ((result, _), ()) = join(waits(&volume), later(&stop)).await;
        assert_eq!(result, Err(VolumeError::Stopped));
    });
}

#[test]
fn waiting_requests_that_are_given_up_fail_and_change_nothing() {
    Testbed::new(32, 256).run(async |domain, runtime, _| {
        let volume = limited(domain, "v", &[Setting::Iops(Some(1))]).await;
        let given_up = Event::new();
        let handle = volume.clone().giving_up_at(given_up.clone());
        let start = runtime.now();
        let write = async |lba: u64| handle.write(lba * UNIT as u64, &unit(lba + 1)).await;
        let give_up = async {
            runtime.sleep_until(start + SECOND / 2).await;
            given_up.set();
        };
        let (written, ()) = join(join_all((0..6).map(write)), give_up).await;
        assert!(runtime.now().since_ns(start) < SECOND, "they wait no longer");
        assert!(written[0].is_ok() && written[5] == Err(VolumeError::Stopped), "{written:?}");
        let all = volume.clone().without_limits();
        for (written, lba) in written.iter().zip(0..) {
            let mut found = [0; UNIT];
            all.read(lba * UNIT as u64, &mut found).await.unwrap();
            let expected = if written.is_ok() { unit(lba + 1).to_vec() } else { vec![0; UNIT] };
            assert!(found[..] == expected, "{lba} after {written:?}");
        }
        // Others of the volume go on.
        volume.write(0, &unit(9)).await.unwrap();
        assert!(runtime.now().since_ns(start) > SECOND / 2);
    });
}
