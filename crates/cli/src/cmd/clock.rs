//! `softflash clock`: compares the clock of a store with that of the machine, and sets it back.

use crate::directories::{self, block_on};
use clap::Args;
use serde::Serialize;
use softflash_console::CliError;
use softflash_console::host;
use softflash_console::output::{self, Form};
use softflash_console::plural::plural;
use softflash_datadir::{DataDirError, OpenDir};
use softflash_store::clock::{NOTABLE_LEAD_MS, recorded_clock, span};
use softflash_store::clock::{delete_expired, set_clock_back};
use std::path::PathBuf;

/// Arguments of `clock`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  softflash clock ./softflash-data
  softflash clock ./softflash-data -o json
  softflash clock ./softflash-data --set-back

Keys expire by a clock that the store keeps. It follows the clock of the machine forward only, so \
that a key that was seen expired stays expired. After a server has run with a wrong clock, the \
store's clock may be ahead: keys expire too early.

--set-back sets it to the clock of this machine, which must be right. All keys that have expired \
by the store's clock are deleted first; they do not come back. To have them back, load a dump. A \
run that was interrupted is repeated.

While a server has the directory open, TIME and clock_lead_ms of FLASH.STATS show its clock.")]
pub struct Clock {
    /// The data directory
    directory: PathBuf,
    /// Set the store's clock back to this machine's, and delete the keys that have expired
    #[arg(long)]
    set_back: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Form,
}

/// What a running server shows instead.
const OF_A_SERVER: &str = "see TIME and `clock_lead_ms` of its FLASH.STATS";

/// The clocks, and what was done.
#[derive(Debug, Serialize)]
struct Clocks {
    /// What the store's clock records, in milliseconds since the Unix epoch; 0 for nothing yet.
    store_ms: u64,
    /// What the machine's clock shows.
    machine_ms: u64,
    /// How far the store's clock is ahead.
    lead_ms: u64,
    /// Whether it was set back; the numbers are those after it.
    set_back: bool,
    /// Expired keys that were deleted for it.
    keys_deleted: u64,
}

impl Clocks {
    fn read(directory: &OpenDir) -> Result<Clocks, CliError> {
        let OpenDir { device, layout, path, .. } = directory;
        let store_ms = block_on(|runtime| async move {
            let read = recorded_clock(device, layout, &runtime).await;
            Ok(read.map_err(DataDirError::store(path))?)
        })?;
        let machine_ms = host::wall_ms();
        let lead_ms = store_ms.saturating_sub(machine_ms);
        Ok(Clocks { store_ms, machine_ms, lead_ms, set_back: false, keys_deleted: 0 })
    }
}

impl Clock {
    /// Shows the clocks, or sets the store's back.
    pub fn run(self) -> Result<(), CliError> {
        let clocks = match self.set_back {
            true => {
                set_back(&directories::or_instead(OpenDir::open(&self.directory), OF_A_SERVER)?)?
            }
            false => Clocks::read(&directories::or_instead(
                OpenDir::open_to_look(&self.directory),
                OF_A_SERVER,
            )?)?,
        };
        match self.output {
            Form::Json => output::json(&clocks),
            Form::Table => {
                print(&clocks);
                Ok(())
            }
        }
    }
}

fn set_back(directory: &OpenDir) -> Result<Clocks, CliError> {
    let before = Clocks::read(directory)?;
    if before.lead_ms == 0 {
        return Ok(before);
    }
    let OpenDir { device, layout, path, .. } = directory;
    // Each on an executor of its own: the tasks of one hold the device until it is dropped.
    let deleted = block_on(|runtime| async move {
        let deleted = delete_expired(device, layout, &runtime).await;
        Ok(deleted.map_err(DataDirError::store(path))?)
    })?;
    let to_ms = host::wall_ms();
    block_on(|runtime| async {
        let runtime = runtime;
        let set = set_clock_back(&deleted, device, layout, to_ms, &runtime).await;
        Ok(set.map_err(DataDirError::store(path))?)
    })?;
    let after = Clocks::read(directory)?;
    if after.store_ms > to_ms {
        return Err(CliError::Failed(format!(
            "{}: the store's clock is still {} ahead; {} that had expired are deleted; run the \
             command again",
            path.display(),
            span(after.lead_ms),
            plural(deleted.keys, "key")
        )));
    }
    Ok(Clocks { set_back: true, keys_deleted: deleted.keys, ..after })
}

fn print(clocks: &Clocks) {
    let Clocks { store_ms, machine_ms, lead_ms, set_back, keys_deleted } = *clocks;
    let store = if store_ms == 0 { "nothing recorded yet".to_owned() } else { utc(store_ms) };
    let lead = if lead_ms == 0 { "not ahead".to_owned() } else { span(lead_ms) };
    let mut pairs = vec![
        ("store's clock", store),
        ("this machine's clock", utc(machine_ms)),
        ("the store's is ahead by", lead),
    ];
    if set_back {
        let text = format!("{} that had expired", plural(keys_deleted, "key"));
        pairs.push(("set back; deleted", text));
    }
    output::pairs(pairs);
    if !set_back && lead_ms >= NOTABLE_LEAD_MS {
        output::say(
            "keys expire by the store's clock; --set-back sets it to this machine's, and deletes \
             the keys that have expired by then",
        );
    }
}

/// The date and the time of day in UTC.
fn utc(ms: u64) -> String {
    let (days, second) = (ms / 86_400_000, ms / 1000 % 86_400);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// The date of a day since the Unix epoch, in the Gregorian calendar: by years that begin in March,
/// so that a leap day is the last one, in cycles of 400 years.
fn date(days: u64) -> (u64, u64, u64) {
    const CYCLE_DAYS: u64 = 146_097;
    let since_march = days + 719_468;
    let (cycle, day) = (since_march / CYCLE_DAYS, since_march % CYCLE_DAYS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (cycle * 400 + year + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_utc() {
        for (ms, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399_000, "2000-02-28 23:59:59 UTC"),
            (951_868_800_000, "2000-03-01 00:00:00 UTC"),
            (1_709_164_800_999, "2024-02-29 00:00:00 UTC"),
            (1_795_702_968_559, "2026-11-26 14:22:48 UTC"),
            (4_107_542_400_000, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(utc(ms), text);
        }
    }
}
