//! Limits for a client in the handshake, which may be anyone.

/// What a client may use before it has chosen an export. A client that exceeds a limit is
/// disconnected, except that a single long option is skipped and refused. How long a handshake may
/// take is for the owner to limit, because there is no clock here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandshakeLimits {
    /// Maximum number of options. A client that lists exports sends about two for each.
    pub max_options: u32,
    /// Maximum length of an option's data in bytes, which are kept in memory. At least 4096 for all
    /// names to be usable, and a little more for the fields around them.
    pub max_option_bytes: u32,
    /// Maximum bytes of the whole handshake, skipped data included.
    pub max_handshake_bytes: u64,
}

impl Default for HandshakeLimits {
    /// 1024 options, 16 KiB of data for each, 256 KiB together.
    fn default() -> HandshakeLimits {
        HandshakeLimits {
            max_options: 1024,
            max_option_bytes: 16 << 10,
            max_handshake_bytes: 256 << 10,
        }
    }
}
