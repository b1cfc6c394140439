//! Requests of any shape, for tests of whole drives.

use softflash_base::random::Rng;
use softflash_drive::{AccessKind, Done, Drive, HostRequest};

/// Runs reads, trims and writes of three classes, of any length at any offset, in a closed loop;
/// returns the completions.
pub fn run(drive: &mut Drive, requests: usize, depth: usize, seed: u64) -> Vec<Done> {
    let mut rng = Rng::seeded(seed);
    let capacity = drive.capacity_bytes();
    let (mut submitted, mut done) = (0, Vec::new());
    while done.len() < requests {
        while submitted < requests && submitted - done.len() < depth {
            let kind = match rng.below(10) {
                0..=3 => AccessKind::Read,
                4 => AccessKind::Trim,
                _ => AccessKind::Write,
            };
            let bytes = 512 * (1 + rng.below(64));
            let offset_bytes = rng.below((capacity - bytes) / 512) * 512;
            let request = HostRequest::new(submitted as u64, kind, offset_bytes, bytes);
            let hint = submitted as u32 % 3;
            drive.submit(drive.now(), HostRequest { hint, ..request }).unwrap();
            submitted += 1;
        }
        assert!(drive.step(&mut done), "{} of {submitted} requests ended", done.len());
    }
    done
}
