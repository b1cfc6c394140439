//! Fuzzes the decoder of block traces.

#![no_main]

use softflash_fuzz as _;

libfuzzer_sys::fuzz_target!(|data: &[u8]| softflash_trace::fuzzing::trace(data));
