//! PostgreSQL with two clients, whose transactions insert four rows each and update a counter.

use super::task::{Site, Work, expect, transactions};
use crate::Outcome;
use crate::interrupt;
use crate::run::{output, works};
use crate::tool::{Shell, end, limited, log_to, spawn};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const CLIENTS: usize = 2;

/// Time limit for a start, with recovery, and for a stop.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time to stop without a disk.
const HALT: Duration = Duration::from_secs(8);

/// Contents of row k of transaction n of client c, of 320 bytes.
const BODY: &str = "repeat(md5(c::text || ':' || (n * 4 + k)::text), 10)";

pub struct Postgres {
    programs: PathBuf,
    cluster: PathBuf,
    scratch: PathBuf,
    server: Option<Child>,
    clients: Vec<Shell>,
    acknowledged: [u64; CLIENTS],
}

/// The directory of the newest installed version's programs, which Debian does not put on the path.
pub fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.filter_map(Result::ok);
    let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|entry| entry.path()).max_by_key(|path| number(path))?;
    Some(newest.join("bin")).filter(|programs| programs.join("initdb").exists())
}

impl Postgres {
    pub fn begin(site: &Site<'_>) -> Outcome<Postgres> {
        let mut postgres = Postgres::empty(site)?;
        postgres.query(
            "CREATE TABLE t (c INT, n INT, k INT, body TEXT, PRIMARY KEY (c, n, k)); \
             CREATE INDEX by_body ON t (body); \
             CREATE TABLE counters (c INT PRIMARY KEY, n INT); \
             INSERT INTO counters VALUES (0, 0), (1, 0);",
        )?;
        for client in 0..CLIENTS {
            let mut psql = Command::new("stdbuf");
            psql.arg("-oL").arg(postgres.program("psql")).args(postgres.psql_arguments());
            let log = postgres.scratch.join(format!("psql-{client}.log"));
            postgres.clients.push(Shell::start(&mut psql, &log)?);
        }
        Ok(postgres)
    }

    /// A running server without tables and clients.
    pub fn empty(site: &Site<'_>) -> Outcome<Postgres> {
        let programs = programs().ok_or("PostgreSQL is not installed")?;
        let (cluster, scratch) = (site.at.join("cluster"), site.scratch.clone());
        for directory in [&site.at, &scratch] {
            output(limited(10, "chown").arg("postgres").arg(directory))?;
        }
        let clients = Vec::new();
        let mut postgres = Postgres {
            programs,
            cluster,
            scratch,
            server: None,
            clients,
            acknowledged: [0; CLIENTS],
        };
        let mut initdb = postgres.as_user(limited(120, &postgres.program("initdb")))?;
        initdb.arg("--pgdata").arg(&postgres.cluster).args(["--data-checksums", "--auth=trust"]);
        output(initdb.args(["--encoding=UTF8", "--locale=C"]))?;
        postgres.start()?;
        Ok(postgres)
    }

    /// PostgreSQL's benchmark on the database, to its end.
    pub fn pgbench(&self, seconds: u32, arguments: &[&str]) -> Outcome {
        let mut pgbench = limited(seconds, &self.program("pgbench"));
        pgbench.args(["-U", "postgres", "-h"]).arg(&self.scratch).args(arguments);
        output(pgbench.arg("postgres")).map(drop)
    }

    fn program(&self, name: &str) -> String {
        self.programs.join(name).display().to_string()
    }

    /// PostgreSQL refuses to run as root.
    fn as_user(&self, mut command: Command) -> Outcome<Command> {
        let id = |flag: &str| {
            let id = output(Command::new("id").args([flag, "postgres"]))?;
            id.trim().parse::<u32>().map_err(|error| format!("id {flag} postgres: {error}"))
        };
        command.uid(id("-u")?).gid(id("-g")?).current_dir(&self.scratch);
        Ok(command)
    }

    fn psql_arguments(&self) -> Vec<String> {
        let scratch = self.scratch.display().to_string();
        let fixed = ["-U", "postgres", "-d", "postgres", "-qAtX", "-v", "ON_ERROR_STOP=1", "-h"];
        fixed.map(str::to_owned).into_iter().chain([scratch]).collect()
    }

    fn query(&self, sql: &str) -> Outcome<String> {
        let mut psql = limited(120, &self.program("psql"));
        output(psql.args(self.psql_arguments()).args(["-c", sql]))
    }

    /// Starts the server, which recovers, and waits until it answers. It listens in the scratch
    /// directory only.
    fn start(&mut self) -> Outcome {
        let mut server = self.as_user(Command::new(self.program("postgres")))?;
        server.arg("-D").arg(&self.cluster).arg("-k").arg(&self.scratch).stdin(Stdio::null());
        server.args(["-c", "listen_addresses=", "-c", "checkpoint_timeout=30s"]);
        let log = self.scratch.join("postgres.log");
        log_to(&mut server, &log)?;
        let mut child = spawn(&mut server)?;
        let mut has_ended = false;
        let is_ready = interrupt::wait(PATIENCE, || {
            has_ended = !matches!(child.try_wait(), Ok(None));
            let mut psql = limited(10, &self.program("psql"));
            has_ended || works(psql.args(self.psql_arguments()).args(["-c", "SELECT 1"]))
        });
        self.server = Some(child);
        match is_ready? && !has_ended {
            true => Ok(()),
            false => Err(format!("PostgreSQL does not start; {} says why", log.display())),
        }
    }

    /// Sends the server a signal and waits; then kills it.
    fn stop(&mut self, signal: &str, patience: Duration) -> Outcome {
        self.clients.clear();
        let Some(mut server) = self.server.take() else { return Ok(()) };
        works(Command::new("kill").args([signal, &server.id().to_string()]));
        let started = std::time::Instant::now();
        // Not `interrupt::wait`: it stops after Ctrl-C, too.
        while started.elapsed() < patience {
            if !matches!(server.try_wait(), Ok(None)) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        end(&mut server);
        Err(format!("PostgreSQL does not stop within {patience:?}"))
    }

    /// The checks of the contents, on a running server.
    fn check(&self) -> Outcome<u64> {
        let wrong = format!("SELECT count(*) FROM t WHERE body <> {BODY}");
        expect("rows with other contents", &self.query(&wrong)?, "0")?;
        let torn =
            "SELECT count(*) FROM (SELECT c, n FROM t GROUP BY c, n HAVING count(*) <> 4) AS torn";
        expect("transactions in part", &self.query(torn)?, "0")?;
        let mut found = 0;
        for (client, acknowledged) in self.acknowledged.iter().enumerate() {
            let counted = self.query(&format!("SELECT n FROM counters WHERE c = {client}"))?;
            let inserted = format!(
                "SELECT count(DISTINCT n) || ' ' || coalesce(max(n), 0) FROM t WHERE c = {client}"
            );
            let counted = counted.trim();
            let both = format!("{counted} {counted}");
            expect("transactions by rows and by counter", &self.query(&inserted)?, &both)?;
            found += transactions(counted, *acknowledged)?;
        }
        let mut amcheck = limited(300, &self.program("pg_amcheck"));
        amcheck.arg("-h").arg(&self.scratch).args(["-U", "postgres", "--all"]);
        output(amcheck.args(["--install-missing", "--heapallindexed"]))?;
        Ok(found)
    }
}

impl Work for Postgres {
    fn step(&mut self) -> Outcome {
        for (client, shell) in self.clients.iter_mut().enumerate() {
            let n = self.acknowledged.get(client).copied().unwrap_or_default() + 1;
            shell.send(&format!(
                "BEGIN;\n\
                 INSERT INTO t SELECT c, n, k, {BODY} FROM (SELECT {client} AS c, {n} AS n, k FROM \
                 generate_series(0, 3) AS k) AS r;\n\
                 UPDATE counters SET n = {n} WHERE c = {client};\n\
                 COMMIT;\n\
                 \\echo committed {n}\n"
            ))?;
        }
        // Both are under way now. One may be acknowledged although the other one fails.
        let mut outcome = Ok(());
        for (shell, acknowledged) in self.clients.iter_mut().zip(&mut self.acknowledged) {
            match shell.await_line(&format!("committed {}", *acknowledged + 1)) {
                Ok(()) => *acknowledged += 1,
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }

    fn acknowledged(&self) -> u64 {
        self.acknowledged.iter().sum()
    }

    fn halt(&mut self) {
        // An immediate shutdown: the server may be unable to write.
        if let Err(error) = self.stop("-QUIT", HALT) {
            eprintln!("{error}; it is killed");
        }
    }

    fn verify(&mut self) -> Outcome<u64> {
        self.start()?;
        let found = self.check();
        let stopped = self.stop("-INT", PATIENCE);
        found.and_then(|found| stopped.map(|()| found))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.halt();
    }
}
