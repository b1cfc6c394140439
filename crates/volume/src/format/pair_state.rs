//! The state of a domain as one of a pair, as an operation records it.

#![deny(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_lossless
)]

use super::bytes::{Append, Reader};

/// The state of a domain as one of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PairState {
    /// The identity of the pair; 0 of a domain that is none of a pair any more.
    pub pair: u64,
    /// The number of the turn in which the domain took writes last.
    pub epoch: u64,
    /// The number of the last operation of the pair.
    pub operations: u64,
    /// Whether the domain has all volumes.
    pub is_whole: bool,
    /// Whether the partner has all volumes, beside what changed since.
    pub is_partner_whole: bool,
}

/// Bytes of a state.
pub(crate) const STATE_BYTES: usize = 25;

impl PairState {
    pub fn add(&self, bytes: &mut Vec<u8>) {
        [self.pair, self.epoch, self.operations].iter().for_each(|&it| bytes.add_u64(it));
        bytes.add_u8(u8::from(self.is_whole) | u8::from(self.is_partner_whole) << 1);
    }

    pub fn read(reader: &mut Reader<'_>) -> Option<PairState> {
        let (pair, epoch, operations) = (reader.u64()?, reader.u64()?, reader.u64()?);
        let flags = reader.u8().filter(|flags| *flags < 4)?;
        let (is_whole, is_partner_whole) = (flags & 1 > 0, flags & 2 > 0);
        Some(PairState { pair, epoch, operations, is_whole, is_partner_whole })
    }
}
