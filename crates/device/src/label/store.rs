//! Both label copies in their file: read, repaired and rewritten, with at least one intact at any
//! time. A copy is repaired only once its owner says so: a device that is refused, for whatever
//! reason, stays as it is.

use super::codec::{Fault, decode, encode};
use super::locked_file::{LockedFile, busy_or_io};
use super::{BadBlock, COPY_BYTES, COPY_OFFSETS, FORMAT_VERSION, Label};
use crate::access::Access;
use crate::queue_pair::OpenError;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The label of an open device and its locked file.
#[derive(Debug)]
pub(crate) struct LabelStore {
    path: PathBuf,
    file: Arc<LockedFile>,
    label: Label,
    /// The copy to rewrite first: the one that may be damaged, if any is.
    first: usize,
    /// Why that copy is worse than the other, until it is rewritten.
    worse: Option<String>,
    /// Whether changes are written.
    is_written: bool,
    /// The sequence number of a change that failed, and that one of the copies may have.
    failed: Option<u64>,
    /// The copy whose writes fail.
    #[cfg(test)]
    pub(super) failing: Arc<std::sync::Mutex<Option<usize>>>,
}

/// A label read from its file.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) label: Label,
    /// The copy that is damaged or older than the other, and why.
    pub(crate) worse: Option<(usize, String)>,
}

/// Opens a device file, takes its lock for this process, and reads its label. Writes nothing.
/// Returns a note about a damaged copy, which [`LabelStore::mend`] repairs.
pub(crate) fn open_label(
    path: &Path,
    access: Access,
) -> Result<(LabelStore, Option<String>), OpenError> {
    let is_written = access == Access::Write;
    let file = Arc::new(open_locked(path, is_written)?);
    let Loaded { label, worse } = read_label(&file, path)?;
    let note =
        worse.as_ref().map(|(copy, reason)| format!("label copy {}: {reason}", NAMES[*copy]));
    let (first, worse) = match worse {
        Some((copy, reason)) => (copy, Some(reason)),
        None => (0, None),
    };
    let mut store = LabelStore::new(path, file, label, is_written);
    (store.first, store.worse) = (first, worse);
    Ok((store, note))
}

/// The names of the copies in messages.
const NAMES: [char; 2] = ['A', 'B'];

/// Opens a device for reading and writing and locks it.
pub(crate) fn open_exclusive(path: &Path) -> Result<LockedFile, OpenError> {
    open_locked(path, true)
}

fn open_locked(path: &Path, to_write: bool) -> Result<LockedFile, OpenError> {
    let is_block_device = match std::fs::metadata(path) {
        Ok(metadata) => metadata.file_type().is_block_device(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(OpenError::Missing { path: path.to_owned() });
        }
        Err(source) => return Err(OpenError::Io { path: path.to_owned(), source }),
    };
    // On a block device O_EXCL also keeps out file systems and other kernel users.
    let exclusive = if is_block_device { libc::O_EXCL } else { 0 };
    let opened = OpenOptions::new().read(true).write(to_write).custom_flags(exclusive).open(path);
    let file = opened.map_err(|source| busy_or_io(path, source))?;
    LockedFile::lock(file, path)
}

/// Reads the newer of the good copies; takes no lock and repairs nothing.
pub(crate) fn read_label(file: &File, path: &Path) -> Result<Loaded, OpenError> {
    let read = |copy: usize| -> Result<Result<Label, Fault>, OpenError> {
        let mut bytes = vec![0; COPY_BYTES];
        let len = read_up_to(file, &mut bytes, COPY_OFFSETS[copy])
            .map_err(|source| OpenError::Io { path: path.to_owned(), source })?;
        Ok(decode(&bytes[..len]))
    };
    let path = path.to_owned();
    match (read(0)?, read(1)?) {
        (Err(Fault::Newer(found)), _) | (_, Err(Fault::Newer(found))) => {
            Err(OpenError::NewerVersion { path, found, supported: FORMAT_VERSION })
        }
        (Ok(a), Ok(b)) if a == b => Ok(Loaded { label: a, worse: None }),
        // One of them was written over, and nothing here tells which.
        (Ok(a), Ok(b)) if a.configuration.uuid != b.configuration.uuid => {
            let [a, b] = [a, b].map(|label| format!("{:032x}", label.configuration.uuid));
            let reason = format!("copy A names device {a}, and copy B device {b}");
            Err(OpenError::DamagedLabel { path, reason })
        }
        (Ok(a), Ok(b)) => {
            let reason = "older than the other".to_owned();
            let (label, copy) = if a.sequence >= b.sequence { (a, 1) } else { (b, 0) };
            Ok(Loaded { label, worse: Some((copy, reason)) })
        }
        (Ok(label), Err(fault)) => Ok(Loaded { label, worse: Some((1, reason(fault))) }),
        (Err(fault), Ok(label)) => Ok(Loaded { label, worse: Some((0, reason(fault))) }),
        (Err(Fault::NoMagic), Err(Fault::NoMagic)) => {
            Err(OpenError::NotADevice { path, reason: "it has no device label".to_owned() })
        }
        (Err(a), Err(b)) => {
            let reason = format!("copy A: {}; copy B: {}", reason(a), reason(b));
            Err(OpenError::DamagedLabel { path, reason })
        }
    }
}

fn reason(fault: Fault) -> String {
    match fault {
        Fault::NoMagic => "no label there".to_owned(),
        Fault::Newer(version) => format!("format version {version}"),
        Fault::Damaged(reason) => reason,
    }
}

/// Reads from `offset` into `bytes`, up to the end of the file; returns the number of bytes read.
fn read_up_to(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

impl LabelStore {
    fn new(path: &Path, file: Arc<LockedFile>, label: Label, is_written: bool) -> LabelStore {
        LabelStore {
            path: path.to_owned(),
            file,
            label,
            first: 0,
            worse: None,
            is_written,
            failed: None,
            #[cfg(test)]
            failing: Arc::default(),
        }
    }

    /// Writes the first label of a new device, both copies durably.
    pub(crate) fn create(
        path: &Path,
        file: Arc<LockedFile>,
        label: Label,
    ) -> io::Result<LabelStore> {
        let mut store = LabelStore::new(path, file, label, true);
        store.write_both(&encode(&store.label)?)?;
        Ok(store)
    }

    /// A store over a handle that the test chooses.
    #[cfg(test)]
    pub(super) fn for_test(path: &Path, file: Arc<LockedFile>) -> LabelStore {
        LabelStore::new(path, file, Label::new(super::tests::configuration()), true)
    }

    /// The current label.
    pub(crate) fn label(&self) -> &Label {
        &self.label
    }

    /// The file, opened for buffered reading and writing.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// The path of the device.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds blocks to the bad-block table, durably. After an error the table in memory is
    /// unchanged; the table on the device may or may not have the blocks.
    pub(crate) fn mark_bad(&mut self, blocks: &[BadBlock]) -> io::Result<()> {
        let mut next = self.label.clone();
        next.bad_blocks.extend(blocks);
        if next.bad_blocks == self.label.bad_blocks {
            return Ok(());
        }
        self.replace(next)
    }

    /// Records a larger number of units, durably. After an error the label in memory is unchanged;
    /// that on the device may have either number.
    pub(crate) fn set_units(&mut self, units: u16) -> io::Result<()> {
        let has = self.label.configuration.units;
        if has == units {
            return Ok(());
        }
        if has > units {
            let reason = format!("the device has {has} units; it cannot be cut to {units}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        }
        let mut next = self.label.clone();
        next.configuration.units = units;
        self.replace(next)
    }

    /// After a change that failed: lets both copies have the label in memory, durably. Before that
    /// the device may have either label.
    pub(crate) fn take_back(&mut self) -> io::Result<()> {
        match self.failed {
            Some(_) => self.replace(self.label.clone()),
            None => Ok(()),
        }
    }

    fn replace(&mut self, next: Label) -> io::Result<()> {
        // A change that failed may be on the device: what follows is newer than that.
        let sequence = next.sequence.max(self.failed.unwrap_or(0)) + 1;
        let next = Label { sequence, ..next };
        let bytes = encode(&next)?;
        self.failed = Some(sequence);
        self.write_both(&bytes)?;
        self.failed = None;
        self.label = next;
        Ok(())
    }

    /// Repairs a damaged copy from the other, unless the device is only read.
    pub(crate) fn mend(&mut self) -> Result<(), OpenError> {
        let Some(reason) = self.worse.clone().filter(|_| self.is_written) else { return Ok(()) };
        let copy = self.first;
        let bytes = encode(&self.label).map_err(|source| self.open_error(source))?;
        self.write_copy(copy, &bytes).map_err(|source| self.open_error(source))?;
        let (path, name) = (self.path.display(), NAMES[copy]);
        tracing::warn!(%path, "label copy {name} was repaired from the other one ({reason})");
        self.worse = None;
        Ok(())
    }

    /// Rewrites both copies, the possibly damaged one first, so that one is intact at any time.
    fn write_both(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.is_written {
            return Ok(());
        }
        for copy in [self.first, 1 - self.first] {
            self.write_copy(copy, bytes)?;
        }
        self.worse = None;
        Ok(())
    }

    fn write_copy(&mut self, copy: usize, bytes: &[u8]) -> io::Result<()> {
        self.first = copy;
        #[cfg(test)]
        if self.failing.lock().is_ok_and(|failing| *failing == Some(copy)) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.file.write_all_at(bytes, COPY_OFFSETS[copy])?;
        self.file.sync_data()
    }

    fn open_error(&self, source: io::Error) -> OpenError {
        OpenError::Io { path: self.path.clone(), source }
    }
}
