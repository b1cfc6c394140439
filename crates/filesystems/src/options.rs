//! The arguments of the command.

use crate::Outcome;
use crate::filesystem::Filesystem;
use crate::record::Subject;
use crate::round::Crash;
use crate::work::Kind;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

pub const HELP: &str = "\
usage: cargo xtask filesystems [--fs ext4,xfs] [--work copy,compile,sqlite,postgresql]
                               [--crash kill,host] [--copies 1|2] [--resize] [--seed N]
                               [--rounds N] [--quick] [-o json]
       cargo xtask filesystems --record DIR [--traces ycsb-a,pgbench,...] [--seed N]

Makes file systems on a volume, through nbdfuse and a loop device, and works on them: unpacks and
compiles a source tree, runs SQLite and PostgreSQL. Takes a snapshot meanwhile, kills the server with
kill -9 at a moment drawn from the seed, starts it again, and checks the file system, all that was
synced or acknowledged, and the snapshot. With the crash `host` the file system on which the server
has its data crashes with it, and loses what was not flushed. Needs root, FUSE and loop devices;
installs the programs.

  --fs      file systems (default: both)
  --work    works (default: all)
  --crash   crashes (default: both)
  --copies  copies of the volume (default: 1); 2: in a pair of sets, for odd seeds with windows, and in
            the end one of the sets is lost and the other one has everything
  --resize  meanwhile, and after the crash, FLASH.SET RESIZE takes a unit of a set away and gives it
            back; a round in which no resize was completed fails
  --seed    seed of the first round (default: drawn, and printed)
  --rounds  rounds for each file system and crash, with successive seeds (default: 1)
  --quick   a short round on a part of the tree, as in the gate; skips what this machine cannot do
  -o json   the results as JSON
  --record  records block traces in the directory instead, each of one program on ext4 on a volume
  --traces  which ones (default: all; docs/experiments.md describes them)

examples:
  cargo xtask filesystems --rounds 5
  cargo xtask filesystems --fs xfs --work sqlite --seed 7
  cargo xtask filesystems --fs ext4 --work compile --copies 2 --resize -o json
  cargo xtask filesystems --record traces --traces pgbench";

/// The arguments.
pub struct Options {
    pub filesystems: Vec<Filesystem>,
    pub works: Vec<Kind>,
    crashes: Vec<Crash>,
    /// Copies of the volume: 1 or 2.
    pub copies: u8,
    pub resize: bool,
    pub quick: bool,
    pub json: bool,
    /// Where traces are recorded, instead of rounds.
    pub record: Option<PathBuf>,
    pub subjects: Vec<Subject>,
    pub seed: u64,
    rounds: u64,
}

impl Options {
    /// The options; none for help.
    pub fn parse(arguments: &[&str]) -> Outcome<Option<Options>> {
        let mut options = Options {
            filesystems: Filesystem::ALL.to_vec(),
            works: Kind::ALL.to_vec(),
            crashes: Crash::ALL.to_vec(),
            copies: 1,
            resize: false,
            quick: false,
            json: false,
            record: None,
            subjects: Subject::ALL.to_vec(),
            seed: drawn(),
            rounds: 1,
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().copied().ok_or(format!("{argument} needs a value"));
            match *argument {
                "--help" | "-h" => return Ok(None),
                "--quick" => options.quick = true,
                "--fs" => options.filesystems = list(value()?, &Filesystem::ALL, |it| it.name())?,
                "--work" => options.works = list(value()?, &Kind::ALL, |it| it.name())?,
                "--crash" => options.crashes = list(value()?, &Crash::ALL, |it| it.name())?,
                "--copies" => options.copies = copies(value()?)?,
                "--resize" => options.resize = true,
                "--record" => options.record = Some(value()?.into()),
                "--traces" => options.subjects = list(value()?, &Subject::ALL, |it| it.name())?,
                "--seed" => options.seed = number(value()?)?,
                "--rounds" => options.rounds = rounds(value()?)?,
                "-o" => options.json = is_json(value()?)?,
                _ => return Err(format!("`{argument}` is no option\n\n{HELP}")),
            }
        }
        Ok(Some(options))
    }

    /// The options that a round depends on beside its own ones, as they are given.
    pub fn shown(&self) -> String {
        let works: Vec<&str> = self.works.iter().map(|work| work.name()).collect();
        let mut shown = format!(" --work {}", works.join(","));
        if self.copies != 1 {
            shown += &format!(" --copies {}", self.copies);
        }
        for (is_given, option) in [(self.resize, " --resize"), (self.quick, " --quick")] {
            shown += if is_given { option } else { "" };
        }
        shown
    }

    /// The rounds of a file system: crash and seed. The short form has one crash of each file
    /// system, the last one of the first.
    pub fn rounds(&self, filesystem: Filesystem) -> Vec<(Crash, u64)> {
        let seeds = self.seed..self.seed.saturating_add(self.rounds);
        let place = Filesystem::ALL.iter().position(|it| *it == filesystem).unwrap_or(0);
        let in_turn = self.crashes.iter().rev().cycle().skip(place);
        let crashes = in_turn.take(if self.quick { 1 } else { self.crashes.len() });
        crashes.flat_map(|crash| seeds.clone().map(|seed| (*crash, seed))).collect()
    }
}

/// A seed that is different every time and short to type.
fn drawn() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u64 % 1_000_000
}

fn number(text: &str) -> Outcome<u64> {
    text.parse().map_err(|_| format!("`{text}` is not a number"))
}

/// No round at all would be a test that passes without a check.
fn rounds(text: &str) -> Outcome<u64> {
    match number(text)? {
        0 => Err("--rounds: 0 rounds test nothing; give at least 1".to_owned()),
        rounds => Ok(rounds),
    }
}

fn copies(text: &str) -> Outcome<u8> {
    match text {
        "1" => Ok(1),
        "2" => Ok(2),
        _ => Err(format!("--copies: a volume has 1 or 2 copies, not `{text}`")),
    }
}

fn is_json(form: &str) -> Outcome<bool> {
    match form {
        "json" => Ok(true),
        _ => Err(format!("-o: there is no form `{form}`, but json")),
    }
}

/// Members of `all` by their names.
fn list<T: Copy>(text: &str, all: &[T], name: impl Fn(T) -> &'static str) -> Outcome<Vec<T>> {
    let member = |word: &str| {
        let found = all.iter().copied().find(|it| name(*it) == word);
        let names: Vec<&str> = all.iter().map(|it| name(*it)).collect();
        found.ok_or_else(|| format!("there is no `{word}`, but {}", names.join(", ")))
    };
    text.split(',').map(member).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_or_refused() {
        let options = |words: &[&str]| Options::parse(words).map(Option::unwrap);
        let some =
            options(&["--fs", "xfs", "--work", "sqlite,copy", "--seed", "7", "--rounds", "3"]);
        let some = some.unwrap();
        assert_eq!(some.filesystems, [Filesystem::Xfs]);
        assert_eq!(some.works, [Kind::Sqlite, Kind::Copy]);
        let rounds = some.rounds(Filesystem::Xfs);
        assert_eq!(rounds.len(), 6);
        assert!(rounds.contains(&(Crash::Host, 9)) && !some.quick && !some.json);
        let recording = options(&["--record", "traces", "--traces", "pgbench"]).unwrap();
        assert_eq!(recording.record, Some("traces".into()));
        assert_eq!(recording.subjects, [Subject::Pgbench]);
        let quick = options(&["--quick", "--seed", "1"]).unwrap();
        let crashes = Filesystem::ALL.map(|filesystem| quick.rounds(filesystem));
        assert_eq!(crashes, [[(Crash::Host, 1)], [(Crash::Kill, 1)]]);
        assert!(options(&["--quick", "-o", "json"]).unwrap().json);
        assert!(some.copies == 1 && !some.resize);
        let pair = options(&["--copies", "2", "--resize"]).unwrap();
        assert!(pair.copies == 2 && pair.resize);
        let work = "--work copy,compile,sqlite,postgresql";
        assert_eq!(pair.shown(), format!(" {work} --copies 2 --resize"));
        for (words, part) in [
            (&["--fs", "fat"][..], "there is no `fat`, but ext4, xfs"),
            (&["--seed", "x"], "`x` is not a number"),
            (&["--work"], "--work needs a value"),
            (&["--rounds", "0"], "give at least 1"),
            (&["-o", "table"], "there is no form `table`"),
            (&["--copies", "3"], "1 or 2 copies, not `3`"),
            (&["fast"], "`fast` is no option"),
        ] {
            let error = options(words).err().unwrap();
            assert!(error.contains(part), "{error}");
        }
        assert!(Options::parse(&["--help"]).unwrap().is_none());
    }
}
