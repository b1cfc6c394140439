//! The exports of all domains, as the handshake of a client sees them.

use crate::volumes::{Answers, ExportInfo};
use softflash_nbd::{Export, Exports, Features, LookupError};

/// All exports at one moment.
pub(super) struct View {
    /// Each with the number of its domain.
    exports: Vec<(usize, ExportInfo)>,
    /// Why the exports of a domain are missing.
    missing: Option<String>,
}

impl View {
    pub fn of(all: Answers<Vec<ExportInfo>>) -> View {
        let missing = all.not_mounted.first().map(|domain| domain.error.to_string());
        let of_domain = |(domain, exports): (usize, Vec<ExportInfo>)| {
            exports.into_iter().map(move |export| (domain, export))
        };
        View { exports: all.mounted.into_iter().flat_map(of_domain).collect(), missing }
    }
}

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
        let mut names: Vec<String> = self.exports.iter().map(|(_, it)| it.name.clone()).collect();
        names.sort_unstable();
        Some(names)
    }

    fn lookup(&self, name: &str) -> Result<Export, LookupError> {
        let found = self.exports.iter().find(|(_, it)| it.name == name);
        let (domain, found) = found.ok_or_else(|| match &self.missing {
            Some(reason) => LookupError::NotServed(format!("no such export is served: {reason}")),
            None => LookupError::Unknown,
        })?;
        Ok(Export {
            id: *domain as u64,
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
