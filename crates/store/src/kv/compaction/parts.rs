//! Cuts a merge into parts of the key space. The outputs of a part replace its patches of the
//! target level before the next part begins, so a merge with a large level needs little free space.
//! The runs of the source level stay in the tree until the last part: each hides older versions in
//! its whole key range.

use crate::kv::patch::Patch;
use bytes::Bytes;
use std::rc::Rc;

/// A part of a merge.
pub struct Part {
    /// Its patches of the target level.
    pub below: Vec<Rc<Patch>>,
    /// Its last key; none for the last part.
    pub last_key: Option<Bytes>,
}

/// Parts of equal length, of at most `most` patches of the target level; longer where one key has
/// versions in more. No key has versions in two parts.
pub fn parts(below: &[Rc<Patch>], most: usize) -> Vec<Part> {
    // Of equal length: a short last part would cost a partly filled block.
    let count = below.len().div_ceil(most.max(1)).max(1);
    let len = below.len().div_ceil(count);
    let (mut parts, mut rest) = (Vec::new(), below);
    while rest.len() > len {
        let (part, after) = rest.split_at(cut(rest, len));
        if after.is_empty() {
            break;
        }
        let last_key = part.last().map(|patch| Bytes::copy_from_slice(patch.last_key()));
        parts.push(Part { below: part.to_vec(), last_key });
        rest = after;
    }
    parts.push(Part { below: rest.to_vec(), last_key: None });
    parts
}

/// The most patches of the target level in a part.
pub fn longest(parts: &[Part]) -> usize {
    parts.iter().map(|part| part.below.len()).max().unwrap_or(0)
}

/// The first cut at `end` or later that no key has versions on both sides of.
fn cut(patches: &[Rc<Patch>], mut end: usize) -> usize {
    while let (Some(last), Some(next)) = (patches.get(end - 1), patches.get(end))
        && last.last_key() == next.first_key()
    {
        end += 1;
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::testing::patch;
    use softflash_blocks::Redundancy;
    use softflash_testing::on_blocks;

    #[test]
    fn a_cut_is_between_two_keys_and_parts_are_of_equal_length() {
        on_blocks(Redundancy::None, async |blocks, _| {
            let below =
                ["ab", "cd", "de", "fg", "hi", "jk"].map(|k| patch(blocks, &k[..1], &k[1..], 10));
            let cut = |most| {
                let parts = parts(&below, most);
                let sizes: Vec<_> = parts.iter().map(|part| part.below.len()).collect();
                let keys: Vec<_> = parts.iter().map(|part| part.last_key.clone()).collect();
                (sizes, keys)
            };
            let key = |key: &'static str| Some(Bytes::from_static(key.as_bytes()));
            assert_eq!(cut(6), (vec![6], vec![None]));
            assert_eq!(cut(5), (vec![3, 3], vec![key("e"), None]), "not five and one");
            assert_eq!(cut(2), (vec![3, 2, 1], vec![key("e"), key("i"), None]), "`d` is in two");
            let keys = vec![key("b"), key("e"), key("g"), key("i"), None];
            assert_eq!(cut(1), (vec![1, 2, 1, 1, 1], keys));
            assert_eq!(parts(&[], 2).len(), 1);
        });
    }
}
