//! Fuzzes the decoder of files of users and access rules.

#![no_main]

use softflash_fuzz as _;

libfuzzer_sys::fuzz_target!(|data: &[u8]| softflash_protocol::fuzzing::acl(data));
