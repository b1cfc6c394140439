//! The programs that work on a file system until its server is killed.

mod compile;
mod copy;
mod postgres;
mod sqlite;
mod task;

pub use postgres::{Postgres, programs as postgres_programs};
pub use task::{Site, Work, create};

use crate::Outcome;

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Copy,
    Compile,
    Sqlite,
    Postgres,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Copy, Kind::Compile, Kind::Sqlite, Kind::Postgres];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Copy => "copy",
            Kind::Compile => "compile",
            Kind::Sqlite => "sqlite",
            Kind::Postgres => "postgresql",
        }
    }

    /// What is counted.
    pub fn unit(self) -> &'static str {
        match self {
            Kind::Copy => "files synced",
            Kind::Compile => "objects synced",
            Kind::Sqlite => "transactions",
            Kind::Postgres => "commits",
        }
    }

    /// Prepares the work; what it makes is durable.
    pub fn begin<'a>(self, site: Site<'a>) -> Outcome<Box<dyn Work + 'a>> {
        for directory in [&site.at, &site.scratch] {
            create(directory)?;
        }
        Ok(match self {
            Kind::Copy => Box::new(copy::Copy::begin(site)),
            Kind::Compile => Box::new(compile::Compile::begin(site)?),
            Kind::Sqlite => Box::new(sqlite::Sqlite::begin(&site)?),
            Kind::Postgres => Box::new(Postgres::begin(&site)?),
        })
    }
}
