//! The sets of units that have the volume: one, or two that are a pair.

use crate::Outcome;
use crate::interrupt;
use crate::resp::{self, fields};
use crate::run::output;
use crate::tool::limited;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::time::Duration;

/// Time limit for a pair to have the same data in both sets.
const PATIENCE: Duration = Duration::from_secs(120);

const REPLY: Duration = Duration::from_secs(60);

/// A set and the number of its units.
pub type Set = (&'static str, u16);

/// The sets for volumes of so many copies: one, or a pair.
pub fn of_copies(copies: u8) -> &'static [Set] {
    match copies {
        2 => &[("vol-0", 3), ("copy", 3)],
        _ => &[("vol-0", 6)],
    }
}

/// Creates a data directory of eight units, six of them for volumes if it is to have any.
pub fn format(program: &Path, data: &Path, size: &str, volumes: bool) -> Outcome {
    let mut format = limited(60, &program.display().to_string());
    format.arg("format").arg(data).args(["--size", size, "--units", "8", "--shards", "1"]);
    output(format.args(volumes.then_some(["--volume-units", "6"]).into_iter().flatten())).map(drop)
}

/// Creates a data directory with the sets for volumes of so many copies.
pub fn format_for_copies(program: &Path, data: &Path, copies: u8) -> Outcome {
    format(program, data, "4GiB", true)?;
    let softflash = || limited(60, &program.display().to_string());
    if copies == 2 {
        output(softflash().args(["set", "resize"]).arg(data).args(["vol-0", "--units", "3"]))?;
        output(softflash().args(["set", "create"]).arg(data).args(["copy", "--units", "3"]))?;
        output(softflash().args(["set", "pair"]).arg(data).args(["vol-0", "copy"]))?;
    }
    Ok(())
}

/// Deletes a set of a pair, so that the other one has to have all data.
pub fn lose(program: &Path, data: &Path, set: &str) -> Outcome {
    let mut delete = limited(60, &program.display().to_string());
    output(delete.args(["set", "delete"]).arg(data).arg(set)).map(drop)
}

/// The fields of each set, as the server lists them.
pub fn list(address: &str) -> io::Result<Vec<Map<String, Value>>> {
    let reply = resp::request(address, "FLASH.SET LIST", REPLY)?.map_err(io::Error::other)?;
    Ok(reply.as_array().into_iter().flatten().map(fields).collect())
}

/// The number of units of each set; no unit is in two of them.
pub fn units(listed: &[Map<String, Value>], sets: &[Set]) -> Outcome<Vec<u16>> {
    let mut all = BTreeSet::new();
    let units = |set: &Map<String, Value>| set.get("units").and_then(Value::as_array).cloned();
    for unit in listed.iter().filter_map(units).flatten().filter_map(|unit| unit.as_u64()) {
        if !all.insert(unit) {
            return Err(format!("unit {unit} is in two sets"));
        }
    }
    let number = |&(name, _): &Set| {
        let set = listed.iter().find(|set| set.get("name").is_some_and(|it| it == name));
        let number = set.and_then(units).and_then(|units| u16::try_from(units.len()).ok());
        number.ok_or_else(|| format!("FLASH.SET LIST has no set {name}"))
    };
    sets.iter().map(number).collect()
}

/// Waits until both sets of a pair have all data.
pub fn await_equal(address: &str) -> Outcome {
    let mut last = String::new();
    let is_equal = interrupt::wait(PATIENCE, || {
        let listed = list(address).unwrap_or_default();
        let pair: Vec<_> =
            listed.iter().filter(|set| set.get("pair").is_some_and(Value::is_string)).collect();
        let shown = |set: &&Map<String, Value>| {
            format!("{} {}", set.get("name")?, set.get("pair_state")?).into()
        };
        last = pair.iter().filter_map(shown).collect::<Vec<String>>().join(", ");
        let has_all = |set: &&Map<String, Value>| {
            set.get("pair_state").is_some_and(|it| it == "whole")
                && set.get("behind_bytes").is_some_and(|it| it == 0)
        };
        pair.len() == 2 && pair.iter().all(has_all)
    })?;
    match is_equal {
        true => Ok(()),
        false => Err(format!("the pair is not whole after {PATIENCE:?}: {last}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_unit_in_two_sets_is_an_error() {
        let listed = |copy: &[u16]| {
            let sets =
                [json!({"name": "vol-0", "units": [2, 3]}), json!({"name": "copy", "units": copy})];
            sets.map(|set| set.as_object().unwrap().clone()).to_vec()
        };
        let sets = of_copies(2);
        assert_eq!(units(&listed(&[4, 5, 6]), sets), Ok(vec![2, 3]));
        assert!(units(&listed(&[3, 4]), sets).unwrap_err().contains("unit 3 is in two sets"));
        assert!(units(&listed(&[4])[..1], sets).unwrap_err().contains("no set copy"));
    }
}
