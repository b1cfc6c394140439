//! Errors of a server.

use crate::tls::TlsError;
use softflash_base::{ShardId, UserError};
use softflash_datadir::DataDirError;
use softflash_store::StoreError;
use softflash_volume::VolumeError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use thiserror::Error;

/// Why a server cannot start or did not stop cleanly.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The data directory or its device.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// An address that other machines can reach, without a password.
    #[error(
        "refusing to listen on {address} without a password: anyone who reaches it could read and delete all data; give --password-file or SOFTFLASH_PASSWORD, give the user `default` a password in the ACL file, or listen on 127.0.0.1; --protected-mode no if a firewall protects it"
    )]
    Unprotected {
        /// The address.
        address: SocketAddr,
    },
    /// No address for RESP, neither in plain text nor over TLS.
    #[error("no address to listen on: give --resp or --tls-port")]
    NoAddress,
    /// The file of users.
    #[error("{}: {reason}", path.display())]
    Users {
        /// The file.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// An HTTP address that other machines can reach; HTTP has no authentication.
    #[error(
        "refusing to serve HTTP on {address}: it has no password; listen on 127.0.0.1 and put a proxy in front of it"
    )]
    UnprotectedHttp {
        /// The address.
        address: SocketAddr,
    },
    /// An NBD address whose clients cannot show who they are.
    #[error(
        "refusing to serve NBD on {address}: NBD has no passwords, so anyone who reaches it could read and change all volumes; require certificates of clients with --tls-port, --tls-ca and --tls-client-auth required, or give --nbd-open if everyone who reaches the address may"
    )]
    UnprotectedNbd {
        /// The address.
        address: SocketAddr,
    },
    /// NBD without volumes.
    #[error(
        "{}: it is without volume units, so there are no volumes for --nbd; if `softflash set list` names spare units, `softflash set create` gives them to volumes; otherwise create a directory that has some with `softflash format DIR --size SIZE --volume-units M`", path.display()
    )]
    NoVolumeUnits {
        /// The directory.
        path: PathBuf,
    },
    /// The volumes of a domain could not be closed cleanly.
    #[error("volumes of {place} did not close cleanly: {error}")]
    CloseVolumes {
        /// The shard or the set of the domain.
        place: String,
        /// The error.
        error: VolumeError,
    },
    /// Listening at the address failed.
    #[error(
        "cannot listen on {address}: {source}; choose another address or stop the process that uses it"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The operating system's error.
        source: io::Error,
    },
    /// Less memory than the minimum of a server.
    #[error("{bytes} bytes of memory are too few; the minimum is {least}")]
    Memory {
        /// The memory given.
        bytes: u64,
        /// The minimum.
        least: u64,
    },
    /// A shard cannot be opened.
    #[error("shard {shard}: {error}")]
    Open {
        /// The shard.
        shard: ShardId,
        /// The error.
        error: StoreError,
    },
    /// A shard could not be closed cleanly.
    #[error("shard {shard} did not close cleanly: {error}")]
    Close {
        /// The shard.
        shard: ShardId,
        /// The error.
        error: StoreError,
    },
    /// A shard's thread ended unexpectedly: a bug.
    #[error("the thread of shard {shard} has died; see the log, and restart the server")]
    ThreadDied {
        /// The shard.
        shard: ShardId,
    },
    /// An error of the operating system.
    #[error("{what}: {source}")]
    Io {
        /// The failed action.
        what: &'static str,
        /// The error.
        source: io::Error,
    },
}

impl UserError for ServerError {
    fn is_usage(&self) -> bool {
        matches!(
            self,
            ServerError::Unprotected { .. }
                | ServerError::NoAddress
                | ServerError::Tls(TlsError::NoAuthorities)
                | ServerError::UnprotectedHttp { .. }
                | ServerError::UnprotectedNbd { .. }
                | ServerError::Memory { .. }
        )
    }
}
