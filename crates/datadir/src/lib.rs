//! Data directories: one is created, described and opened here, and its store and volumes work in
//! this process. A server, the command line, and tools that embed the store need all of it.
//!
//! ```text
//! DIR/softflash.toml   the manifest (see `manifest`); a directory with it is a data directory
//! DIR/flash.sfd        the device, unless the manifest names another
//! DIR/users.acl        users and permissions, once ACL SAVE has written it
//! DIR/lock             locked by the process that has the directory open
//! DIR/softflash.toml.unfinished   the manifest while `format` is at work, or after it was killed
//! DIR/softflash.toml.growing      what `grow` is about to do, or was when it was killed
//! ```

pub mod capacity;
mod changed_sets;
mod creation;
mod directory;
mod domains;
mod error;
mod growth;
mod growth_record;
mod lock;
mod manifest;
mod mounting;
mod moves;
mod open;
mod pairs;
mod plan;
mod set_table;
mod sets;
mod shard_flash;
mod slots;
#[cfg(test)]
mod tests;
mod volume_placement;
mod volume_units;

pub use creation::{NewDataDir, contents, is_free, leftovers};
pub use directory::{DEVICE_NAME, DataDir, USERS_NAME};
pub use domains::{Domains, has_copies, with_domains};
pub use error::DataDirError;
pub use growth::Growth;
pub use manifest::{
    FORMAT_VERSION, MANIFEST_NAME, MOVE_FORMAT_VERSION, Manifest, NEWEST_FORMAT_VERSION,
    PAIRS_FORMAT_VERSION, SETS_FORMAT_VERSION, StoreSection,
};
pub use mounting::{MountError, MountResult, form_pairs, take_guests_away};
pub use moves::{
    Arrival, Departure, Family, MoveError, MoveProgress, Moved, Piece, UnfinishedMove, quoted,
};
pub use open::{OpenDir, block_on};
pub use pairs::{PairOfSets, parse_window};
pub use plan::{
    Compressions, NewDevice, Plan, PreparedDataDir, SUPERBLOCK_BYTES, UnfinishedDataDir,
};
pub use set_table::{Grown, MappedSet, NewSet, Resize, SetError, SetTable, Shares};
pub use sets::{FlashSet, PairStanding, SetFigures, SetKind, SetState, WindowKind};
pub use shard_flash::ShardFlash;
pub use slots::{Slots, SlotsError};
pub use volume_placement::{DomainLoad, most_free};
pub use volume_units::{DEFAULT_OP_PERCENT, MOST_OP_PERCENT, ShardDomain, VolumeSection};
