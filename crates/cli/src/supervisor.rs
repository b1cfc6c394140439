//! Tells systemd that a service of `Type=notify` is ready (sd_notify(3)).

use softflash_console::CliError;
use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::{env, io};

/// Reports that the service is ready, if a supervisor has asked for it.
///
/// # Errors
/// The supervisor's socket cannot be used.
pub fn notify_ready() -> Result<(), CliError> {
    let Some(name) = env::var_os("NOTIFY_SOCKET") else { return Ok(()) };
    send(&name).map_err(|source| CliError::Io { what: "reporting to NOTIFY_SOCKET", source })
}

fn send(name: &OsStr) -> io::Result<()> {
    // A name that begins with `@` is in the kernel's own name space.
    let address = match name.as_bytes().strip_prefix(b"@") {
        Some(rest) => SocketAddr::from_abstract_name(rest)?,
        None => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(b"READY=1", &address).map(drop)
}
