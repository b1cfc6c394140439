//! A file device that gets more units at its end.

use super::device::check_configuration;
use super::extent;
use super::room::{self, NoRoom};
use crate::growth_error::GrowthError;
use crate::label::Configuration;
use crate::size::{cut_to, size_of};
use std::fs::File;
use std::io;
use std::path::Path;

/// Reserves the room of a device of `units` units in its file, durably. A failure gives back what
/// was reserved.
pub(super) fn reserve(
    file: &File,
    path: &Path,
    configuration: &Configuration,
    units: u16,
) -> Result<(), GrowthError> {
    let (larger, failed) =
        (Configuration { units, ..configuration.clone() }, GrowthError::io(path));
    let needed = check_configuration(&larger)
        .map_err(|_| GrowthError::too_large(units, &configuration.geometry))?;
    let found = size_of(file).map_err(&failed)?;
    let path = path.to_owned();
    if !file.metadata().map_err(&failed)?.is_file() {
        return match found < needed {
            true => Err(GrowthError::DriveTooSmall { path, found, needed }),
            false => Ok(()),
        };
    }
    let (had, more) = (found.min(needed), needed.saturating_sub(found));
    let reserved = room::reserve(file, had..needed).map_err(|lack| match lack {
        NoRoom::Full => GrowthError::NoSpace { path, bytes: more },
        NoRoom::Io(source) => failed(source),
    });
    let reserved = reserved.and_then(|()| file.sync_all().map_err(&failed));
    if reserved.is_err()
        && let Err(error) = cut_to(file, found)
    {
        tracing::warn!(%error, "room that was reserved for units is not given back");
    }
    reserved
}

/// Gives back the room behind the units that the label names.
pub(super) fn give_back(file: &File, configuration: &Configuration) -> io::Result<()> {
    cut_to(file, extent::device_bytes(&configuration.geometry, configuration.units))
}
