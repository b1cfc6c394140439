//! What the machine must have: FUSE, loop devices, the file systems, root and the programs.

use crate::Outcome;
use crate::filesystem::Filesystem;
use crate::run::{run, works};
use crate::tool::limited;
use crate::work::{Kind, postgres_programs};
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Programs, and the Debian packages that contain them.
const PROGRAMS: [(&str, &str); 15] = [
    ("nbdfuse", "libnbd-bin"),
    ("losetup", "mount"),
    ("mount", "mount"),
    ("fsfreeze", "util-linux"),
    ("mkfs.ext4", "e2fsprogs"),
    ("e2fsck", "e2fsprogs"),
    ("debugfs", "e2fsprogs"),
    ("dumpe2fs", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("xfs_repair", "xfsprogs"),
    ("xfs_io", "xfsprogs"),
    ("cc", "gcc"),
    ("tar", "tar"),
    ("sqlite3", "sqlite3"),
    ("kill", "procps"),
];

/// Why something cannot run here.
pub enum Lack {
    /// The kernel has no such feature.
    Kernel(String),
    /// The user or the installed programs, which can be changed.
    Setup(String),
}

impl Lack {
    pub fn reason(&self) -> &str {
        match self {
            Lack::Kernel(reason) | Lack::Setup(reason) => reason,
        }
    }
}

/// Prepares the machine: as root on Debian, installs what is missing.
pub fn prepare(works: &[Kind]) -> Result<(), Lack> {
    for (node, feature) in [("/dev/fuse", "FUSE"), ("/dev/loop-control", "loop devices")] {
        if !Path::new(node).exists() {
            return Err(Lack::Kernel(format!("the kernel has no {feature} ({node} is missing)")));
        }
    }
    if !rustix::process::geteuid().is_root() {
        return Err(Lack::Setup("only root can mount: run it with sudo".to_owned()));
    }
    let packages = missing_packages(works);
    if !packages.is_empty() {
        install(&packages).map_err(Lack::Setup)?;
    }
    match missing_packages(works).as_slice() {
        [] => Ok(()),
        missing => Err(Lack::Setup(format!("install the packages {}", missing.join(", ")))),
    }
}

/// Installs Debian packages.
fn install(packages: &[&str]) -> Outcome {
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        run(command.env("DEBIAN_FRONTEND", "noninteractive").arg("-q").args(arguments))
    };
    apt(&["update"])?;
    apt(&[&["install", "-y", "--no-install-recommends"], packages].concat())
}

fn missing_packages(works: &[Kind]) -> Vec<&'static str> {
    let missing = PROGRAMS.iter().filter(|(program, _)| !on_path(program));
    let mut packages: Vec<&str> = missing.map(|(_, package)| *package).collect();
    if works.contains(&Kind::Postgres) && postgres_programs().is_none() {
        packages.push("postgresql");
    }
    packages.sort_unstable();
    packages.dedup();
    packages
}

fn on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).exists())
}

/// Whether the kernel has a file system, also as a module.
pub fn knows(filesystem: Filesystem) -> Outcome<bool> {
    let registered = || -> Outcome<bool> {
        let all = fs::read_to_string("/proc/filesystems");
        let all = all.map_err(|error| format!("/proc/filesystems: {error}"))?;
        Ok(all.split_whitespace().any(|word| word == filesystem.name()))
    };
    Ok(registered()? || (works(limited(20, "modprobe").arg(filesystem.name())) && registered()?))
}
