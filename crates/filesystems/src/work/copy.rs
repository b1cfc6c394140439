//! Unpacks a source tree again and again, makes it durable, and removes old ones.

use super::task::{Site, Work};
use crate::Outcome;
use crate::checksums;
use crate::source_tree::SourceTree;
use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;

/// Trees that are kept.
const KEPT: usize = 6;

pub struct Copy<'a> {
    at: PathBuf,
    sources: &'a SourceTree,
    next: u64,
    synced: VecDeque<PathBuf>,
}

impl<'a> Copy<'a> {
    pub fn begin(site: Site<'a>) -> Copy<'a> {
        Copy { at: site.at, sources: site.sources, next: 0, synced: VecDeque::new() }
    }
}

impl Work for Copy<'_> {
    fn step(&mut self) -> Outcome {
        let tree = self.at.join(format!("tree-{}", self.next));
        self.next += 1;
        self.sources.unpack(&tree)?;
        checksums::sync_tree(&tree)?;
        self.synced.push_back(tree);
        if self.synced.len() > KEPT
            && let Some(oldest) = self.synced.pop_front()
        {
            fs::remove_dir_all(&oldest)
                .map_err(|error| format!("{}: {error}", oldest.display()))?;
        }
        Ok(())
    }

    fn acknowledged(&self) -> u64 {
        (self.synced.len() * self.sources.checksums.len()) as u64
    }

    fn halt(&mut self) {}

    fn verify(&mut self) -> Outcome<u64> {
        for tree in &self.synced {
            checksums::compare(&self.sources.checksums, &checksums::of(tree)?)
                .map_err(|error| format!("{}: {error}", tree.display()))?;
        }
        Ok(self.acknowledged())
    }
}
