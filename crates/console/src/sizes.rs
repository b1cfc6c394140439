//! Numbers of bytes, for people and from them.

use bytesize::ByteSize;

/// A number of bytes for people.
pub fn human_bytes(bytes: u64) -> String {
    ByteSize::b(bytes).display().iec().to_string()
}

/// Parses a size such as `256MiB`, `8G` or `4096`.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let size: ByteSize = text.parse().map_err(|_| {
        format!("`{text}` is not a size; write bytes, or a number with KiB, MiB, GiB or TiB")
    })?;
    Ok(size.as_u64())
}
