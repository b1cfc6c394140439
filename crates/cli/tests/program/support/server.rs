//! A running server, killed when dropped.

use super::program::{binary, said};
use super::resp::Client;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

/// Time limit for start and end of a server, for slow machines and debug builds; a test that
/// measures times has its own limits.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server on free ports.
pub struct Server {
    child: Child,
    address: SocketAddr,
    directory: PathBuf,
    /// The `ready` line.
    pub ready: String,
    /// Its standard error so far.
    said: Arc<Mutex<String>>,
    /// Kept open: a server could block on a full pipe.
    _drain: std::thread::JoinHandle<()>,
}

impl Server {
    /// Starts a server and waits until it is ready.
    pub fn start(directory: &Path, arguments: &[&str]) -> Server {
        Server::try_start(directory, arguments)
            .unwrap_or_else(|output| panic!("the server does not start: {}", said(&output)))
    }

    /// Starts a server; returns its output if it ends before it is ready.
    pub fn try_start(directory: &Path, arguments: &[&str]) -> Result<Server, Output> {
        Server::launch(Command::new(binary()), directory, arguments)
    }

    /// Starts a server under a limit set by a shell, as `ulimit -n 100`.
    pub fn start_under(limit: &str, directory: &Path, arguments: &[&str]) -> Server {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("{limit} && exec \"$0\" \"$@\"")).arg(binary());
        Server::launch(shell, directory, arguments)
            .unwrap_or_else(|output| panic!("the server does not start: {}", said(&output)))
    }

    fn launch(
        mut command: Command,
        directory: &Path,
        arguments: &[&str],
    ) -> Result<Server, Output> {
        let says_where = arguments.contains(&"--resp");
        let mut child = command
            .arg("serve")
            .arg("--data")
            .arg(directory)
            .args(if says_where { [].as_slice() } else { &["--resp", "127.0.0.1:0"] })
            .args(["--http", "127.0.0.1:0"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let stdout = child.stdout.take().expect("standard output is piped");
        let Some((ready, drain)) = await_ready(stdout) else {
            if child.try_wait().expect("the child can be waited for").is_none() {
                std::thread::sleep(Duration::from_millis(500));
            }
            // Either it has ended, or it was not ready in time.
            let _ = child.kill();
            return Err(child.wait_with_output().expect("the child can be waited for"));
        };
        let stderr = child.stderr.take().expect("standard error is piped");
        let said = Arc::<Mutex<String>>::default();
        let output = Arc::clone(&said);
        std::thread::spawn(move || {
            BufReader::new(stderr).lines().map_while(Result::ok).for_each(|line| {
                eprintln!("{line}");
                let mut output = output.lock().expect("the lock is not poisoned");
                output.push_str(&line);
                output.push('\n');
            });
        });
        let address = address_in(&ready);
        let directory = directory.to_owned();
        Ok(Server { child, address, directory, ready, said, _drain: drain })
    }

    /// Starts a server and ends it with `kill -9` after a while, whether it is ready or not.
    pub fn kill_while_starting(directory: &Path, arguments: &[&str], after: Duration) {
        let mut child = Command::new(binary())
            .args(["serve", "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0", "--data"])
            .arg(directory)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program can be started");
        std::thread::sleep(after);
        child.kill().expect("the server can be killed");
        child.wait().expect("the server can be waited for");
    }

    /// Its standard error so far.
    pub fn said(&self) -> String {
        self.said.lock().expect("the lock is not poisoned").clone()
    }

    /// Waits until its standard error contains this text.
    pub fn await_said(&self, words: &str) {
        let started = Instant::now();
        while !self.said().contains(words) {
            let said = self.said();
            assert!(started.elapsed() < Duration::from_secs(10), "no `{words}` in `{said}`");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The address after `name=` in the ready line.
    pub fn address_of(&self, name: &str) -> SocketAddr {
        let mut parts = self.ready.split_whitespace();
        let address = parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        let address = address.unwrap_or_else(|| panic!("no {name} in `{}`", self.ready));
        address.parse().expect("an address")
    }

    /// Resident memory of the process in bytes.
    pub fn resident_bytes(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// Peak resident memory of the process in bytes.
    pub fn peak_bytes(&self) -> u64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()))
            .expect("the process runs");
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.expect("the kernel reports it").trim().trim_end_matches(" kB");
        kib.parse::<u64>().expect("a number") * 1024
    }

    /// Its address for RESP.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A new connection.
    pub fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it immediately, as `kill -9` does.
    pub fn kill(mut self) {
        self.child.kill().expect("the server can be killed");
        self.child.wait().expect("the server can be waited for");
    }

    /// Sends SIGTERM and waits for its end.
    pub fn terminate(mut self) -> ExitStatus {
        self.signal_term();
        self.wait()
    }

    /// Sends SIGTERM.
    pub fn signal_term(&self) {
        self.signal(libc::SIGTERM);
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: libc::c_int) {
        super::signals::send(&self.child, signal);
    }

    /// Waits until it has ended by itself.
    pub fn wait(&mut self) -> ExitStatus {
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().expect("the child can be waited for") {
                return status;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the server on {} has not ended in {PATIENCE:?}", self.directory.display());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The line that begins with `ready`; the thread continues to read the output. `None` if the output
/// ends before, or the line does not come in time.
fn await_ready(stdout: ChildStdout) -> Option<(String, std::thread::JoinHandle<()>)> {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if line.starts_with("ready") {
                let _ = sender.send(line);
            }
        }
    });
    let line = receiver.recv_timeout(PATIENCE).ok()?;
    Some((line, thread))
}

/// The first address in the line: that of RESP.
fn address_in(ready: &str) -> SocketAddr {
    let part = |c: char| c.is_ascii_digit() || c == '.' || c == ':';
    ready
        .split(|c| !part(c))
        .find_map(|word| word.parse().ok())
        .unwrap_or_else(|| panic!("no address in `{ready}`"))
}
