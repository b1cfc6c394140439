//! Every workload that comes with SoftFlash can be read, is valid, and is named as its file.

#![expect(clippy::unwrap_used, reason = "a helper of tests")]

use softflash_base::random::Rng;
use softflash_workload::{BlockWorkload, FlowWorkload, KvWorkload, Load};
use std::collections::BTreeMap;

/// The files by name.
fn presets() -> BTreeMap<String, String> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../presets/workloads");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect()
}

fn block(name: &str) -> BlockWorkload {
    toml::from_str(&presets()[name]).unwrap()
}

#[test]
fn every_preset_is_read_and_makes_sense() {
    let presets = presets();
    assert!(presets.len() >= 10);
    for (name, text) in presets {
        let found = if name.starts_with("kv-") {
            let workload: KvWorkload =
                toml::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
            workload.source(0, 0, &Rng::seeded(1)).unwrap();
            workload.key_maker(b"{tag}").unwrap();
            let again: KvWorkload = toml::from_str(&toml::to_string(&workload).unwrap()).unwrap();
            assert_eq!(again, workload);
            [workload.name, workload.title]
        } else if text.lines().any(|line| line.starts_with("trace = ")) {
            // The laboratory repeats these traces, and its tests read the whole of them.
            let workload: toml::Table = text.parse().unwrap();
            ["name", "title"].map(|key| workload[key].as_str().unwrap().to_owned())
        } else if text.contains("[[flow]]") {
            let workload: FlowWorkload =
                toml::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
            workload.validate().unwrap();
            let again: FlowWorkload = toml::from_str(&toml::to_string(&workload).unwrap()).unwrap();
            assert_eq!(again, workload);
            [workload.name, workload.title]
        } else {
            let workload: BlockWorkload =
                toml::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
            workload.source(1 << 30, Rng::seeded(1)).unwrap();
            let again: BlockWorkload =
                toml::from_str(&toml::to_string(&workload).unwrap()).unwrap();
            assert_eq!(again, workload);
            [workload.name, workload.title]
        };
        assert_eq!(found[0], name);
        assert!(!found[1].is_empty(), "{name} has no title");
    }
}

#[test]
fn the_presets_that_scripts_name_are_what_they_are_called() {
    for (name, read_fraction) in
        [("random-read-8k", 1.0), ("random-write-8k", 0.0), ("mixed-8k", 0.5)]
    {
        let workload = block(name);
        assert_eq!((workload.read_fraction, workload.load), (read_fraction, Load::closed(1, 256)));
        assert_eq!(workload.source(1 << 30, Rng::seeded(1)).unwrap().next().bytes, 8192);
    }
}
