//! Fuzzes the decoder of headers of superblocks.

#![no_main]

use softflash_fuzz as _;

libfuzzer_sys::fuzz_target!(|data: &[u8]| softflash_ftl::fuzzing::header(data));
