//! The arguments of the command.

use super::filesystem::Filesystem;
use super::work::Kind;
use crate::Outcome;
use std::ops::Range;
use std::time::{SystemTime, UNIX_EPOCH};

pub const HELP: &str = "\
usage: cargo xtask filesystems [--fs ext4,xfs] [--work copy,compile,sqlite,postgresql]
                               [--seed N] [--rounds N] [--quick] [-o json]

Makes file systems on a volume, through nbdfuse and a loop device, and works on them: unpacks and
compiles a source tree, runs SQLite and PostgreSQL. Takes a snapshot meanwhile, kills the server with
kill -9 at a moment drawn from the seed, starts it again, and checks the file system, all that was
synced or acknowledged, and the snapshot. Needs root, FUSE and loop devices; installs the programs.

  --fs      file systems (default: both)
  --work    works (default: all)
  --seed    seed of the first round (default: drawn, and printed)
  --rounds  rounds for each file system, with successive seeds (default: 1)
  --quick   a short round on a part of the tree, as in the gate; skips what this machine cannot do
  -o json   the results as JSON

examples:
  cargo xtask filesystems --rounds 5
  cargo xtask filesystems --fs xfs --work sqlite --seed 7";

/// The arguments.
pub struct Options {
    pub filesystems: Vec<Filesystem>,
    pub works: Vec<Kind>,
    pub quick: bool,
    pub json: bool,
    seed: u64,
    rounds: u64,
}

impl Options {
    /// The options; none for help.
    pub fn parse(arguments: &[&str]) -> Outcome<Option<Options>> {
        let mut options = Options {
            filesystems: Filesystem::ALL.to_vec(),
            works: Kind::ALL.to_vec(),
            quick: false,
            json: false,
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
                "--seed" => options.seed = number(value()?)?,
                "--rounds" => options.rounds = number(value()?)?,
                "-o" if value()? == "json" => options.json = true,
                _ => return Err(format!("`{argument}` is no option\n\n{HELP}")),
            }
        }
        Ok(Some(options))
    }

    /// The seeds of the rounds.
    pub fn seeds(&self) -> Range<u64> {
        self.seed..self.seed.saturating_add(self.rounds)
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
        assert_eq!((some.seeds(), some.quick, some.json), (7..10, false, false));
        assert!(options(&["--quick", "-o", "json"]).unwrap().json);
        for (words, part) in [
            (&["--fs", "fat"][..], "there is no `fat`, but ext4, xfs"),
            (&["--seed", "x"], "`x` is not a number"),
            (&["--work"], "--work needs a value"),
            (&["fast"], "`fast` is no option"),
        ] {
            let error = options(words).err().unwrap();
            assert!(error.contains(part), "{error}");
        }
        assert!(Options::parse(&["--help"]).unwrap().is_none());
    }
}
