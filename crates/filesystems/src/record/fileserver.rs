//! A file server, of the mix of Filebench's `fileserver` but not that program: a file is created,
//! written and synced, another one appended to, one read, one deleted.

use super::subject::Labour;
use crate::Outcome;
use crate::random::Random;
use crate::work::Site;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Files that are there.
const FILES: usize = 5_000;

/// Files of a directory, as Filebench has twenty.
const DIRECTORIES: u64 = 250;

/// The most bytes of a new file and of an append: means are 128 and 16 KiB.
const FILE_BYTES: u64 = 255 << 10;
const APPEND_BYTES: u64 = 31 << 10;

pub struct Fileserver {
    at: PathBuf,
    random: Random,
    files: Vec<PathBuf>,
    next: u64,
    contents: Vec<u8>,
}

impl Fileserver {
    pub fn begin(site: &Site<'_>) -> Outcome<Fileserver> {
        let contents = vec![0x5a; FILE_BYTES as usize + 1024];
        let (at, random) = (site.at.clone(), Random::new(site.variant));
        let mut server = Fileserver { at, random, files: Vec::new(), next: 0, contents };
        for directory in 0..DIRECTORIES {
            let directory = server.at.join(directory.to_string());
            fs::create_dir_all(&directory).map_err(|error| failed(&directory, &error))?;
        }
        for _ in 0..FILES {
            server.add(false)?;
        }
        Ok(server)
    }

    fn add(&mut self, sync: bool) -> Outcome {
        let directory = self.random.between(0, DIRECTORIES - 1).to_string();
        let path = self.at.join(directory).join(self.next.to_string());
        self.next += 1;
        let bytes = self.random.between(1024, FILE_BYTES);
        let written = File::create(&path).and_then(|file| self.write(file, bytes, sync));
        written.map_err(|error| failed(&path, &error))?;
        self.files.push(path);
        Ok(())
    }

    fn write(&self, mut file: File, bytes: u64, sync: bool) -> io::Result<()> {
        file.write_all(self.contents.get(..bytes as usize).unwrap_or_default())?;
        if sync { file.sync_all() } else { Ok(()) }
    }

    /// A random file's place in the list.
    fn any(&mut self) -> usize {
        self.random.between(0, self.files.len() as u64 - 1) as usize
    }

    fn append(&mut self) -> Outcome {
        let (any, bytes) = (self.any(), self.random.between(1024, APPEND_BYTES));
        let Some(path) = self.files.get(any) else { return Ok(()) };
        let file = OpenOptions::new().append(true).open(path);
        let written = file.and_then(|file| self.write(file, bytes, false));
        written.map_err(|error| failed(path, &error))
    }
}

impl Labour for Fileserver {
    fn step(&mut self) -> Outcome {
        self.add(true)?;
        self.append()?;
        let read = self.any();
        if let Some(path) = self.files.get(read) {
            fs::read(path).map_err(|error| failed(path, &error))?;
        }
        let gone = self.any();
        let path = self.files.swap_remove(gone);
        fs::remove_file(&path).map_err(|error| failed(&path, &error))
    }

    fn halt(&mut self) {}
}

fn failed(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}
