//! A volume as a block device of the kernel: `nbdfuse` makes it a file, a loop device a block
//! device, and a file system is mounted on that.

use crate::Outcome;
use crate::filesystem::Filesystem;
use crate::interrupt;
use crate::run::{output, works};
use crate::tool::{end, limited, log_to, spawn};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const START: Duration = Duration::from_secs(20);

/// Time for processes that were killed to leave a file system.
const BUSY: Duration = Duration::from_secs(10);

/// An attached volume; dropped, it is detached by force.
pub struct Attached {
    file_system: PathBuf,
    nbdfuse: Child,
    device: Option<String>,
    mounted: Option<PathBuf>,
}

impl Attached {
    /// Attaches an export; `place` is a new directory for the mount points and the output.
    pub fn attach(uri: &str, place: &Path, read_only: bool) -> Outcome<Attached> {
        let (point, log) = (place.join("nbdfuse"), place.join("nbdfuse.log"));
        fs::create_dir_all(&point).map_err(|error| format!("{}: {error}", point.display()))?;
        let mut command = Command::new("nbdfuse");
        command.args(read_only.then_some("-r")).arg(&point).arg(uri).stdin(Stdio::null());
        log_to(&mut command, &log)?;
        let nbdfuse = spawn(&mut command)?;
        let file = point.join("nbd");
        let mut attached = Attached { file_system: point, nbdfuse, device: None, mounted: None };
        if !interrupt::wait(START, || file.exists())? {
            return Err(format!("nbdfuse does not start; {} has its output", log.display()));
        }
        let mut losetup = limited(20, "losetup");
        losetup.args(read_only.then_some("--read-only")).args(["--find", "--show"]);
        attached.device = Some(output(losetup.arg(&file))?.trim().to_owned());
        Ok(attached)
    }

    /// The block device.
    pub fn device(&self) -> &str {
        self.device.as_deref().unwrap_or_default()
    }

    /// Mounts the file system on the device.
    pub fn mount(&mut self, kind: Filesystem, at: &Path, options: &str) -> Outcome {
        fs::create_dir_all(at).map_err(|error| format!("{}: {error}", at.display()))?;
        let mut mount = limited(120, "mount");
        mount.args(["-t", kind.name(), "-o", options, self.device()]).arg(at);
        output(&mut mount)?;
        self.mounted = Some(at.to_owned());
        Ok(())
    }

    /// Unmounts the file system.
    pub fn unmount(&mut self) -> Outcome {
        let Some(at) = self.mounted.take() else { return Ok(()) };
        output(limited(60, "umount").arg(&at)).map(drop).inspect_err(|_| {
            self.mounted = Some(at);
        })
    }

    /// Detaches a volume in order.
    pub fn detach(mut self) -> Outcome {
        self.unmount()?;
        output(limited(20, "losetup").args(["--detach", self.device()]))?;
        self.device = None;
        Ok(())
    }

    /// Detaches it also if its server has gone, or processes still use it.
    fn force(&mut self) {
        let unmount = |at: &Path| {
            // Not `interrupt::wait`, which ends at once after Ctrl-C.
            for _ in 0..BUSY.as_secs() {
                if works(limited(20, "umount").arg(at)) {
                    return;
                }
                std::thread::sleep(Duration::from_secs(1));
            }
            eprintln!("{} is in use; it is unmounted lazily", at.display());
            works(limited(20, "umount").arg("--lazy").arg(at));
        };
        if let Some(at) = self.mounted.take() {
            unmount(&at);
        }
        if let Some(device) = self.device.take() {
            works(limited(20, "losetup").args(["--detach", &device]));
        }
        unmount(&self.file_system);
        end(&mut self.nbdfuse);
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.force();
    }
}
