//! Properties of the decoders for any bytes, for the fuzzers of `fuzz` and for tests that replay
//! their findings.

use crate::file::check_configuration;
use crate::model::{self, ModelConfig};

/// A device label: a decoded label encodes to an equal one, and the backends either refuse its
/// configuration with an error or can compute with its numbers.
pub fn label(data: &[u8]) {
    let Some(configuration) = crate::label::fuzzing::label(data) else { return };
    if let Ok(bytes) = check_configuration(&configuration) {
        assert!(bytes < 1 << 63, "{bytes}");
    }
    let options = toml::Value::Table(configuration.options);
    let Ok(config) = options.try_into::<ModelConfig>() else { return };
    if config.unit_geometry().is_ok() {
        let _ = config.units();
        assert!(model::file_bytes(&config.array.geometry) < 1 << 63);
    }
}

/// The record of a block.
pub fn model_record(data: &[u8]) {
    model::fuzz_record(data);
}

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    use super::replay::replay;
    use super::*;

    #[test]
    fn labels() {
        replay("label", &crate::label::fuzzing::seeds(), label);
    }

    #[test]
    fn model_records() {
        let mut worn = vec![0; 96];
        worn[8..12].copy_from_slice(&[20, 0, 0, 0]);
        worn[20..28].copy_from_slice(&[0x81, 9, 0, 0, 1, 2, 3, 4]);
        worn[32..40].copy_from_slice(&[1, 2, 3, 4, 9, 255, 0, 77]);
        replay("model_record", &[worn, vec![0xff; 64]], model_record);
    }
}
