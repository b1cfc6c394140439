use super::*;
use softflash_base::{UnitId, UnitSet};
use softflash_device::{Command, Completion, DeviceError, Hint, Operation, Submit, Tag, Target};
use softflash_nand::faults::{FaultPlace, FaultTime, Strike};

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

/// Runs one command to completion.
fn run(queue: &mut dyn QueuePair, block: u32, operation: Operation) -> Completion {
    let mut blocks = [0; softflash_device::geometry::MAX_PLANES];
    blocks[0] = block;
    let target = Target { unit: UnitId(0), die: 0, plane: 0, planes: 1, blocks, page: 3, rows: 1 };
    let submitted =
        queue.submit(Time(0), Command { tag: Tag(1), target, operation, hint: Hint::FOREGROUND });
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

/// The contents of a page after cuts with many seeds.
fn found(written: impl Fn(&mut dyn QueuePair)) -> std::collections::BTreeSet<u8> {
    let after = |seed| {
        let drive = drive(true);
        let mut queue = drive.open_queue_pair(&UnitSet::from(0..1)).unwrap();
        written(&mut *queue);
        drop(queue);
        drive.power_cut(seed);
        read(&mut *drive.open_queue_pair(&UnitSet::from(0..1)).unwrap(), 2)
    };
    (0..100).map(after).collect()
}

#[test]
fn unflushed_writes_may_be_lost_and_flushed_ones_not() {
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
        let mut queue = drive.open_queue_pair(&UnitSet::from(0..1)).unwrap();
        write(&mut *queue, 2, 7, true);
        drop(run(&mut *queue, 2, Operation::Erase));
        assert_eq!(read(&mut *queue, 2), left);
    }
}

fn planned(when: FaultTime, what: Strike) -> PlannedFault {
    PlannedFault { place: FaultPlace::Die(0), when, what }
}

#[test]
fn planned_faults_make_commands_fail_or_do_something_else() {
    let drive = drive(true);
    drive.plan(&[
        planned(FaultTime::Program(2), Strike::Phantom),
        planned(FaultTime::Program(3), Strike::Misdirect),
        planned(FaultTime::Read(4), Strike::Miscorrect),
        planned(FaultTime::Read(5), Strike::Fail),
        planned(FaultTime::AtNs(1 << 40), Strike::Death),
    ]);
    let mut queue = drive.open_queue_pair(&UnitSet::from(0..1)).unwrap();
    let queue = &mut *queue;
    [7, 8, 9].into_iter().for_each(|fill| write(queue, 1, fill, true));
    assert_eq!(read(queue, 1), 7, "the second and third are not there");
    assert_eq!(read(queue, 2), 9, "it went to the next block");
    let first_of = |queue: &mut dyn QueuePair, block| {
        let buffer = queue.buffers().take(PAGE);
        run(queue, block, Operation::Read(buffer)).buffer.unwrap()[0]
    };
    assert_eq!((first_of(queue, 1), first_of(queue, 1)), (7, 6));
    let buffer = queue.buffers().take(PAGE);
    let failed = run(queue, 1, Operation::Read(buffer)).result;
    assert!(matches!(failed, Err(DeviceError::Io { .. })), "{failed:?}");
    assert_eq!(read(queue, 1), 7, "once");
}

#[test]
fn a_dead_unit_fails_all_commands_until_the_next_plan() {
    let drive = drive(true);
    drive.plan(&[planned(FaultTime::AtNs(0), Strike::Death)]);
    let mut queue = drive.open_queue_pair(&UnitSet::from(0..1)).unwrap();
    let data = queue.buffers().take(PAGE);
    let failed = run(&mut *queue, 2, Operation::Program { data, durable: true }).result;
    assert!(matches!(failed, Err(DeviceError::Io { .. })), "{failed:?}");
    assert_eq!(run(&mut *queue, 2, Operation::Flush).result, Ok(()));
    drive.plan(&[]);
    assert_eq!(read(&mut *queue, 2), 0, "nothing was written");
}

#[test]
fn a_unit_is_restored_from_an_image() {
    let drive = drive(true);
    let mut queue = drive.open_queue_pair(&UnitSet::from(0..1)).unwrap();
    write(&mut *queue, 1, 7, true);
    let image = drive.image(0);
    write(&mut *queue, 1, 8, true);
    write(&mut *queue, 2, 8, true);
    drive.restore(&image);
    assert_eq!((read(&mut *queue, 1), read(&mut *queue, 2)), (7, 0));
}
