//! The file system that the server has its data on, which can crash: an xfs of its own, in a file.
//!
//! The kernel shuts it down without writing its log (`XFS_IOC_GOINGDOWN`). What the server has
//! written to places of its preallocated file for the first time, and not flushed, reads as zeros
//! afterwards.

use crate::Outcome;
use crate::filesystem::Filesystem;
use crate::interrupt;
use crate::run::{output, works};
use crate::tool::limited;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Size of the file, which is sparse.
const BYTES: u64 = 6 << 30;

/// Time for the killed server to leave the file system.
const BUSY: Duration = Duration::from_secs(10);

/// A mounted file system; dropped, it is unmounted.
pub struct Host {
    image: PathBuf,
    at: PathBuf,
}

impl Host {
    /// Makes and mounts it in a directory.
    pub fn new(place: &Path) -> Outcome<Host> {
        let host = Host { image: place.join("host.xfs"), at: place.join("host") };
        fs::create_dir(&host.at).map_err(|error| format!("{}: {error}", host.at.display()))?;
        File::create(&host.image)
            .and_then(|file| file.set_len(BYTES))
            .map_err(|error| format!("{}: {error}", host.image.display()))?;
        Filesystem::Xfs.make(&host.image.display().to_string())?;
        host.mount()?;
        Ok(host)
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.at
    }

    /// Crashes; nothing more is written.
    pub fn crash(&self) -> Outcome {
        output(limited(30, "xfs_io").args(["-x", "-c", "shutdown"]).arg(&self.at)).map(drop)
    }

    /// After a crash and the end of the server: mounts it again.
    pub fn recover(&self) -> Outcome {
        match interrupt::wait(BUSY, || works(limited(20, "umount").arg(&self.at)))? {
            true => self.mount(),
            false => Err(format!("{} is in use", self.at.display())),
        }
    }

    fn mount(&self) -> Outcome {
        let mut mount = limited(60, "mount");
        mount.args(["-t", "xfs", "-o", "loop,noatime"]).arg(&self.image).arg(&self.at);
        output(&mut mount).map(drop)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if !works(limited(20, "umount").arg(&self.at)) {
            works(limited(20, "umount").arg("--lazy").arg(&self.at));
        }
    }
}
