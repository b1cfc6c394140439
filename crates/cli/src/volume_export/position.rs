//! The place in a stream: which image of which volume, and what was counted so far.

use super::Described;
use softflash_base::cast::{saturating_u32, wide};

/// The counts of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Volumes.
    pub volumes: u64,
    /// Images: snapshots and volumes.
    pub images: u64,
    /// Bytes of data.
    pub data_bytes: u64,
    /// Bytes that read as zeros where the image before had data.
    pub zero_bytes: u64,
}

impl Totals {
    /// The payload of the end frame.
    pub(super) fn encode(&self) -> Vec<u8> {
        let Totals { volumes, images, data_bytes, zero_bytes } = *self;
        [volumes, images, data_bytes, zero_bytes].map(u64::to_le_bytes).concat()
    }
}

/// The place in a stream.
#[derive(Debug)]
pub(super) struct Position {
    /// The number of images of each volume.
    images: Vec<u32>,
    volume: usize,
    image: u32,
    /// Of this image.
    data_bytes: u64,
    zero_bytes: u64,
    /// Of the complete images.
    totals: Totals,
}

impl Position {
    pub fn before(volumes: &[Described]) -> Position {
        let images = volumes.iter().map(Described::images).collect();
        let totals = Totals { volumes: wide(volumes.len()), ..Totals::default() };
        Position { images, volume: 0, image: 0, data_bytes: 0, zero_bytes: 0, totals }
    }

    /// The volume and the image; none behind the last one.
    pub fn at(&self) -> Option<(usize, u32)> {
        (self.volume < self.images.len()).then_some((self.volume, self.image))
    }

    pub fn count_data(&mut self, bytes: u64) {
        self.data_bytes += bytes;
    }

    pub fn count_zeros(&mut self, bytes: u64) {
        self.zero_bytes += bytes;
    }

    /// The payload of the frame that ends this image.
    pub fn end_of_image(&self) -> Vec<u8> {
        let (volume, image) = (saturating_u32(self.volume), self.image);
        let mut payload = [volume, image].map(u32::to_le_bytes).concat();
        payload.extend([self.data_bytes, self.zero_bytes].map(u64::to_le_bytes).concat());
        payload
    }

    /// Continues with the next image.
    pub fn next_image(&mut self) {
        self.totals.images += 1;
        self.totals.data_bytes += std::mem::take(&mut self.data_bytes);
        self.totals.zero_bytes += std::mem::take(&mut self.zero_bytes);
        self.image += 1;
        if self.images.get(self.volume).is_none_or(|&images| self.image >= images) {
            (self.volume, self.image) = (self.volume + 1, 0);
        }
    }

    pub fn totals(&self) -> Totals {
        self.totals
    }
}
