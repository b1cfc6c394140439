//! Consecutive pages of a segment, in the form that the scanner takes.

use crate::format::log::LogScanner;
use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;
use softflash_base::IoBuf;

/// The contents of each copy of a page.
pub(super) type Readings = SmallVec<[Option<IoBuf>; 2]>;

/// Consecutive pages with the same read result.
enum Run {
    Readable(Bytes),
    /// A page that no copy can read.
    Unreadable,
    /// A page whose two copies differ.
    Disputed(Option<Bytes>, Option<Bytes>),
}

/// Consecutive pages of a segment.
pub(super) struct Piece(Vec<Run>);

impl Piece {
    /// Pages from one read.
    pub(super) fn whole(pages: &[u8]) -> Piece {
        Piece(vec![Run::Readable(Bytes::copy_from_slice(pages))])
    }

    /// Pages that were read one by one, because some are unreadable or differ between copies.
    pub(super) fn of_pages(pages: Vec<Readings>) -> Piece {
        let (mut runs, mut readable) = (Vec::new(), BytesMut::new());
        for page in &pages {
            let run = match &page[..] {
                [Some(bytes)] => {
                    readable.extend_from_slice(bytes);
                    continue;
                }
                [Some(one), Some(other)] if one[..] == other[..] => {
                    readable.extend_from_slice(one);
                    continue;
                }
                [one, other] if one.is_some() || other.is_some() => {
                    let copied = |page: &Option<IoBuf>| page.as_deref().map(Bytes::copy_from_slice);
                    Run::Disputed(copied(one), copied(other))
                }
                _ => Run::Unreadable,
            };
            runs.extend((!readable.is_empty()).then(|| Run::Readable(readable.split().freeze())));
            runs.push(run);
        }
        runs.extend((!readable.is_empty()).then(|| Run::Readable(readable.freeze())));
        Piece(runs)
    }

    pub(super) fn feed(&self, scanner: &mut LogScanner) {
        self.0.iter().for_each(|run| match run {
            Run::Readable(bytes) => scanner.feed(bytes.clone()),
            Run::Unreadable => scanner.feed_unreadable(),
            Run::Disputed(one, other) => scanner.feed_disputed(one.clone(), other.clone()),
        });
    }
}
