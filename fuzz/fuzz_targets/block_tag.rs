//! Fuzzes the decoder of tags of blocks.

#![no_main]

use softflash_fuzz as _;

libfuzzer_sys::fuzz_target!(|data: &[u8]| softflash_store::fuzzing::block_tag(data));
