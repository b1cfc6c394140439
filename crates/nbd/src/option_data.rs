//! The data of options.

use crate::wire::{Fields, string};
use softflash_base::cast;

/// The data of `NBD_OPT_INFO` and `NBD_OPT_GO`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InfoRequest<'a> {
    pub(crate) name: &'a str,
    /// The kinds of information that the client wants, known or not.
    pub(crate) wanted: Vec<u16>,
}

/// The data of `NBD_OPT_LIST_META_CONTEXT` and `NBD_OPT_SET_META_CONTEXT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContextRequest<'a> {
    pub(crate) name: &'a str,
    pub(crate) queries: Vec<&'a str>,
}

impl<'a> InfoRequest<'a> {
    /// None if the data are malformed.
    pub(crate) fn parse(data: &'a [u8]) -> Option<InfoRequest<'a>> {
        let mut fields = Fields(data);
        let name = sized_string(&mut fields)?;
        let count = fields.u16()?;
        let wanted = (0..count).map(|_| fields.u16()).collect::<Option<Vec<u16>>>()?;
        fields.0.is_empty().then_some(InfoRequest { name, wanted })
    }
}

impl<'a> ContextRequest<'a> {
    /// None if the data are malformed.
    pub(crate) fn parse(data: &'a [u8]) -> Option<ContextRequest<'a>> {
        let mut fields = Fields(data);
        let name = sized_string(&mut fields)?;
        let count = fields.u32()?;
        // Each query has at least its length, so that a wrong count ends soon.
        let queries = (0..count).map(|_| sized_string(&mut fields)).collect::<Option<Vec<_>>>()?;
        fields.0.is_empty().then_some(ContextRequest { name, queries })
    }
}

fn sized_string<'a>(fields: &mut Fields<'a>) -> Option<&'a str> {
    let bytes = fields.u32()?;
    string(fields.bytes(cast::index(bytes))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_information_request_has_a_name_and_exactly_as_many_kinds_as_it_says() {
        let data = b"\0\0\0\x02ab\0\x02\0\x03\x12\x34";
        let parsed = InfoRequest { name: "ab", wanted: vec![3, 0x1234] };
        assert_eq!(InfoRequest::parse(data), Some(parsed));
        for end in 0..data.len() {
            assert_eq!(InfoRequest::parse(&data[..end]), None, "{end} bytes");
        }
        assert_eq!(InfoRequest::parse(b"\0\0\0\x02ab\0\x02\0\x03\x12\x34\0"), None);
        assert_eq!(InfoRequest::parse(b"\xff\xff\xff\xffab\0\0"), None);
        assert_eq!(InfoRequest::parse(b"\0\0\0\x02a\xff\0\0"), None);
    }

    #[test]
    fn a_context_request_has_a_name_and_exactly_as_many_queries_as_it_says() {
        let data = b"\0\0\0\x01x\0\0\0\x02\0\0\0\x03a:b\0\0\0\0";
        let parsed = ContextRequest { name: "x", queries: vec!["a:b", ""] };
        assert_eq!(ContextRequest::parse(data), Some(parsed));
        for end in 0..data.len() {
            assert_eq!(ContextRequest::parse(&data[..end]), None, "{end} bytes");
        }
        assert_eq!(ContextRequest::parse(b"\0\0\0\0\0\0\0\0\0"), None);
        assert_eq!(ContextRequest::parse(b"\0\0\0\0\xff\xff\xff\xff"), None);
    }
}
