use super::*;
use softflash_base::UnitId;
use softflash_device::{Command, Completion, Operation, Submit, Tag, Target};

const PAGE: usize = 4096;

fn drive(discards: bool) -> Drive {
    let geometry = UnitGeometry {
        dies: 1,
        planes: 1,
        blocks_per_plane: 4,
        pages_per_block: 8,
        page_bytes: PAGE as u32,
        die_queue_depth: 32,
    };
    Drive::new(1, geometry, discards, 1)
}

/// Runs one command to its end.
fn run(queue: &mut dyn QueuePair, block: u32, operation: Operation) -> Completion {
    let mut blocks = [0; softflash_device::geometry::MAX_PLANES];
    blocks[0] = block;
    let target = Target { unit: UnitId(0), die: 0, plane: 0, planes: 1, blocks, page: 3, rows: 1 };
    let submitted = queue.submit(Time(0), Command { tag: Tag(1), target, operation });
    assert!(matches!(submitted, Submit::Accepted));
    let mut completions = Vec::new();
    queue.poll(Time(u64::MAX), &mut completions);
    completions.pop().unwrap()
}

fn write(queue: &mut dyn QueuePair, block: u32, fill: u8, durable: bool) {
    let mut data = queue.buffers().take(PAGE);
    data.fill(fill);
    assert_eq!(run(queue, block, Operation::Program { data, durable }).result, Ok(()));
}

fn read(queue: &mut dyn QueuePair, block: u32) -> u8 {
    let buffer = queue.buffers().take(PAGE);
    run(queue, block, Operation::Read(buffer)).buffer.unwrap()[17]
}

/// What a page is found to hold after cuts with many seeds.
fn found(written: impl Fn(&mut dyn QueuePair)) -> std::collections::BTreeSet<u8> {
    let after = |seed| {
        let drive = drive(true);
        let mut queue = drive.open_queue_pair(0..1).unwrap();
        written(&mut *queue);
        drop(queue);
        drive.power_cut(seed);
        read(&mut *drive.open_queue_pair(0..1).unwrap(), 2)
    };
    (0..100).map(after).collect()
}

#[test]
fn what_was_not_flushed_may_be_lost_and_what_was_is_not() {
    let flush = |queue: &mut dyn QueuePair| drop(run(queue, 0, Operation::Flush));
    assert_eq!(found(|queue| write(queue, 2, 7, false)), [0, 7].into());
    assert_eq!(found(|queue| write(queue, 2, 7, true)), [7].into());
    let flushed_first = |queue: &mut dyn QueuePair| {
        write(queue, 2, 7, false);
        flush(queue);
        write(queue, 2, 8, false);
        drop(run(queue, 2, Operation::Erase));
    };
    assert_eq!(found(flushed_first), [0, 7, 8].into());
}

#[test]
fn an_erase_makes_zeros_or_nothing() {
    for (discards, left) in [(true, 0), (false, 7)] {
        let drive = drive(discards);
        let mut queue = drive.open_queue_pair(0..1).unwrap();
        write(&mut *queue, 2, 7, true);
        drop(run(&mut *queue, 2, Operation::Erase));
        assert_eq!(read(&mut *queue, 2), left);
    }
}
