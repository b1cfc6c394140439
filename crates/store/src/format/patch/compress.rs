//! Compression of blocks.

use crate::layout::Compression;
use std::cell::RefCell;
use zstd::bulk::{Compressor, Decompressor};

/// The code of a compression on flash.
pub(super) fn code(compression: Compression) -> u8 {
    match compression {
        Compression::None => 0,
        Compression::Lz4 => 1,
        Compression::Zstd => 2,
    }
}

/// The compression of a code, if the code is known.
pub(super) fn from_code(code: u8) -> Option<Compression> {
    match code {
        0 => Some(Compression::None),
        1 => Some(Compression::Lz4),
        2 => Some(Compression::Zstd),
        _ => None,
    }
}

/// Compresses blocks and reuses its memory.
pub(super) struct BlockCompressor {
    compression: Compression,
    zstd: Option<Compressor<'static>>,
    output: Vec<u8>,
}

impl BlockCompressor {
    /// A compressor; `level` is the level of Zstandard. Where Zstandard cannot allocate its memory,
    /// blocks stay raw.
    pub fn new(compression: Compression, level: i32) -> BlockCompressor {
        let zstd = match compression {
            Compression::Zstd => Compressor::new(level).ok(),
            _ => None,
        };
        BlockCompressor { compression, zstd, output: Vec::new() }
    }

    /// The compressed form of `raw`, if it is shorter.
    pub fn compress(&mut self, raw: &[u8]) -> Option<&[u8]> {
        // LZ4 needs room for a block that grows; with Zstandard a longer result fails, and is not
        // used.
        let room = match self.compression {
            Compression::None => return None,
            Compression::Lz4 => lz4_flex::block::get_maximum_output_size(raw.len()),
            Compression::Zstd => raw.len(),
        };
        if self.output.len() < room {
            self.output.resize(room, 0);
        }
        let output = self.output.get_mut(..room)?;
        let len = match self.compression {
            Compression::None => return None,
            Compression::Lz4 => lz4_flex::block::compress_into(raw, output).ok()?,
            Compression::Zstd => self.zstd.as_mut()?.compress_to_buffer(raw, output).ok()?,
        };
        if len < raw.len() { self.output.get(..len) } else { None }
    }
}

thread_local! {
    /// The decompressor, kept because its allocation costs more than decompressing most blocks. No
    /// state outlives a call.
    static ZSTD: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Fills `output`, whose length must be the exact length of the original. False where `stored` does
/// not decompress to that length.
pub(super) fn decompress(compression: Compression, stored: &[u8], output: &mut [u8]) -> bool {
    let expected = output.len();
    let len = match compression {
        Compression::None => return false,
        Compression::Lz4 => lz4_flex::block::decompress_into(stored, output).ok(),
        Compression::Zstd => ZSTD.with_borrow_mut(|context| {
            if context.is_none() {
                *context = Decompressor::new().ok();
            }
            context.as_mut()?.decompress_to_buffer(stored, output).ok()
        }),
    };
    len == Some(expected)
}
