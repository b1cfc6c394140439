//! A client of the server's commands: one connection for each.

use serde_json::{Map, Value};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A reply, or the server's refusal.
pub type Reply = Result<Value, String>;

/// Sends a command and waits for its reply, at most for `patience`. An error is one of the
/// connection.
pub fn request(address: &str, words: &str, patience: Duration) -> io::Result<Reply> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(format!("{words}\r\n").as_bytes())?;
    read(&mut BufReader::new(stream))
}

/// The fields of a flat array of names and values.
pub fn fields(entry: &Value) -> Map<String, Value> {
    let flat = entry.as_array().map(Vec::as_slice).unwrap_or_default();
    let pair = |pair: &[Value]| match pair {
        [name, value] => Some((name.as_str()?.to_owned(), value.clone())),
        _ => None,
    };
    flat.chunks(2).filter_map(pair).collect()
}

/// Reads a reply of RESP2, of the kinds that the campaign asks for.
fn read(from: &mut impl BufRead) -> io::Result<Reply> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    let (kind, rest) = line.split_at_checked(1).ok_or(ErrorKind::UnexpectedEof)?;
    let Some(rest) = rest.strip_suffix("\r\n") else {
        return Err(ErrorKind::UnexpectedEof.into());
    };
    let number = || rest.parse::<i64>().map_err(|_| io::Error::from(ErrorKind::InvalidData));
    Ok(match kind {
        "-" => Err(rest.to_owned()),
        "+" => Ok(rest.into()),
        ":" => Ok(number()?.into()),
        "$" => Ok(match usize::try_from(number()?) {
            Ok(bytes) => bulk(from, bytes)?,
            Err(_) => Value::Null,
        }),
        "*" => {
            let mut items = Vec::new();
            for _ in 0..number()? {
                items.push(read(from)?.unwrap_or_default());
            }
            Ok(items.into())
        }
        _ => return Err(ErrorKind::InvalidData.into()),
    })
}

fn bulk(from: &mut impl Read, bytes: usize) -> io::Result<Value> {
    let mut text = vec![0; bytes + 2];
    from.read_exact(&mut text)?;
    text.truncate(bytes);
    Ok(String::from_utf8_lossy(&text).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_to_their_end() {
        let reply = |text: &str| read(&mut text.as_bytes());
        assert_eq!(reply("+OK\r\n").unwrap().unwrap(), "OK");
        assert_eq!(reply("-ERR full\r\n").unwrap().unwrap_err(), "ERR full");
        let sets = "*1\r\n*4\r\n+name\r\n$5\r\nvol-0\r\n+units\r\n*2\r\n:1\r\n:2\r\n";
        let entry = fields(&reply(sets).unwrap().unwrap()[0]);
        assert_eq!(entry["name"], "vol-0");
        assert_eq!(entry["units"], serde_json::json!([1, 2]));
        assert_eq!(reply("$-1\r\n").unwrap().unwrap(), Value::Null);
        // A server that is killed leaves a part of a reply.
        assert!(reply("").is_err() && reply("*2\r\n:1\r\n").is_err() && reply("+O").is_err());
    }
}
