//! SQLite with durable transactions of four rows each.

use super::task::{Site, Work, expect, transactions};
use crate::Outcome;
use crate::run::output;
use crate::tool::{Shell, limited};
use std::path::PathBuf;
use std::process::Command;

/// Modes of the journal in which `synchronous=FULL` makes a commit durable. (In the mode `delete`
/// it does not: the deletion of the journal may be lost.)
const JOURNALS: [&str; 2] = ["wal", "truncate"];

/// The contents of row k of transaction n, of 640 bytes.
const BODY: &str = "replace(hex(zeroblob(40)), '0', printf('%08d', n * 4 + k))";

pub struct Sqlite {
    database: PathBuf,
    shell: Option<Shell>,
    acknowledged: u64,
}

impl Sqlite {
    pub fn begin(site: &Site<'_>) -> Outcome<Sqlite> {
        let database = site.at.join("database");
        let mut command = Command::new("stdbuf");
        command.args(["-oL", "sqlite3", "-batch", "-bail"]).arg(&database);
        let mut shell = Shell::start(&mut command, &site.scratch.join("sqlite.log"))?;
        let journal = usize::try_from(site.variant).unwrap_or(0) % JOURNALS.len();
        let journal = JOURNALS.get(journal).unwrap_or(&"wal");
        shell.ask(&format!("PRAGMA journal_mode = {journal};\n"), journal)?;
        shell.ask(
            "PRAGMA synchronous = FULL;\n\
             CREATE TABLE t (n INTEGER, k INTEGER, body TEXT, PRIMARY KEY (n, k));\n\
             CREATE INDEX by_body ON t (body);\n\
             SELECT 'ready';\n",
            "ready",
        )?;
        Ok(Sqlite { database, shell: Some(shell), acknowledged: 0 })
    }

    fn query(&self, sql: &str) -> Outcome<String> {
        output(limited(120, "sqlite3").arg("-batch").arg(&self.database).arg(sql))
    }
}

impl Work for Sqlite {
    fn step(&mut self) -> Outcome {
        let n = self.acknowledged + 1;
        let shell = self.shell.as_mut().ok_or("SQLite has ended")?;
        shell.ask(
            &format!(
                "WITH r(n, k) AS (VALUES ({n}, 0), ({n}, 1), ({n}, 2), ({n}, 3))\n\
                 INSERT INTO t SELECT n, k, {BODY} FROM r;\n\
                 SELECT 'committed {n}';\n"
            ),
            &format!("committed {n}"),
        )?;
        self.acknowledged = n;
        Ok(())
    }

    fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    fn halt(&mut self) {
        self.shell = None;
    }

    fn verify(&mut self) -> Outcome<u64> {
        expect("integrity_check of SQLite", &self.query("PRAGMA integrity_check;")?, "ok")?;
        let wrong = format!("SELECT count(*) FROM t WHERE body <> {BODY};");
        expect("rows with other contents", &self.query(&wrong)?, "0")?;
        let torn = "SELECT count(*) FROM (SELECT n FROM t GROUP BY n HAVING count(*) <> 4);";
        expect("transactions in part", &self.query(torn)?, "0")?;
        let gaps = "SELECT coalesce(max(n), 0) - count(DISTINCT n) FROM t;";
        expect("transactions lost before later ones", &self.query(gaps)?, "0")?;
        transactions(&self.query("SELECT coalesce(max(n), 0) FROM t;")?, self.acknowledged)
    }
}
