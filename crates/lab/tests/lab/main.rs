//! Tests of the laboratory: experiments beside theory, and the configurations that they read.

mod cached_map;
mod drives;
mod host_path;
mod kv_on_drive;
mod planning;
mod presets;
mod read_ahead;
mod theory;
mod traces;
mod victims;
