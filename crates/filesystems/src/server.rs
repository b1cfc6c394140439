//! The real server with a volume.

use crate::Outcome;
use crate::interrupt;
use crate::resp::request;
use crate::tool::{end, log_to, spawn};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Time limit for a start, for slow machines.
const START: Duration = Duration::from_secs(60);

/// Time limit for a reply.
const REPLY: Duration = Duration::from_secs(60);

/// A running server.
pub struct Server {
    child: Child,
    resp: String,
    nbd: String,
}

impl Server {
    /// Starts it on free ports, with NBD if it has volumes; its output goes to `log`.
    pub fn start(program: &Path, data: &Path, volumes: bool, log: &Path) -> Outcome<Server> {
        // The ready line of this start, not of the one before.
        let _ = fs::remove_file(log);
        let mut serve = Command::new(program);
        serve.arg("serve").arg("--data").arg(data).args(["--memory", "128MiB"]);
        serve.args(["--resp", "127.0.0.1:0"]).stdin(Stdio::null());
        serve.args(volumes.then_some(["--nbd", "127.0.0.1:0"]).into_iter().flatten());
        log_to(&mut serve, log)?;
        let child = spawn(&mut serve)?;
        let mut server = Server { child, resp: String::new(), nbd: String::new() };
        let mut has_ended = false;
        let is_ready = interrupt::wait(START, || {
            has_ended = !matches!(server.child.try_wait(), Ok(None));
            let said = fs::read_to_string(log).unwrap_or_default();
            has_ended || server.read_addresses(&said, volumes)
        })?;
        match is_ready && !has_ended {
            true => Ok(server),
            false => Err(format!("the server does not start; {} has its output", log.display())),
        }
    }

    /// Takes the addresses from the line `ready resp=ADDRESS nbd=ADDRESS`, if they are there.
    fn read_addresses(&mut self, said: &str, volumes: bool) -> bool {
        let Some(ready) = said.lines().find_map(|line| line.strip_prefix("ready ")) else {
            return false;
        };
        let address = |name: &str| {
            let mut words = ready.split_whitespace();
            words.find_map(|word| word.strip_prefix(name)).map(str::to_owned)
        };
        self.resp = address("resp=").unwrap_or_default();
        self.nbd = address("nbd=").unwrap_or_default();
        !self.resp.is_empty() && (!volumes || !self.nbd.is_empty())
    }

    /// A command that replies OK.
    pub fn command(&self, words: &str) -> Outcome {
        let reply = request(&self.resp, words, REPLY);
        match reply.map_err(|error| format!("{words}: {error}"))? {
            Ok(ok) if ok == "OK" => Ok(()),
            Ok(other) => Err(format!("{words}: {other}")),
            Err(refused) => Err(format!("{words}: {refused}")),
        }
    }

    /// Where it takes commands.
    pub fn address(&self) -> &str {
        &self.resp
    }

    /// The URI of a volume or snapshot.
    pub fn uri(&self, export: &str) -> String {
        format!("nbd://{}/{export}", self.nbd)
    }

    /// Ends it immediately, as `kill -9` does.
    pub fn kill(&mut self) {
        end(&mut self.child);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
