//! What `serve` reports once it accepts connections.

use super::MemoryBudget;
use super::connect::{Connect, reachable};
use crate::supervisor;
use softflash_base::shell_word;
use softflash_console::output;
use softflash_server::Addresses;

/// Prints a message for people, and for programs the memory budget and the `ready` line; then tells
/// the supervisor.
pub fn announce(
    directory: &str,
    memory: MemoryBudget,
    connect: &Connect,
    addresses: Addresses,
    needs_password: bool,
) {
    let Addresses { resp, tls, nbd, http } = addresses;
    let (command, remark) = connect.command(&addresses, needs_password);
    // Without plain text for Redis clients, NBD clients must use TLS, too.
    if let Some(address) = nbd.filter(|address| !address.ip().is_loopback() && resp.is_some()) {
        output::say(&format!(
            "volumes cross the network unencrypted on {address}, unless a client uses TLS"
        ));
    }
    if let Some(address) = nbd.map(reachable) {
        let scheme = if resp.is_some() { "nbd" } else { "nbds" };
        output::say(&format!(
            "volumes on {scheme}://{address}/NAME; create one with `{command} FLASH.VOLUME CREATE NAME 1GiB`"
        ));
    }
    if let Some(address) = resp.filter(|address| !address.ip().is_loopback()) {
        output::say(&format!(
            "passwords and data cross the network unencrypted on {address}; --tls-port encrypts them"
        ));
    }
    output::say(&format!(
        "serving {}; connect with `{command}`{remark}{}, stop with Ctrl-C",
        shell_word(directory),
        http.map(|http| format!(", metrics on http://{http}/metrics")).unwrap_or_default(),
    ));
    output::result(&memory.line());
    let parts = [("resp", resp), ("tls", tls), ("nbd", nbd), ("http", http)];
    let parts = parts.iter().filter_map(|(name, address)| Some(format!(" {name}={}", (*address)?)));
    output::result(&format!("ready{}", parts.collect::<String>()));
    if let Err(error) = supervisor::notify_ready() {
        tracing::warn!(%error, "the supervisor does not know that the server is ready");
    }
}
