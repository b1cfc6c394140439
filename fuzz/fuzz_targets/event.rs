//! Fuzzes the decoder of events of the log.

#![no_main]

use softflash_fuzz as _;

libfuzzer_sys::fuzz_target!(|data: &[u8]| softflash_store::fuzzing::event(data));
