//! The result of a handshake.

use crate::export::Export;
use crate::reply::Replies;

/// The result of a handshake: the chosen export, and the agreed extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    pub(crate) export: Export,
    pub(crate) structured: bool,
    pub(crate) allocation_context: Option<u32>,
}

impl Session {
    /// The export that the client has chosen, as it was described to the client.
    pub fn export(&self) -> &Export {
        &self.export
    }

    /// Whether replies are structured: reads may come in parts with holes, errors with a message.
    pub fn has_structured_replies(&self) -> bool {
        self.structured
    }

    /// Whether the client may ask for the block status (`base:allocation`).
    pub fn has_block_status(&self) -> bool {
        self.allocation_context.is_some()
    }

    /// The encoder of replies, a small value.
    pub fn replies(&self) -> Replies {
        Replies {
            structured: self.structured,
            allocation_context: self.allocation_context,
            export_bytes: self.export.size_bytes,
            max_payload_bytes: self.export.block_sizes.max_payload_bytes(),
        }
    }
}
