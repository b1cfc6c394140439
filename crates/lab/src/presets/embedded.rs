//! The presets in the binary.

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
