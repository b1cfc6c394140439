//! What the kernel tells of this process and of the machine.

use std::fs;

/// The names of the shards' threads begin with this.
pub(crate) const SHARD_THREAD: &str = "shard-";

/// The unit of processor times in `/proc`, which is the same on all architectures of Linux that
/// this server runs on.
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
    processor_in(&fs::read_to_string("/proc/self/stat").ok()?)
}

/// The processor time of the threads of shards, which run the commands.
pub(crate) fn processor_of_shards() -> Option<Processor> {
    let mut sum = Processor::default();
    for thread in fs::read_dir("/proc/self/task").ok()? {
        // A thread may end meanwhile.
        let Ok(stat) = fs::read_to_string(thread.ok()?.path().join("stat")) else { continue };
        if is_of_shard(&stat) {
            let Processor { user, system, .. } = processor_in(&stat)?;
            sum.user += user;
            sum.system += system;
        }
    }
    Some(sum)
}

fn is_of_shard(stat: &str) -> bool {
    stat.split_once('(').is_some_and(|(_, name)| name.starts_with(SHARD_THREAD))
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
    use std::sync::mpsc::TryRecvError;

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
        assert!(is_of_shard("7 (shard-12) S 1") && !is_of_shard("7 (softflash) S 1"));
    }

    #[test]
    fn the_threads_of_shards_are_told_from_the_others() {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let name = format!("{SHARD_THREAD}7");
        let busy = std::thread::Builder::new().name(name).spawn(move || {
            while stopped.try_recv().is_err_and(|error| error == TryRecvError::Empty) {}
        });
        // The kernel counts in steps of 10 ms.
        let used = || processor_of_shards().map_or(0.0, |time| time.user + time.system);
        while used() == 0.0 {}
        drop(stop);
        busy.unwrap().join().unwrap();
    }

    #[test]
    fn this_process_has_memory_and_used_the_processor() {
        let memory = memory().unwrap();
        assert!(memory.resident_bytes > 1 << 20 && memory.peak_bytes >= memory.resident_bytes);
        assert!(machine_bytes().unwrap() > memory.resident_bytes);
        assert!(processor().is_some() && processor_of_shards().is_some());
    }
}
