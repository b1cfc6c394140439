//! Checksums of all files of a tree.

use crate::Outcome;
use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::fs::{self, DirEntry, File};
use std::hash::Hasher;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

const READ_BYTES: usize = 256 << 10;

/// At most so many differences are named.
const NAMED: usize = 5;

/// The files of a tree by their paths in it: a hash of kind and contents.
pub type Checksums = BTreeMap<PathBuf, u64>;

/// The checksums of a tree. Sockets and other special files are left out.
pub fn of(root: &Path) -> Outcome<Checksums> {
    let mut all = Checksums::new();
    for entry in walk(root)? {
        let path = entry.path();
        let hash = hash(&entry).map_err(|error| format!("{}: {error}", path.display()))?;
        let relative = path.strip_prefix(root).map_or_else(|_| path.clone(), Path::to_owned);
        all.extend(hash.map(|hash| (relative, hash)));
    }
    Ok(all)
}

/// The checksum of the contents of a file.
pub fn of_file(path: &Path) -> Outcome<u64> {
    let mut hasher = DefaultHasher::new();
    contents(path, &mut hasher).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(hasher.finish())
}

/// An error that names the files that are missing, others, or too many.
pub fn compare(expected: &Checksums, found: &Checksums) -> Outcome {
    let missing = expected.keys().filter(|path| !found.contains_key(*path)).map(|it| (it, "lost"));
    let changed = found.iter().filter_map(|(path, hash)| match expected.get(path) {
        Some(known) if known == hash => None,
        Some(_) => Some((path, "has other contents")),
        None => Some((path, "should not exist")),
    });
    let all: Vec<String> =
        missing.chain(changed).map(|(path, what)| format!("{} {what}", path.display())).collect();
    match all.len() {
        0 => Ok(()),
        count => {
            let named = all.get(..count.min(NAMED)).unwrap_or_default().join(", ");
            Err(format!("{count} of {} files differ: {named}", expected.len()))
        }
    }
}

/// Makes all files and directories of a tree durable, and its name in its parent.
pub fn sync_tree(root: &Path) -> Outcome {
    for entry in walk(root)? {
        let kind = entry.file_type().map_err(|error| error.to_string())?;
        if kind.is_file() || kind.is_dir() {
            sync(&entry.path())?;
        }
    }
    sync(root)?;
    root.parent().map_or(Ok(()), sync)
}

/// Makes a file or directory durable.
pub fn sync(path: &Path) -> Outcome {
    let synced = File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|error| format!("{}: {error}", path.display()))
}

/// All entries below a directory.
fn walk(root: &Path) -> Outcome<Vec<DirEntry>> {
    let mut found = Vec::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        let failed = |error: io::Error| format!("{}: {error}", directory.display());
        for entry in fs::read_dir(&directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_type().map_err(failed)?.is_dir() {
                directories.push(entry.path());
            }
            found.push(entry);
        }
    }
    Ok(found)
}

fn hash(entry: &DirEntry) -> io::Result<Option<u64>> {
    let (kind, mut hasher) = (entry.file_type()?, DefaultHasher::new());
    if kind.is_file() {
        hasher.write_u8(b'f');
        contents(&entry.path(), &mut hasher)?;
    } else if kind.is_symlink() {
        hasher.write_u8(b'l');
        hasher.write(fs::read_link(entry.path())?.as_os_str().as_encoded_bytes());
    } else if kind.is_dir() {
        hasher.write_u8(b'd');
    } else {
        return Ok(None);
    }
    Ok(Some(hasher.finish()))
}

fn contents(path: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    let (mut file, mut buffer) = (File::open(path)?, vec![0; READ_BYTES]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            count => hasher.write(buffer.get(..count).unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksums(files: &[(&str, u64)]) -> Checksums {
        files.iter().map(|(path, hash)| (PathBuf::from(path), *hash)).collect()
    }

    #[test]
    fn each_kind_of_difference_is_named() {
        let expected = checksums(&[("a", 1), ("b", 2), ("c", 3)]);
        assert_eq!(compare(&expected, &expected), Ok(()));
        let found = checksums(&[("a", 1), ("b", 9), ("d", 4)]);
        let error = compare(&expected, &found).unwrap_err();
        assert_eq!(error, "3 of 3 files differ: c lost, b has other contents, d should not exist");
    }
}
