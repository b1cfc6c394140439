//! Units leave a view and join another one.

use crate::support::{Seen, allocate, device, mount, run, settle, verify, watched, write};
use softflash_base::{Time, UnitId, UnitSet};
use softflash_device::{Device, ModelDevice};
use softflash_flash::Flash;
use softflash_ftl::{
    FtlConfig, FtlError, Hint, Owner, OwnerTag, Owners, Ownership, SpaceAccount, Superblock,
};
use softflash_runtime::RuntimeHandle;
use std::rc::Rc;

const PAGES: u32 = 5;

async fn filled(flash: &Flash, unit: u16) -> Superblock {
    let superblock = allocate(flash, unit);
    write(flash, &superblock, PAGES).await;
    superblock
}

#[test]
fn a_unit_leaves_one_view_and_joins_another_one() {
    let device = device(4, 1);
    run(async |runtime| {
        let (from, ..) = mount(&device, 0..3, &runtime).await;
        let (to, ..) = mount(&device, 3..4, &runtime).await;
        let [released, kept] = [filled(&from, 2).await, filled(&from, 0).await];
        let theirs = filled(&to, 3).await;
        from.release(&released);
        from.erase_free(2).await.unwrap();
        let left = from.leave(2);
        assert_eq!(from.units(), UnitSet::from(0..2), "at once");
        let refused = from.allocate(2, OwnerTag([0; 64]), Hint::FLUSH);
        assert_eq!(refused, Err(FtlError::NotOurs { unit: UnitId(2) }));
        let overlap = device.open_queue_pair(&UnitSet::from(2..3));
        assert!(overlap.is_err(), "commands may be under way");
        left.await.unwrap();
        let read = from.read(&released, 0, 1, Hint::FOREGROUND).await;
        assert!(read.is_err_and(|error| error == FtlError::NotOurs { unit: UnitId(2) }));

        let (joins, inventory, _) = mount(&device, 2..3, &runtime).await;
        assert_eq!(inventory.all().count(), 0, "everything was released and erased");
        let early = filled(&joins, 2).await;
        to.join(joins.clone()).unwrap();
        assert_eq!((to.units(), joins.units()), (UnitSet::from(2..4), UnitSet::default()));
        let late = filled(&to, 2).await;
        for (flash, superblock) in [(&from, &kept), (&to, &theirs), (&to, &early), (&to, &late)] {
            verify(flash, superblock, PAGES).await;
        }
        let more = filled(&to, 3).await;
        assert_eq!((to.space(2).open, to.space(3).open), (2, 2));
        to.seal(&late);
        to.release(&early);
        to.erase_free(2).await.unwrap();
        let space = to.space(2);
        assert_eq!((space.live, space.open, space.erase_pending), (1, 0, 0));
        assert_eq!(to.telemetry(2).unit, UnitId(2));
        assert!(to.newest_generation(2) > released.generation && to.most_erases(2) > 0);
        assert_eq!((to.load(2), to.worth_moving(2, |_| true)), (0, None));
        verify(&to, &more, PAGES).await;
        assert!(!to.has_lost(&late, 0, Hint::FOREGROUND).await.unwrap());
        [&from, &to].into_iter().for_each(Flash::stop);
    });
}

#[test]
fn a_flush_covers_all_units_of_a_view() {
    for seed in 0..6 {
        let device = device(3, seed);
        let appended = run(async |runtime| {
            let (view, _, ours) = mount(&device, 0..2, &runtime).await;
            let (joins, _, theirs) = mount(&device, 2..3, &runtime).await;
            view.join(joins).unwrap();
            let appended = [filled(&view, 0).await, filled(&view, 2).await];
            let flushes = || [&ours, &theirs].map(|seen| seen.flushes.get());
            let before = flushes();
            view.flush(Hint::FLUSH).await.unwrap();
            assert_eq!(flushes(), before.map(|flushes| flushes + 1));

            theirs.fails.set(true);
            let failed = view.flush(Hint::FLUSH).await;
            assert!(matches!(failed, Err(FtlError::Flush(_))), "{failed:?}");
            view.flush(Hint::FLUSH).await.unwrap();

            // Others are under way when the power is cut.
            for unit in [0, 1, 2] {
                let superblock = allocate(&view, unit);
                let data = view.buffer(20 * view.page_bytes());
                let append = view.append(&superblock, data, false, Hint::FLUSH);
                drop(append.map_err(|(error, _)| error).unwrap());
            }
            runtime.sleep_until(runtime.now() + 700_000 * (seed + 1)).await;
            device.power_cut(runtime.now(), seed).unwrap();
            view.stop();
            appended
        });
        run(async |runtime| {
            let (view, inventory, _) = mount(&device, 0..3, &runtime).await;
            for superblock in &appended {
                assert!(inventory.all().any(|found| found == superblock));
                verify(&view, superblock, PAGES).await;
            }
            view.stop();
        });
    }
}

#[test]
fn a_unit_whose_superblocks_are_not_all_released_stays_in_its_view() {
    let device = device(2, 2);
    run(async |runtime| {
        let (view, ..) = mount(&device, 0..2, &runtime).await;
        let held = filled(&view, 1).await;
        let refused = view.leave(1).await.unwrap_err();
        assert!(matches!(refused, FtlError::InUse { unit: UnitId(1), .. }), "{refused}");
        assert_eq!(view.units(), UnitSet::from(0..2));
        let more = filled(&view, 1).await;
        verify(&view, &held, PAGES).await;
        [held, more].iter().for_each(|superblock| view.release(superblock));
        view.leave(1).await.unwrap();
        assert_eq!(view.leave(1).await, Err(FtlError::NotOurs { unit: UnitId(1) }));
        view.stop();
    });
}

#[test]
fn the_ftl_of_a_unit_ends_when_its_last_unit_has_left() {
    let device = device(3, 3);
    run(async |runtime| {
        let (view, _, first) = mount(&device, 0..1, &runtime).await;
        let (joins, _, second) = mount(&device, 1..3, &runtime).await;
        view.join(joins).unwrap();
        let kept = filled(&view, 2).await;

        // What is under way completes, also where its task does not wait for the unit.
        let flush = Rc::new(view.clone());
        runtime.spawn(Box::pin(async move { flush.flush(Hint::FLUSH).await.unwrap() }));
        drop(view.leave(0));
        view.flush(Hint::FLUSH).await.unwrap();
        settle(&runtime).await;
        assert_eq!((view.units(), first.flushes.get()), (UnitSet::from(1..3), 0));
        device.open_queue_pair(&UnitSet::from(0..1)).unwrap();
        assert!(view.payload_bytes() > 0 && view.space(0).total() > 0);

        // The unit comes back by another queue pair, beside the others.
        let (again, _, third) = mount(&device, 0..1, &runtime).await;
        view.join(again).unwrap();
        let back = filled(&view, 0).await;
        verify(&view, &kept, PAGES).await;
        verify(&view, &back, PAGES).await;
        view.release(&kept);
        view.leave(2).await.unwrap();
        settle(&runtime).await;
        assert!(!second.is_dropped.get(), "unit 1 is in the view");
        view.leave(1).await.unwrap();
        settle(&runtime).await;
        assert!(second.is_dropped.get());
        assert_eq!((view.space(1), view.telemetry(1).unit), (SpaceAccount::default(), UnitId(1)));

        view.release(&back);
        view.leave(0).await.unwrap();
        view.flush(Hint::FLUSH).await.unwrap();
        settle(&runtime).await;
        assert!(third.is_dropped.get() && view.units().is_empty());
        view.stop();
        drop(view);
        assert!(first.is_dropped.get());
    });
}

#[test]
fn a_stop_ends_a_view_on_all_of_its_ftls() {
    let device = device(3, 4);
    run(async |runtime| {
        let (view, _, first) = mount(&device, 0..1, &runtime).await;
        let (joins, _, second) = mount(&device, 1..2, &runtime).await;
        let (stays, _, third) = mount(&device, 2..3, &runtime).await;
        view.join(joins.clone()).unwrap();
        view.join(stays.clone()).unwrap();
        // It has no units any more: its end is that of nothing else.
        stays.stop();
        filled(&view, 2).await;
        view.stop();
        view.stop();
        assert_eq!(view.telemetry(1).unit, UnitId(1), "its state can still be read");
        drop((view, joins, stays));
        settle(&runtime).await;
        for seen in [first, second, third] {
            assert!(seen.is_dropped.get());
        }
    });
}

/// Two views of one FTL, of the units 0 and 1, and 2.
async fn two_views(device: &ModelDevice, runtime: &RuntimeHandle) -> ([Flash; 2], Rc<Seen>) {
    let (queue, seen) = watched(device, &UnitSet::from(0..3));
    let other = Ownership::of(Owner { layer: 1, domain: 2 });
    let sets = vec![(UnitSet::from(0..2), Ownership::BLOCKS), (UnitSet::from(2..3), other)];
    let owners = Owners::new(sets);
    let views = Flash::mount_for(queue, FtlConfig::default(), owners, runtime.clone()).await;
    let views: Vec<Flash> = views.unwrap().into_iter().map(|mounted| mounted.flash).collect();
    (views.try_into().ok().unwrap(), seen)
}

#[test]
fn views_that_are_mounted_together_lose_their_units_each_by_itself() {
    let device = device(3, 5);
    run(async |runtime| {
        let ([first, second], _) = two_views(&device, &runtime).await;
        let kept = filled(&first, 0).await;
        second.leave(2).await.unwrap();
        second.stop();
        settle(&runtime).await;
        verify(&first, &kept, PAGES).await;
        first.leave(1).await.unwrap();
        first.flush(Hint::FLUSH).await.unwrap();
        let (joins, ..) = mount(&device, 1..2, &runtime).await;
        first.join(joins).unwrap();
        filled(&first, 1).await;
        first.stop();
    });
}

#[test]
fn an_ftl_whose_last_view_has_left_ends_whatever_the_stopped_ones_had_under_way() {
    for step in 0..60 {
        let device = device(3, 5);
        run(async |runtime| {
            let ([first, second], seen) = two_views(&device, &runtime).await;
            // Its unit has erases ahead of need at other times than that of the second view.
            filled(&first, 0).await;
            runtime.sleep_until(runtime.now() + step * 100_000).await;
            first.stop();
            drop(second.leave(2));
            drop((first, second));
            settle(&runtime).await;
            assert!(seen.is_dropped.get(), "in step {step}");
        });
    }
}

#[test]
fn units_of_another_device_cannot_join() {
    let [ours, theirs] = [6, 7].map(|seed| device(2, seed));
    run(async |runtime| {
        let (view, ..) = mount(&ours, 0..1, &runtime).await;
        let (joins, _, seen) = mount(&theirs, 1..2, &runtime).await;
        let refused = view.join(joins).unwrap_err();
        assert!(matches!(refused, FtlError::Unsupported { .. }), "{refused}");
        settle(&runtime).await;
        assert!(seen.is_dropped.get(), "it is stopped");
        assert_eq!(view.units(), UnitSet::from(0..1));
        filled(&view, 0).await;
        assert!(runtime.now() > Time::ZERO);
        view.stop();
    });
}
