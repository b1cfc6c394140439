//! Fuzzes the decoder of connections of NBD clients.

#![no_main]

use softflash_fuzz as _;

libfuzzer_sys::fuzz_target!(|data: &[u8]| softflash_nbd::fuzzing::nbd(data));
