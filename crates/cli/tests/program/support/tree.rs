//! A tree of real files: the standard library of the installed Python.

use super::clients;
use super::resp::Client;
use softflash_base::checksum::hash64;
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Larger files are left out.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Pipeline depth in commands.
const AHEAD: usize = 32;

/// Pipeline depth in bytes.
const AHEAD_BYTES: usize = 4 << 20;

/// Keys (paths) and values (contents), in an order that mixes small and large files.
pub struct Tree {
    /// In the order of loading.
    pub files: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Tree {
    /// Files of the standard library up to `bytes` in total. `None`, with a notice, if Python is
    /// not installed and the real clients are not required.
    pub fn load(bytes: u64) -> Option<Tree> {
        let Some(root) = standard_library() else {
            clients::skip("the Python standard library");
            return None;
        };
        let mut paths = Vec::new();
        collect(&root, &mut paths);
        // Equal libraries give equal files in the same order.
        paths.sort_by_cached_key(|path| hash64(path.as_os_str().as_encoded_bytes()));
        let (mut files, mut total) = (Vec::new(), 0);
        for path in paths {
            let Ok(content) = fs::read(&path) else { continue };
            if total + content.len() as u64 > bytes {
                break;
            }
            total += content.len() as u64;
            let key = path.strip_prefix(&root).unwrap_or(&path);
            files.push((key.as_os_str().as_encoded_bytes().to_vec(), content));
        }
        assert!(files.len() > 100, "{}: only {} files", root.display(), files.len());
        eprintln!("{} files, {total} bytes below {}", files.len(), root.display());
        Some(Tree { files })
    }

    /// Loads every file under a key with this prefix; every reply must be `+OK`.
    pub fn store(&self, client: &mut Client, prefix: &[u8]) {
        let mut waiting = VecDeque::new();
        let mut ahead = 0;
        for (path, content) in &self.files {
            while waiting.len() >= AHEAD || ahead > AHEAD_BYTES {
                ahead -= acknowledged(client, &mut waiting);
            }
            client.send(&[b"SET", &key(prefix, path), content]).expect("the connection holds");
            waiting.push_back((path, content.len()));
            ahead += content.len();
        }
        while !waiting.is_empty() {
            acknowledged(client, &mut waiting);
        }
    }

    /// Reads every file back and compares it byte by byte.
    pub fn compare(&self, client: &mut Client, prefix: &[u8]) {
        for chunk in self.files.chunks(AHEAD) {
            for (path, _) in chunk {
                client.send(&[b"GET", &key(prefix, path)]).expect("the connection holds");
            }
            for (path, content) in chunk {
                let got = client.receive().expect("the connection holds").bulk();
                assert!(got.as_ref() == Some(content), "{} differs", shown(path));
            }
        }
    }
}

/// A path with a prefix.
pub fn key(prefix: &[u8], path: &[u8]) -> Vec<u8> {
    [prefix, path].concat()
}

/// A key for messages.
pub fn shown(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

fn acknowledged(client: &mut Client, waiting: &mut VecDeque<(&Vec<u8>, usize)>) -> usize {
    let reply = client.receive().expect("the connection holds");
    let (path, len) = waiting.pop_front().expect("a command waits");
    assert!(reply.is_ok(), "SET {} ({len} bytes): {reply:?}", shown(path));
    len
}

fn collect(directory: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let Ok(metadata) = entry.metadata() else { continue };
        let foreign = name == "site-packages" || name == "dist-packages";
        if metadata.is_dir() && !foreign {
            collect(&path, paths);
        } else if metadata.is_file() && metadata.len() <= FILE_BYTES_MAX {
            paths.push(path);
        }
    }
}

fn standard_library() -> Option<PathBuf> {
    let ask = "import sysconfig; print(sysconfig.get_path('stdlib'))";
    ["python3".to_owned(), clients::python().unwrap_or_default()].iter().find_map(|python| {
        let output = Command::new(python).args(["-c", ask]).output().ok()?;
        let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
        path.join("os.py").exists().then_some(path)
    })
}
