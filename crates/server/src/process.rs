//! What the kernel tells of this process and of the machine.

use std::fs;
use std::path::Path;

/// The unit of processor times in `/proc`, which is the same on all architectures of Linux that this
/// server runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// Memory of the process.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// Resident now.
    pub resident_bytes: u64,
    /// The most that was resident at a time.
    pub peak_bytes: u64,
}

/// The process' memory, if the kernel tells it.
pub(crate) fn memory() -> Option<Memory> {
    memory_in(&fs::read_to_string("/proc/self/status").ok()?)
}

fn memory_in(status: &str) -> Option<Memory> {
    let resident_bytes = kib(status, "VmRSS:")?;
    // The kernel updates the peak later than the present.
    let peak_bytes = kib(status, "VmHWM:")?.max(resident_bytes);
    Some(Memory { resident_bytes, peak_bytes })
}

/// The memory of the machine.
pub(crate) fn machine_bytes() -> Option<u64> {
    kib(&fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:")
}

/// A field in KiB, as bytes.
fn kib(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Processor time in seconds.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Processor {
    pub user: f64,
    pub system: f64,
    /// Of children that have ended.
    pub user_of_children: f64,
    pub system_of_children: f64,
}

/// The processor time of all threads.
pub(crate) fn processor() -> Option<Processor> {
    processor_at(Path::new("/proc/self/stat"))
}

/// The processor time of the main thread.
pub(crate) fn processor_of_main_thread() -> Option<Processor> {
    processor_at(Path::new(&format!("/proc/self/task/{}/stat", std::process::id())))
}

fn processor_at(path: &Path) -> Option<Processor> {
    processor_in(&fs::read_to_string(path).ok()?)
}

fn processor_in(stat: &str) -> Option<Processor> {
    // The name before may have spaces and parentheses. The fields behind it begin with the third.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let mut seconds = || Some(fields.next()?.parse::<u64>().ok()? as f64 / TICKS_PER_SECOND);
    Some(Processor {
        user: seconds()?,
        system: seconds()?,
        user_of_children: seconds()?,
        system_of_children: seconds()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_the_kernel_are_read() {
        let status = "Name:\tx\nVmHWM:\t    1000 kB\nVmRSS:\t    2000 kB\n";
        let memory = Memory { resident_bytes: 2000 << 10, peak_bytes: 2000 << 10 };
        assert_eq!(memory_in(status), Some(memory));
        assert_eq!(memory_in("Name:\tx\n"), None);
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 9 0 0 0 250 100 3 4 20 0 5 0 1 2 3";
        let times =
            Processor { user: 2.5, system: 1.0, user_of_children: 0.03, system_of_children: 0.04 };
        assert_eq!(processor_in(stat), Some(times));
        assert_eq!(processor_in("7 (x) S 1"), None);
    }

    #[test]
    fn this_process_has_memory_and_used_the_processor() {
        let memory = memory().unwrap();
        assert!(memory.resident_bytes > 1 << 20 && memory.peak_bytes >= memory.resident_bytes);
        assert!(machine_bytes().unwrap() > memory.resident_bytes);
        assert!(processor().is_some() && processor_of_main_thread().is_some());
    }
}
