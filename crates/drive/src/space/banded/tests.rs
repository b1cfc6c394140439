//! A model of the contents of flash beside the space of a drive with bands: what is read back is
//! what was written last, whatever is under way.

use super::*;
use crate::mapping::BandedMapping;
use crate::pages::Purpose;
use crate::shape::Shape;
use crate::spec::{BandChoice, Bands, Collect, DeviceSpec, GcClass, PageMapped, PlacementPolicy};
use softflash_base::random::Rng;
use softflash_mapping::Share;

/// What a page holds: a logical page, and which version of it.
type Content = Option<(u32, u32)>;

/// A drive whose flash has contents.
struct Drive {
    space: Space<BandedMapping>,
    pages: Pages,
    content: Vec<Content>,
    versions: Vec<u32>,
    /// Pages of collection that are read, and those that wait for their program with their die.
    read: Vec<(u32, Content)>,
    waiting: Vec<(u32, u32, Content)>,
    erases: Vec<u32>,
}

impl Drive {
    fn new(rng: &mut Rng) -> Drive {
        let mut array = softflash_nand::presets::small();
        array.geometry.planes_per_die = 1;
        array.geometry.blocks_per_plane = 32 + rng.below(10) as u32;
        array.geometry.pages_per_block = 4 + 2 * rng.below(4) as u32;
        let device = DeviceSpec::bare("model", &array);
        let widths: &[&str] =
            [&["1"][..], &["1/2"], &["1/4"], &["1", "1/4"]][rng.below(4) as usize];
        let layout = PageMapped {
            bands: Bands::Widths(widths.iter().map(|text| Share::parse(text).unwrap()).collect()),
            band_choice: (widths.len() > 1).then_some(BandChoice::Shape(16 << 10)),
            collect: [Collect::Band, Collect::Block][rng.below(2) as usize],
            gc_class: [GcClass::Kept, GcClass::Mixed][rng.below(2) as usize],
            placement: PlacementPolicy::by_hint(2),
            ..PageMapped::default()
        };
        println!("{layout:?}");
        let shape = Shape::new(&device, &layout, 10.0).unwrap();
        let mapping = BandedMapping::of(&layout, &shape).unwrap();
        Drive {
            content: vec![None; shape.pages_end() as usize],
            versions: vec![0; shape.logical_pages() as usize],
            space: Space::new(shape, &layout, mapping),
            pages: Pages::default(),
            read: Vec::new(),
            waiting: Vec::new(),
            erases: Vec::new(),
        }
    }

    /// The host writes a page, if there is a block for it.
    fn write(&mut self, logical: u32, hint: u32, is_wide: bool) {
        let stream = self.space.band_stream_for(logical, hint, is_wide);
        let Some(frontier) = self.space.next_in_band(stream) else { return };
        let page = self.space.frontier(frontier).next();
        self.space.place_at(frontier, page, logical);
        self.space.advance_in_band(frontier, page + 1, 1);
        self.versions[logical as usize] += 1;
        let version = self.versions[logical as usize];
        self.program(self.space.physical_of(logical), Some((logical, version)));
    }

    fn program(&mut self, physical: u32, content: Content) {
        let before = std::mem::replace(&mut self.content[physical as usize], content);
        assert_eq!(before, None, "page {physical} is programmed twice");
    }

    /// The next step of collection, which the host waits for.
    fn step(&mut self) {
        match self.space.next_band_step(true) {
            Some(BandStep::Read { logical, physical }) => {
                let content = self.content[physical as usize];
                assert_eq!(content.map(|(of, _)| of), Some(logical), "page {physical}");
                let page = self.pages.add_page(NONE, logical, 0);
                let place = self.space.shape().place_of_physical(physical);
                self.pages.arrive_to_read(page, place, Purpose::Move);
                self.pages.set_flash_page(page, physical);
                self.read.push((page, content));
            }
            Some(BandStep::Erase { die }) => self.erases.push(die),
            None => {}
        }
    }

    /// A page that has been read waits for its program.
    fn queue(&mut self, rng: &mut Rng) {
        if self.read.is_empty() {
            return;
        }
        let (page, content) = self.read.swap_remove(rng.below(self.read.len() as u64) as usize);
        if let Some(die) = self.space.queue_moved(page, &mut self.pages) {
            self.waiting.push((page, die, content));
        }
    }

    /// A page that collection moves is programmed: the oldest of a write frontier.
    fn program_moved(&mut self, rng: &mut Rng) {
        if self.waiting.is_empty() {
            return;
        }
        let (_, die, _) = self.waiting[rng.below(self.waiting.len() as u64) as usize];
        let mut frontiers = self.space.shape().frontiers_of(die);
        let frontier = frontiers.find(|&of| !self.space.frontier(of).writes().is_empty()).unwrap();
        let page = self.space.take_write(die, frontier, &self.pages).unwrap();
        let at = self.waiting.iter().position(|&(waits, ..)| waits == page).unwrap();
        let (_, _, content) = self.waiting.remove(at);
        let next = self.space.frontier(frontier).next();
        let block = self.space.frontier(frontier).open_block();
        let moved = (self.pages.logical(page), self.pages.flash_page(page));
        self.space.place_moved_at(frontier, next, moved);
        self.space.advance_in_band(frontier, next + 1, 1);
        self.program(self.space.shape().first_page_of(block) + next, content);
        self.space.move_ended(self.pages.block(page));
        self.pages.complete_page(page);
    }

    /// A block is erased.
    fn erase(&mut self) {
        let Some(die) = self.erases.pop() else { return };
        let Some(block) = self.space.take_erase(die) else { return };
        let first = self.space.shape().first_page_of(block) as usize;
        let end = self.space.shape().first_page_of(block + 1) as usize;
        self.content[first..end].fill(None);
        self.space.count_erase();
        self.space.erased_in_band(block);
    }

    fn check(&self) {
        assert_eq!(self.space.check_bands(), Ok(()));
        for (logical, &version) in (0..).zip(&self.versions) {
            if version > 0 {
                let physical = self.space.physical_of(logical) as usize;
                assert_eq!(self.content[physical], Some((logical, version)), "page {logical}");
            }
        }
    }
}

#[test]
fn what_is_read_back_is_what_was_written_last() {
    for seed in 0..40 {
        println!("seed {seed}");
        let rng = &mut Rng::seeded(seed).fork("contents");
        let mut drive = Drive::new(rng);
        let pages = u64::from(drive.space.shape().logical_pages());
        for step in 0..60_000 {
            match rng.below(8) {
                0 | 1 => {
                    let logical = rng.below(pages) as u32;
                    drive.write(logical, logical % 2, rng.chance(0.5));
                }
                2..=4 => drive.step(),
                5 => drive.queue(rng),
                6 => drive.program_moved(rng),
                _ => drive.erase(),
            }
            if step % 500 == 0 {
                drive.check();
            }
        }
        drive.check();
        let mut counters = crate::DriveCounters::default();
        drive.space.add_counters(&mut counters);
        assert!(counters.erases > 50, "{counters:?}");
        assert!(counters.programmed_for_host > 2 * pages, "the host stands: {counters:?}");
    }
}
