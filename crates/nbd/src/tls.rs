//! Whether clients use TLS.

/// Whether a connection may, or has to, be upgraded to TLS. One connection has one mode. A client
/// that does not speak fixed newstyle cannot use TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TlsMode {
    /// There is no TLS (`NOTLS`). Exports that require it are refused.
    #[default]
    Off,
    /// TLS at the client's choice, except for exports that require it (`SELECTIVETLS`). Without
    /// TLS such an export cannot be told from one that does not exist.
    Optional,
    /// Every option but the upgrade itself needs TLS (`FORCEDTLS`).
    Required,
}
