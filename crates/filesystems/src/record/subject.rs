//! The programs whose requests are recorded.

use super::fileserver::Fileserver;
use super::kv::Kv;
use super::pgbench::Pgbench;
use crate::Outcome;
use crate::work::{Kind, Site, Work};
use std::path::Path;

/// What is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    Kv,
    Pgbench,
    Fileserver,
    Compile,
    Sqlite,
}

/// A program at work.
pub trait Labour: Send {
    /// Does a part.
    fn step(&mut self) -> Outcome;

    /// Ends its processes.
    fn halt(&mut self);
}

/// A work of the rounds, whose results are not looked at here.
struct OfRound<'a>(Box<dyn Work + 'a>);

impl Labour for OfRound<'_> {
    fn step(&mut self) -> Outcome {
        self.0.step()
    }

    fn halt(&mut self) {
        self.0.halt();
    }
}

impl Subject {
    pub const ALL: [Subject; 5] =
        [Subject::Kv, Subject::Pgbench, Subject::Fileserver, Subject::Compile, Subject::Sqlite];

    pub fn name(self) -> &'static str {
        match self {
            Subject::Kv => "ycsb-a",
            Subject::Pgbench => "pgbench",
            Subject::Fileserver => "fileserver",
            Subject::Compile => "compile",
            Subject::Sqlite => "sqlite",
        }
    }

    /// What is free on the file system when the recording begins. A compiler gets what it writes
    /// meanwhile, so that it uses the places of removed builds again.
    pub fn room_bytes(self) -> u64 {
        match self {
            Subject::Kv | Subject::Pgbench => 256 << 20,
            Subject::Fileserver | Subject::Sqlite => 1 << 30,
            Subject::Compile => 256 << 20,
        }
    }

    /// The program's own log, as the end of a path on the file system.
    pub fn logs(self) -> &'static [&'static str] {
        match self {
            Subject::Pgbench => &["pgbench/cluster/pg_wal"],
            Subject::Sqlite => &["sqlite/database-wal", "sqlite/database-journal"],
            Subject::Kv | Subject::Fileserver | Subject::Compile => &[],
        }
    }

    /// Prepares the work.
    pub fn begin<'a>(self, site: Site<'a>, program: &'a Path) -> Outcome<Box<dyn Labour + 'a>> {
        Ok(match self {
            Subject::Kv => Box::new(Kv::begin(&site, program)?),
            Subject::Pgbench => Box::new(Pgbench::begin(&site)?),
            Subject::Fileserver => Box::new(Fileserver::begin(&site)?),
            Subject::Compile => Box::new(OfRound(Kind::Compile.begin(site)?)),
            Subject::Sqlite => Box::new(OfRound(Kind::Sqlite.begin(site)?)),
        })
    }
}
