//! A change of the images, as it is written in a frame: recovery applies it where it was made.

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_lossless
)]

use super::bytes::{Append, Reader};
use crate::image::ImageId;

/// A change of the images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A new volume.
    Create { image: ImageId, name: String, size: u32 },
    /// A new size of a volume.
    Resize { image: ImageId, size: u32 },
    /// A snapshot of a volume.
    Snapshot { of: ImageId, image: ImageId, name: String },
    /// A volume that begins with the contents of a snapshot.
    Clone { of: ImageId, image: ImageId, name: String },
    /// The end of a volume or a snapshot.
    Delete { image: ImageId },
}

impl Operation {
    /// The image that it creates.
    pub fn creates(&self) -> Option<ImageId> {
        match self {
            Operation::Create { image, .. }
            | Operation::Snapshot { image, .. }
            | Operation::Clone { image, .. } => Some(*image),
            Operation::Resize { .. } | Operation::Delete { .. } => None,
        }
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Operation::Create { image, name, size } => {
                bytes.add_u8(1);
                bytes.add_u32(image.0);
                bytes.add_u32(*size);
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
        }
        bytes
    }

    /// Decodes an operation; `None` if the bytes are none, or more than one.
    pub fn decode(bytes: &[u8]) -> Option<Operation> {
        let mut reader = Reader(bytes);
        let kind = reader.u8()?;
        let first = ImageId(reader.u32()?);
        let operation = match kind {
            1 => {
                let size = reader.u32()?;
                Operation::Create { image: first, name: reader.text()?, size }
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
        for operation in [
            Operation::Create { image, name: name.clone(), size: u32::MAX },
            Operation::Resize { image, size: 0 },
            Operation::Snapshot { of, image, name: name.clone() },
            Operation::Clone { of, image, name },
            Operation::Delete { image },
        ] {
            let bytes = operation.encode();
            assert_eq!(Operation::decode(&bytes), Some(operation));
            assert_eq!(Operation::decode(&bytes[..bytes.len() - 1]), None);
            assert_eq!(Operation::decode(&[bytes, vec![0]].concat()), None);
        }
        assert_eq!(Operation::decode(&[9, 0, 0, 0, 0]), None);
    }
}
