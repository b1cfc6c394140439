//! Raw speed of a file device: 8 MiB sequential programs twice, then 8 KiB random reads at depth
//! 64. `cargo run --profile dist -p softflash-device --example device_speed -- /path/of/a/new/file`
use rustix::event::{PollFd, PollFlags, poll};
use softflash_base::UnitSet;
use softflash_device::*;
use std::{error::Error, os::fd::BorrowedFd, path::Path, time::Instant};

#[expect(unsafe_code, reason = "the queue pair keeps its descriptor open")]
#[expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a measurement")]
fn main() -> Result<(), Box<dyn Error>> {
    let (path, now) = (std::env::args().nth(1).ok_or("give a path")?, Default::default());
    format_file(Path::new(&path), &FileFormat { units: 1, ..FileFormat::new(4 << 30, 1) })?;
    let mut queue = open(Path::new(&path))?.open_queue_pair(&UnitSet::from(0..1))?;
    let (blocks, mut done) = (queue.geometry().blocks_per_plane, Vec::new());
    for (rows, depth, count) in [(2048, 4, blocks), (2048, 4, blocks), (2, 64, 300_000)] {
        let (start, bytes, mut started) = (Instant::now(), rows as usize * 4096, 0);
        let mut spare: Vec<_> = (0..depth).map(|_| queue.buffers().take(bytes)).collect();
        while started < count || spare.len() < depth {
            while let Some(data) = spare.pop_if(|_| started < count) {
                let (random, page) = (started.wrapping_mul(0x9e37_79b9), started % 1024 * 2);
                let (operation, block, page) = match rows {
                    2 => (Operation::Read(data), random % blocks, page),
                    _ => (Operation::Program { data, durable: false }, started, 0),
                };
                let (unit, blocks) = (Default::default(), [block; 4]);
                let target = Target { unit, die: 0, plane: 0, planes: 1, blocks, page, rows };
                let _ = queue.submit(
                    now,
                    Command { tag: Tag(0), target, operation, hint: Hint::FOREGROUND },
                );
                started += 1;
            }
            queue.poll(now, &mut done);
            spare.extend(done.drain(..).filter_map(|ended| ended.result.ok().and(ended.buffer)));
            if let Wake::Readable(fd) = queue.wake() {
                let fd = unsafe { BorrowedFd::borrow_raw(fd) };
                poll(&mut [PollFd::new(&fd, PollFlags::IN)], None)?;
            }
        }
        let per_s = f64::from(count) / start.elapsed().as_secs_f64();
        println!("{} KiB: {per_s:.0}/s, {:.0} MiB/s", rows * 4, per_s * f64::from(rows) / 256.0);
    }
    Ok(())
}
