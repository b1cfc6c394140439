use super::*;
use crate::layout::{Sets, Units};
use crate::presets;
use serde::de::DeserializeOwned;
use softflash_drive::Drive;
use softflash_drive::spec::PageMapped;
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs;
use std::path::Path;
use toml::{Table, Value as Toml};

#[test]
fn the_page_of_the_documentation_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/keys.md");
    if std::env::var_os("SOFTFLASH_UPDATE").is_some() {
        fs::write(&path, page()).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let remedy = "SOFTFLASH_UPDATE=1 cargo test -p softflash-lab keys";
    assert!(written == page(), "docs/keys.md is not up to date; run {remedy}");
}

/// A file with every table that a file of its kind can have.
struct Sample<T> {
    keys: Vec<Key>,
    table: Table,
    read: fn(Table) -> Result<T, String>,
}

impl<T: PartialEq + Debug> Sample<T> {
    fn new(keys: Vec<Key>, text: &str, read: fn(Table) -> Result<T, String>) -> Sample<T> {
        let sample = Sample { keys, table: text.parse().unwrap(), read };
        (sample.read)(sample.table.clone()).unwrap();
        sample
    }

    /// The keys whose tables are in the file.
    fn present(&self) -> impl Iterator<Item = (&Key, Table, String)> {
        self.keys.iter().filter_map(|key| {
            let (path, name) = key.key.rsplit_once('.').unwrap_or(("", &key.key));
            let mut table = self.table.clone();
            table_at(&mut table, path)?;
            Some((key, table, name.to_owned()))
        })
    }

    /// Checks that the parser has the default of each key, and refuses a file without a required
    /// one; returns how many keys there were.
    fn check_defaults(&self) -> usize {
        let mut checked = 0;
        for (key, mut table, name) in self.present() {
            let path = key.key.rsplit_once('.').map_or("", |(path, _)| path);
            table_at(&mut table, path).unwrap().remove(&name);
            let without = (self.read)(table.clone());
            assert_eq!(without.is_err(), key.required, "{}: {without:?}", key.key);
            let Some(default) = &key.default else { continue };
            let value: Table = format!("value = {default}").parse().unwrap();
            table_at(&mut table, path).unwrap().insert(name, value["value"].clone());
            assert_eq!((self.read)(table), without, "the default of {}", key.key);
            checked += 1;
        }
        checked
    }

    /// Checks that the parser refuses a number on either side of its range.
    fn check_ranges(&self) -> usize {
        let mut checked = 0;
        for (key, table, name) in self.present() {
            let Some(range) = &key.range else { continue };
            let (least, most) = match range.strip_prefix("from ") {
                Some(least) => (least, None),
                None => range.split_once(" to ").map(|(a, b)| (a, Some(b))).unwrap(),
            };
            let path = key.key.rsplit_once('.').map_or("", |(path, _)| path);
            let beyond = [outside(least, -1), most.and_then(|most| outside(most, 1))];
            for wrong in beyond.into_iter().flatten() {
                let mut table = table.clone();
                let wrong = match key.what.starts_with("list") {
                    true => Toml::Array(vec![wrong]),
                    false => wrong,
                };
                table_at(&mut table, path).unwrap().insert(name.clone(), wrong.clone());
                assert!((self.read)(table).is_err(), "{} = {wrong} was taken", key.key);
                checked += 1;
            }
        }
        checked
    }

    /// Checks that the list has every key that the parser names when it is given an unknown one.
    fn check_names(&self) {
        let tables: BTreeSet<&str> =
            self.keys.iter().map(|key| key.key.rsplit_once('.').map_or("", |(t, _)| t)).collect();
        for path in tables {
            let mut table = self.table.clone();
            let Some(inner) = table_at(&mut table, path) else { continue };
            inner.insert("no-such-key".to_owned(), Toml::Boolean(true));
            let Err(error) = (self.read)(table) else { panic!("{path} takes any key") };
            let names = error.split('`').skip(3).step_by(2);
            let listed = |name: &str| {
                let key = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
                self.keys.iter().any(|listed| listed.key == key)
            };
            // An alias of `write_frontier`.
            for name in names.filter(|name| *name != "gang") {
                assert!(listed(name), "{path}: `{name}` is not listed; {error}");
            }
        }
    }
}

/// The table of this path; a list of tables is its first.
fn table_at<'a>(table: &'a mut Table, path: &str) -> Option<&'a mut Table> {
    if path.is_empty() {
        return Some(table);
    }
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    let inner = match table.get_mut(first)? {
        Toml::Table(inner) => inner,
        Toml::Array(list) => list.first_mut()?.as_table_mut()?,
        _ => return None,
    };
    table_at(inner, rest)
}

/// The number next to the end of a range; none if that is the end of its type.
fn outside(end: &str, step: i64) -> Option<Toml> {
    match end.parse::<i64>() {
        Ok(whole) => whole.checked_add(step).map(Toml::Integer),
        Err(_) => Some(Toml::Float(end.parse::<f64>().unwrap() + step as f64)),
    }
}

fn parsed<T: DeserializeOwned>(table: Table) -> Result<T, String> {
    T::deserialize(table).map_err(|error| error.message().to_owned())
}

fn device(table: Table) -> Result<DeviceSpec, String> {
    let device: DeviceSpec = parsed(table)?;
    device.array().validate().map_err(|error| error.to_string())?;
    Ok(device)
}

fn page_mapped(mut table: Table) -> Result<PageMapped, String> {
    table.retain(|key, _| key != "title" && key != "kind" && !Sets::KEYS.contains(&key));
    let layout: PageMapped = parsed(table)?;
    let device = DeviceSpec::bare("small", &softflash_nand::presets::small());
    Drive::new(&device, &layout, layout.op_percent).map_err(|error| error.to_string())?;
    Ok(layout)
}

fn block(table: Table) -> Result<BlockWorkload, String> {
    let workload: BlockWorkload = parsed(table)?;
    workload.validate().map_err(|error| error.to_string())?;
    Ok(workload)
}

fn trace(table: Table) -> Result<TraceWorkload, String> {
    let workload: TraceWorkload = parsed(table)?;
    workload.validate().map_err(|error| error.to_string())?;
    Ok(workload)
}

fn kv(table: Table) -> Result<KvWorkload, String> {
    let workload: KvWorkload = parsed(table)?;
    workload.validate().map_err(|error| error.to_string())?;
    Ok(workload)
}

fn only(kind: Kind, word: &str) -> Vec<Key> {
    let mut keys = of(kind);
    keys.retain(|key| key.only_in.as_ref().is_some_and(|only| only.contains(word)));
    keys
}

const TLC: &str = include_str!("../../../../presets/devices/tlc-modern.toml");

const CLOSED: &str = "name = 'a'\nread_fraction = 0.5\nsize = 4096\npattern = { zipf = { exponent = 1.0 } }\n\
                      load = { closed = {} }\nrate_caps = {}";
const OPEN: &str = "name = 'a'\nread_fraction = 0.5\nsize = [{ bytes = 4096, weight = 1.0 }]\n\
                    pattern = { sequential = {} }\n\
                    load = { open = { requests_per_second = 1.0, arrivals = { bursts = { on_ns = 1, off_ns = 1 } } } }";
const TRACE: &str = "name = 'a'\ntrace = 'pgbench'\nload = { closed = {} }";
const KV: &str = "name = 'a'\noperation = { scan = { scan_bytes = 9 } }\norder = { strided = { keys = 2 } }\n\
                  value_bytes = 9\nkeys_per_slice = 9";

#[test]
fn every_listed_default_is_the_parsers() {
    let (block, kv) = (only(Kind::Workload, "block"), only(Kind::Workload, "kv"));
    let devices = Sample::new(of(Kind::Device), TLC, parsed::<DeviceSpec>).check_defaults();
    let layouts = only(Kind::Layout, "page-mapped");
    let layouts = Sample::new(layouts, "", page_mapped).check_defaults();
    let units = Sample::new(only(Kind::Layout, "units"), "", parsed::<Units>).check_defaults();
    let closed = Sample::new(block.clone(), CLOSED, parsed::<BlockWorkload>).check_defaults();
    let open = Sample::new(block, OPEN, parsed::<BlockWorkload>).check_defaults();
    let kv = Sample::new(kv, KV, parsed::<KvWorkload>).check_defaults();
    let trace = only(Kind::Workload, "trace");
    let trace = Sample::new(trace, TRACE, parsed::<TraceWorkload>).check_defaults();
    let parameters = keys::<Parameters>("", None);
    let parameters = Sample::new(parameters, "", parsed::<Parameters>).check_defaults();
    let checked = [devices, layouts, units, closed, open, trace, kv, parameters];
    assert!(checked.iter().all(|checked| *checked > 2), "{checked:?}");
}

#[test]
fn numbers_outside_of_the_listed_ranges_are_refused() {
    let devices = Sample::new(of(Kind::Device), TLC, device).check_ranges();
    let layouts = Sample::new(only(Kind::Layout, "page-mapped"), "", page_mapped).check_ranges();
    let closed = Sample::new(only(Kind::Workload, "block"), CLOSED, block).check_ranges();
    let open = Sample::new(only(Kind::Workload, "block"), OPEN, block).check_ranges();
    let trace = Sample::new(only(Kind::Workload, "trace"), TRACE, trace).check_ranges();
    let kv = Sample::new(only(Kind::Workload, "kv"), KV, kv).check_ranges();
    let checked = [devices, layouts, closed, open, trace, kv];
    assert!(checked.iter().all(|checked| *checked > 3), "{checked:?}");
}

#[test]
fn every_key_that_a_parser_knows_is_listed() {
    Sample::new(of(Kind::Device), TLC, device).check_names();
    Sample::new(only(Kind::Layout, "page-mapped"), "", page_mapped).check_names();
    Sample::new(only(Kind::Workload, "block"), CLOSED, block).check_names();
    Sample::new(only(Kind::Workload, "block"), OPEN, block).check_names();
    Sample::new(only(Kind::Workload, "trace"), TRACE, trace).check_names();
    Sample::new(only(Kind::Workload, "kv"), KV, kv).check_names();
    let (_, text) = Kind::Experiment.embedded()[0];
    let experiments = Sample::new(of(Kind::Experiment), text, parsed::<Spec>);
    Sample { keys: keys::<Spec>("", None), ..experiments }.check_names();
    let parameters: Vec<String> = keys::<Parameters>("", None).into_iter().map(|k| k.key).collect();
    assert_eq!(
        BTreeSet::from_iter(parameters),
        BTreeSet::from(Parameters::NAMES.map(str::to_owned))
    );
}

#[test]
fn every_key_has_a_meaning_and_every_value_one() {
    for key in Kind::ALL.into_iter().flat_map(of) {
        assert!(!key.meaning.is_empty(), "{}", key.key);
        assert!(key.values.iter().all(|choice| !choice.meaning.is_empty()), "{}", key.key);
        assert_eq!(key.values.is_empty(), key.what != ONE_OF, "{}", key.key);
    }
}

#[test]
fn every_preset_that_is_shown_is_read_as_the_preset() {
    let directory = tempfile::tempdir().unwrap();
    let shown = |kind: Kind, name: &str| {
        let path = directory.path().join(format!("{name}.toml"));
        fs::write(&path, &kind.find(name).unwrap().text).unwrap();
        path.display().to_string()
    };
    for (name, _) in Kind::Device.embedded() {
        assert_eq!(
            presets::device(&shown(Kind::Device, name)).unwrap(),
            presets::device(name).unwrap()
        );
    }
    for (name, _) in Kind::Layout.embedded() {
        assert_eq!(
            presets::layout(&shown(Kind::Layout, name)).unwrap(),
            presets::layout(name).unwrap()
        );
    }
    for (name, _) in Kind::Workload.embedded() {
        assert_eq!(
            presets::workload(&shown(Kind::Workload, name)).unwrap(),
            presets::workload(name).unwrap()
        );
    }
}
