//! The command with which `redis-cli` connects: it works as it is printed.

use crate::password::Origin;
use softflash_base::shell_word;
use softflash_server::{Addresses, ClientAuth, TlsSettings, Trust, trust_in};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// What a client needs beside an address.
#[derive(Debug)]
pub struct Connect {
    /// Where the password comes from, if the server was given one.
    pub password: Option<Origin>,
    /// The settings of TLS, if it is served.
    pub tls: Option<TlsSettings>,
}

impl Connect {
    /// The command, and a remark where a person has to add to it.
    pub fn command(&self, addresses: &Addresses, needs_password: bool) -> (String, String) {
        let address = addresses.resp.or(addresses.tls);
        let mut words = match (&self.password, needs_password) {
            (Some(Origin::File(path)), _) => {
                format!("REDISCLI_AUTH=\"$(head -n 1 {})\" redis-cli", word(path))
            }
            _ => "redis-cli".to_owned(),
        };
        if let Some(address) = address.map(reachable) {
            words += &format!(" -h {} -p {}", address.ip(), address.port());
        }
        let mut remarks = Vec::new();
        if let (None, Some(tls)) = (addresses.resp, &self.tls) {
            words += " --tls";
            match trust_in(tls) {
                Trust::File(authority) => words += &format!(" --cacert {}", word(&authority)),
                Trust::System => {}
                Trust::Unknown => {
                    words += " --cacert AUTHORITY";
                    remarks.push("AUTHORITY: the file of the authority that signed --tls-cert");
                }
            }
            if tls.client_auth == ClientAuth::Required {
                words += " --cert CERTIFICATE --key KEY";
                remarks.push("CERTIFICATE and KEY: your own files");
            }
        }
        match (&self.password, needs_password) {
            (Some(Origin::Once), _) => words += " --askpass",
            (None, true) => {
                words += " --askpass";
                remarks.push("--user NAME: for another user than `default`");
            }
            _ => {}
        }
        let remark = match remarks.is_empty() {
            true => String::new(),
            false => format!(" ({})", remarks.join("; ")),
        };
        (words, remark)
    }
}

/// The address for a client on this machine.
pub fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

/// The path as a word for a shell in any directory.
fn word(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    shell_word(&absolute.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(password: Option<Origin>, resp: &str, needs_password: bool) -> String {
        let resp = Some(resp.parse().unwrap());
        let addresses = Addresses { resp, tls: None, nbd: None, http: None };
        Connect { password, tls: None }.command(&addresses, needs_password).0
    }

    #[test]
    fn the_command_names_an_address_that_this_machine_reaches() {
        assert_eq!(command(None, "127.0.0.1:7000", false), "redis-cli -h 127.0.0.1 -p 7000");
        assert_eq!(command(None, "0.0.0.0:7000", false), "redis-cli -h 127.0.0.1 -p 7000");
        assert_eq!(command(None, "[::]:7000", false), "redis-cli -h ::1 -p 7000");
    }

    #[test]
    fn the_command_has_the_password_or_asks_for_it() {
        let file = Origin::File("/etc/my password".into());
        assert_eq!(
            command(Some(file), "127.0.0.1:1", true),
            "REDISCLI_AUTH=\"$(head -n 1 '/etc/my password')\" redis-cli -h 127.0.0.1 -p 1"
        );
        let asks = "redis-cli -h 127.0.0.1 -p 1 --askpass";
        assert_eq!(command(Some(Origin::Once), "127.0.0.1:1", true), asks);
        assert_eq!(command(None, "127.0.0.1:1", true), asks, "a password of the ACL file");
    }
}
