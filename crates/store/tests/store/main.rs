//! The store on a device, through its library: one binary, so that what all of these share is built
//! once. What takes campaigns of its own (`every_byte`, `every_command`, `file_faults`) is beside.

mod backlog;
mod durability;
mod expiry;
mod log_apart;
mod log_recovery;
mod log_support;
mod lost_log;
mod mirror;
mod mirror_bytes;
mod mirror_support;
mod moving;
mod parity;
mod patrol;
mod reads;
mod repair;
mod repair_cut;
mod repair_support;
mod restart;
mod space;
mod transactions;
mod virtual_time;
mod wear_out;
