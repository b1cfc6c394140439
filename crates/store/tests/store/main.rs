//! The store on a device, through its library: one binary, so that common helpers are built once.
//! Exhaustive campaigns (`every_byte`, `every_command`, `file_faults`) are binaries of their own.

mod backlog;
mod clock;
mod counts;
mod durability;
mod expiry;
mod failed_opening;
mod full_pace;
mod hints;
mod joining;
mod leaving;
mod log_device;
mod log_recovery;
mod log_support;
mod lost_log;
mod mirror;
mod mirror_bytes;
mod mirror_support;
mod moving;
mod owners;
mod parity;
mod reads;
mod repair;
mod repair_cut;
mod repair_support;
mod restart;
mod scrub;
mod separated;
mod small_devices;
mod space;
mod transactions;
mod unit_sets;
mod virtual_time;
mod wear_levelling;
mod wear_out;
