//! libnbd's nbdfuse: a volume as a file of the machine.

use crate::nbd::{change, serve, with_volume_units};
use crate::nbd_clients::all_exist;
use crate::support::noise;
use crate::support::server::Server;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

/// A mounted volume; dropped, it is unmounted.
struct Mounted {
    point: PathBuf,
    nbdfuse: Child,
}

impl Mounted {
    fn new(server: &Server, export: &str, point: &Path) -> Mounted {
        fs::create_dir_all(point).unwrap();
        let uri = format!("nbd://{}/{export}", server.address_of("nbd"));
        let mut command = Command::new("nbdfuse");
        command.arg(point).arg(uri).stdin(Stdio::null()).stdout(Stdio::null());
        let nbdfuse = command.spawn().unwrap();
        let mut mounted = Mounted { point: point.to_owned(), nbdfuse };
        let started = Instant::now();
        while !mounted.path().exists() {
            let ended = mounted.nbdfuse.try_wait().unwrap();
            assert!(ended.is_none() && started.elapsed() < PATIENCE, "nbdfuse: {ended:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        mounted
    }

    fn path(&self) -> PathBuf {
        self.point.join("nbd")
    }

    fn open(&self) -> File {
        File::options().read(true).write(true).open(self.path()).unwrap()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let succeeds = |command: &mut Command| {
            let quiet = command.arg(&self.point).stdout(Stdio::null()).stderr(Stdio::null());
            quiet.status().is_ok_and(|status| status.success())
        };
        // Users unmount by the first, root may have the second only.
        if !succeeds(Command::new("fusermount3").arg("-u")) {
            succeeds(Command::new("umount").arg("--lazy"));
        }
        let _ = self.nbdfuse.kill();
        let _ = self.nbdfuse.wait();
    }
}

/// Whether this kernel and this user can mount by FUSE.
fn has_fuse() -> bool {
    let opens = File::options().read(true).write(true).open("/dev/fuse").is_ok();
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| {
        use std::os::unix::fs::MetadataExt;
        own.uid() == 0
    });
    let helper = Command::new("fusermount3").arg("--version").stdout(Stdio::null()).status();
    opens && (is_root || helper.is_ok())
}

#[test]
fn nbdfuse_makes_a_volume_a_file_over_a_kill() {
    if !all_exist(&["nbdfuse"]) {
        return;
    }
    if !has_fuse() {
        println!("SKIPPED: this kernel, or this user, has no FUSE");
        return;
    }
    let (temp, data) = with_volume_units();
    let point = temp.path().join("point");
    let server = serve(&data);
    change(&server, &["CREATE", "disk", "64MiB"]);
    let written = noise(1, 1_000_000);
    {
        let mounted = Mounted::new(&server, "disk", &point);
        assert_eq!(fs::metadata(mounted.path()).unwrap().len(), 64 << 20);
        let file = mounted.open();
        file.write_all_at(&written, 12_345).unwrap();
        file.sync_all().unwrap();
        change(&server, &["SNAPSHOT", "disk", "before"]);
        file.write_all_at(&[0xaa; 5000], 12_345).unwrap();
        file.sync_all().unwrap();
        server.kill();
        assert!(file.write_all_at(&[0xbb; 4096], 0).is_err(), "an error, and no endless wait");
    }
    let server = serve(&data);
    let mut read = vec![0; written.len()];
    {
        let mounted = Mounted::new(&server, "disk", &point);
        mounted.open().read_exact_at(&mut read, 12_345).unwrap();
        assert!(read[..5000] == [0xaa; 5000] && read[5000..] == written[5000..]);
    }
    {
        let mounted = Mounted::new(&server, "disk@before", &point);
        File::open(mounted.path()).unwrap().read_exact_at(&mut read, 12_345).unwrap();
        assert!(read == written, "the snapshot");
    }
    assert!(server.terminate().success());
}
