//! `cargo xtask first-day`: runs the commands in the code blocks of README and docs, as a reader
//! would on the first day. A command that is not run is printed with its reason.

mod block;
mod files;
mod session;
mod stand_ins;

use crate::Outcome;
use crate::clients::Clients;
use crate::program::program;
use crate::run::root;
use crate::scratch::Scratch;
use session::Session;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::scope;
use std::time::Instant;

const USAGE: &str = "usage: cargo xtask first-day [--page PAGE]   (README.md, docs/volumes.md, ...; all by default)";

/// Pages that are played at a time, each in a directory of its own: most commands keep one core
/// busy or wait.
const TOGETHER: usize = 2;

/// The form of the gate: all pages.
pub fn gate() -> Outcome {
    carry_out(&pages()?, true)
}

/// Runs the commands of some pages.
pub fn run(arguments: &[&str]) -> Outcome {
    match arguments {
        [] => carry_out(&pages()?, false),
        ["--page", page] => carry_out(&[(*page).to_owned()], false),
        _ => Err(USAGE.to_owned()),
    }
}

/// README and the pages of `docs`.
fn pages() -> Outcome<Vec<String>> {
    let mut pages = vec!["README.md".to_owned()];
    let docs = fs::read_dir(root().join("docs")).map_err(|error| format!("docs: {error}"))?;
    let names = docs.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let names: BTreeSet<String> = names.filter(|name| name.ends_with(".md")).collect();
    pages.extend(names.into_iter().map(|name| format!("docs/{name}")));
    Ok(pages)
}

fn carry_out(pages: &[String], in_gate: bool) -> Outcome {
    Clients::find_or_install()?.describe();
    let program = program(in_gate)?;
    let programs = program.parent().unwrap_or(&program);
    let waiting = Mutex::new(pages.iter());
    let ended = Mutex::new((0, Vec::new(), Ok(())));
    let in_turn = || {
        // Not in the loop's head: the queue would be locked as long as the page is played.
        let next = || locked(&waiting).next();
        while let Some(page) = next() {
            let played = play(page, programs);
            let (ran, failed, outcome) = &mut *locked(&ended);
            match played {
                Ok(mut played) => {
                    print!("{}", played.said);
                    *ran += played.ran;
                    failed.append(&mut played.failed);
                }
                Err(error) => *outcome = Err(error),
            }
        }
    };
    scope(|scope| (0..TOGETHER).for_each(|_| drop(scope.spawn(in_turn))));
    let (ran, failed, outcome) = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
    outcome?;
    println!("first-day: {ran} commands ran, {} failed", failed.len());
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!("first-day: failed: {}", failed.join(", "))),
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the commands of a page came to.
#[derive(Default)]
struct Played {
    ran: u32,
    failed: Vec<String>,
    /// A line for each command, and the errors.
    said: String,
}

/// Runs the commands of a page.
fn play(page: &str, programs: &Path) -> Outcome<Played> {
    let text = fs::read_to_string(root().join(page)).map_err(|error| format!("{page}: {error}"))?;
    let commands = block::commands(&text);
    let mut played = Played::default();
    if commands.is_empty() {
        return Ok(played);
    }
    let place = Scratch::new(&format!("first-day-{}", page.replace('/', "-")))?;
    let mut session = Session::new(programs, place.path().to_owned())?;
    for line in &commands {
        let shown = format!("{page}:{}: {}", line.number, line.command);
        if let Some(reason) = stand_ins::reason_against(&line.command) {
            played.said += &format!("not run {shown}\n        ({reason})\n");
            continue;
        }
        played.ran += 1;
        let started = Instant::now();
        let ended = match stand_ins::is_known(&stand_ins::replaced(&line.command)) {
            true => session.run(line),
            false => Err("its program is not among those that are run (stand_ins.rs)".to_owned()),
        };
        match ended {
            Ok(()) => played.said += &format!("ok {:>4} {shown}\n", taken(started)),
            Err(error) => {
                played.said += &format!("FAILED  {shown}\n{error}\n");
                played.failed.push(format!("{page}:{}", line.number));
            }
        }
    }
    Ok(played)
}

/// The seconds since a moment, if there are some.
fn taken(started: Instant) -> String {
    match started.elapsed().as_secs() {
        0 => String::new(),
        seconds => format!("{seconds} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::block::Line;
    use super::*;

    #[test]
    fn it_is_decided_for_every_command_of_the_pages_whether_it_is_run() {
        let texts =
            pages().unwrap().into_iter().map(|page| fs::read_to_string(root().join(page)).unwrap());
        let commands: Vec<Line> = texts.flat_map(|text| block::commands(&text)).collect();
        for (start, _) in stand_ins::NOT_RUN {
            let is_there = commands.iter().any(|line| line.command.starts_with(start));
            assert!(is_there, "no page has a command that starts with `{start}`");
        }
        for line in commands {
            let is_decided = stand_ins::reason_against(&line.command).is_some()
                || stand_ins::is_known(&stand_ins::replaced(&line.command));
            assert!(is_decided, "`{}`: is it run? stand_ins.rs has to say it", line.command);
        }
    }
}
