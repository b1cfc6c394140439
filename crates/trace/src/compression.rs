//! Compression of traces: plain, gzip or zstd, detected by the first bytes of a stream.

use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use std::ffi::OsStr;
use std::io::{self, BufWriter, Chain, Cursor, Read, Write};
use std::path::Path;

/// The compression of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// No compression.
    #[default]
    Plain,
    /// gzip; several consecutive members are one stream.
    Gzip,
    /// zstd; several consecutive frames are one stream.
    Zstd,
}

impl Compression {
    /// The compression by a file's extension: `.gz`, `.zst`, or plain.
    pub fn of_name(path: &Path) -> Compression {
        match path.extension().and_then(OsStr::to_str) {
            Some("gz") => Compression::Gzip,
            Some("zst") => Compression::Zstd,
            _ => Compression::Plain,
        }
    }

    fn of_magic(head: &[u8]) -> Compression {
        if head.starts_with(&[0x1f, 0x8b]) {
            Compression::Gzip
        } else if head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Compression::Zstd
        } else {
            Compression::Plain
        }
    }
}

/// Bytes of the longest magic number.
const MAGIC_BYTES: u64 = 4;

/// zstd's fastest level with a good ratio; traces are mostly digits.
const ZSTD_LEVEL: i32 = 3;

/// The size of the write buffer in bytes.
const WRITE_BUFFER_BYTES: usize = 256 << 10;

type Head<R> = Chain<Cursor<Vec<u8>>, R>;

/// A stream that is decompressed as it is read.
pub(crate) enum Input<R: Read> {
    Plain(Head<R>),
    Gzip(Box<MultiGzDecoder<Head<R>>>),
    /// Refuses windows beyond 128 MiB, which is zstd's default.
    Zstd(Box<zstd::Decoder<'static, io::BufReader<Head<R>>>>),
}

impl<R: Read> Input<R> {
    pub(crate) fn open(mut input: R) -> io::Result<Input<R>> {
        let mut head = Vec::new();
        input.by_ref().take(MAGIC_BYTES).read_to_end(&mut head)?;
        let compression = Compression::of_magic(&head);
        let all = Cursor::new(head).chain(input);
        Ok(match compression {
            Compression::Plain => Input::Plain(all),
            Compression::Gzip => Input::Gzip(Box::new(MultiGzDecoder::new(all))),
            Compression::Zstd => Input::Zstd(Box::new(zstd::Decoder::new(all)?)),
        })
    }
}

impl<R: Read> Read for Input<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Input::Plain(input) => input.read(into),
            Input::Gzip(input) => input.read(into),
            Input::Zstd(input) => input.read(into),
        }
    }
}

/// A stream that is compressed as it is written.
pub(crate) enum Output<W: Write> {
    Plain(BufWriter<W>),
    Gzip(GzEncoder<BufWriter<W>>),
    Zstd(zstd::Encoder<'static, BufWriter<W>>),
}

impl<W: Write> Output<W> {
    pub(crate) fn begin(output: W, compression: Compression) -> io::Result<Output<W>> {
        let output = BufWriter::with_capacity(WRITE_BUFFER_BYTES, output);
        Ok(match compression {
            Compression::Plain => Output::Plain(output),
            Compression::Gzip => Output::Gzip(GzEncoder::new(output, flate2::Compression::fast())),
            Compression::Zstd => Output::Zstd(zstd::Encoder::new(output, ZSTD_LEVEL)?),
        })
    }

    #[inline]
    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Output::Plain(output) => output.write_all(bytes),
            Output::Gzip(output) => output.write_all(bytes),
            Output::Zstd(output) => output.write_all(bytes),
        }
    }

    /// Writes the buffered rest and returns the stream.
    pub(crate) fn finish(self) -> io::Result<W> {
        let output = match self {
            Output::Plain(output) => output,
            Output::Gzip(output) => output.finish()?,
            Output::Zstd(output) => output.finish()?,
        };
        output.into_inner().map_err(|error| error.into_error())
    }
}
