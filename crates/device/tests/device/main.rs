//! Tests of the devices.

mod conformance;
mod file_device;
mod model_device;
mod model_faults;
mod random_operations;
