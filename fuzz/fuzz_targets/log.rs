//! Fuzzes the decoder of the frames of a log.

#![no_main]

use softflash_fuzz as _;

libfuzzer_sys::fuzz_target!(|data: &[u8]| softflash_store::fuzzing::log(data));
