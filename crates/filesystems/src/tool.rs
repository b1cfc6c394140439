//! Programs that run for a limited time, and programs that are spoken to line by line.

use crate::Outcome;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Time limit for a line of a program.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time for a killed process to end.
const END: Duration = Duration::from_secs(10);

/// A program that is killed after some seconds. It has a process group of its own, so Ctrl-C does
/// not end it.
pub fn limited(seconds: u32, program: &str) -> Command {
    let mut command = Command::new("timeout");
    command.arg("--kill-after=5").arg(seconds.to_string()).arg(program);
    command
}

/// The standard output and error of a program appended to a file.
pub fn log_to(command: &mut Command, log: &Path) -> Outcome {
    let open = || File::options().create(true).append(true).open(log);
    let failed = |error| format!("{}: {error}", log.display());
    command.stdout(open().map_err(failed)?).stderr(open().map_err(failed)?);
    Ok(())
}

/// Starts a program that goes on until it is ended; Ctrl-C does not reach it.
pub fn spawn(command: &mut Command) -> Outcome<Child> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.process_group(0).spawn().map_err(|error| format!("{name}: {error}"))
}

/// Kills a program and waits for its end. One that hangs in the kernel is left behind.
pub fn end(child: &mut Child) {
    // It may have ended by itself.
    let _ = child.kill();
    let started = Instant::now();
    while started.elapsed() < END && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A program that answers lines with lines.
pub struct Shell {
    name: String,
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Shell {
    /// Starts the program; its errors go to a file. Its output must not be held back: `stdbuf`
    /// makes a C program send each line.
    pub fn start(command: &mut Command, log: &Path) -> Outcome<Shell> {
        let name = command.get_program().to_string_lossy().into_owned();
        log_to(command, log)?;
        let mut child = spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(format!("{name} has no pipes"));
        };
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let all = BufReader::new(output).lines().map_while(Result::ok);
            // Ends with the program, or with the shell.
            all.for_each(|line| drop(sender.send(line)));
        });
        Ok(Shell { name, child, input, lines })
    }

    /// Sends text.
    pub fn send(&mut self, text: &str) -> Outcome {
        let sent = self.input.write_all(text.as_bytes()).and_then(|()| self.input.flush());
        sent.map_err(|error| format!("{}: {error}", self.name))
    }

    /// Waits for a line; skips others.
    pub fn await_line(&mut self, expected: &str) -> Outcome {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line == expected => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(format!("{}: no `{expected}`: {error}", self.name)),
            }
        }
    }

    /// Sends text and waits for a line.
    pub fn ask(&mut self, text: &str, expected: &str) -> Outcome {
        self.send(text)?;
        self.await_line(expected)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}
