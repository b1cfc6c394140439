//! A client's implementation of RESP: requests to bytes, bytes to replies. It is independent of the
//! server's writer, so that an error there is not masked.

use bytes::Bytes;

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// `+OK`.
    Status(Bytes),
    /// `-ERR ...`.
    Error(String),
    /// `:1`.
    Integer(i64),
    /// `$3`.
    Bulk(Bytes),
    /// No value, in either version of the protocol.
    Nil,
    /// `*2`.
    Array(Vec<Reply>),
}

impl Reply {
    /// `+OK`.
    pub const OK: Reply = Reply::Status(Bytes::from_static(b"OK"));

    /// A number as a count.
    pub fn count(count: usize) -> Reply {
        Reply::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// Text for messages; long values are shortened.
    pub fn shown(&self) -> String {
        match self {
            Reply::Bulk(bytes) => shown(bytes),
            Reply::Array(items) => {
                let items: Vec<String> = items.iter().map(Reply::shown).collect();
                format!("[{}]", items.join(", "))
            }
            other => format!("{other:?}"),
        }
    }
}

/// Bytes as text for messages.
pub fn shown(bytes: &[u8]) -> String {
    let begin = &bytes[..bytes.len().min(12)];
    format!("{} bytes `{}`", bytes.len(), begin.escape_ascii())
}

/// A request as bytes.
pub fn request(words: &[Bytes], into: &mut Vec<u8>) {
    into.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        into.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        into.extend_from_slice(word);
        into.extend_from_slice(b"\r\n");
    }
}

/// Parses all replies in `bytes`.
///
/// # Errors
/// Bytes that are no reply or an incomplete one.
pub fn replies(bytes: &[u8]) -> Result<Vec<Reply>, String> {
    let (mut replies, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        replies.push(reply(bytes, &mut at)?);
    }
    Ok(replies)
}

fn reply(bytes: &[u8], at: &mut usize) -> Result<Reply, String> {
    let rest = &bytes[*at..];
    let end = rest.windows(2).position(|pair| pair == b"\r\n");
    let end = end.ok_or_else(|| format!("an incomplete reply: {}", shown(rest)))?;
    let (kind, line) = rest[..end].split_first().ok_or("an empty line instead of a reply")?;
    *at += end + 2;
    let number = || -> Result<i64, String> {
        let text = std::str::from_utf8(line).ok().and_then(|text| text.parse().ok());
        text.ok_or_else(|| format!("not a number in a reply: `{}`", line.escape_ascii()))
    };
    Ok(match kind {
        b'+' => Reply::Status(Bytes::copy_from_slice(line)),
        b'-' => Reply::Error(String::from_utf8_lossy(line).into_owned()),
        b':' => Reply::Integer(number()?),
        b'_' => Reply::Nil,
        b'$' | b'*' if number()? < 0 => Reply::Nil,
        b'$' => {
            let length = number()?.unsigned_abs() as usize;
            let body = bytes.get(*at..*at + length).ok_or("a truncated value")?;
            *at += length;
            if bytes.get(*at..*at + 2) != Some(b"\r\n") {
                return Err("a value without its line end".to_owned());
            }
            *at += 2;
            Reply::Bulk(Bytes::copy_from_slice(body))
        }
        b'*' => Reply::Array((0..number()?).map(|_| reply(bytes, at)).collect::<Result<_, _>>()?),
        _ => return Err(format!("`{}` does not start a reply", kind.escape_ascii())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_of_both_versions_are_read() {
        let read =
            replies(b"+OK\r\n$-1\r\n_\r\n:7\r\n*2\r\n$2\r\na\n\r\n*-1\r\n-ERR no\r\n").unwrap();
        let list = Reply::Array(vec![Reply::Bulk("a\n".into()), Reply::Nil]);
        let error = Reply::Error("ERR no".to_owned());
        assert_eq!(read, [Reply::OK, Reply::Nil, Reply::Nil, Reply::Integer(7), list, error]);
        assert!(replies(b"$3\r\nab\r\n").is_err() && replies(b"+OK").is_err());
        assert!(replies(b"!\r\n").is_err() && replies(b":x\r\n").is_err());
    }

    #[test]
    fn a_request_is_an_array_of_words() {
        let mut bytes = Vec::new();
        request(&["GET".into(), "k".into()], &mut bytes);
        assert_eq!(bytes, b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");
    }
}
