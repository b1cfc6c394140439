//! The volumes of all sets. Each shard's thread has its mapped domains beside its store ([`host`]);
//! other threads reach them by messages ([`requests`]) through a handle ([`registry`]), which makes
//! the domains look like one. Volumes move between them ([`moves`], [`moving`]).

mod host;
mod moves;
mod moving;
mod registry;
mod requests;
mod unit_changes;

pub(crate) use host::{HostSpec, VolumeHost, mount_hosts};
pub(crate) use moves::{CopiedMove, PlannedMove};
pub(crate) use registry::{Answers, ChangeError, NotMounted as MissingDomain, Volumes};
pub(crate) use requests::{ExportInfo, PairChange, Request, SNAPSHOT_MARK};
pub(crate) use unit_changes::UnitChange;
