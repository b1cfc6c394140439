//! The description of an exported volume: what it begins with, its snapshots, sizes and settings.

use softflash_base::cast::{index, saturating_u16, saturating_u32};
use softflash_volume::{Lifetime, Temperature, VolumeSettings};

/// An exported volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// What its first image differs from.
    pub beginning: Beginning,
    /// Its settings.
    pub settings: VolumeSettings,
    /// The exported snapshots with their sizes, the oldest first.
    pub snapshots: Vec<(String, u64)>,
    /// Its present size.
    pub size_bytes: u64,
}

/// What the first image of a volume differs from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Beginning {
    /// Zeros: the whole volume is exported.
    Empty,
    /// A snapshot of an earlier volume of the stream, of which it is a clone.
    Clone {
        /// The volume.
        volume: String,
        /// The snapshot.
        snapshot: String,
    },
    /// A snapshot of the same volume: an increment.
    Base(Base),
}

/// The snapshot that an increment begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// Its name.
    pub snapshot: String,
    /// Its size.
    pub size_bytes: u64,
    /// What is compared with that of the snapshot to which the increment is applied.
    pub digest: Digest,
}

/// A digest of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Digest {
    /// Of what is mapped.
    Quick(u64),
    /// Of what is mapped, and of the data.
    Full(u64),
}

impl Described {
    /// The images: the snapshots, and the volume as it is.
    pub fn images(&self) -> u32 {
        saturating_u32(self.snapshots.len()) + 1
    }

    /// The size of an image.
    pub fn image_bytes(&self, image: u32) -> u64 {
        self.snapshots.get(index(image)).map_or(self.size_bytes, |(_, bytes)| *bytes)
    }

    /// The bytes of the description.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        text(&mut bytes, &self.name);
        match &self.beginning {
            Beginning::Empty => bytes.push(0),
            Beginning::Clone { volume, snapshot } => {
                bytes.push(1);
                text(&mut bytes, volume);
                text(&mut bytes, snapshot);
            }
            Beginning::Base(Base { snapshot, size_bytes, digest }) => {
                let (kind, digest) = match *digest {
                    Digest::Quick(digest) => (2, digest),
                    Digest::Full(digest) => (3, digest),
                };
                bytes.push(kind);
                text(&mut bytes, snapshot);
                bytes.extend_from_slice(&size_bytes.to_le_bytes());
                bytes.extend_from_slice(&digest.to_le_bytes());
            }
        }
        let settings = &self.settings;
        bytes.extend_from_slice(&settings.quota_bytes.unwrap_or(0).to_le_bytes());
        let bandwidth = settings.bandwidth_bytes_per_second.unwrap_or(0);
        bytes.extend_from_slice(&bandwidth.to_le_bytes());
        bytes.extend_from_slice(&settings.iops.unwrap_or(0).to_le_bytes());
        bytes.extend_from_slice(&settings.weight.to_le_bytes());
        bytes.push(match settings.lifetime.temperature {
            Temperature::Hot => 0,
            Temperature::Warm => 1,
            Temperature::Cold => 2,
        });
        bytes.push(settings.lifetime.stream);
        bytes.extend_from_slice(&saturating_u32(self.snapshots.len()).to_le_bytes());
        for (name, size_bytes) in &self.snapshots {
            text(&mut bytes, name);
            bytes.extend_from_slice(&size_bytes.to_le_bytes());
        }
        bytes.extend_from_slice(&self.size_bytes.to_le_bytes());
        bytes
    }

    /// `None` for bytes that are no description.
    pub(super) fn decode(bytes: &[u8]) -> Option<Described> {
        let mut fields = Fields(bytes);
        let name = fields.text()?;
        let beginning = match fields.u8()? {
            0 => Beginning::Empty,
            1 => Beginning::Clone { volume: fields.text()?, snapshot: fields.text()? },
            kind @ (2 | 3) => {
                let (snapshot, size_bytes) = (fields.text()?, fields.u64()?);
                let digest = fields.u64()?;
                let digest = if kind == 2 { Digest::Quick(digest) } else { Digest::Full(digest) };
                Beginning::Base(Base { snapshot, size_bytes, digest })
            }
            _ => return None,
        };
        let (quota, bandwidth, iops) = (fields.u64()?, fields.u64()?, fields.u32()?);
        let (weight, temperature, stream) = (fields.u16()?, fields.u8()?, fields.u8()?);
        let temperature = match temperature {
            0 => Temperature::Hot,
            1 => Temperature::Warm,
            2 => Temperature::Cold,
            _ => return None,
        };
        let settings = VolumeSettings {
            quota_bytes: Some(quota).filter(|&bytes| bytes > 0),
            iops: Some(iops).filter(|&iops| iops > 0),
            bandwidth_bytes_per_second: Some(bandwidth).filter(|&bytes| bytes > 0),
            weight,
            lifetime: Lifetime { temperature, stream },
        };
        let snapshots = fields.u32()?;
        let snapshots = (0..snapshots).map(|_| Some((fields.text()?, fields.u64()?)));
        let snapshots = snapshots.collect::<Option<Vec<_>>>()?;
        let size_bytes = fields.u64()?;
        let described = Described { name, beginning, settings, snapshots, size_bytes };
        fields.0.is_empty().then_some(described)
    }
}

/// Appends a text behind its length. Names are far shorter than what fits.
fn text(bytes: &mut Vec<u8>, text: &str) {
    let length = saturating_u16(text.len());
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes.extend_from_slice(&text.as_bytes()[..usize::from(length)]);
}

/// Reads fields from the front of some bytes; `None` beyond their end.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (front, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*front)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Option<String> {
        let length = usize::from(self.u16()?);
        let (front, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(front.to_vec()).ok()
    }
}
