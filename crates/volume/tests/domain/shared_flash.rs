//! Several domains on one FTL: each works on its own units, and ends by itself.

use crate::testbed::{Testbed, UNIT, content, unit};
use softflash_base::UnitSet;
use softflash_flash::Flash;
use softflash_ftl::{FtlConfig, FtlError, Hint, OwnerTag, Owners};
use softflash_volume::{Domain, DomainConfig};

const LBAS: u64 = 1500;

async fn write(domain: &Domain, from: u64) {
    let volume = domain.volume("v").unwrap();
    for lba in 0..LBAS {
        volume.write(lba * UNIT as u64, &unit(from + lba)).await.unwrap();
    }
    volume.flush().await.unwrap();
}

async fn check(domain: &Domain, from: u64) {
    let volume = domain.volume("v").unwrap();
    let mut bytes = vec![0; LBAS as usize * UNIT];
    volume.read(0, &mut bytes).await.unwrap();
    assert!((from..).zip(bytes.chunks(UNIT)).all(|(wanted, bytes)| content(bytes) == wanted));
}

/// The domains 1 and 2, with their units.
fn owned() -> [(UnitSet, DomainConfig); 2] {
    let config = |domain| DomainConfig { domain, ..DomainConfig::default() };
    [(UnitSet::from_iter([0, 2]), config(1)), (UnitSet::from_iter([1, 3]), config(2))]
}

/// Mounts both domains on one FTL.
fn together<R>(testbed: &Testbed, work: impl AsyncFnOnce([Domain; 2]) -> R) -> R {
    testbed.on_flash(async |queue, _, runtime| {
        let sets = owned().map(|(units, config)| (units, Domain::ownership(config.domain)));
        let owners = Owners::new(sets.to_vec());
        let config = FtlConfig::default();
        let views = Flash::mount_for(queue, config, owners, runtime.clone()).await.unwrap();
        let mut domains = Vec::new();
        for (view, (units, config)) in views.into_iter().zip(owned()) {
            assert_eq!(view.flash.units(), units);
            domains.push(Domain::mount_on(view, config, runtime.clone()).await.unwrap().0);
        }
        work(domains.try_into().ok().unwrap()).await
    })
}

#[test]
fn domains_on_one_ftl_are_written_collected_and_stopped_each_by_itself() {
    let testbed = Testbed::new(32, 256);
    together(&testbed, async |[first, second]| {
        for (domain, from) in [(&first, 10_000), (&second, 20_000)] {
            domain.create("v", LBAS * UNIT as u64).await.unwrap();
            write(domain, from).await;
        }
        first.stop();
        // Also where the other one has ended.
        for round in 1..=6 {
            write(&second, 20_000 + round).await;
        }
        assert!(second.counters().released > 0, "superblocks were collected");
        check(&second, 20_006).await;
        second.stop();
    });
    for ((units, config), from) in owned().into_iter().zip([10_000, 20_006]) {
        let mut alone = Testbed { device: testbed.device.clone(), ..Testbed::new(1, 256) };
        (alone.units, alone.config) = (units, config);
        alone.run(async |domain, _, _| check(domain, from).await);
    }
    together(&testbed, async |[first, second]| {
        check(&first, 10_000).await;
        check(&second, 20_006).await;
        [first, second].iter().for_each(Domain::stop);
    });
}

#[test]
fn a_view_allocates_only_in_its_units_and_ends_with_its_own_stop() {
    let testbed = Testbed::new(16, 256);
    testbed.on_flash(async |queue, _, runtime| {
        let sets = owned().map(|(units, config)| (units, Domain::ownership(config.domain)));
        let config = FtlConfig::default();
        let views = Flash::mount_for(queue, config, Owners::new(sets.to_vec()), runtime).await;
        let [first, second] =
            <[_; 2]>::try_from(views.unwrap()).ok().unwrap().map(|view| view.flash);
        let tag = OwnerTag([1; 64]);
        let refused = first.allocate(1, tag, Hint::FLUSH).map(drop);
        assert!(matches!(refused, Err(FtlError::NotOurs { .. })), "{refused:?}");
        // A second stop of the same view ends nothing else.
        first.stop();
        first.clone().stop();
        let superblock = second.allocate(1, tag, Hint::FLUSH).unwrap();
        let page = second.buffer(second.page_bytes());
        let (_, appended) = second.append(&superblock, page, true, Hint::FLUSH).unwrap();
        appended.await.0.unwrap();
        second.stop();
    });
}
