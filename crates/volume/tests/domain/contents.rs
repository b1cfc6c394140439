//! The contents of a volume, through mounts with different tables of sets.

use crate::testbed::{Testbed, UNIT, content, unit};
use softflash_base::UnitSet;
use softflash_base::random::Rng;
use softflash_volume::{Domain, UnitSlots, VolumeError};
use std::num::NonZeroU32;

/// Mapping units of the volume.
pub const LBAS: u64 = 1200;

/// The contents of the volume, and overwrites of it.
pub struct Contents {
    newest: Vec<u64>,
    rng: Rng,
    writes: u64,
}

impl Contents {
    pub fn new() -> Contents {
        Contents { newest: vec![0; LBAS as usize], rng: Rng::seeded(7), writes: 0 }
    }

    /// Compares all, writes, and compares again. The first time the volume is made.
    pub fn overwrite(&mut self, testbed: &Testbed, writes: u64) -> Result<(), VolumeError> {
        testbed.try_run(async |domain, _, _| {
            if self.writes == 0 {
                domain.create("v", LBAS * UNIT as u64).await.unwrap();
            }
            self.compare(domain).await;
            self.write(domain, writes).await;
            self.compare(domain).await;
            domain.flush().await.unwrap();
        })
    }

    /// Compares all.
    pub async fn compare(&self, domain: &Domain) {
        let mut bytes = vec![0; self.newest.len() * UNIT];
        domain.volume("v").unwrap().read(0, &mut bytes).await.unwrap();
        assert!(bytes.chunks(UNIT).map(content).eq(self.newest.iter().copied()));
    }

    /// Overwrites mapping units.
    pub async fn write(&mut self, domain: &Domain, writes: u64) {
        let volume = domain.volume("v").unwrap();
        for _ in 0..writes {
            self.writes += 1;
            let lba = self.rng.below(LBAS);
            self.newest[lba as usize] = self.writes;
            volume.write(lba * UNIT as u64, &unit(self.writes)).await.unwrap();
        }
    }
}

/// A domain with these units in its slots; without a table at epoch 0.
pub fn set(testbed: &mut Testbed, epoch: u32, unit_slots: &[Option<u16>]) {
    testbed.units = UnitSet::from_iter(unit_slots.iter().flatten().copied());
    let table = |epoch| UnitSlots::new(epoch, unit_slots.to_vec());
    testbed.config.slots = NonZeroU32::new(epoch).map(table);
}
