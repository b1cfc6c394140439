//! Encoding of the replies to options.

use crate::export::Export;
use crate::wire::{info, magic, rep, sendable};
use softflash_base::cast;
use std::borrow::Cow;

/// The reason why an option is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The type of the reply.
    pub(crate) reply: u32,
    /// The reason, for people.
    pub(crate) reason: Cow<'static, str>,
}

impl Refusal {
    pub(crate) const fn new(reply: u32, reason: &'static str) -> Refusal {
        Refusal { reply, reason: Cow::Borrowed(reason) }
    }

    pub(crate) const fn invalid(reason: &'static str) -> Refusal {
        Refusal::new(rep::ERR_INVALID, reason)
    }
}

/// A reply to an option.
pub(crate) fn put(option: u32, reply: u32, data: &[u8], output: &mut Vec<u8>) {
    output.extend(magic::OPTION_REPLY.to_be_bytes());
    output.extend(option.to_be_bytes());
    output.extend(reply.to_be_bytes());
    output.extend(cast::saturating_u32(data.len()).to_be_bytes());
    output.extend(data);
}

/// The final reply.
pub(crate) fn put_result(option: u32, result: Result<(), Refusal>, output: &mut Vec<u8>) {
    match result {
        Ok(()) => put(option, rep::ACK, &[], output),
        Err(refusal) => put(option, refusal.reply, refusal.reason.as_bytes(), output),
    }
}

/// The name of an export in a list. No description: clients may show it as part of the name.
pub(crate) fn put_server(option: u32, name: &str, output: &mut Vec<u8>) {
    let mut data = cast::saturating_u32(name.len()).to_be_bytes().to_vec();
    data.extend(name.as_bytes());
    put(option, rep::SERVER, &data, output);
}

/// A metadata context.
pub(crate) fn put_context(option: u32, id: u32, name: &str, output: &mut Vec<u8>) {
    let mut data = id.to_be_bytes().to_vec();
    data.extend(name.as_bytes());
    put(option, rep::META_CONTEXT, &data, output);
}

/// Information about an export: what it is and its size constraints in any case, because a client
/// that does not know them fails, and name and description if wanted.
pub(crate) fn put_info(
    option: u32,
    export: &Export,
    structured: bool,
    wanted: &[u16],
    output: &mut Vec<u8>,
) {
    let mut data = info::EXPORT.to_be_bytes().to_vec();
    data.extend(export.size_bytes.to_be_bytes());
    data.extend(export.transmission_flags(structured).to_be_bytes());
    put(option, rep::INFO, &data, output);
    let sizes = export.block_sizes;
    let mut data = info::BLOCK_SIZE.to_be_bytes().to_vec();
    for bytes in [sizes.minimum_bytes(), sizes.preferred_bytes(), sizes.max_payload_bytes()] {
        data.extend(bytes.to_be_bytes());
    }
    put(option, rep::INFO, &data, output);
    for (kind, text) in [(info::NAME, &export.name), (info::DESCRIPTION, &export.description)] {
        let is_known = kind == info::NAME || !text.is_empty();
        if wanted.contains(&kind) && is_known {
            let mut data = kind.to_be_bytes().to_vec();
            data.extend(sendable(text).as_bytes());
            put(option, rep::INFO, &data, output);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_has_the_option_the_type_and_the_length_of_its_data() {
        let mut output = Vec::new();
        put(0x0102_0304, rep::ERR_UNSUP, b"ab", &mut output);
        let expected = b"\0\x03\xe8\x89\x04\x55\x65\xa9\x01\x02\x03\x04\x80\0\0\x01\0\0\0\x02ab";
        assert_eq!(output, expected);
    }

    #[test]
    fn a_description_is_cut_to_a_valid_string() {
        let description = format!("{}\0tail", "ä".repeat(3000));
        let export = Export { description, ..Export::default() };
        let mut output = Vec::new();
        put_info(6, &export, false, &[2, 2], &mut output);
        assert_eq!(output.len(), 20 + 12 + 20 + 14 + 20 + 2 + 4096);
    }
}
