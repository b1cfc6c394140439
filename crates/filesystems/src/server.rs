//! The real server with a volume.

use crate::Outcome;
use crate::interrupt;
use crate::run::output;
use crate::tool::{end, limited, log_to, spawn};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Time limit for a start, for slow machines.
const START: Duration = Duration::from_secs(60);

/// Time limit for a reply.
const REPLY: Duration = Duration::from_secs(60);

/// Creates a data directory of eight units, six of them for volumes if it is to have any.
pub fn format(program: &Path, data: &Path, size: &str, volumes: bool) -> Outcome {
    let mut format = limited(60, &program.display().to_string());
    format.arg("format").arg(data).args(["--size", size, "--units", "8", "--shards", "1"]);
    output(format.args(volumes.then_some(["--volume-units", "6"]).into_iter().flatten())).map(drop)
}

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

    /// Where it answers clients of keys.
    pub fn resp(&self) -> &str {
        &self.resp
    }

    /// FLASH.VOLUME with success.
    pub fn volume(&self, words: &str) -> Outcome {
        let failed = |error| format!("FLASH.VOLUME {words}: {error}");
        let mut stream = TcpStream::connect(&self.resp).map_err(failed)?;
        stream.set_read_timeout(Some(REPLY)).map_err(failed)?;
        stream.write_all(format!("FLASH.VOLUME {words}\r\n").as_bytes()).map_err(failed)?;
        let mut reply = String::new();
        BufReader::new(stream).read_line(&mut reply).map_err(failed)?;
        match reply.trim_end() {
            "+OK" => Ok(()),
            other => Err(format!("FLASH.VOLUME {words}: {other}")),
        }
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
