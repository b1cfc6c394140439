//! A workload that is a recorded trace, again and again.

use crate::error::LabError;
use crate::presets::{is_path, trace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use softflash_trace::{Kind, ReadOptions, Reader, Request};
use softflash_workload::{Load, WorkloadError};
use std::borrow::Cow;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// A trace as a workload: it begins again after its end. Flushes are left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceWorkload {
    /// The preset's name.
    pub name: String,
    /// A description in one line.
    #[serde(default)]
    pub title: String,
    /// The name of a trace in the program, or the path of a file in any format that `replay` reads.
    pub trace: String,
    /// When requests are made, in the order of the trace; at its times unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// The duration of a run in virtual nanoseconds, unless the experiment sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// The number of requests of a run, unless the experiment sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
}

impl TraceWorkload {
    /// Checks its values.
    ///
    /// # Errors
    /// The error names the invalid value.
    pub fn validate(&self) -> Result<(), WorkloadError> {
        self.load.map_or(Ok(()), |load| load.validate_of(&self.name))
    }

    /// The bytes of the trace as stored.
    fn stored(&self) -> Result<Cow<'static, [u8]>, LabError> {
        match is_path(&self.trace) {
            true => {
                let path = Path::new(&self.trace);
                Ok(fs::read(path).map_err(LabError::file(path))?.into())
            }
            false => trace(&self.trace).map(Cow::Borrowed),
        }
    }

    /// The bytes of a trace that is no part of the program; else none.
    pub(crate) fn foreign_bytes(&self) -> Result<Cow<'static, [u8]>, LabError> {
        if is_path(&self.trace) { self.stored() } else { Ok(Cow::Borrowed(&[])) }
    }

    /// Its requests, which have to lie within the capacity.
    pub(crate) fn requests(&self, capacity_bytes: u64) -> Result<Repeated, LabError> {
        let stored = self.stored()?;
        let reader = Reader::open(&*stored, &self.trace, ReadOptions::default())?;
        let (mut requests, mut end_bytes) = (Vec::new(), 0);
        for request in reader {
            let request = request?;
            if request.kind != Kind::Flush && request.bytes > 0 {
                end_bytes = end_bytes.max(request.end_bytes());
                requests.push(request);
            }
        }
        if end_bytes > capacity_bytes {
            return Err(LabError::Parameter(format!(
                "the trace `{}` reaches to {end_bytes} bytes, and the drive has {capacity_bytes}: use a larger one",
                self.trace
            )));
        }
        Repeated::new(requests).ok_or_else(|| {
            LabError::Parameter(format!("the trace `{}` has no reads, writes or trims", self.trace))
        })
    }
}

/// The requests of a trace, without end.
#[derive(Debug, Clone)]
pub(crate) struct Repeated {
    requests: Arc<[Request]>,
    next: usize,
    /// The time at which the present pass began, and that from one pass to the next.
    begin_ns: u64,
    period_ns: u64,
}

impl Repeated {
    /// `None` of no requests.
    fn new(requests: Vec<Request>) -> Option<Repeated> {
        let last_ns = requests.last()?.at_ns;
        // The first request of the next pass comes after a mean pause.
        let period_ns = last_ns + (last_ns / requests.len() as u64).max(1);
        Some(Repeated { requests: requests.into(), next: 0, begin_ns: 0, period_ns })
    }

    /// Whether any request writes.
    pub(crate) fn writes(&self) -> bool {
        self.requests.iter().any(|request| request.kind == Kind::Write)
    }

    /// The longest write, in bytes.
    pub(crate) fn longest_write_bytes(&self) -> u64 {
        let writes = self.requests.iter().filter(|request| request.kind == Kind::Write);
        writes.map(|request| request.bytes).max().unwrap_or(0)
    }
}

impl Iterator for Repeated {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        if self.next == self.requests.len() {
            self.next = 0;
            self.begin_ns = self.begin_ns.saturating_add(self.period_ns);
        }
        let request = *self.requests.get(self.next)?;
        self.next += 1;
        Some(Request { at_ns: self.begin_ns.saturating_add(request.at_ns), ..request })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(at_ns: u64, offset_bytes: u64) -> Request {
        Request { at_ns, device: 0, kind: Kind::Write, offset_bytes, bytes: 4096 }
    }

    #[test]
    fn a_trace_begins_again_after_a_mean_pause() {
        let repeated = Repeated::new(vec![write(0, 0), write(100, 4096)]).unwrap();
        let all: Vec<(u64, u64)> =
            repeated.take(5).map(|request| (request.at_ns, request.offset_bytes)).collect();
        assert_eq!(all, [(0, 0), (100, 4096), (150, 0), (250, 4096), (300, 0)]);
        assert!(Repeated::new(Vec::new()).is_none());
    }

    #[test]
    fn a_file_is_a_trace_and_has_to_fit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("disk.csv");
        fs::write(&path, "3,W,8192,4096,5\n3,R,0,4096,6\n").unwrap();
        let workload = TraceWorkload {
            name: "w".to_owned(),
            title: String::new(),
            trace: path.display().to_string(),
            load: None,
            duration_ns: None,
            requests: None,
        };
        assert!(workload.requests(12_288).unwrap().writes());
        let error = workload.requests(8192).err().unwrap().to_string();
        assert!(error.contains("reaches to 12288 bytes"), "{error}");
        let unknown = TraceWorkload { trace: "no-such".to_owned(), ..workload };
        assert!(unknown.requests(8192).err().unwrap().to_string().contains("no trace is called"));
    }
}
