//! What the blocks of an ext4 file system belong to, as streams for a drive: the metadata in fixed
//! places, the journal, the log of the program, and all else.

use crate::Outcome;
use crate::run::output;
use crate::tool::limited;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The streams beside 0, which all else has.
const METADATA: u32 = 1;
const JOURNAL: u32 = 2;
const LOG: u32 = 3;

/// The inode of the journal.
const JOURNAL_INODE: u64 = 8;

/// The streams of a file system.
pub struct Streams {
    block_bytes: u64,
    /// First and last blocks with their stream, in order.
    ranges: Vec<(u64, u64, u32)>,
}

/// The inodes of files, and of those in directories, under a mount point.
pub fn inodes(mount: &Path, names: &[&str]) -> Outcome<Vec<u64>> {
    let mut inodes = Vec::new();
    for path in names.iter().map(|name| mount.join(name)) {
        let Ok(metadata) = fs::metadata(&path) else { continue };
        if metadata.is_file() {
            inodes.push(metadata.ino());
            continue;
        }
        let files = fs::read_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let files = files.filter_map(|file| file.ok()?.metadata().ok());
        inodes.extend(files.filter(fs::Metadata::is_file).map(|file| file.ino()));
    }
    Ok(inodes)
}

impl Streams {
    /// Of an unmounted file system whose program has its log in these inodes.
    pub fn of(device: &str, logs: &[u64]) -> Outcome<Streams> {
        let described = output(limited(60, "dumpe2fs").arg(device))?;
        let block_bytes = described.lines().find_map(|line| line.strip_prefix("Block size:"));
        let block_bytes = block_bytes.and_then(|bytes| bytes.trim().parse().ok());
        let block_bytes = block_bytes.ok_or("dumpe2fs names no block size")?;
        let mut ranges: Vec<(u64, u64, u32)> =
            places(&described).map(|(first, last)| (first, last, METADATA)).collect();
        let journal = [(JOURNAL_INODE, JOURNAL)];
        for (inode, stream) in journal.into_iter().chain(logs.iter().map(|&inode| (inode, LOG))) {
            let mut debugfs = limited(60, "debugfs");
            let stat = output(debugfs.arg("-R").arg(format!("stat <{inode}>")).arg(device))?;
            ranges.extend(extents(&stat).map(|(first, last)| (first, last, stream)));
        }
        ranges.sort_unstable();
        Ok(Streams { block_bytes, ranges })
    }

    fn stream(&self, offset_bytes: u64) -> u32 {
        let block = offset_bytes / self.block_bytes;
        let next = self.ranges.partition_point(|&(first, ..)| first <= block);
        match next.checked_sub(1).and_then(|at| self.ranges.get(at)) {
            Some(&(_, last, stream)) if block <= last => stream,
            _ => 0,
        }
    }

    /// Writes a trace of the format `alibaba` again, with the stream of each request as its device.
    pub fn mark(&self, trace: &Path, marked: &Path) -> Outcome {
        let failed = |error| format!("{}: {error}", trace.display());
        let lines = BufReader::new(File::open(trace).map_err(failed)?).lines();
        let mut out = BufWriter::new(File::create(marked).map_err(failed)?);
        for line in lines {
            let line = line.map_err(failed)?;
            let mut fields = line.splitn(4, ',');
            let (_, kind, offset) = (fields.next(), fields.next(), fields.next());
            let offset = offset.and_then(|offset| offset.parse::<u64>().ok());
            let (Some(kind), Some(offset), Some(rest)) = (kind, offset, fields.next()) else {
                return Err(format!("{}: `{line}` is no request", trace.display()));
            };
            let stream = self.stream(offset);
            writeln!(out, "{stream},{kind},{offset},{rest}").map_err(failed)?;
        }
        out.flush().map_err(failed)
    }
}

/// The blocks that dumpe2fs names: `Inode table at 513-1024 (+513)`.
fn places(described: &str) -> impl Iterator<Item = (u64, u64)> {
    let groups = described.lines().filter(|line| line.starts_with("  "));
    groups.flat_map(|line| line.split(" at ").skip(1)).filter_map(range)
}

/// The blocks that debugfs names: `(0-1023):34816-35839, (1024):40000`.
fn extents(stat: &str) -> impl Iterator<Item = (u64, u64)> {
    let all = stat.rsplit_once("EXTENTS:").map_or("", |(_, all)| all);
    all.split(", ").filter_map(|extent| range(extent.rsplit_once(':')?.1))
}

/// The range with which a text begins.
fn range(text: &str) -> Option<(u64, u64)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(text.len());
    let text = text.get(..end)?;
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    Some((first.parse().ok()?, last.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_in_what_the_tools_print() {
        let group = "Block size:               4096\nGroup 0: (Blocks 0-32767)\n  Primary superblock at 0, \
                     Group descriptors at 1-1\n  Inode table at 1057-1568 (+1057)\n";
        assert_eq!(places(group).collect::<Vec<_>>(), [(0, 0), (1, 1), (1057, 1568)]);
        let stat = "Inode: 8\nEXTENTS:\n(ETB0):9, (0-3):100-103, (4)[u]:200\n";
        assert_eq!(extents(stat).collect::<Vec<_>>(), [(9, 9), (100, 103), (200, 200)]);
        let ranges = vec![(0, 0, METADATA), (100, 103, JOURNAL)];
        let streams = Streams { block_bytes: 4096, ranges };
        let of = [0, 4096, 100 * 4096, 104 * 4096 - 1, 104 * 4096].map(|at| streams.stream(at));
        assert_eq!(of, [METADATA, 0, JOURNAL, JOURNAL, 0]);
    }
}
