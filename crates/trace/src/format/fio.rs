//! The common parts of both versions of fio's I/O log: actions, and files as devices.

use crate::fields::{put, put_all};
use crate::malformed::{FieldError, Problem};
use crate::names::Names;
use crate::request::{Kind, Request};
use hashbrown::HashSet;

/// Files, numbered in the order of their first use.
#[derive(Default)]
pub(super) struct Files {
    names: Names,
}

impl Files {
    #[inline]
    pub(super) fn device(&mut self, name: &[u8]) -> Result<u32, FieldError> {
        self.names.number(name).ok_or(Problem::TooMany.of("filename"))
    }
}

/// The action of a line on a file.
pub(super) enum Action {
    /// A request, whose offset and length follow.
    Request(Kind),
    /// Waiting, in version 2.
    Wait,
    /// Opening and the like: no further fields.
    Manage,
}

#[inline]
pub(super) fn action(word: &[u8]) -> Result<Action, FieldError> {
    match word {
        b"read" => Ok(Action::Request(Kind::Read)),
        b"write" => Ok(Action::Request(Kind::Write)),
        b"trim" => Ok(Action::Request(Kind::Trim)),
        b"sync" | b"datasync" => Ok(Action::Request(Kind::Flush)),
        b"wait" => Ok(Action::Wait),
        b"add" | b"open" | b"close" | b"unlink" => Ok(Action::Manage),
        _ => Err(Problem::Unknown.of("action")),
    }
}

/// Appends `name action offset length`.
pub(super) fn put_request(request: &Request, line: &mut Vec<u8>) {
    put_name(request.device, line);
    let action: &[u8] = match request.kind {
        Kind::Read => b" read ",
        Kind::Write => b" write ",
        Kind::Trim => b" trim ",
        Kind::Flush => b" sync ",
    };
    line.extend_from_slice(action);
    put_all(line, b' ', &[request.offset_bytes, request.bytes]);
    line.push(b'\n');
}

fn put_name(device: u32, line: &mut Vec<u8>) {
    line.extend_from_slice(b"/softflash/");
    put(line, u64::from(device));
}

/// Devices that were added: fio requires that each file is added and opened before its first
/// request.
#[derive(Default)]
pub(super) struct OpenFiles {
    known: HashSet<u32>,
    last: Option<u32>,
}

impl OpenFiles {
    /// Whether the device is new.
    #[inline]
    pub(super) fn opens(&mut self, device: u32) -> bool {
        if self.last == Some(device) {
            return false;
        }
        self.last = Some(device);
        self.known.insert(device)
    }

    /// Appends a line for a file, with `time` at its beginning in version 3.
    pub(super) fn put_manage(time: Option<u64>, device: u32, action: &str, line: &mut Vec<u8>) {
        if let Some(time) = time {
            put(line, time);
            line.push(b' ');
        }
        put_name(device, line);
        line.extend_from_slice(action.as_bytes());
        line.push(b'\n');
    }

    /// Appends the last lines, which close all files.
    pub(super) fn close(&mut self, time: Option<u64>, line: &mut Vec<u8>) {
        let mut devices: Vec<u32> = self.known.drain().collect();
        devices.sort_unstable();
        for device in devices {
            OpenFiles::put_manage(time, device, " close", line);
        }
    }
}
