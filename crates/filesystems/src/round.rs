//! One round: works on a file system on a volume, a snapshot meanwhile, `kill -9` of the server at
//! a random moment, and all checks afterwards.

use crate::Outcome;
use crate::attached::Attached;
use crate::checksums::{self, Checksums};
use crate::filesystem::Filesystem;
use crate::host::Host;
use crate::interrupt;
use crate::random::Random;
use crate::resizes::{Resizes, Tally};
use crate::run::output;
use crate::server::Server;
use crate::sets;
use crate::source_tree::SourceTree;
use crate::tool::limited;
use crate::work::{Kind, Site, Work};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Size of the volume.
const SIZE: &str = "1GiB";

/// The length of windows, where a pair has some.
const WINDOW: &str = "100ms";

/// Time limit for the first durable part of each work, for slow machines.
const PATIENCE: Duration = Duration::from_secs(120);

/// How a round is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crash {
    /// `kill -9` of the server.
    Kill,
    /// The same, with a crash of the file system that it has its data on.
    Host,
}

impl Crash {
    pub const ALL: [Crash; 2] = [Crash::Kill, Crash::Host];

    pub fn name(self) -> &'static str {
        match self {
            Crash::Kill => "kill",
            Crash::Host => "host",
        }
    }
}

/// The parameters of a round.
pub struct Round<'a> {
    pub program: &'a Path,
    pub sources: &'a SourceTree,
    /// A new directory.
    pub place: &'a Path,
    pub filesystem: Filesystem,
    pub works: &'a [Kind],
    pub crash: Crash,
    /// Copies of the volume: 1 or 2.
    pub copies: u8,
    /// Units leave their sets and come back meanwhile.
    pub resize: bool,
    pub seed: u64,
    /// Bounds in milliseconds of the time before the snapshot, and of that before the kill.
    pub moments_ms: [(u64, u64); 2],
}

/// A result: what was counted, how much was acknowledged, and how much is there.
pub struct Row {
    pub what: &'static str,
    pub unit: &'static str,
    pub acknowledged: u64,
    pub found: u64,
}

/// Works with their kinds.
type Works<'a> = Vec<(Kind, Box<dyn Work + 'a>)>;

/// After the crash: the server that has started again, and what it has to have.
struct Recovered<'a> {
    server: Server,
    works: Works<'a>,
    frozen: Checksums,
    rows: Vec<Row>,
}

impl Round<'_> {
    /// Runs it; the error names what was lost.
    pub fn run(&self) -> Outcome<(Vec<Row>, Option<Tally>)> {
        let host = match self.crash {
            Crash::Kill => None,
            Crash::Host => Some(Host::new(self.place)?),
        };
        let data = host.as_ref().map_or(self.place, Host::path).join("data");
        sets::format_for_copies(self.program, &data, self.copies)?;
        let resizes = self.resize.then(|| Resizes::new(sets::of_copies(self.copies)));
        let (recovered, tally) = std::thread::scope(|scope| {
            let resizing = resizes.as_ref().map(|it| scope.spawn(|| it.run(self.seed)));
            let recovered = self.crash_and_check(&data, host.as_ref(), resizes.as_ref());
            if recovered.is_err() {
                resizes.iter().for_each(Resizes::is_down);
            }
            resizes.iter().for_each(Resizes::end);
            let panicked = |_| Err("the thread of resizes has panicked".to_owned());
            (recovered, resizing.map(|it| it.join().unwrap_or_else(panicked)).transpose())
        });
        // Resizes that fail end the round early: theirs is the cause.
        let tally = tally?;
        let Recovered { server, mut works, frozen, mut rows } = recovered?;
        if tally.as_ref().is_some_and(|tally| tally.completed == 0) {
            return Err(format!("no resize was completed: {tally:?}"));
        }
        if self.copies == 2 {
            rows.push(self.lose_a_set(&data, server, &mut works, &frozen)?);
        }
        Ok((rows, tally))
    }

    /// The works with the crash, and all checks afterwards.
    fn crash_and_check(
        &self,
        data: &Path,
        host: Option<&Host>,
        resizes: Option<&Resizes>,
    ) -> Outcome<Recovered<'_>> {
        let mut server = self.start(data, "first")?;
        self.create_volume(&server)?;
        let mut disk = self.attach(&server, "disk", "first")?;
        self.filesystem.make(disk.device())?;
        disk.mount(self.filesystem, &self.mount_point(), self.filesystem.options())?;
        let mut works = self.begin()?;
        resizes.iter().for_each(|it| it.is_served(server.address()));
        let frozen = self.labour(&mut works, &mut server, host, resizes);
        works.iter_mut().for_each(|(_, work)| work.halt());
        drop(disk);
        let frozen = frozen?;
        host.iter().try_for_each(|host| host.recover())?;
        self.say("the server starts again; checks");
        let server = self.start(data, "second")?;
        resizes.iter().for_each(|it| it.is_served(server.address()));
        let mut rows = self.verify(&server, &mut works, "second")?;
        rows.push(self.compare_snapshot(&server, &frozen, "snapshot")?);
        Ok(Recovered { server, works, frozen, rows })
    }

    fn create_volume(&self, server: &Server) -> Outcome {
        let copies = self.copies;
        server.command(&format!("FLASH.VOLUME CREATE disk {SIZE} SET vol-0 COPIES {copies}"))?;
        match self.copies == 2 && !self.seed.is_multiple_of(2) {
            true => server.command(&format!("FLASH.SET WINDOW vol-0 {WINDOW}")),
            false => Ok(()),
        }
    }

    /// Either set of a pair has everything alone.
    fn lose_a_set(
        &self,
        data: &Path,
        mut server: Server,
        works: &mut Works<'_>,
        frozen: &Checksums,
    ) -> Outcome<Row> {
        sets::await_equal(server.address())?;
        server.kill();
        let names = sets::of_copies(self.copies);
        let lost = usize::try_from(self.seed / 2).unwrap_or(0) % names.len();
        let lost = names.get(lost).map_or("", |(name, _)| name);
        self.say(&format!("the set {lost} is lost; checks of the other one"));
        sets::lose(self.program, data, lost)?;
        let server = self.start(data, "third")?;
        self.verify(&server, works, "third")?;
        let row = self.compare_snapshot(&server, frozen, "third-snapshot")?;
        Ok(Row { what: "one set", ..row })
    }

    fn start(&self, data: &Path, name: &str) -> Outcome<Server> {
        Server::start(self.program, data, true, &self.place.join(format!("{name}-server.log")))
    }

    fn attach(&self, server: &Server, export: &str, name: &str) -> Outcome<Attached> {
        let read_only = export != "disk";
        Attached::attach(&server.uri(export), &self.place.join(format!("{name}-disk")), read_only)
    }

    fn mount_point(&self) -> PathBuf {
        self.place.join("mnt")
    }

    fn say(&self, what: &str) {
        let (name, crash) = (self.filesystem.name(), self.crash.name());
        eprintln!("{name}, {crash}, seed {}: {what}", self.seed);
    }

    fn begin(&self) -> Outcome<Works<'_>> {
        let site = |kind: Kind| Site {
            at: self.mount_point().join(kind.name()),
            scratch: self.place.join(kind.name()),
            sources: self.sources,
            variant: self.seed,
        };
        let begin = |&kind: &Kind| {
            interrupt::check()?;
            let begun = kind.begin(site(kind)).map_err(|error| format!("{}: {error}", kind.name()));
            Ok((kind, begun?))
        };
        self.works.iter().map(begin).collect()
    }

    /// All works side by side until the server is killed; returns what the snapshot must have.
    fn labour(
        &self,
        works: &mut Works<'_>,
        server: &mut Server,
        host: Option<&Host>,
        resizes: Option<&Resizes>,
    ) -> Outcome<Checksums> {
        let is_killed = AtomicBool::new(false);
        // Works that have made something durable.
        let at_work = AtomicUsize::new(0);
        let count = works.len();
        let (frozen, ended) = std::thread::scope(|scope| {
            let work_on = |work: &mut (Kind, Box<dyn Work + '_>)| {
                work.1.step().map_err(|error| format!("{}: {error}", work.0.name()))?;
                at_work.fetch_add(1, Ordering::SeqCst);
                while !is_killed.load(Ordering::SeqCst) {
                    let stepped = work.1.step();
                    if !is_killed.load(Ordering::SeqCst)
                        && let Err(error) = stepped
                    {
                        return Err(format!("{}, while the server ran: {error}", work.0.name()));
                    }
                }
                Ok(())
            };
            let threads: Vec<_> =
                works.iter_mut().map(|work| scope.spawn(move || work_on(work))).collect();
            let fails_early = || {
                let resizes_fail = resizes.is_some_and(Resizes::have_failed);
                resizes_fail || threads.iter().any(|thread| thread.is_finished())
            };
            let all_work = || {
                let resizes_work = resizes.is_none_or(Resizes::have_begun);
                resizes_work && at_work.load(Ordering::SeqCst) == count
            };
            let frozen = self.disturb(server, fails_early, all_work);
            is_killed.store(true, Ordering::SeqCst);
            resizes.iter().for_each(|it| it.is_down());
            let crashed = host.map_or(Ok(()), Host::crash);
            server.kill();
            let frozen = frozen.and_then(|frozen| crashed.map(|()| frozen));
            let join = |thread: std::thread::ScopedJoinHandle<'_, Outcome>| {
                thread.join().unwrap_or_else(|_| Err("a work has panicked".to_owned()))
            };
            (frozen, threads.into_iter().try_for_each(join))
        });
        ended.and(frozen)
    }

    /// The snapshot, and the moment of the crash; both when all works have made something durable.
    fn disturb(
        &self,
        server: &Server,
        fails_early: impl Fn() -> bool,
        all_work: impl Fn() -> bool,
    ) -> Outcome<Checksums> {
        if !interrupt::wait(PATIENCE, || all_work() || fails_early())? {
            return Err(format!(
                "a work made nothing durable, or no unit left a set and came back, within \
                 {PATIENCE:?}"
            ));
        }
        let mut random = Random::new(self.seed);
        let mut wait = |(least, most)| {
            let moment = Duration::from_millis(random.between(least, most));
            match interrupt::wait(moment, &fails_early)? {
                true => Err("a work or a resize has failed".to_owned()),
                false => Ok(moment),
            }
        };
        let [before_snapshot, before_kill] = self.moments_ms;
        let first = wait(before_snapshot)?;
        let started = Instant::now();
        let frozen = self.snapshot(server)?;
        let (files, took) = (frozen.len(), started.elapsed().as_millis());
        self.say(&format!(
            "snapshot of {files} files after {} ms, took {took} ms",
            first.as_millis()
        ));
        let second = wait(before_kill)?;
        self.say(&format!("crash after further {} ms", second.as_millis()));
        Ok(frozen)
    }

    /// A snapshot of the frozen file system, and the checksums of its files.
    fn snapshot(&self, server: &Server) -> Outcome<Checksums> {
        let at = self.mount_point();
        output(limited(60, "fsfreeze").arg("--freeze").arg(&at))?;
        let taken =
            server.command("FLASH.VOLUME SNAPSHOT disk frozen").and_then(|()| checksums::of(&at));
        output(limited(60, "fsfreeze").arg("--unfreeze").arg(&at))?;
        taken
    }

    /// After the restart: the file system is whole, and has all that was durable.
    fn verify(&self, server: &Server, works: &mut Works<'_>, name: &str) -> Outcome<Vec<Row>> {
        let mut disk = self.attach(server, "disk", name)?;
        let (at, options) = (self.mount_point(), self.filesystem.options());
        // The mount replays the journal; the check needs an unmounted file system.
        disk.mount(self.filesystem, &at, options)?;
        disk.unmount()?;
        self.filesystem.check(disk.device())?;
        disk.mount(self.filesystem, &at, options)?;
        let mut rows = Vec::new();
        for (kind, work) in works {
            interrupt::check()?;
            let found = work.verify().map_err(|error| format!("{}: {error}", kind.name()))?;
            let (what, unit, acknowledged) = (kind.name(), kind.unit(), work.acknowledged());
            rows.push(Row { what, unit, acknowledged, found });
        }
        disk.unmount()?;
        // Recovery and queries of the databases have written since.
        self.filesystem.check(disk.device())?;
        disk.detach()?;
        Ok(rows)
    }

    /// The snapshot has exactly the files of its moment.
    fn compare_snapshot(&self, server: &Server, frozen: &Checksums, name: &str) -> Outcome<Row> {
        let mut disk = self.attach(server, "disk@frozen", name)?;
        let at = self.mount_point();
        disk.mount(self.filesystem, &at, self.filesystem.frozen_options())?;
        let found = checksums::of(&at)?;
        checksums::compare(frozen, &found).map_err(|error| format!("snapshot: {error}"))?;
        disk.detach()?;
        let (acknowledged, found) = (frozen.len() as u64, found.len() as u64);
        Ok(Row { what: "snapshot", unit: "files equal", acknowledged, found })
    }
}
