//! The settings of a volume, as operations and roots have them.

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_lossless
)]

use super::bytes::{Append, Reader};
use crate::settings::{Lifetime, STREAMS, Temperature, VolumeSettings, WEIGHTS};

/// Bytes of all settings.
pub(crate) const BYTES: usize = 24;

pub(crate) fn add(bytes: &mut Vec<u8>, settings: &VolumeSettings) {
    let Lifetime { temperature, stream } = settings.lifetime;
    bytes.add_u64(settings.quota_bytes.unwrap_or(0));
    bytes.add_u64(settings.bandwidth_bytes_per_second.unwrap_or(0));
    bytes.add_u32(settings.iops.unwrap_or(0));
    bytes.add(&settings.weight.to_le_bytes());
    bytes.add_u8(match temperature {
        Temperature::Hot => 0,
        Temperature::Warm => 1,
        Temperature::Cold => 2,
    });
    bytes.add_u8(stream);
}

/// `None` for what no program of this version has written.
pub(crate) fn read(reader: &mut Reader<'_>) -> Option<VolumeSettings> {
    let (quota, bandwidth, iops) = (reader.u64()?, reader.u64()?, reader.u32()?);
    let (weight, temperature, stream) = (reader.u16()?, reader.u8()?, reader.u8()?);
    let temperature = match temperature {
        0 => Temperature::Hot,
        1 => Temperature::Warm,
        2 => Temperature::Cold,
        _ => return None,
    };
    if !WEIGHTS.contains(&weight) || !STREAMS.contains(&stream) {
        return None;
    }
    Some(VolumeSettings {
        quota_bytes: Some(quota).filter(|&bytes| bytes > 0),
        iops: Some(iops).filter(|&iops| iops > 0),
        bandwidth_bytes_per_second: Some(bandwidth).filter(|&bytes| bytes > 0),
        weight,
        lifetime: Lifetime { temperature, stream },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_decode_to_what_was_encoded_and_others_are_refused() {
        let all = VolumeSettings {
            quota_bytes: Some(1 << 44),
            iops: Some(u32::MAX),
            bandwidth_bytes_per_second: Some(4096),
            weight: 1000,
            lifetime: Lifetime { temperature: Temperature::Cold, stream: 7 },
        };
        for settings in [all, VolumeSettings::default()] {
            let mut bytes = Vec::new();
            add(&mut bytes, &settings);
            assert_eq!((bytes.len(), read(&mut Reader(&bytes))), (24, Some(settings)));
            for (at, wrong) in [(21, 0x80), (22, 3), (23, 8)] {
                let mut other = bytes.clone();
                other[at] = wrong;
                assert_eq!(read(&mut Reader(&other)), None, "byte {at}");
            }
            assert_eq!(read(&mut Reader(&bytes[1..])), None);
        }
    }
}
