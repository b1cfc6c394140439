//! The size of a device's file, and devices that are cut short.

use crate::access::Access;
use crate::queue_pair::OpenError;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::Path;

/// Begins the remark about a device that is shorter than its label says.
pub const CUT_SHORT: &str = "cut short";

/// The remark about such a device.
pub(crate) fn cut_short(found: u64, expected: u64) -> String {
    format!("{CUT_SHORT}: its label says {expected} bytes, and it has {found}")
}

/// The size of a file or block device in bytes.
pub(crate) fn size_of(mut file: &File) -> io::Result<u64> {
    file.seek(SeekFrom::End(0))
}

/// Cuts a file that is longer than `bytes` to this size; a block device stays as it is.
pub(crate) fn cut_to(file: &File, bytes: u64) -> io::Result<()> {
    if !file.metadata()?.is_file() || size_of(file)? <= bytes {
        return Ok(());
    }
    file.set_len(bytes)?;
    file.sync_all()
}

/// Refuses a device that is cut short, unless it is only read: then returns a remark about it.
pub(crate) fn check_size(
    file: &File,
    path: &Path,
    expected: u64,
    access: Access,
) -> Result<Option<String>, OpenError> {
    let path = path.to_owned();
    match size_of(file) {
        Ok(found) if found >= expected => Ok(None),
        Ok(found) if access == Access::Write => Err(OpenError::CutShort { path, found, expected }),
        Ok(found) => Ok(Some(cut_short(found, expected))),
        Err(source) => Err(OpenError::Io { path, source }),
    }
}
