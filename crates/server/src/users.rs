//! The file of the users.

use crate::config::ServerConfig;
use crate::error::ServerError;
use softflash_protocol::acl::{Acl, Salts, UserFile, Users, parse_users};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Only the server's own user may read password hashes.
const MODE: u32 = 0o600;

/// Storage for ACL LOAD and ACL SAVE.
#[derive(Debug)]
pub(crate) struct AclFile {
    path: PathBuf,
    /// Serializes writes, which share the name of the temporary file.
    writing: Mutex<()>,
}

impl AclFile {
    pub fn new(path: PathBuf) -> AclFile {
        AclFile { path, writing: Mutex::new(()) }
    }

    /// The users in the file; none if it does not exist.
    pub fn users(&self, salts: &Salts) -> Result<Users, ServerError> {
        let failed = |reason| ServerError::Users { path: self.path.clone(), reason };
        match fs::read_to_string(&self.path) {
            Ok(text) => {
                if text.split_ascii_whitespace().any(|word| word.starts_with('>')) {
                    let path = self.path.display();
                    tracing::warn!(%path, "plain-text passwords; ACL SAVE replaces them by hashes");
                }
                parse_users(&text, salts).map_err(|error| failed(error.to_string()))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Users::new()),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        // Of a symbolic link, the file that it leads to is replaced, and not the link.
        let path = fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".tmp");
        let temporary = path.with_file_name(name);
        let mut options = OpenOptions::new();
        let mut file =
            options.write(true).create(true).truncate(true).mode(MODE).open(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, &path)?;
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        File::open(directory)?.sync_all()
    }
}

impl UserFile for AclFile {
    fn read(&self) -> Result<String, String> {
        fs::read_to_string(&self.path)
            .map_err(|error| format!("cannot read the ACL file {}: {error}", self.path.display()))
    }

    fn write(&self, text: &str) -> Result<(), String> {
        self.replace(text)
            .map_err(|error| format!("cannot write the ACL file {}: {error}", self.path.display()))
    }
}

/// Refuses a file of users that is invalid or lets everyone in, before a data directory is made for
/// a server with these settings.
///
/// # Errors
/// [`ServerError::Users`] and [`ServerError::Unprotected`].
pub fn check_users(config: &ServerConfig) -> Result<(), ServerError> {
    let file = config.acl_file.clone().map(AclFile::new);
    let users = file.map_or_else(|| Ok(Users::new()), |file| file.users(&salts))?;
    let is_open = config.password.is_none() && !Acl::new(users).asks_for_password();
    config.check_protection(is_open)
}

/// Random bytes of the kernel, for salts and passwords.
pub(crate) fn salts(mut buffer: &mut [u8]) {
    while !buffer.is_empty() {
        let got = rustix::rand::getrandom(&mut *buffer, rustix::rand::GetRandomFlags::empty());
        // Blocks until the kernel's generator is initialized; later only a signal can interrupt it.
        let Ok(count) = got else { continue };
        buffer = buffer.get_mut(count..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_file_is_replaced_as_a_whole_and_is_for_the_server_alone() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("users.acl");
        let file = AclFile::new(path.clone());
        assert!(file.users(&salts).unwrap().is_empty(), "no file, no users");
        file.write("user ann on nopass ~* +@all\n").unwrap();
        assert_eq!(file.users(&salts).unwrap().len(), 1);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        file.write("user bob off\n").unwrap();
        assert_eq!(file.read().unwrap(), "user bob off\n");
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1, "nothing is left beside it");
        fs::write(&path, "user bob >marker +nosuch").unwrap();
        let error = file.users(&salts).unwrap_err().to_string();
        assert!(error.contains("users.acl: line 1: ") && !error.contains("marker"), "{error}");
        let nowhere = AclFile::new(temp.path().join("missing/users.acl"));
        assert!(nowhere.write("").unwrap_err().contains("missing/users.acl"));
    }

    #[test]
    fn a_link_stays_and_the_file_that_it_leads_to_is_replaced() {
        let temp = tempfile::tempdir().unwrap();
        let (link, real) = (temp.path().join("link"), temp.path().join("real"));
        fs::write(&real, "user ann off\n").unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        AclFile::new(link.clone()).write("user bob off\n").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "user bob off\n");
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 2);
    }

    #[test]
    fn salts_are_random() {
        let (mut one, mut other) = ([0; 32], [0; 32]);
        salts(&mut one);
        salts(&mut other);
        assert_ne!(one, other);
    }
}
