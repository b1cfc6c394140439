//! A change of the images, as it is written in a frame: recovery applies it where it was made.

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_lossless
)]

use super::bytes::{Append, Reader};
use super::pair_state::PairState;
use super::settings;
use crate::image::ImageId;
use crate::settings::VolumeSettings;

/// A change of the images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A new volume.
    Create { image: ImageId, name: String, size: u32, settings: VolumeSettings },
    /// A new size of a volume.
    Resize { image: ImageId, size: u32 },
    /// A snapshot of a volume.
    Snapshot { of: ImageId, image: ImageId, name: String },
    /// A volume that begins with the contents of a snapshot.
    Clone { of: ImageId, image: ImageId, name: String },
    /// The end of a volume or a snapshot.
    Delete { image: ImageId },
    /// New settings of a volume.
    Set { image: ImageId, settings: VolumeSettings },
    /// Another name of a volume.
    Rename { image: ImageId, name: String },
    /// The contents and the size of a volume's newest snapshot, for the volume.
    RollBack { image: ImageId, snapshot: ImageId },
    /// The snapshot that a clone was made from, and the older ones, become those of the clone.
    Promote { clone: ImageId, snapshot: ImageId },
    /// The domain is one of a pair, with this state; what was recorded of changes since the state
    /// before is forgotten.
    Pair(PairState),
    /// The operation with this number of a pair: both domains carry it out.
    OfPair { number: u64, operation: Box<Operation> },
}

impl Operation {
    /// The operation itself, of a pair or not.
    pub fn inner(&self) -> &Operation {
        match self {
            Operation::OfPair { operation, .. } => operation,
            operation => operation,
        }
    }

    /// The image that it deletes.
    pub fn deletes(&self) -> Option<ImageId> {
        match self.inner() {
            Operation::Delete { image } => Some(*image),
            _ => None,
        }
    }

    /// The image that it creates.
    pub fn creates(&self) -> Option<ImageId> {
        match self.inner() {
            Operation::Create { image, .. }
            | Operation::Snapshot { image, .. }
            | Operation::Clone { image, .. } => Some(*image),
            Operation::Resize { .. }
            | Operation::Delete { .. }
            | Operation::Set { .. }
            | Operation::Rename { .. }
            | Operation::RollBack { .. }
            | Operation::Promote { .. }
            | Operation::Pair(_)
            | Operation::OfPair { .. } => None,
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Operation::Create { image, name, size, settings } => {
                bytes.add_u8(7);
                bytes.add_u32(image.0);
                bytes.add_u32(*size);
                settings::add(&mut bytes, settings);
                bytes.add_text(name);
            }
            Operation::Resize { image, size } => {
                bytes.add_u8(2);
                bytes.add_u32(image.0);
                bytes.add_u32(*size);
            }
            Operation::Snapshot { of, image, name } | Operation::Clone { of, image, name } => {
                bytes.add_u8(if matches!(self, Operation::Snapshot { .. }) { 3 } else { 4 });
                bytes.add_u32(of.0);
                bytes.add_u32(image.0);
                bytes.add_text(name);
            }
            Operation::Delete { image } => {
                bytes.add_u8(5);
                bytes.add_u32(image.0);
            }
            Operation::Set { image, settings } => {
                bytes.add_u8(6);
                bytes.add_u32(image.0);
                settings::add(&mut bytes, settings);
            }
            Operation::Rename { image, name } => {
                bytes.add_u8(8);
                bytes.add_u32(image.0);
                bytes.add_text(name);
            }
            Operation::RollBack { image, snapshot }
            | Operation::Promote { clone: image, snapshot } => {
                bytes.add_u8(if matches!(self, Operation::RollBack { .. }) { 9 } else { 10 });
                bytes.add_u32(image.0);
                bytes.add_u32(snapshot.0);
            }
            Operation::Pair(state) => {
                bytes.add_u8(11);
                state.add(&mut bytes);
            }
            Operation::OfPair { number, operation } => {
                bytes.add_u8(12);
                bytes.add_u64(*number);
                bytes.add(&operation.encode());
            }
        }
        bytes
    }

    /// Decodes an operation; `None` if the bytes are none, or more than one.
    pub fn decode(bytes: &[u8]) -> Option<Operation> {
        let mut reader = Reader(bytes);
        let kind = reader.u8()?;
        match kind {
            11 => {
                let state = PairState::read(&mut reader)?;
                return reader.0.is_empty().then_some(Operation::Pair(state));
            }
            12 => {
                let number = reader.u64()?;
                // An operation of a pair is none itself.
                let inner = Operation::decode(reader.0).filter(|inner| {
                    !matches!(inner, Operation::OfPair { .. } | Operation::Pair(_))
                })?;
                return Some(Operation::OfPair { number, operation: Box::new(inner) });
            }
            _ => {}
        }
        let first = ImageId(reader.u32()?);
        let operation = match kind {
            1 | 7 => {
                let size = reader.u32()?;
                // Kind 1 is from before there were settings.
                let settings = match kind {
                    1 => VolumeSettings::default(),
                    _ => settings::read(&mut reader)?,
                };
                Operation::Create { image: first, name: reader.text()?, size, settings }
            }
            2 => Operation::Resize { image: first, size: reader.u32()? },
            3 | 4 => {
                let (of, image, name) = (first, ImageId(reader.u32()?), reader.text()?);
                if kind == 3 {
                    Operation::Snapshot { of, image, name }
                } else {
                    Operation::Clone { of, image, name }
                }
            }
            5 => Operation::Delete { image: first },
            6 => Operation::Set { image: first, settings: settings::read(&mut reader)? },
            8 => Operation::Rename { image: first, name: reader.text()? },
            9 => Operation::RollBack { image: first, snapshot: ImageId(reader.u32()?) },
            10 => Operation::Promote { clone: first, snapshot: ImageId(reader.u32()?) },
            _ => return None,
        };
        reader.0.is_empty().then_some(operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_decode_to_what_was_encoded() {
        let (of, image) = (ImageId(7), ImageId(9));
        let name = "a volume".to_owned();
        let settings = VolumeSettings { quota_bytes: Some(1 << 40), ..VolumeSettings::default() };
        for operation in [
            Operation::Create { image, name: name.clone(), size: u32::MAX, settings },
            Operation::Resize { image, size: 0 },
            Operation::Snapshot { of, image, name: name.clone() },
            Operation::Clone { of, image, name: name.clone() },
            Operation::Delete { image },
            Operation::Set { image, settings },
            Operation::Rename { image, name },
            Operation::RollBack { image, snapshot: of },
            Operation::Promote { clone: image, snapshot: of },
            Operation::Pair(PairState {
                pair: 1 << 40,
                epoch: 1 << 41,
                operations: 9,
                is_whole: true,
                is_partner_whole: false,
            }),
            Operation::OfPair { number: 1 << 33, operation: Box::new(Operation::Delete { image }) },
        ] {
            let bytes = operation.encode();
            assert_eq!(Operation::decode(&bytes), Some(operation));
            assert_eq!(Operation::decode(&bytes[..bytes.len() - 1]), None);
            assert_eq!(Operation::decode(&[bytes, vec![0]].concat()), None);
        }
        assert_eq!(Operation::decode(&[13, 0, 0, 0, 0]), None);
    }

    #[test]
    fn a_volume_that_was_created_before_there_were_settings_has_the_default_ones() {
        let bytes = [1, 9, 0, 0, 0, 0, 4, 0, 0, 1, 0, b'v'];
        let settings = VolumeSettings::default();
        let created =
            Operation::Create { image: ImageId(9), name: "v".to_owned(), size: 1024, settings };
        assert_eq!(Operation::decode(&bytes), Some(created));
    }
}
