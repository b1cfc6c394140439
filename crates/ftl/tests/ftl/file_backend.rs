//! Tests of the FTL over a real file.

use crate::support::{pattern, tag};
use softflash_base::{Time, UnitId, UnitSet};
use softflash_device::file::Use;
use softflash_device::{Device, FileDevice, FileFormat, OpenOptions, format_file};
use softflash_ftl::{Done, Ftl, FtlConfig, Hint, Inventory, RequestId, Superblock};

struct OnFile {
    ftl: Ftl,
    done: Vec<Done>,
    polls: u64,
}

fn mount(device: &FileDevice) -> (OnFile, Inventory) {
    let units = device.info().units;
    let mut mounting =
        Ftl::mount(device.open_queue_pair(&UnitSet::from(0..units)).unwrap(), FtlConfig::default());
    for now in 0..10_000_000 {
        if let Some(mounted) = mounting.poll(Time(now)) {
            let (ftl, inventory) = mounted.unwrap();
            return (OnFile { ftl, done: Vec::new(), polls: now }, inventory);
        }
    }
    panic!("the mount does not end");
}

impl OnFile {
    /// Every poll counts as a microsecond.
    fn now(&mut self) -> Time {
        self.polls += 1;
        Time(self.polls * 1000)
    }

    fn wait(&mut self, request: RequestId) -> Done {
        for _ in 0..10_000_000 {
            let now = self.now();
            self.ftl.poll(now, &mut self.done);
            if let Some(place) = self.done.iter().position(|done| done.request == request) {
                return self.done.swap_remove(place);
            }
        }
        panic!("{request:?} does not end");
    }

    fn fill(&mut self, unit: u16, number: u64, append_pages: u32, durable: bool) -> Superblock {
        let now = self.now();
        let superblock = self.ftl.allocate(now, UnitId(unit), tag(number), Hint::FLUSH).unwrap();
        let total = self.ftl.payload_pages();
        let (mut at, mut requests) = (0, Vec::new());
        while at < total {
            let pages = append_pages.min(total - at);
            let mut data = self.ftl.buffers().take(pages as usize * 4096);
            pattern(&mut data, &superblock, at);
            let now = self.now();
            let append = self.ftl.append(now, &superblock, data, durable, Hint::FLUSH);
            requests.push(append.unwrap().0);
            at += pages;
        }
        for request in requests {
            self.wait(request).result.unwrap();
        }
        superblock
    }

    fn verify(&mut self, superblock: &Superblock) {
        let total = self.ftl.payload_pages();
        let buffer = self.ftl.buffers().take(total as usize * 4096);
        let now = self.now();
        let request = self.ftl.read(now, superblock, 0, total, buffer, Hint::FOREGROUND).unwrap();
        let done = self.wait(request);
        done.result.unwrap();
        let mut expected = vec![0; total as usize * 4096];
        pattern(&mut expected, superblock, 0);
        assert!(done.buffer.unwrap()[..] == expected[..], "{superblock} differs");
    }
}

fn device(folder: &tempfile::TempDir, io_uring: Use) -> FileDevice {
    let path = folder.path().join("flash");
    if !path.exists() {
        let mut format = FileFormat::new(40 << 20, 9);
        (format.units, format.superblock_bytes) = (2, 2 << 20);
        format_file(&path, &format).unwrap();
    }
    FileDevice::open(&path, OpenOptions { io_uring, ..OpenOptions::default() }).unwrap()
}

#[test]
fn superblocks_survive_closing_the_device() {
    for io_uring in [Use::Auto, Use::Off] {
        let folder = tempfile::tempdir().unwrap();
        let mut expected = Vec::new();
        for (number, append_pages) in [(0, 1), (1, 16), (2, 512)] {
            let device = device(&folder, io_uring);
            let (mut on_file, inventory) = mount(&device);
            assert_eq!(inventory.damaged, []);
            let mut found: Vec<Superblock> =
                inventory.superblocks.iter().map(|found| found.superblock).collect();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected);
            for superblock in &expected {
                on_file.verify(superblock);
            }
            for unit in [0, 1] {
                expected.push(on_file.fill(unit, number, append_pages, number == 1));
            }
            on_file.ftl.check();
        }
    }
}

#[test]
fn released_space_is_reused_many_times() {
    let folder = tempfile::tempdir().unwrap();
    let device = device(&folder, Use::Auto);
    let (mut on_file, _) = mount(&device);
    let kept = on_file.fill(0, 0, 100, false);
    let superblocks = on_file.ftl.space(UnitId(0)).total();
    for number in 1..=u64::from(superblocks) * 3 {
        let superblock = on_file.fill(0, number, 300, false);
        on_file.verify(&superblock);
        let now = on_file.now();
        assert!(on_file.ftl.release(now, &superblock));
    }
    on_file.verify(&kept);
    let unit = on_file.ftl.telemetry(UnitId(0));
    assert!(unit.erase_count_max >= 3 && unit.erase_count_max <= 6, "{unit:?}");
    on_file.ftl.check();
}
