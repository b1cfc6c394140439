//! Fuzzes the decoder of requests of Redis clients.

#![no_main]

use softflash_fuzz as _;

libfuzzer_sys::fuzz_target!(|data: &[u8]| softflash_protocol::fuzzing::resp(data));
