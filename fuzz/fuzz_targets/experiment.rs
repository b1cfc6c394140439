//! Fuzzes the decoder of experiment files.

#![no_main]

use softflash_fuzz as _;

libfuzzer_sys::fuzz_target!(|data: &[u8]| softflash_lab::fuzzing::experiment(data));
