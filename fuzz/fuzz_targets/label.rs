//! Fuzzes the decoder of labels of devices.

#![no_main]

use softflash_fuzz as _;

libfuzzer_sys::fuzz_target!(|data: &[u8]| softflash_device::fuzzing::label(data));
