//! Why a server does not start or does not end well.

use crate::data_dir::DataDirError;
use crate::tls::TlsError;
use softflash_base::ShardId;
use softflash_store::StoreError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use thiserror::Error;

/// Why a server cannot run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServerError {
    /// The data directory or its device.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// An address that others can reach, and nothing that keeps them out.
    #[error(
        "refusing to listen on {address} without a password: anyone who reaches it could read and delete everything; give --password-file or SOFTFLASH_PASSWORD, give the user `default` a password in the ACL file, or listen on 127.0.0.1; --protected-mode no if a firewall sees to it"
    )]
    Unprotected {
        /// The address.
        address: SocketAddr,
    },
    /// Neither in the clear nor through TLS.
    #[error("nowhere to listen: give --resp or --tls-port")]
    NoAddress,
    /// The file of users.
    #[error("{}: {reason}", path.display())]
    Users {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// TLS.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// As above, for HTTP, which has no password at all.
    #[error(
        "refusing to serve HTTP on {address}: it asks for no password; listen on 127.0.0.1 and put a proxy in front of it"
    )]
    UnprotectedHttp {
        /// The address.
        address: SocketAddr,
    },
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}; choose another address or stop what uses it")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the operating system said.
        source: io::Error,
    },
    /// Less memory than the parts of a server need.
    #[error("{bytes} bytes of memory are too few; give at least {least}")]
    Memory {
        /// What was given.
        bytes: u64,
        /// The least.
        least: u64,
    },
    /// A shard cannot be opened.
    #[error("shard {shard}: {error}")]
    Open {
        /// The shard.
        shard: ShardId,
        /// Why.
        error: StoreError,
    },
    /// A shard could not be closed cleanly.
    #[error("shard {shard} did not close cleanly: {error}")]
    Close {
        /// The shard.
        shard: ShardId,
        /// Why.
        error: StoreError,
    },
    /// A shard's thread ended by itself: a defect.
    #[error("the thread of shard {shard} has died; see the log, and restart the server")]
    ThreadDied {
        /// The shard.
        shard: ShardId,
    },
    /// The operating system refused something.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The error.
        source: io::Error,
    },
}

impl ServerError {
    /// Whether the way the server was called is wrong, and not the state of the machine.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            ServerError::Unprotected { .. }
                | ServerError::NoAddress
                | ServerError::Tls(TlsError::NoAuthorities)
                | ServerError::UnprotectedHttp { .. }
                | ServerError::Memory { .. }
        )
    }
}
