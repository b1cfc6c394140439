//! Builders of patches and records for tests of trees.

use crate::format::patch::{Added, BuilderConfig, PatchBuilder};
use crate::format::record::{Body, Record};
use crate::kv::patch::{MetadataGuess, Patch};
use crate::kv::tree::Tree;
use crate::layout::Compression;
use bytes::Bytes;
use softflash_base::SliceId;
use softflash_blocks::BlockLayer;
use std::rc::Rc;

/// A patch of these records with metadata only, for tests of policies, which read no records.
pub(crate) fn patch_of(blocks: &BlockLayer, records: &[Record]) -> Rc<Patch> {
    let config =
        BuilderConfig::new(blocks.capacity_bytes(), blocks.page_bytes(), Compression::None);
    let mut builder = PatchBuilder::new(config, SliceId(0));
    for record in records {
        assert_eq!(builder.add(record), Added::Added);
    }
    let id = blocks.new_id();
    let image = builder.finish(id.0, blocks.identity(id));
    Rc::new(Patch::new(id, blocks.clone(), image.index))
}

/// A patch with a value of `bytes` bytes for each of two keys, or for one if they are equal.
pub(crate) fn patch(blocks: &BlockLayer, first: &str, last: &str, bytes: usize) -> Rc<Patch> {
    let records = [first, last].map(|key| value(key, 5, bytes));
    patch_of(blocks, if first == last { &records[..1] } else { &records })
}

/// A patch whose metadata cannot be read.
pub(crate) async fn lost_patch(blocks: &BlockLayer) -> Rc<Patch> {
    let patch = Patch::load(blocks.new_id(), blocks.clone(), &MetadataGuess::default()).await;
    assert!(patch.damage().is_some());
    Rc::new(patch)
}

/// A tree of these patches, each with its level and run.
pub(crate) fn tree(patches: &[(u8, u64, &Rc<Patch>)]) -> Tree {
    let added: Vec<_> =
        patches.iter().map(|(level, run, p)| (*level, *run, Rc::clone(p))).collect();
    Tree::default().edited(&[], &added)
}

/// A value that never expires.
pub(crate) fn value(key: &str, seq: u64, bytes: usize) -> Record {
    expiring(key, seq, bytes, 0)
}

/// A value that expires.
pub(crate) fn expiring(key: &str, seq: u64, bytes: usize, expires_at_ms: u64) -> Record {
    let value = Bytes::from(vec![7; bytes]);
    let body = Body::Put { value, expires_at_ms, fragment: 0, fragments: 1 };
    Record::seal(Bytes::copy_from_slice(key.as_bytes()), seq, body).unwrap()
}

/// A fragment of a large value.
pub(crate) fn fragment(key: &str, seq: u64, fragment: u16, expires_at_ms: u64) -> Record {
    let value = Bytes::from(vec![7; 100]);
    let body = Body::Put { value, expires_at_ms, fragment, fragments: 9 };
    Record::seal(Bytes::copy_from_slice(key.as_bytes()), seq, body).unwrap()
}

/// A deletion.
pub(crate) fn deletion(key: &str, seq: u64) -> Record {
    Record::delete(Bytes::copy_from_slice(key.as_bytes()), seq)
}
