use super::*;
use crate::shard::recovery::replay::tests::layout;

pub(in crate::shard) mod by_hand;
mod losses;
mod unreferenced;
