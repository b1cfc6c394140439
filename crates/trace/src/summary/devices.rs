//! Figures of each device, and detection of its sequential requests.

use super::report::{DeviceSummary, share};
use crate::request::{Kind, Request};
use hashbrown::HashMap;

/// Sequential streams that are distinguished for each kind on a device.
const STREAMS: usize = 8;

pub(super) struct Devices {
    limit: usize,
    devices: HashMap<u32, Device>,
    beyond: u64,
    sequential: u64,
    moving: u64,
}

struct Device {
    summary: DeviceSummary,
    reads: Streams,
    writes: Streams,
}

/// The ends of the last streams.
#[derive(Default)]
struct Streams {
    ends: [Option<u64>; STREAMS],
    next: usize,
}

impl Streams {
    /// Whether the request continues one of the streams; if not, it begins a stream that replaces
    /// the oldest.
    fn follows(&mut self, request: &Request) -> bool {
        let found = self.ends.iter().position(|end| *end == Some(request.offset_bytes));
        let place = found.unwrap_or(self.next);
        if found.is_none() {
            self.next = (self.next + 1) % STREAMS;
        }
        if let Some(end) = self.ends.get_mut(place) {
            *end = Some(request.end_bytes());
        }
        found.is_some()
    }
}

impl Devices {
    pub(super) fn new(limit: usize) -> Devices {
        Devices { limit, devices: HashMap::new(), beyond: 0, sequential: 0, moving: 0 }
    }

    pub(super) fn add(&mut self, request: &Request) {
        let known = self.devices.len() < self.limit || self.devices.contains_key(&request.device);
        if !known {
            self.beyond += 1;
            return;
        }
        let device = self.devices.entry(request.device).or_insert_with(|| Device {
            summary: DeviceSummary::new(request.device),
            reads: Streams::default(),
            writes: Streams::default(),
        });
        let summary = &mut device.summary;
        summary.requests += 1;
        summary.end_bytes = summary.end_bytes.max(request.end_bytes());
        let (count, bytes, streams) = match request.kind {
            Kind::Read => (&mut summary.reads, &mut summary.bytes_read, &mut device.reads),
            Kind::Write => (&mut summary.writes, &mut summary.bytes_written, &mut device.writes),
            Kind::Trim | Kind::Flush => return,
        };
        *count += 1;
        *bytes = bytes.saturating_add(request.bytes);
        self.moving += 1;
        self.sequential += u64::from(streams.follows(request));
    }

    pub(super) fn sequential(&self) -> Option<f64> {
        share(self.sequential, self.moving)
    }

    pub(super) fn beyond(&self) -> u64 {
        self.beyond
    }

    pub(super) fn finish(self) -> Vec<DeviceSummary> {
        let mut devices: Vec<_> = self.devices.into_values().map(|device| device.summary).collect();
        devices.sort_unstable_by_key(|device| device.device);
        devices
    }
}

impl DeviceSummary {
    fn new(device: u32) -> DeviceSummary {
        DeviceSummary {
            device,
            requests: 0,
            reads: 0,
            writes: 0,
            bytes_read: 0,
            bytes_written: 0,
            end_bytes: 0,
        }
    }
}
