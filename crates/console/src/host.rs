//! Information from the machine: time, processor time, space, randomness.

#![expect(clippy::disallowed_methods, reason = "the command line is a source of time")]

use crate::error::CliError;
use rustix::time::{ClockId, clock_gettime};
use softflash_base::checksum::hash64;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Monotonic time, for measuring durations.
pub fn now() -> Instant {
    Instant::now()
}

/// Milliseconds since the Unix epoch.
pub fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Processor time of all threads of the process.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs().try_into().unwrap_or(0))
}

/// The most memory that the process has had resident at a time, in bytes; 0 if the kernel does not
/// say.
pub fn peak_memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// Identifies this build of the program.
pub fn program_identity() -> Result<u64, CliError> {
    let path = "/proc/self/exe";
    let bytes = std::fs::read(path).map_err(CliError::file(path))?;
    Ok(hash64(&bytes))
}

/// Number of cores available to the process.
pub fn cores() -> u16 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u16::try_from(cores).unwrap_or(u16::MAX)
}

/// 16 random bytes of the kernel, for a unique identity.
pub fn random_identity() -> Result<u128, CliError> {
    let path = "/dev/urandom";
    let mut bytes = [0; 16];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(CliError::file(path))?;
    Ok(u128::from_le_bytes(bytes))
}

/// Free bytes in the file system of `path`, or of the nearest existing directory above it.
pub fn free_bytes(path: &Path) -> Result<u64, CliError> {
    let absolute = std::path::absolute(path).map_err(CliError::file(path))?;
    let existing = absolute.ancestors().find(|ancestor| ancestor.exists());
    let existing = existing.unwrap_or(Path::new("/"));
    let stat = rustix::fs::statvfs(existing)
        .map_err(|errno| CliError::File { path: existing.to_owned(), source: errno.into() })?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}
