//! Compiles a source tree again and again, makes each object durable, and removes old builds.

use super::task::{Site, Work, create};
use crate::Outcome;
use crate::checksums;
use crate::source_tree::SourceTree;
use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;

/// Complete builds that are kept.
const KEPT: usize = 3;

pub struct Compile<'a> {
    at: PathBuf,
    sources: &'a SourceTree,
    next: u64,
    /// The builds with the number of their durable products; the last one may be incomplete.
    builds: VecDeque<(PathBuf, usize)>,
}

impl<'a> Compile<'a> {
    pub fn begin(site: Site<'a>) -> Outcome<Compile<'a>> {
        let Site { at, sources, .. } = site;
        sources.unpack(&at.join("source"))?;
        checksums::sync_tree(&at)?;
        Ok(Compile { at, sources, next: 0, builds: VecDeque::new() })
    }

    fn begin_build(&mut self) -> Outcome {
        let build = self.at.join(format!("build-{}", self.next));
        self.next += 1;
        create(&build)?;
        checksums::sync_tree(&build)?;
        self.builds.push_back((build, 0));
        if self.builds.len() > KEPT + 1
            && let Some((oldest, _)) = self.builds.pop_front()
        {
            fs::remove_dir_all(&oldest)
                .map_err(|error| format!("{}: {error}", oldest.display()))?;
        }
        Ok(())
    }
}

impl Work for Compile<'_> {
    fn step(&mut self) -> Outcome {
        let is_whole = |build: &(PathBuf, usize)| build.1 == self.sources.products.len();
        if self.builds.back().is_none_or(is_whole) {
            self.begin_build()?;
        }
        let sources = self.sources;
        if let Some((build, made)) = self.builds.back_mut()
            && let Some(product) = sources.products.get(*made)
        {
            product.make(&self.at.join("source"), build)?;
            checksums::sync(&build.join(&product.name))?;
            checksums::sync(build)?;
            *made += 1;
        }
        Ok(())
    }

    fn acknowledged(&self) -> u64 {
        self.builds.iter().map(|(_, made)| *made as u64).sum()
    }

    fn halt(&mut self) {}

    fn verify(&mut self) -> Outcome<u64> {
        let source = checksums::of(&self.at.join("source"))?;
        checksums::compare(&self.sources.checksums, &source)?;
        for (build, made) in &self.builds {
            for product in self.sources.products.iter().take(*made) {
                let path = build.join(&product.name);
                if checksums::of_file(&path)? != product.checksum {
                    return Err(format!("{} has other contents", path.display()));
                }
            }
        }
        Ok(self.acknowledged())
    }
}
