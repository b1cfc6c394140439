//! `softflash set list`: lists the sets of units.

use crate::cmd::units::telemetry_of;
use crate::directories::{self, block_on};
use softflash_console::CliError;
use softflash_console::output::{self, Form};
use softflash_console::sizes::human_bytes;
use softflash_datadir::{Domains, OpenDir, SetFigures, SetKind, SetState};
use std::path::Path;

const INSTEAD: &str = "ask the server itself: `redis-cli FLASH.SET LIST`";

/// Prints the sets.
pub fn run(path: &Path, form: Form) -> Result<(), CliError> {
    // A mount of volumes writes, so it works on a copy in memory.
    let directory = directories::or_instead(OpenDir::open_to_try(path), INSTEAD)?;
    let (states, all) = look(&directory)?;
    match form {
        Form::Json => output::json(&states)?,
        Form::Table => {
            output::rows(&HEADER, states.iter().map(row));
            let spare = directory.spare();
            if !spare.is_empty() {
                output::say(&format!("{}: spare units: {spare}", path.display()));
            }
        }
    }
    // The others are listed nevertheless.
    all
}

/// The state of all sets, and the error of those that cannot be mounted.
fn look(directory: &OpenDir) -> Result<(Vec<SetState>, Result<(), CliError>), CliError> {
    block_on(|runtime| async move {
        let OpenDir { path, device, sets, domains, .. } = directory;
        let domains = Domains::mount(device, domains, &runtime).await?;
        let mut all = domains.check_all(path).map_err(CliError::from);
        let mut states = Vec::new();
        for set in sets {
            states.push(match set.kind {
                SetKind::Mapped => {
                    let mounted = domains.all.iter().find(|(of, _)| of.name == set.name);
                    let (figures, units) = mounted
                        .map(|(_, domain)| {
                            let space = domain.space();
                            let mapped_bytes = Some((space.used_bytes, space.usable_bytes));
                            let (pair, window) = (domain.pair_figures(), domain.window());
                            let figures =
                                SetFigures { mapped_bytes, pair, window, ..SetFigures::default() };
                            (figures, domain.units())
                        })
                        .unzip();
                    set.state(figures, &units.unwrap_or_default())
                }
                SetKind::Store => {
                    match telemetry_of(directory, (&set.units, set.ownership()), &runtime).await {
                        Ok(units) => set.state(Some(SetFigures::default()), &units),
                        Err(error) => {
                            all = all.and(Err(error));
                            set.state(None, &[])
                        }
                    }
                }
            });
        }
        domains.stop();
        Ok((states, all))
    })
}

const HEADER: [&str; 11] = [
    "set",
    "id",
    "shard",
    "kind",
    "units",
    "spare",
    "used",
    "usable",
    "erases mean",
    "pair",
    "window",
];

fn row(set: &SetState) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    vec![
        set.name.clone(),
        set.id.to_string(),
        set.shard.to_string(),
        set.kind.name().to_owned(),
        set.units.iter().copied().collect::<softflash_base::UnitSet>().to_string(),
        or_dash(set.op_percent.map(|percent| format!("{percent} %"))),
        or_dash(set.used_bytes.map(human_bytes)),
        human_bytes(set.usable_bytes),
        or_dash(set.erases_mean.map(|mean| format!("{mean:.1}"))),
        or_dash(set.pair.clone()),
        or_dash(set.window.map(|ms| format!("{ms} ms"))),
    ]
}
