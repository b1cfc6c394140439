//! Properties of the parsers that hold for any input, for the fuzzers in `fuzz` and for tests that
//! replay their findings.

use crate::acl::{parse_users, users_text};
use crate::resp::request::{Args, Parsed, ProtocolError, RequestParser};
use crate::shared::glob::Glob;

/// Input of a client: the requests and the error are the same however the input is split, and no
/// more bytes are buffered than were received.
pub fn resp(data: &[u8]) {
    let [first, input @ ..] = data else { return };
    let (authenticated, piece) = (first & 1 == 0, usize::from(first >> 1) + 1);
    let whole = requests(input, input.len().max(1), authenticated);
    assert_eq!(whole, requests(input, piece, authenticated), "in pieces of {piece}");
    // A parsed request can be encoded again and has the same meaning.
    let mut again = Vec::new();
    for args in &whole.0 {
        again.extend_from_slice(format!("*{}\r\n", args.len()).as_bytes());
        for word in args {
            again.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            again.extend_from_slice(word);
            again.extend_from_slice(b"\r\n");
        }
    }
    assert_eq!(requests(&again, again.len().max(1), true), (whole.0, None));
}

fn requests(input: &[u8], piece: usize, authenticated: bool) -> (Vec<Args>, Option<ProtocolError>) {
    let (mut parser, mut requests, mut fed) = (RequestParser::new(), Vec::new(), 0);
    for piece in input.chunks(piece) {
        parser.feed(piece);
        fed += piece.len();
        loop {
            assert!(parser.buffered_bytes() <= fed);
            match parser.next(authenticated) {
                // The parser allocates memory for a large argument once it is admitted; here it is
                // not.
                Ok(Parsed::Need { bytes }) if bytes > 1 << 20 => return (requests, None),
                Ok(Parsed::Need { .. }) => parser.admit(),
                Ok(Parsed::Request(request)) => requests.push(request.args),
                Ok(Parsed::Incomplete) => break,
                Err(error) => return (requests, Some(error)),
            }
        }
    }
    (requests, None)
}

/// An ACL file: the text written for the users read gives the same users. Passwords in plain text
/// are left out, because hashing is slow by intent.
pub fn acl(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    if text.contains(['>', '<']) {
        return;
    }
    let salts = |salt: &mut [u8]| salt.fill(1);
    let Ok(users) = parse_users(text, &salts) else { return };
    let written = users_text(&users);
    let again = parse_users(&written, &salts).map(|users| users_text(&users));
    assert_eq!(again.as_deref(), Ok(written.as_str()));
}

/// A pattern and a text, separated by the first zero byte.
pub fn glob(data: &[u8]) {
    let zero = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (pattern, text) = data.split_at(zero);
    let text = text.get(1..).unwrap_or_default();
    let same = Glob::new(pattern).matches(text);
    // A case-sensitive match implies a match that ignores case, except for negated classes and for
    // ranges, whose ends may change order.
    let simple = !pattern.contains(&b'^') && !pattern.contains(&b'-');
    assert!(!same || !simple || Glob::ignoring_case(pattern).matches(text));
    let plain = !pattern.iter().any(|byte| b"*?[]\\^-".contains(byte));
    assert!(!plain || same == (pattern == text));
}

#[cfg(test)]
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[cfg(test)]
mod tests {
    use super::replay::replay;
    use super::*;

    #[test]
    fn requests_of_clients() {
        let seeds: [&[u8]; 4] = [
            b"\x06*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*0\r\n*-1\r\nPING\r\n",
            b"\x02SET \"a\\x41\\n\" 'b\\'c' \n*1\r\n$4\r\nPING\r\n*1\r\n:",
            b"\x01*3\r\n$3\r\nSET\r\n$0\r\n\r\n$5\r\nhello\r\n",
            b"\x08*2\r\n$70000\r\naaaaaaaa",
        ];
        replay("resp", &seeds.map(<[u8]>::to_vec), resp);
    }

    #[test]
    fn acl_files() {
        let hash = "0123456789abcdef".repeat(4);
        let seeds = [
            "user default on nopass ~* &* +@all\n# a comment\nuser bob off resetkeys -@all\n".to_owned(),
            format!("user a on #{hash} ~a:* %R~b? %W~[c-d]* +get -set +@read -@dangerous +client|id\n"),
            "user m on #$argon2id$v=19$m=19456,t=2,p=1$AQEBAQEBAQEBAQEBAQEBAQ$AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE allkeys allcommands\n".to_owned(),
        ];
        replay("acl", &seeds.map(String::into_bytes), acl);
    }

    #[test]
    fn globs() {
        let seeds: [&[u8]; 3] = [b"a*b?c[^x-z]\\*\0aXXbYcd*", b"**a**b\0aaaaaaaaab", b"[a-\0-"];
        replay("glob", &seeds.map(<[u8]>::to_vec), glob);
    }
}
