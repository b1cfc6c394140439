//! Properties of the TOML parsers for any text, for the fuzzers in `fuzz` and for tests that replay
//! their findings.

use crate::experiment::{Experiment, Form};
use crate::layout::{Layout, LayoutKind};
use crate::toml_text::from_text;
use crate::workload::Workload;
use serde::Serialize;
use serde::de::DeserializeOwned;
use softflash_base::random::Rng;
use softflash_drive::Drive;
use softflash_drive::spec::DeviceSpec;

/// Parses a text as a device, a layout and a workload: each is refused with an error, or survives
/// serialization, and its users check its numbers before they calculate with them.
pub fn specs(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    if let Some(device) = understood::<DeviceSpec>(text)
        && device.array().validate().is_ok()
    {
        let _ = device.array().geometry.bytes();
    }
    if let Some(layout) = understood::<Layout>(text)
        && let LayoutKind::PageMapped(layout) = layout.kind
    {
        let array = softflash_nand::presets::small();
        let _ = Drive::new(&DeviceSpec::bare("small", &array), &layout, layout.op_percent);
    }
    match understood::<Workload>(text) {
        Some(Workload::Block(workload)) => {
            if let Ok(mut source) = workload.source(1 << 30, Rng::seeded(1)) {
                (0..8).for_each(|_| assert!(source.next().end_bytes() <= 1 << 30));
            }
        }
        Some(Workload::Flows(workload)) => {
            let _ = workload.validate();
        }
        Some(Workload::Trace(workload)) => {
            let _ = workload.validate();
        }
        Some(Workload::Kv(workload)) => {
            let _ = workload.validate();
        }
        None => {}
    }
}

/// The value of a text, if it has one. Its serialized text parses to an equal value.
fn understood<T: DeserializeOwned + Serialize>(text: &str) -> Option<T> {
    let value: T = from_text("input.toml", text).ok()?;
    // Compares texts, as NaN is not equal to itself.
    let written = toml::to_string(&value).ok()?;
    let again = from_text::<T>("written.toml", &written).map(|value| toml::to_string(&value));
    assert_eq!(again, Ok(Ok(written)));
    Some(value)
}

/// Parses a text as an experiment, and plans it. Texts whose lists could multiply to large plans
/// are skipped.
pub fn experiment(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let Ok(experiment) = Experiment::parse("input", "input.toml", text) else { return };
    if text.matches('[').count() < 40 && text.matches(',').count() < 60 {
        for quick in [true, false] {
            let _ = experiment.plan(Form { quick, seed: None });
        }
    }
}

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    use super::replay::replay;
    use super::*;
    use crate::presets::Kind;

    /// The shortest presets of a kind: they cover nearly all keys, and the corpus stays small.
    fn shortest(kind: Kind, count: usize) -> Vec<Vec<u8>> {
        let mut texts: Vec<&str> = kind.embedded().iter().map(|(_, text)| *text).collect();
        texts.sort_by_key(|text| text.len());
        texts.into_iter().take(count).map(|text| text.as_bytes().to_vec()).collect()
    }

    #[test]
    fn texts_of_devices_layouts_and_workloads() {
        let kinds = [Kind::Device, Kind::Layout, Kind::Workload];
        let seeds: Vec<_> = kinds.into_iter().flat_map(|kind| shortest(kind, 3)).collect();
        replay("specs", &seeds, specs);
    }

    #[test]
    fn texts_of_experiments() {
        replay("experiment", &shortest(Kind::Experiment, 5), experiment);
    }
}
