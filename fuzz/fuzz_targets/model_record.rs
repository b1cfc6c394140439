//! Fuzzes the decoder of records of blocks in the file of a model.

#![no_main]

use softflash_fuzz as _;

libfuzzer_sys::fuzz_target!(|data: &[u8]| softflash_device::fuzzing::model_record(data));
