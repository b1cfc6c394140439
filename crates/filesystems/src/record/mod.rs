//! Block traces of programs on ext4 on a volume, for the laboratory.
//!
//! Each program works alone on a file system without `discard`, as Debian mounts them. What the
//! program does not use is full of data at rest, but for some room in small pieces, as on a file
//! system that has been full for long. The device of a request in the trace is the stream that a
//! file system could give a drive: what the block belongs to.

mod fileserver;
mod kv;
mod pgbench;
mod streams;
mod subject;

pub use subject::Subject;

use crate::Outcome;
use crate::attached::Attached;
use crate::filesystem::Filesystem;
use crate::interrupt;
use crate::run::output;
use crate::server::Server;
use crate::sets;
use crate::source_tree::SourceTree;
use crate::tool::{end, limited, log_to, spawn};
use crate::work::{Site, create};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use subject::Labour;

/// Size of the volume: 15/16 of 4 GiB, which leaves a drive of 4 GiB 6.25 % of its flash.
const SIZE: &str = "3840MiB";

/// Size of the server's flash.
const DATA: &str = "8GiB";

/// Requests of a trace, and its duration, which a compiler needs for fewer requests.
const REQUESTS: u64 = 120_000;
const SECONDS: u64 = 240;

/// The pieces of the data at rest.
const PIECE_BYTES: u64 = 4 << 20;

/// The recording of one program.
pub struct Recording<'a> {
    pub program: &'a Path,
    pub sources: &'a SourceTree,
    /// A new directory.
    pub place: &'a Path,
    pub subject: Subject,
    pub seed: u64,
}

impl Recording<'_> {
    /// Records a trace in a directory.
    pub fn run(&self, directory: &Path) -> Outcome {
        let (name, mount) = (self.subject.name(), self.place.join("mnt"));
        fs::create_dir_all(directory)
            .map_err(|error| format!("{}: {error}", directory.display()))?;
        let data = self.place.join("data");
        sets::format(self.program, &data, DATA, true)?;
        let server = Server::start(self.program, &data, true, &self.place.join("server.log"))?;
        server.command(&format!("FLASH.VOLUME CREATE disk {SIZE}"))?;
        let mut disk = Attached::attach(&server.uri("disk"), &self.place.join("disk"), false)?;
        Filesystem::Ext4.make(disk.device())?;
        disk.mount(Filesystem::Ext4, &mount, "noatime")?;
        eprintln!("{name}: prepares");
        let site = Site {
            at: mount.join(name),
            scratch: self.place.join("scratch"),
            sources: self.sources,
            variant: self.seed,
        };
        create(&site.at)?;
        create(&site.scratch)?;
        let mut labour = self.subject.begin(site, self.program)?;
        self.rest(&mount.join("rest"))?;
        output(limited(300, "sync").arg("--file-system").arg(&mount))?;
        eprintln!("{name}: at most {REQUESTS} requests or {SECONDS} s are recorded");
        let recorded = self.record(&server, labour.as_mut());
        labour.halt();
        drop(labour);
        recorded?;
        let logs = streams::inodes(&mount, self.subject.logs())?;
        disk.unmount()?;
        let streams = streams::Streams::of(disk.device(), &logs)?;
        let marked = self.place.join("marked.csv");
        streams.mark(&self.raw(), &marked)?;
        disk.detach()?;
        let trace = directory.join(format!("{name}.csv.zst"));
        let mut convert = limited(60, &self.program.display().to_string());
        convert.args(["trace", "convert", "--force", "--to", "alibaba"]).arg(&marked);
        output(convert.arg(&trace)).map(drop)
    }

    fn raw(&self) -> PathBuf {
        self.place.join("raw.csv")
    }

    /// Fills the file system but for the room of the subject, which is in pieces all over it. What
    /// these files contain does not matter: a drive is filled before a trace is replayed on it.
    fn rest(&self, at: &Path) -> Outcome {
        create(at)?;
        let failed = |error| format!("{}: {error}", at.display());
        let mut pieces = Vec::new();
        for number in 0u64.. {
            interrupt::check()?;
            let piece = at.join(number.to_string());
            let file = File::create(&piece).map_err(failed)?;
            if rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, PIECE_BYTES)
                .is_err()
            {
                fs::remove_file(&piece).map_err(failed)?;
                break;
            }
            pieces.push(piece);
        }
        let room = (self.subject.room_bytes() / PIECE_BYTES) as usize;
        let every = (pieces.len() / room.max(1)).max(1);
        pieces
            .iter()
            .step_by(every)
            .take(room)
            .try_for_each(|piece| fs::remove_file(piece).map_err(failed))
    }

    /// Lets the subject work until the recorder has ended.
    fn record(&self, server: &Server, labour: &mut dyn Labour) -> Outcome {
        let log = self.place.join("recorder.log");
        let mut recorder = self.recorder(server, &log)?;
        let has_ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let work = scope.spawn(|| {
                let mut outcome = Ok(());
                while outcome.is_ok() && !has_ended.load(Ordering::SeqCst) {
                    outcome = labour.step();
                }
                outcome
            });
            let limit = Duration::from_secs(2 * SECONDS);
            let ended = interrupt::wait(limit, || {
                work.is_finished() || !matches!(recorder.try_wait(), Ok(None))
            });
            has_ended.store(true, Ordering::SeqCst);
            let worked = work.join().unwrap_or_else(|_| Err("the work has panicked".to_owned()));
            worked.and(match ended {
                Ok(false) => Err(format!("the recorder did not end in {limit:?}")),
                ended => ended.map(drop),
            })
        })
        .inspect_err(|_| end(&mut recorder))?;
        match recorder.wait() {
            Ok(status) if status.success() => Ok(()),
            _ => Err(format!("the recorder failed; {}", said(&log))),
        }
    }

    fn recorder(&self, server: &Server, log: &Path) -> Outcome<Child> {
        let mut recorder = Command::new(self.program);
        recorder.arg("record").arg(self.raw()).args(["--connect", server.address()]);
        recorder.args(["--volume", "disk", "--format", "alibaba", "--buffer", "262144"]);
        recorder.args(["--requests", &REQUESTS.to_string()]);
        recorder.args(["--duration", &format!("{SECONDS}s")]).stdin(Stdio::null());
        log_to(&mut recorder, log)?;
        spawn(&mut recorder)
    }
}

/// What a program has printed.
fn said(log: &Path) -> String {
    fs::read_to_string(log).unwrap_or_default()
}
