//! Fuzzes the matcher of glob patterns.

#![no_main]

use softflash_fuzz as _;

libfuzzer_sys::fuzz_target!(|data: &[u8]| softflash_protocol::fuzzing::glob(data));
