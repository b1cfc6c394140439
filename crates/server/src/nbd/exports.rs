//! The exports of all shards, as the handshake of a client sees them.

use crate::volumes::ExportInfo;
use softflash_nbd::{Export, Exports, Features, LookupError};

/// All exports at one moment, with the numbers of their shards.
pub(super) struct View(pub Vec<(usize, ExportInfo)>);

/// All that the protocol has. A flush covers the writes of all connections, because it is one of
/// the whole domain.
const FEATURES: Features = Features {
    flush: true,
    fua: true,
    trim: true,
    write_zeroes: true,
    fast_zero: true,
    cache: true,
    multi_conn: true,
};

impl Exports for View {
    fn names(&self) -> Option<Vec<String>> {
        let mut names: Vec<String> = self.0.iter().map(|(_, it)| it.name.clone()).collect();
        names.sort_unstable();
        Some(names)
    }

    fn lookup(&self, name: &str) -> Result<Export, LookupError> {
        let found = self.0.iter().find(|(_, it)| it.name == name);
        let (shard, found) = found.ok_or(LookupError::Unknown)?;
        Ok(Export {
            id: *shard as u64,
            name: found.name.clone(),
            description: if found.read_only { "snapshot" } else { "volume" }.to_owned(),
            size_bytes: found.size_bytes,
            read_only: found.read_only,
            features: FEATURES,
            // The default sizes: any alignment, 4096 bytes preferred, 32 MiB at most.
            ..Export::default()
        })
    }
}
