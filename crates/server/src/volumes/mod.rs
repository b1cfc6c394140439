//! The volumes of all shards. Each shard's thread has a mapped domain beside its store
//! ([`host`]); other threads reach it by messages ([`requests`]) through a handle ([`registry`]),
//! which makes the domains look like one.

mod admin;
mod host;
mod registry;
mod requests;

pub(crate) use host::{HostSpec, VolumeHost};
pub(crate) use registry::{Answers, Volumes};
pub(crate) use requests::{ExportInfo, Request, SNAPSHOT_MARK};
