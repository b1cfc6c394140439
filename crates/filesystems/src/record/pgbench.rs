//! PostgreSQL under pgbench's default transactions, which are like those of TPC-B.

use super::subject::Labour;
use crate::Outcome;
use crate::work::{Postgres, Site, Work};

/// Scale: 100 000 accounts each, 15 MiB.
const SCALE: &str = "100";

/// Seconds of a step.
const SECONDS: &str = "10";

pub struct Pgbench(Postgres);

impl Pgbench {
    pub fn begin(site: &Site<'_>) -> Outcome<Pgbench> {
        let postgres = Postgres::empty(site)?;
        postgres.pgbench(600, &["--initialize", "--quiet", "--scale", SCALE])?;
        Ok(Pgbench(postgres))
    }
}

impl Labour for Pgbench {
    fn step(&mut self) -> Outcome {
        self.0.pgbench(60, &["--client", "8", "--no-vacuum", "--time", SECONDS])
    }

    fn halt(&mut self) {
        self.0.halt();
    }
}
