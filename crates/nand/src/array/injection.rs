//! The effects of silent and planned faults on pages. Cold code: an array without such faults only
//! checks that it has no injector.

use super::die::{Die, Slot};
use super::injector::{Injector, Shown, Verdict, Written};
use super::{Array, Core};
use crate::address::{BlockIndex, DieIndex};
use crate::block::{Content, Health, NEEDS_ERASE};
use crate::command::{CommandKind, PageStatus};
use crate::config::ConfigError;
use crate::damage::Damage;
use crate::faults::{FaultSchedule, InjectedFaults, Strike};
use crate::geometry::MAX_PLANES;
use crate::storage::StoreFailure;
use softflash_base::Time;
use softflash_base::random::Rng;

impl Array {
    /// Plans faults in addition to the configured rates and to earlier planned faults. A fault
    /// planned for a past time strikes at the next opportunity; commands are counted from now on.
    ///
    /// # Errors
    /// [`ConfigError::Schedule`] if a fault is impossible; then none is planned.
    pub fn schedule(&mut self, schedule: &FaultSchedule) -> Result<(), ConfigError> {
        schedule.validate(&self.core.geometry)?;
        let Core { injector, faults, rngs, geometry, .. } = &mut self.core;
        injector
            .get_or_insert_with(|| Injector::idle(faults, rngs, geometry.channels))
            .plan(schedule, geometry)
    }

    /// The time of the next planned power cut. The array's driver advances it to that time and
    /// calls [`power_cut`](Array::power_cut), which removes all cuts planned until then.
    pub fn planned_cut(&self) -> Option<Time> {
        let injector = self.core.injector.as_ref()?;
        injector.cuts.first().map(|&at| Time(at.max(self.core.now)))
    }

    /// Counters of the injected silent, planned and slow faults.
    pub fn injected(&self) -> InjectedFaults {
        self.core.injector.as_ref().map_or_else(InjectedFaults::default, |of| of.counters)
    }
}

impl Core {
    /// Whether a die is dead.
    pub(super) fn is_dead(&self, die: DieIndex) -> bool {
        self.injector.as_ref().is_some_and(|injector| injector.is_dead(die.index(), self.now))
    }

    /// The duration of a die's step that takes `ns` without faults. `first_of` is the kind of the
    /// command if this is its first step.
    #[inline]
    pub(super) fn die_step_ns(
        &mut self,
        die: DieIndex,
        first_of: Option<CommandKind>,
        ns: u64,
    ) -> u64 {
        match &mut self.injector {
            None => ns,
            Some(injector) => injector.die_step_ns(die.index(), first_of, self.now, ns),
        }
    }

    /// Removes the planned power cuts up to now.
    pub(super) fn forget_cuts(&mut self) {
        if let Some(injector) = &mut self.injector {
            injector.cuts.retain(|&at| at > self.now);
        }
    }

    /// The duration of a transfer that takes `ns` without faults.
    #[inline]
    pub(super) fn bus_step_ns(&mut self, channel: u16, ns: u64) -> u64 {
        match &mut self.injector {
            None => ns,
            Some(injector) => injector.bus_step_ns(channel.into(), self.now, ns),
        }
    }

    /// The fault that strikes a command whose work in the cell array ends now. Sets the status of a
    /// command that fails or whose die is dead.
    fn verdict(&mut self, die: &mut Die, slot: u8) -> (Verdict, Option<Strike>) {
        let kind = die.slot(slot).kind;
        let Some(injector) = &mut self.injector else { return (Verdict::Goes, None) };
        let (verdict, strike) = injector.work_ends(die.index.index(), kind, self.now);
        let status = match (verdict, kind) {
            (Verdict::Goes, _) => return (verdict, strike),
            (Verdict::Dead, _) => PageStatus::Dead,
            (Verdict::Fails, CommandKind::Read) => PageStatus::Uncorrectable,
            (Verdict::Fails, _) => PageStatus::Failed,
        };
        die.slot_mut(slot).status = [status; MAX_PLANES];
        (verdict, strike)
    }

    /// As [`look`](Core::look), with faults.
    #[cold]
    pub(super) fn look_with_faults(&mut self, die: &mut Die, slot: u8) -> u8 {
        let (verdict, strike) = self.verdict(die, slot);
        let mut shown = [Shown::Itself; MAX_PLANES];
        let mut retries = 0;
        if verdict == Verdict::Goes {
            retries = self.look_at_all(die, slot);
            for (plane, shown) in shown.iter_mut().enumerate().take(die.slot(slot).planes.into()) {
                *shown = self.choose_shown(die, slot, plane, strike);
            }
        }
        if self.store.is_some() {
            self.fetch(die, slot, &shown);
        }
        retries
    }

    fn choose_shown(&mut self, die: &Die, slot: u8, plane: usize, strike: Option<Strike>) -> Shown {
        let Slot { page, blocks, status, .. } = *die.slot(slot);
        if !status[plane].is_good() {
            return Shown::Itself;
        }
        let index = BlockIndex(blocks[plane]);
        let Core { injector: Some(injector), blocks, geometry, .. } = self else {
            return Shown::Itself;
        };
        injector.shown(die.index.index(), strike, |rng: &mut Rng| {
            let start = rng.below(u64::from(geometry.blocks_per_plane)) as u32;
            others_in_plane(index, geometry.blocks_per_plane, start)
                .find(|&other| blocks.content(other, page) == Content::Data)
                .map(|other| other.0)
        })
    }

    /// Reads the data that a faulty read returns. `bytes` are the previous contents of the
    /// register.
    #[cold]
    pub(super) fn read_page_wrong(
        &mut self,
        own: u32,
        page: u32,
        bytes: &mut [u8],
        shown: Shown,
    ) -> Result<(), StoreFailure> {
        if let Shown::Other(other) = shown {
            return self.read_page(other, page, bytes);
        }
        let held = bytes.to_vec();
        self.read_page(own, page, bytes)?;
        match (shown, &mut self.injector) {
            (Shown::Flipped(seed), _) => self.flip(bytes, seed),
            (Shown::Stale, Some(injector))
                if *bytes != held && held.iter().any(|&byte| byte != 0) =>
            {
                injector.counters.stale_reads += 1;
                bytes.copy_from_slice(&held);
            }
            _ => {}
        }
        Ok(())
    }

    /// Flips random bits of one codeword: an odd number of flips, more than ECC corrects, so that
    /// at least one bit stays flipped.
    fn flip(&self, bytes: &mut [u8], seed: u64) {
        let mut rng = Rng::seeded(seed);
        let law = &self.faults.bit_errors;
        let codeword_bytes = bytes.len().min(law.codeword_bytes as usize);
        let codewords = bytes.len().div_ceil(codeword_bytes) as u64;
        let start = rng.below(codewords) as usize * codeword_bytes;
        let end = bytes.len().min(start + codeword_bytes);
        let codeword = &mut bytes[start..end];
        for _ in 0..law.correctable_bits + 1 + law.correctable_bits % 2 {
            let bit = rng.below(codeword.len() as u64 * 8) as usize;
            codeword[bit / 8] ^= 1 << (bit % 8);
        }
    }

    /// As [`program_done`](Core::program_done), with faults.
    #[cold]
    pub(super) fn program_done_with_faults(&mut self, die: &mut Die, slot: u8) {
        let Slot { page, planes, blocks, .. } = *die.slot(slot);
        let now_s = self.now_s();
        let (verdict, strike) = self.verdict(die, slot);
        if verdict == Verdict::Dead {
            return;
        }
        self.counters.pages_programmed += u64::from(planes);
        for (plane, index) in blocks[..usize::from(planes)].iter().copied().enumerate() {
            let index = BlockIndex(index);
            if verdict == Verdict::Fails {
                self.fail_program(index, page, now_s);
                continue;
            }
            if !self.program_takes(die, slot, plane, now_s) {
                continue;
            }
            let Some(injector) = &mut self.injector else { continue };
            match injector.written(die.index.index(), strike) {
                Written::Itself => self.keep_or_lose(die, slot, plane),
                Written::Nothing => {
                    injector.counters.phantom_programs += 1;
                    self.blocks.hollow_out(index, page);
                }
                Written::Elsewhere => {
                    injector.counters.misdirected_programs += 1;
                    self.blocks.hollow_out(index, page);
                    self.write_elsewhere(die, slot, plane);
                }
            }
        }
    }

    /// Writes one plane's page of a program to another block of the plane, if there is one whose
    /// write pointer has reached the page: a programmed page there is lost, a page that is next in
    /// order holds the data.
    fn write_elsewhere(&mut self, die: &Die, slot: u8, plane: usize) {
        let Slot { page, blocks, .. } = *die.slot(slot);
        let per_plane = self.geometry.blocks_per_plane;
        let Some(injector) = &mut self.injector else { return };
        let start = injector.below(die.index.index(), per_plane);
        let table = &self.blocks;
        let mut others = others_in_plane(BlockIndex(blocks[plane]), per_plane, start);
        let victim = others.find(|&other| {
            let block = table.get(other);
            let in_use = block.health == Health::Good && block.committed != NEEDS_ERASE;
            in_use && u32::from(block.committed) >= page && !table.has_stray(other)
        });
        let Some(victim) = victim else { return };
        if u32::from(self.blocks.get(victim).committed) > page {
            injector.counters.pages_overwritten += 1;
            self.blocks.damage(victim, page, Damage::Torn);
        } else if self.keep_in(die, slot, plane, victim).is_none() {
            self.blocks.damage(victim, page, Damage::Stray);
        }
    }

    /// As [`erase_done`](Core::erase_done), with faults.
    #[cold]
    pub(super) fn erase_done_with_faults(&mut self, die: &mut Die, slot: u8) {
        let (verdict, _) = self.verdict(die, slot);
        match verdict {
            Verdict::Dead => {}
            Verdict::Goes => self.erase_all(die, slot),
            Verdict::Fails => {
                let Slot { planes, blocks, .. } = *die.slot(slot);
                self.counters.blocks_erased += u64::from(planes);
                for &index in &blocks[..usize::from(planes)] {
                    self.fail_erase(BlockIndex(index));
                }
            }
        }
    }
}

/// The other blocks of a block's plane, from the one at `start` on.
fn others_in_plane(
    index: BlockIndex,
    per_plane: u32,
    start: u32,
) -> impl Iterator<Item = BlockIndex> {
    let first = index.0 - index.0 % per_plane;
    let places = (start..per_plane).chain(0..start);
    places.map(move |place| BlockIndex(first + place)).filter(move |&other| other != index)
}
