//! Fuzzes the decoder of the starts of patches.

#![no_main]

use softflash_fuzz as _;

libfuzzer_sys::fuzz_target!(|data: &[u8]| softflash_store::fuzzing::patch(data));
