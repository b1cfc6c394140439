//! NBD over TLS, with a real client.

use crate::nbd::{change, volume, with_volume_units};
use crate::nbd_clients::all_exist;
use crate::support::certificates::Authority;
use crate::support::nbd::NbdClient;
use crate::support::noise;
use crate::support::program::{check_clean, said, softflash};
use crate::support::server::Server;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The option failed because TLS is required.
const TLS_REQUIRED: u32 = 0x8000_0005;

/// The files of a server and a client.
struct Files {
    directory: PathBuf,
    authority: Authority,
}

impl Files {
    fn new(directory: &Path) -> Files {
        let authority = Authority::new(directory, "ca");
        for name in ["server", "client"] {
            authority.sign(name);
        }
        Files { directory: directory.to_owned(), authority }
    }

    /// The arguments of a server with TLS.
    fn arguments(&self, client_auth: &str) -> Vec<String> {
        let file = |name: &str| self.directory.join(name).display().to_string();
        let authority = self.authority.certificate.display().to_string();
        let mut all = vec!["--memory".to_owned(), "64MiB".to_owned()];
        for (name, value) in [
            ("--nbd", "127.0.0.1:0".to_owned()),
            ("--tls-port", "0".to_owned()),
            ("--tls-cert", file("server.crt")),
            ("--tls-key", file("server.key")),
            ("--tls-ca", authority),
            ("--tls-client-auth", client_auth.to_owned()),
        ] {
            all.extend([name.to_owned(), value]);
        }
        all
    }

    /// A directory as libnbd expects it, with a certificate of the client or without.
    fn of_client(&self, with_certificate: bool) -> PathBuf {
        let name = if with_certificate { "with" } else { "without" };
        let directory = self.directory.join(name);
        fs::create_dir_all(&directory).unwrap();
        fs::copy(&self.authority.certificate, directory.join("ca-cert.pem")).unwrap();
        if with_certificate {
            fs::copy(self.directory.join("client.crt"), directory.join("client-cert.pem")).unwrap();
            fs::copy(self.directory.join("client.key"), directory.join("client-key.pem")).unwrap();
        }
        directory
    }
}

fn start(data: &Path, arguments: &[String], more: &[&str]) -> Server {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).chain(more.to_vec()).collect();
    Server::start(data, &arguments)
}

/// Copies between a file and an export, over TLS.
fn copy(server: &Server, files: &Path, image: &Path, is_in: bool) -> Output {
    let port = server.address_of("nbd").port();
    let files = files.display();
    let uri = format!("nbds://localhost:{port}/disk?tls-certificates={files}");
    let image = image.display().to_string();
    let ends = if is_in { [image, uri] } else { [uri, image] };
    Command::new("nbdcopy").args(ends).output().unwrap()
}

fn with_disk() -> (tempfile::TempDir, PathBuf, Files) {
    let (temp, data) = with_volume_units();
    let files = Files::new(temp.path());
    let created = softflash(["volume", "create", data.to_str().unwrap(), "disk", "8MiB"]);
    assert!(created.status.success(), "{}", said(&created));
    (temp, data, files)
}

#[test]
fn tls_is_optional_beside_plain_text_and_moves_with_the_connection() {
    if !all_exist(&["nbdcopy"]) {
        return;
    }
    let (temp, data, files) = with_disk();
    let server = start(&data, &files.arguments("no"), &[]);
    let [image, copied] = ["image", "copied"].map(|name| temp.path().join(name));
    fs::write(&image, noise(1, 8 << 20)).unwrap();
    let client = files.of_client(false);
    let into = copy(&server, &client, &image, true);
    assert!(into.status.success(), "{}", said(&into));
    let out = copy(&server, &client, &copied, false);
    assert!(out.status.success(), "{}", said(&out));
    assert!(fs::read(&copied).unwrap() == noise(1, 8 << 20));
    let mut plain = NbdClient::connect(server.address_of("nbd"), "disk");
    assert!(plain.read(0, 1 << 20).unwrap() == noise(1, 8 << 20)[..1 << 20]);
    assert!(server.terminate().success());
}

#[test]
fn a_volume_moves_between_threads_while_a_client_uses_it_by_tls() {
    if !all_exist(&["nbdcopy"]) {
        return;
    }
    let (temp, data, files) = with_disk();
    let server = start(&data, &files.arguments("no"), &[]);
    change(&server, &["RESIZE", "disk", "96MiB"]);
    let image = temp.path().join("image");
    fs::write(&image, noise(3, 96 << 20)).unwrap();
    let client = files.of_client(false);
    // Out of the server and into it, each while the volume moves to and fro.
    for is_in in [true, false] {
        let moves = std::thread::scope(|scope| {
            let copying = scope.spawn(|| copy(&server, &client, &image, is_in));
            let mut moves = 0;
            while moves == 0 || !copying.is_finished() {
                for set in ["vol-0", "vol-1"] {
                    let reply = volume(&server, &["MOVE", "disk", set]);
                    let is_there = |error: &str| error.contains("already");
                    moves += u32::from(reply.is_ok());
                    assert!(reply.is_ok() || reply.error().is_some_and(is_there), "{reply:?}");
                }
            }
            let copied = copying.join().unwrap();
            assert!(copied.status.success(), "{moves} moves: {}", said(&copied));
            moves
        });
        println!("{moves} moves during a copy");
        assert!(fs::read(&image).unwrap() == noise(3, 96 << 20), "into the server: {is_in}");
        fs::write(&image, []).unwrap();
        if is_in {
            let plain = NbdClient::connect(server.address_of("nbd"), "disk");
            assert_eq!(plain.size_bytes, 96 << 20);
        }
    }
    server.kill();
    check_clean(&data);
}

#[test]
fn with_a_password_clients_must_show_a_certificate() {
    if !all_exist(&["nbdcopy"]) {
        return;
    }
    let (temp, data, files) = with_disk();
    let password = temp.path().join("password");
    fs::write(&password, "secret").unwrap();
    let with_password = ["--password-file", password.to_str().unwrap()];
    let refused = Server::try_start(
        &data,
        &files
            .arguments("optional")
            .iter()
            .map(String::as_str)
            .chain(with_password)
            .collect::<Vec<_>>(),
    );
    assert!(said(&refused.err().unwrap()).contains("--tls-client-auth required"));

    let server = start(&data, &files.arguments("required"), &with_password);
    let image = temp.path().join("image");
    fs::write(&image, noise(2, 8 << 20)).unwrap();
    let plain = NbdClient::try_connect(server.address_of("nbd"), "disk").unwrap();
    assert_eq!(plain.err(), Some(TLS_REQUIRED));
    let without = copy(&server, &files.of_client(false), &image, true);
    assert!(!without.status.success(), "{}", said(&without));
    let with = copy(&server, &files.of_client(true), &image, true);
    assert!(with.status.success(), "{}", said(&with));
    assert!(server.terminate().success());
}

#[test]
fn without_plain_text_for_redis_clients_tls_is_required() {
    let (_temp, data, files) = with_disk();
    let server = start(&data, &files.arguments("no"), &["--resp", "off"]);
    let plain = NbdClient::try_connect(server.address_of("nbd"), "disk").unwrap();
    assert_eq!(plain.err(), Some(TLS_REQUIRED));
    assert!(server.terminate().success());
}
