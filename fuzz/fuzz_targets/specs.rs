//! Fuzzes the decoder of device, layout and workload files.

#![no_main]

use softflash_fuzz as _;

libfuzzer_sys::fuzz_target!(|data: &[u8]| softflash_lab::fuzzing::specs(data));
