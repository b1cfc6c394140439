//! Drives an FTL in virtual time.

use super::Medium;
use softflash_base::{IoBuf, Time, UnitId};
use softflash_device::{QueuePair, Wake};
use softflash_ftl::{
    Done, Ftl, FtlConfig, FtlError, Hint, Inventory, Mounting, OwnerTag, Owners, Ownership,
    RequestId, Superblock,
};

pub struct Rig {
    pub ftl: Ftl,
    pub now: Time,
    pub done: Vec<Done>,
}

/// Fills pages with bytes that identify their superblock and page.
pub fn pattern(bytes: &mut [u8], superblock: &Superblock, first_page: u32) {
    for (page, bytes) in (first_page..).zip(bytes.chunks_mut(4096)) {
        let seed = superblock.generation.wrapping_mul(1_000_003)
            ^ u64::from(superblock.index) << 40
            ^ u64::from(superblock.unit.0) << 56
            ^ u64::from(page);
        for (word, eight) in (0_u64..).zip(bytes.chunks_mut(8)) {
            let value = (seed.wrapping_add(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            eight.copy_from_slice(&value.to_le_bytes());
        }
    }
}

pub fn tag(number: u64) -> OwnerTag {
    let mut tag = [0; 64];
    tag[..8].copy_from_slice(&number.to_le_bytes());
    OwnerTag(tag)
}

impl Rig {
    pub fn mount(medium: &impl Medium, config: FtlConfig) -> (Rig, Inventory) {
        Rig::mount_at(medium.queue(), config, Time::ZERO)
    }

    /// Mounts the units of these owners.
    pub fn mount_for(medium: &impl Medium, config: FtlConfig, owners: Owners) -> (Rig, Inventory) {
        Rig::after(Ftl::mount_for(medium.queue(), config, owners), Time::ZERO)
    }

    /// Mounts all units for one owner.
    pub fn mount_of(
        medium: &impl Medium,
        config: FtlConfig,
        ownership: Ownership,
    ) -> (Rig, Inventory) {
        let queue = medium.queue();
        let owners = Owners::one(queue.units().clone(), ownership);
        Rig::after(Ftl::mount_for(queue, config, owners), Time::ZERO)
    }

    pub fn mount_at(queue: Box<dyn QueuePair>, config: FtlConfig, now: Time) -> (Rig, Inventory) {
        Rig::after(Ftl::mount(queue, config), now)
    }

    /// Waits for the end of a mount.
    fn after(mut mounting: Mounting, mut now: Time) -> (Rig, Inventory) {
        let mut polls = 0;
        let (ftl, inventory) = loop {
            if let Some(mounted) = mounting.poll(now) {
                break mounted.unwrap();
            }
            polls += 1;
            assert!(polls < 1_000_000, "a mount that never ends");
            match mounting.wake() {
                Wake::At(at) => now = now.max(at),
                Wake::Now => {}
                other => panic!("a mount waits for {other:?}"),
            }
        };
        ftl.check();
        (Rig { ftl, now, done: Vec::new() }, inventory)
    }

    /// Advances time until the FTL has nothing to do by `until`.
    pub fn run_until(&mut self, until: Time) {
        for _ in 0..1_000_000 {
            self.ftl.poll(self.now, &mut self.done);
            match self.ftl.wake() {
                Wake::Now => {}
                Wake::At(at) if at <= until => self.now = self.now.max(at),
                Wake::At(_) | Wake::Idle => {
                    self.now = self.now.max(until);
                    return;
                }
                Wake::Readable(_) => panic!("this queue pair has no descriptor"),
            }
        }
        panic!("the FTL never becomes idle");
    }

    /// Advances to the next event; false if there is none.
    pub fn step(&mut self) -> bool {
        self.ftl.poll(self.now, &mut self.done);
        match self.ftl.wake() {
            Wake::Now => true,
            Wake::At(at) => {
                self.now = self.now.max(at);
                true
            }
            _ => false,
        }
    }

    /// Advances until all work is done, erases ahead of need included.
    pub fn settle(&mut self) {
        self.run_until(Time(self.now.0 + 100_000_000_000));
        self.ftl.check();
    }

    pub fn wait(&mut self, request: RequestId) -> Done {
        for _ in 0..1_000_000 {
            self.ftl.poll(self.now, &mut self.done);
            if let Some(place) = self.done.iter().position(|done| done.request == request) {
                return self.done.swap_remove(place);
            }
            match self.ftl.wake() {
                Wake::Now => {}
                Wake::At(at) => self.now = self.now.max(at),
                other => panic!("{request:?} never ends: {other:?}"),
            }
        }
        panic!("{request:?} never ends");
    }

    pub fn allocate(&mut self, number: u64) -> Superblock {
        self.try_allocate(0, number).unwrap()
    }

    pub fn try_allocate(&mut self, unit: u16, number: u64) -> Result<Superblock, FtlError> {
        self.ftl.allocate(self.now, UnitId(unit), tag(number), Hint::FLUSH)
    }

    pub fn buffer(&self, pages: u32) -> IoBuf {
        self.ftl.buffers().take(pages as usize * 4096)
    }

    /// Appends pages of the pattern.
    pub fn append(&mut self, superblock: &Superblock, at: u32, pages: u32) -> RequestId {
        self.append_with(superblock, at, pages, true, Hint::FLUSH).unwrap()
    }

    pub fn append_with(
        &mut self,
        superblock: &Superblock,
        at: u32,
        pages: u32,
        durable: bool,
        hint: Hint,
    ) -> Result<RequestId, FtlError> {
        let mut data = self.buffer(pages);
        pattern(&mut data, superblock, at);
        match self.ftl.append(self.now, superblock, data, durable, hint) {
            Ok((request, first_page)) => {
                assert_eq!(first_page, at, "pages are numbered from 0 in the order of appends");
                Ok(request)
            }
            Err((error, data)) => {
                assert_eq!(data.len(), pages as usize * 4096, "the data is returned");
                Err(error)
            }
        }
    }

    /// Allocates a superblock and fills it.
    pub fn fill(&mut self, unit: u16, number: u64) -> Superblock {
        let superblock = self.try_allocate(unit, number).unwrap();
        let pages = self.ftl.payload_pages();
        let request = self.append(&superblock, 0, pages);
        self.wait(request).result.unwrap();
        superblock
    }

    pub fn read(
        &mut self,
        superblock: &Superblock,
        first: u32,
        pages: u32,
    ) -> Result<IoBuf, FtlError> {
        let buffer = self.buffer(pages);
        let request = self
            .ftl
            .read(self.now, superblock, first, pages, buffer, Hint::FOREGROUND)
            .map_err(|(error, _)| error)?;
        let done = self.wait(request);
        let buffer = done.buffer.expect("the whole buffer is returned");
        assert_eq!(buffer.len(), pages as usize * 4096);
        done.result.map(|()| buffer)
    }

    /// Reads pages and compares them with the pattern.
    pub fn verify(&mut self, superblock: &Superblock, first: u32, pages: u32) {
        let mut expected = vec![0; pages as usize * 4096];
        pattern(&mut expected, superblock, first);
        let read = self.read(superblock, first, pages).unwrap();
        assert!(read[..] == expected[..], "pages {first}+{pages} of {superblock} differ");
    }
}
