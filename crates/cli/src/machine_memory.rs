//! The memory that this process may use: that of the machine, or of its control group.

use std::fs;
use std::path::Path;

/// The share of the memory that `serve` takes by default, as a divisor.
const DEFAULT_SHARE: u64 = 4;
const MIB: u64 = 1 << 20;

/// The memory of the machine, or the limit of the process' control group if that is less. `None`
/// where the kernel tells neither.
pub fn memory_bytes() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_in(&text));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limit = group_limit(&groups, Path::new("/sys/fs/cgroup"));
    machine.into_iter().chain(limit).min()
}

/// The default budget of a server where `memory_bytes` are available, in whole MiB.
pub fn default_budget(memory_bytes: u64) -> u64 {
    let share = memory_bytes / DEFAULT_SHARE / MIB * MIB;
    share.max(softflash_server::MIN_MEMORY_BYTES)
}

/// `MemTotal` of `/proc/meminfo`.
fn total_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// The least limit of the groups in `/proc/self/cgroup` and of those above them. In a container the
/// path may be that of the host, of which only the root is mounted.
fn group_limit(groups: &str, root: &Path) -> Option<u64> {
    let limits = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let (root, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            list if list.split(',').any(|name| name == "memory") => {
                (root.join("memory"), "memory.limit_in_bytes")
            }
            _ => return None,
        };
        let path = Path::new(path.trim_start_matches('/'));
        path.ancestors().filter_map(|group| limit_in(&root.join(group).join(file))).min()
    });
    limits.min()
}

/// The limit in a file; `max` is none.
fn limit_in(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_limit_of_a_group_and_those_above_it_counts() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("a/b/memory.max", "max\n");
        write("a/memory.max", "1073741824\n");
        write("memory/old/memory.limit_in_bytes", "536870912\n");
        assert_eq!(group_limit("0::/a/b\n", root.path()), Some(1 << 30));
        assert_eq!(group_limit("0::/\n", root.path()), None, "no limit");
        assert_eq!(group_limit("4:cpu:/\n3:memory:/old/inner\n", root.path()), Some(512 << 20));
        // In a container: the path is unknown here, the root has the limit.
        write("memory.max", "268435456\n");
        assert_eq!(group_limit("0::/system.slice/docker-1\n", root.path()), Some(256 << 20));
    }

    #[test]
    fn the_default_is_a_quarter_in_whole_mib_and_enough_to_start() {
        assert_eq!(
            total_in("MemTotal:       24683520 kB\nMemFree: 1 kB\n"),
            Some(24_683_520 << 10)
        );
        assert_eq!(default_budget(24_683_520 << 10), 6026 << 20);
        assert_eq!(default_budget(64 << 20), softflash_server::MIN_MEMORY_BYTES);
        assert!(memory_bytes().is_some_and(|bytes| bytes > 0));
    }
}
