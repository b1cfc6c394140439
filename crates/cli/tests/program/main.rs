//! End-to-end tests of the real program: one binary, so that shared code is built once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests end at the first thing that is wrong"
)]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests say what they measured and what they skip"
)]
#![allow(clippy::disallowed_methods, reason = "tests of the real program run in real time")]

mod bench_ftl;
mod bench_kv;
mod calm_reads;
mod capacity;
mod clock;
mod command_line;
mod cut_devices;
mod dump_and_load;
mod dump_volumes;
mod failed_moves;
mod forgery;
mod format_command;
mod full;
mod grow;
mod kills;
mod lab_command;
mod lab_files;
mod limits;
mod memory;
mod nbd;
mod nbd_clients;
mod nbd_fuse;
mod nbd_tls;
mod old_directories;
mod operations;
mod outputs;
mod pairs;
mod read_only;
mod real_cache;
mod real_clients;
mod real_damage;
mod real_files;
mod real_limits;
mod real_mirror;
mod real_repair;
mod record_command;
mod record_volume;
mod scarcity;
mod secrets;
mod serving;
mod sets;
mod settings_file;
mod starting;
mod store_sets;
mod support;
mod tls;
mod tls_commands;
mod trace_command;
mod unauthenticated;
mod unread;
mod volume_damage;
mod volume_moves;
mod volume_relocation;
mod volume_reshape;
mod volume_room;
mod volume_settings;
mod volume_shrink;
mod volumes;
