//! Exports, and the questions of the negotiation to its owner about them.

use crate::block_size::BlockSizes;
use crate::wire::flag;

/// An export as a client sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Export {
    /// A number of the owner, which the [`Session`](crate::Session) returns unchanged.
    pub id: u64,
    /// The canonical name. An export may be found by other names too, such as the empty one of the
    /// default export.
    pub name: String,
    /// For people; may be empty.
    pub description: String,
    /// A multiple of the minimum block size, or the last bytes cannot be reached.
    pub size_bytes: u64,
    /// Writes are refused.
    pub read_only: bool,
    /// Only for clients that use TLS.
    pub tls_required: bool,
    /// Size constraints.
    pub block_sizes: BlockSizes,
    /// Commands and flags that clients may use.
    pub features: Features,
}

/// What an export supports besides reads and writes; see the transmission flags of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    /// Flushes.
    pub flush: bool,
    /// The flag FUA: the reply comes after the data are durable.
    pub fua: bool,
    /// Trims. Not offered on read-only exports.
    pub trim: bool,
    /// Writes of zeroes, with the flag `NO_HOLE`. Not offered on read-only exports.
    pub write_zeroes: bool,
    /// Writes of zeroes with the flag `FAST_ZERO`; needs `write_zeroes`.
    pub fast_zero: bool,
    /// Hints to cache.
    pub cache: bool,
    /// A flush on one connection covers the writes of all.
    pub multi_conn: bool,
}

/// Why an export is not available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookupError {
    /// There is none with this name.
    Unknown,
    /// None with this name is served now, and it may exist: the reason, for people.
    NotServed(String),
    /// This client may not use it.
    Policy,
}

/// The exports of a server as one client may see them. The owner can pass another view once the
/// client has identified itself by TLS.
pub trait Exports {
    /// The names of all exports, or none if they are not listed for this client. Names that the
    /// protocol does not allow (more than 4096 bytes, or with a zero byte) are left out.
    fn names(&self) -> Option<Vec<String>>;

    /// Finds an export. The name is a valid string of the protocol; empty for the default export.
    ///
    /// A client goes by what it was told: requests of a session are checked against the size and
    /// the rights at its handshake. The owner has to expect that both have changed since.
    fn lookup(&self, name: &str) -> Result<Export, LookupError>;
}

impl Export {
    /// Flags, FUA, trims and the others, as they apply to this export.
    pub(crate) fn offers(&self) -> Features {
        let writes = !self.read_only;
        let write_zeroes = self.features.write_zeroes && writes;
        Features {
            trim: self.features.trim && writes,
            write_zeroes,
            fast_zero: self.features.fast_zero && write_zeroes,
            ..self.features
        }
    }

    /// The transmission flags.
    pub(crate) fn transmission_flags(&self, structured: bool) -> u16 {
        let offers = self.offers();
        let flags = [
            (self.read_only, flag::READ_ONLY),
            (offers.flush, flag::SEND_FLUSH),
            (offers.fua, flag::SEND_FUA),
            (offers.trim, flag::SEND_TRIM),
            (offers.write_zeroes, flag::SEND_WRITE_ZEROES),
            (structured, flag::SEND_DF),
            (offers.multi_conn, flag::CAN_MULTI_CONN),
            (offers.cache, flag::SEND_CACHE),
            (offers.fast_zero, flag::SEND_FAST_ZERO),
        ];
        let set = flags.iter().filter(|(is_set, _)| *is_set);
        set.fold(flag::HAS_FLAGS, |all, (_, flag)| all | flag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Features = Features {
        flush: true,
        fua: true,
        trim: true,
        write_zeroes: true,
        fast_zero: true,
        cache: true,
        multi_conn: true,
    };

    fn flags(features: Features, read_only: bool, structured: bool) -> u16 {
        Export { features, read_only, ..Export::default() }.transmission_flags(structured)
    }

    #[test]
    fn flags_are_set_for_what_is_supported_and_for_nothing_else() {
        assert_eq!(flags(Features::default(), false, false), 0x001);
        assert_eq!(flags(ALL, false, false), 0xd6d);
        assert_eq!(flags(Features { flush: true, ..Features::default() }, false, false), 0x005);
        assert_eq!(flags(Features { cache: true, ..Features::default() }, false, false), 0x401);
        assert_eq!(flags(Features { multi_conn: true, ..Features::default() }, false, true), 0x181);
    }

    #[test]
    fn a_read_only_export_offers_no_writing_command() {
        assert_eq!(flags(ALL, true, true), 0x58f);
    }

    #[test]
    fn fast_zeroes_are_not_offered_without_writes_of_zeroes() {
        let features = Features { fast_zero: true, ..Features::default() };
        assert_eq!(flags(features, false, false), 0x001);
        let features = Features { fast_zero: true, write_zeroes: true, ..Features::default() };
        assert_eq!(flags(features, false, false), 0x841);
    }
}
