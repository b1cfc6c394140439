//! Domains on units that are not neighbours.

use crate::testbed::{Testbed, UNIT, content, unit};
use softflash_base::UnitSet;
use softflash_base::random::Rng;

/// Pages of a unit that were written.
fn pages(testbed: &Testbed, unit: u16) -> usize {
    let mut pages = 0;
    testbed.device.image(unit..unit + 1).unwrap().visit(|_, _, _| pages += 1);
    pages
}

#[test]
fn a_domain_on_separate_units_is_collected_and_recovered() {
    let mut testbed = Testbed::new(32, 256);
    testbed.units = UnitSet::from_iter([0, 2, 3]);
    let lbas = 2000;
    let (mut newest, mut rng) = (vec![0; lbas as usize], Rng::seeded(5));
    for session in 0..4 {
        testbed.run(async |domain, _, _| {
            if session == 0 {
                domain.create("v", lbas * UNIT as u64).await.unwrap();
            }
            let volume = domain.volume("v").unwrap();
            let mut read = vec![0; newest.len() * UNIT];
            volume.read(0, &mut read).await.unwrap();
            assert!(
                newest.iter().zip(read.chunks(UNIT)).all(|(new, bytes)| content(bytes) == *new)
            );
            for step in 1..10_000 {
                let lba = rng.below(lbas);
                newest[lba as usize] = 10_000 * (session + 1) + step;
                volume.write(lba * UNIT as u64, &unit(newest[lba as usize])).await.unwrap();
            }
            volume.flush().await.unwrap();
            assert!(domain.counters().released > 0, "superblocks were collected");
        });
    }
    let examined = testbed.examine().unwrap();
    assert!(examined.images.iter().all(|image| image.lost_bytes() == 0), "{examined:?}");
    assert_eq!(pages(&testbed, 1), 0, "the other unit stays as it was");
    assert!([0, 2, 3].iter().all(|unit| pages(&testbed, *unit) > 0));
}
