//! `softflash volume move`: a volume goes to another set of units.

use super::named::{Named, open};
use clap::Args;
use serde::Serialize;
use softflash_console::output::{self, Form};
use softflash_console::sizes::human_bytes;
use softflash_console::{CliError, interrupt};
use softflash_datadir::{Moved, quoted};
use std::sync::atomic::Ordering;

/// Arguments of `volume move`.
#[derive(Debug, Args)]
pub struct Move {
    #[command(flatten)]
    volume: Named,
    /// The set of units that holds it afterwards
    #[arg(long)]
    set: String,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

/// What has moved, as JSON.
#[derive(Serialize)]
struct Report<'a> {
    /// The volumes, parents before their clones.
    volumes: &'a [String],
    /// The set that they have left.
    from: &'a str,
    /// The set that they are in.
    set: &'a str,
    copied_bytes: u64,
}

impl Move {
    /// Copies the volume, and all that share data with it, and deletes it where it was.
    pub fn run(self) -> Result<(), CliError> {
        let Move { volume, set, output } = self;
        let interrupted = interrupt::flag(None)?;
        let mut directory = open(&volume.directory)?;
        let bar = output::progress(0, "bytes");
        let moved = directory.move_volume(&volume.name, &set, &mut |progress| {
            bar.set_length(progress.copied_bytes() + progress.left_bytes());
            bar.set_position(progress.copied_bytes());
            !interrupted.load(Ordering::Relaxed)
        });
        bar.finish_and_clear();
        let Moved { volumes, from, copied_bytes } = moved?;
        if output == Form::Json {
            return output::json(&Report {
                volumes: &volumes,
                from: &from,
                set: &set,
                copied_bytes,
            });
        }
        let (names, bytes) = (quoted(&volumes), human_bytes(copied_bytes));
        volume.say(&format!("moved {names} from the set `{from}` to `{set}`: {bytes} of data"));
        Ok(())
    }
}
