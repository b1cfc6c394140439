//! Labels for the fuzzers.

use super::codec::{decode, encode, seal};
use super::{Configuration, Label};

/// The offsets of the lengths of configuration and table, and of the configuration.
const LENGTHS_AT: [usize; 2] = [12, 24];
const CONFIGURATION_AT: usize = 40;

/// Decodes any bytes as a label copy, and as the configuration of an intact label. A decoded label
/// must encode to an equal one.
pub(crate) fn label(data: &[u8]) -> Option<Configuration> {
    let _ = decode(data);
    let mut copy = b"SFLABEL\x1a\x01\0\0\0".to_vec();
    copy.resize(CONFIGURATION_AT, 0);
    let table = data.first().copied().unwrap_or(0) % 4;
    let rest = data.get(1..).unwrap_or_default();
    let configuration = rest.len().saturating_sub(8 * usize::from(table));
    let configuration = u32::try_from(configuration).unwrap_or(u32::MAX);
    for (at, len) in LENGTHS_AT.into_iter().zip([configuration, table.into()]) {
        copy[at..at + 4].copy_from_slice(&len.to_le_bytes());
    }
    copy.extend_from_slice(rest);
    seal(&mut copy);
    let label = decode(&copy).ok()?;
    let again = |label: &Label| encode(label).ok();
    let written = again(&label)?;
    // Compared as bytes, because NaN is not equal to itself.
    assert_eq!(decode(&written).ok().as_ref().and_then(again), Some(written));
    Some(label.configuration)
}

#[cfg(test)]
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    use crate::model::ModelConfig;
    let file = super::tests::configuration();
    let model = |preset| {
        let config = ModelConfig::preset(preset).unwrap();
        let options = toml::Table::try_from(&config).unwrap();
        Configuration { backend: "model".to_owned(), options, ..file.clone() }
    };
    let configurations = [file.clone(), model("small"), model("tlc")];
    let seed = |configuration: &Configuration| {
        let text = toml::to_string(configuration).unwrap();
        [b"\x01", text.as_bytes(), b"\x02\0\x01\x02\x07\0\0\0"].concat()
    };
    configurations.iter().map(seed).collect()
}
