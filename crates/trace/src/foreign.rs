//! Archives, and compressions that are not read: named with the command that unpacks them, instead
//! of read as text.

use softflash_base::shell_word;
use std::fmt;

/// What a file is instead of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Foreign {
    /// A tar archive, whose first member has this name.
    Tar(String),
    /// A ZIP archive.
    Zip,
    /// A 7z archive.
    SevenZip,
    /// Compressed by bzip2.
    Bzip2,
    /// Compressed by xz.
    Xz,
}

/// Bytes of the header of a member of a tar archive.
const TAR_HEADER_BYTES: usize = 512;
/// Where its checksum is, in octal digits.
const TAR_CHECKSUM: std::ops::Range<usize> = 148..156;
/// Where its name is.
const TAR_NAME: std::ops::Range<usize> = 0..100;

/// What a stream is that begins so, after it has been decompressed; `None` for a possible trace.
pub(crate) fn of(beginning: &[u8]) -> Option<Foreign> {
    match beginning {
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31 | 0x17, ..] => Some(Foreign::Bzip2),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Foreign::Xz),
        [b'P', b'K', 3, 4, ..] => Some(Foreign::Zip),
        [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => Some(Foreign::SevenZip),
        _ => first_member(beginning).map(Foreign::Tar),
    }
}

/// The name of the first member of a tar archive: its header has the sum of its bytes, in which
/// those of the sum count as blanks.
fn first_member(beginning: &[u8]) -> Option<String> {
    let header = beginning.get(..TAR_HEADER_BYTES)?;
    let digits = header.get(TAR_CHECKSUM)?;
    let text = digits.split(|&byte| byte == 0).next()?;
    let stated = u64::from_str_radix(str::from_utf8(text).ok()?.trim(), 8).ok()?;
    let rest: u64 = header.iter().map(|&byte| u64::from(byte)).sum();
    let own: u64 = digits.iter().map(|&byte| u64::from(byte)).sum();
    let blanks = u64::from(b' ') * digits.len() as u64;
    let name = header.get(TAR_NAME)?.split(|&byte| byte == 0).next()?;
    let is_header = rest - own + blanks == stated && !name.is_empty();
    is_header.then(|| String::from_utf8_lossy(name).into_owned())
}

impl Foreign {
    /// How to read the file.
    pub(crate) fn remedy(&self, file: &str) -> String {
        let file = shell_word(file);
        let unpack = match self {
            Foreign::Tar(member) => {
                // A directory has no content, and a header of extended attributes is no member.
                let has_none = member.ends_with('/') || member.contains("PaxHeader");
                let member = match has_none {
                    true => "MEMBER".into(),
                    false => shell_word(member),
                };
                return format!(
                    "`tar -tf {file}` lists its members; read the one that is a trace, with `-` as its name: \
                     `tar -xOf {file} {member} | softflash trace summary -`"
                );
            }
            Foreign::Zip => format!("unzip -p {file} MEMBER"),
            Foreign::SevenZip => format!("7z e -so {file} MEMBER"),
            Foreign::Bzip2 => format!("bzip2 -dc {file}"),
            Foreign::Xz => format!("xz -dc {file}"),
        };
        format!("unpack it, with `-` as the trace: `{unpack} | softflash trace summary -`")
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Foreign::Tar(member) => write!(f, "a tar archive, whose first member is `{member}`"),
            Foreign::Zip => f.write_str("a ZIP archive"),
            Foreign::SevenZip => f.write_str("a 7z archive"),
            Foreign::Bzip2 => f.write_str("compressed by bzip2, which is not read"),
            Foreign::Xz => f.write_str("compressed by xz, which is not read"),
        }
    }
}
