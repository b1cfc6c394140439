//! Unit slots of a table of sets: units that join and leave a domain between two mounts.

use crate::contents::{Contents, set};
use crate::testbed::Testbed;
use softflash_ftl::FtlError;
use softflash_volume::VolumeError;

#[test]
fn units_have_any_slots_and_others_join() {
    let mut testbed = Testbed::new(32, 256);
    let mut contents = Contents::new();
    set(&mut testbed, 4, &[Some(3), None, Some(0)]);
    contents.overwrite(&testbed, 6000).unwrap();
    contents.overwrite(&testbed, 0).unwrap();
    // The root is older than the units that have joined, one of them in the empty slot.
    set(&mut testbed, 5, &[Some(3), Some(2), Some(0), Some(1)]);
    for _ in 0..3 {
        contents.overwrite(&testbed, 6000).unwrap();
    }
    testbed.run(async |domain, _, _| domain.checkpoint().await.unwrap());
    contents.overwrite(&testbed, 1000).unwrap();
    let examined = testbed.examine().unwrap();
    assert!(examined.images.iter().all(|image| image.lost_bytes() == 0), "{examined:?}");
}

#[test]
fn a_domain_from_before_there_was_a_table_keeps_its_places() {
    let mut testbed = Testbed::new(32, 256);
    let mut contents = Contents::new();
    set(&mut testbed, 0, &[Some(0), Some(2)]);
    contents.overwrite(&testbed, 5000).unwrap();
    set(&mut testbed, 1, &[Some(0), Some(2), Some(1)]);
    contents.overwrite(&testbed, 5000).unwrap();
    contents.overwrite(&testbed, 0).unwrap();
    // The flash has headers of the table now.
    set(&mut testbed, 0, &[Some(0), Some(1), Some(2)]);
    let refused = contents.overwrite(&testbed, 0);
    let older = |error: &VolumeError| {
        matches!(error, VolumeError::Flash(FtlError::OlderTable { found: 1, epoch: 0, .. }))
    };
    assert!(refused.as_ref().is_err_and(older), "{refused:?}");
}

#[test]
fn a_table_that_moves_or_drops_a_unit_with_data_is_refused() {
    let mut testbed = Testbed::new(32, 256);
    let mut contents = Contents::new();
    for before in [0, 1] {
        set(&mut testbed, before, &[Some(0), Some(1), Some(2)]);
        contents.overwrite(&testbed, 5000).unwrap();
        testbed.run(async |domain, _, _| domain.checkpoint().await.unwrap());
        for wrong in [
            &[Some(1), Some(0), Some(2)][..],
            &[Some(0), None, Some(2)],
            &[Some(0), Some(1)],
            &[None, Some(1), Some(2), Some(0)],
            &[Some(0), Some(3), Some(2)],
        ] {
            set(&mut testbed, 2, wrong);
            let refused = contents.overwrite(&testbed, 0);
            let names_table = |error: &VolumeError| error.to_string().contains("newest table");
            assert!(refused.as_ref().is_err_and(names_table), "{wrong:?}: {refused:?}");
        }
        set(&mut testbed, before, &[Some(0), Some(1), Some(2)]);
        contents.overwrite(&testbed, 0).unwrap();
    }
}

#[test]
fn an_empty_unit_leaves_the_domain() {
    let mut testbed = Testbed::new(32, 256);
    let mut contents = Contents::new();
    set(&mut testbed, 1, &[Some(0), Some(1)]);
    contents.overwrite(&testbed, 4000).unwrap();
    // It has joined, and nothing was written since.
    set(&mut testbed, 2, &[Some(0), Some(1), Some(2)]);
    let mut alone = Testbed { device: testbed.device.clone(), ..Testbed::new(1, 256) };
    set(&mut alone, 2, &[Some(0), Some(1)]);
    contents.overwrite(&alone, 4000).unwrap();
    set(&mut testbed, 3, &[Some(0), Some(1), None]);
    contents.overwrite(&testbed, 100).unwrap();
}
