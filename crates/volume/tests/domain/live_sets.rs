//! Units leave and join domains that go on serving.

use crate::contents::{Contents, set};
use crate::testbed::{Testbed, UNIT};
use futures_util::future::join;
use softflash_base::UnitSet;
use softflash_device::Device;
use softflash_flash::erase_units;
use softflash_runtime::RuntimeHandle;
use softflash_volume::{Domain, DomainConfig, UnitSlots, VolumeError};
use std::num::NonZeroU32;
use std::sync::Arc;

fn table(epoch: u32, unit_slots: &[Option<u16>]) -> UnitSlots {
    UnitSlots::new(NonZeroU32::new(epoch).unwrap(), unit_slots.to_vec())
}

fn units(text: &str) -> UnitSet {
    text.parse().unwrap()
}

/// Erases spare units, and adds them to a domain by a table of the next epoch.
async fn give(
    testbed: &Testbed,
    domain: &Domain,
    (joining, epoch, unit_slots): (&str, u32, &[Option<u16>]),
    runtime: &RuntimeHandle,
) -> Result<(), VolumeError> {
    let device = || Arc::clone(&testbed.device);
    let queue = device().open_queue_pair(&units(joining)).unwrap();
    erase_units(queue, epoch - 1, runtime.clone()).await.unwrap();
    let queue = device().open_queue_pair(&units(joining)).unwrap();
    domain.join(queue, &table(epoch, unit_slots)).await
}

#[test]
fn units_leave_and_come_back_at_other_slots_while_clients_write() {
    let mut testbed = Testbed::new(64, 256);
    let mut contents = Contents::new();
    contents.overwrite(&testbed, 4000).unwrap();
    testbed.run(async |domain, runtime, _| {
        let whole = domain.space();
        let (drained, ()) = join(domain.drain(&units("1-2")), contents.write(domain, 2000)).await;
        drained.unwrap();
        let first = table(1, &[Some(0), None, None, Some(3)]);
        domain.leave(&units("1-2"), &first).await.unwrap();
        assert!(domain.space().usable_bytes < whole.usable_bytes * 6 / 10);
        contents.compare(domain).await;
        contents.write(domain, 3000).await;
        // One comes back to the slot of the other, while clients write.
        let slots = [Some(0), Some(2), None, Some(3)];
        let joining = give(&testbed, domain, ("2", 2, &slots), runtime);
        join(joining, contents.write(domain, 2000)).await.0.unwrap();
        // The other one to a slot that is new.
        let slots = [Some(0), Some(2), None, Some(3), Some(1)];
        give(&testbed, domain, ("1", 3, &slots), runtime).await.unwrap();
        assert_eq!(domain.space().usable_bytes, whole.usable_bytes);
        contents.write(domain, 6000).await;
        contents.compare(domain).await;
        let live = domain.units().into_iter().map(|unit| (unit.unit.0, unit.space.live));
        let live: Vec<(u16, u32)> = live.collect();
        assert!(live.len() == 4 && live.iter().all(|(_, live)| *live > 2), "{live:?}");
        domain.flush().await.unwrap();
    });
    set(&mut testbed, 3, &[Some(0), Some(2), None, Some(3), Some(1)]);
    contents.overwrite(&testbed, 3000).unwrap();
    contents.overwrite(&testbed, 0).unwrap();
}

#[test]
fn a_domain_without_a_table_gets_one_with_its_first_change() {
    let mut testbed = Testbed { units: units("0-2"), ..Testbed::new(64, 256) };
    let mut contents = Contents::new();
    contents.overwrite(&testbed, 2000).unwrap();
    testbed.run(async |domain, runtime, _| {
        let slots = [Some(0), Some(1), Some(2), Some(3)];
        give(&testbed, domain, ("3", 1, &slots), runtime).await.unwrap();
        contents.write(domain, 5000).await;
        domain.checkpoint().await.unwrap();
    });
    set(&mut testbed, 1, &[Some(0), Some(1), Some(2), Some(3)]);
    contents.overwrite(&testbed, 2000).unwrap();
    contents.overwrite(&testbed, 0).unwrap();
}

#[test]
fn a_unit_passes_between_two_domains_that_go_on() {
    let mut first = Testbed { units: units("0-2"), ..Testbed::new(64, 256) };
    set(&mut first, 1, &[Some(0), Some(1), Some(2)]);
    let config = DomainConfig { domain: 9, ..DomainConfig::default() };
    let mut second = Testbed { device: first.device.clone(), config, ..Testbed::new(1, 256) };
    set(&mut second, 1, &[Some(3)]);
    let (mut of_first, mut of_second) = (Contents::new(), Contents::new());
    of_second.overwrite(&second, 500).unwrap();
    of_first.overwrite(&first, 4000).unwrap();
    first.run(async |domain, runtime, _| {
        let queue = second.device.clone().open_queue_pair(&second.units).unwrap();
        let mounted = Domain::mount(queue, second.config.clone(), runtime.clone()).await;
        let (other, _) = mounted.unwrap();
        for round in 0..3 {
            let (epoch, with) = (2 + 4 * round, [Some(3), Some(1)]);
            domain.drain(&units("1")).await.unwrap();
            let without = table(epoch, &[Some(0), None, Some(2)]);
            domain.leave(&units("1"), &without).await.unwrap();
            let joining = give(&first, &other, ("1", epoch + 1, &with), runtime);
            join(joining, of_first.write(domain, 500)).await.0.unwrap();
            of_second.write(&other, 3000).await;
            let (drained, ()) = join(other.drain(&units("1")), of_first.write(domain, 500)).await;
            drained.unwrap();
            other.leave(&units("1"), &table(epoch + 2, &[Some(3)])).await.unwrap();
            let back = [Some(0), Some(1), Some(2)];
            give(&first, domain, ("1", epoch + 3, &back), runtime).await.unwrap();
            of_first.write(domain, 1000).await;
        }
        domain.flush().await.unwrap();
        other.flush().await.unwrap();
        other.stop();
    });
    set(&mut first, 13, &[Some(0), Some(1), Some(2)]);
    set(&mut second, 13, &[Some(3)]);
    of_first.overwrite(&first, 1000).unwrap();
    of_second.overwrite(&second, 500).unwrap();
}

#[test]
fn another_queue_pair_has_the_units_of_a_domain_that_ended() {
    let testbed = Testbed::new(64, 256);
    testbed.run(async |domain, runtime, _| {
        domain.create("v", 64 * UNIT as u64).await.unwrap();
        domain.volume("v").unwrap().write(0, &vec![7; UNIT]).await.unwrap();
        let open = || testbed.device.clone().open_queue_pair(&testbed.units);
        assert!(open().is_err(), "the domain has them");
        domain.end().await.unwrap();
        erase_units(open().unwrap(), 0, runtime.clone()).await.unwrap();
        let config = DomainConfig { domain: 9, ..DomainConfig::default() };
        let mounted = Domain::mount(open().unwrap(), config, runtime.clone()).await;
        let (other, report) = mounted.unwrap();
        assert_eq!((other.list().len(), report.lost_units), (0, 0));
        other.stop();
    });
}

#[test]
fn units_change_only_as_the_table_says() {
    let mut testbed = Testbed { units: units("0-2"), ..Testbed::new(64, 256) };
    let mut contents = Contents::new();
    contents.overwrite(&testbed, 2000).unwrap();
    testbed.run(async |domain, runtime, _| {
        let before = domain.space();
        let undrained = domain.leave(&units("1"), &table(1, &[Some(0), None, Some(2)])).await;
        assert!(matches!(undrained, Err(VolumeError::NotDrained { unit: 1, .. })), "{undrained:?}");
        domain.drain(&units("1")).await.unwrap();
        let other = domain.leave(&units("1"), &table(1, &[Some(0), None])).await;
        assert!(matches!(other, Err(VolumeError::Unsupported { .. })), "{other:?}");
        domain.keep(&units("1")).unwrap();
        assert_eq!(domain.space(), before);
        for wrong in [
            &[Some(0), Some(1), Some(2)][..],
            &[Some(1), Some(0), Some(2), Some(3)],
            &[Some(0), Some(1), Some(3)],
            &[Some(0), Some(1), Some(2), Some(3), Some(4)],
        ] {
            let refused = give(&testbed, domain, ("3", 1, wrong), runtime).await.unwrap_err();
            assert!(refused.to_string().contains("table of sets"), "{refused}");
        }
        contents.write(domain, 3000).await;
        contents.compare(domain).await;
        let slots = [Some(0), Some(1), Some(2), Some(3)];
        give(&testbed, domain, ("3", 1, &slots), runtime).await.unwrap();
        contents.write(domain, 2000).await;
        domain.flush().await.unwrap();
    });
    set(&mut testbed, 1, &[Some(0), Some(1), Some(2), Some(3)]);
    contents.overwrite(&testbed, 0).unwrap();
}
