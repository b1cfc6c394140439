//! The data that fit a data directory, for people and for scripts.

use serde_json::{Value, json};
use softflash_console::sizes::human_bytes;
use softflash_datadir::capacity::device_bytes;
use softflash_device::DeviceInfo;
use softflash_store::capacity::Capacity;

/// The room for volumes, for people; none without sets for volumes.
pub fn volume_sentence(rooms: &[u64]) -> Option<String> {
    let each = human_bytes(*rooms.iter().min()?);
    Some(match rooms.len() {
        1 => format!("about {each}"),
        sets => format!("{sets} x about {each}, one for each set; a volume is in one of them"),
    })
}

/// A sentence for people: the data that fit, and what takes the rest.
pub fn sentence(capacity: &Capacity) -> String {
    let Capacity { usable_bytes, kept_bytes, partly_filled_bytes, .. } = *capacity;
    let mut parts = vec![
        format!("{} stay free for flushes, the log and merges", human_bytes(kept_bytes)),
        format!("{} are partly filled superblocks", human_bytes(partly_filled_bytes)),
        format!("{} are metadata", human_bytes(capacity.metadata_bytes)),
    ];
    if capacity.redundancy_bytes > 0 {
        parts.push(format!("{} are redundancy", human_bytes(capacity.redundancy_bytes)));
    }
    format!(
        "usable about {} of {}, in keys and values of 1 KiB, because {}",
        human_bytes(usable_bytes),
        human_bytes(capacity.total_bytes()),
        parts.join(", "),
    )
}

/// The same by lines.
pub fn lines(capacity: &Capacity) -> Vec<(&'static str, String)> {
    let Capacity { usable_bytes, kept_bytes, partly_filled_bytes, .. } = *capacity;
    let mut lines = vec![
        ("usable", format!("about {} in keys and values of 1 KiB", human_bytes(usable_bytes))),
        ("kept free", format!("{} for flushes, the log and merges", human_bytes(kept_bytes))),
        ("partly filled", human_bytes(partly_filled_bytes)),
        ("metadata", human_bytes(capacity.metadata_bytes)),
    ];
    if capacity.redundancy_bytes > 0 {
        lines.push(("redundancy", human_bytes(capacity.redundancy_bytes)));
    }
    lines
}

/// Fields for scripts.
pub fn fields(capacity: &Capacity, device: &DeviceInfo) -> Value {
    json!({
        "size_bytes": device_bytes(device),
        "usable_bytes": capacity.usable_bytes,
        "kept_bytes": capacity.kept_bytes,
        "partly_filled_bytes": capacity.partly_filled_bytes,
        "redundancy_bytes": capacity.redundancy_bytes,
        "metadata_bytes": capacity.metadata_bytes,
    })
}
