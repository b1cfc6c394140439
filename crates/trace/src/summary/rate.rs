//! Duration, mean rate and peak second.

use super::report::Rate;
use crate::request::{Kind, Request};

const SECOND_NS: u64 = 1_000_000_000;

/// Requires times that do not decrease.
#[derive(Default)]
pub(super) struct RateMeter {
    requests: u64,
    bytes: u64,
    first_ns: u64,
    last_ns: u64,
    second: Second,
    peak: Second,
}

#[derive(Default, Clone, Copy)]
struct Second {
    number: u64,
    requests: u64,
    bytes: u64,
}

impl RateMeter {
    pub(super) fn add(&mut self, request: &Request) {
        if self.requests == 0 {
            self.first_ns = request.at_ns;
        }
        let bytes = match request.kind {
            Kind::Read | Kind::Write => request.bytes,
            Kind::Trim | Kind::Flush => 0,
        };
        let number = (request.at_ns - self.first_ns.min(request.at_ns)) / SECOND_NS;
        if number != self.second.number {
            self.end_second();
            self.second = Second { number, ..Second::default() };
        }
        self.second.requests += 1;
        self.second.bytes = self.second.bytes.saturating_add(bytes);
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.last_ns = self.last_ns.max(request.at_ns);
    }

    fn end_second(&mut self) {
        self.peak.requests = self.peak.requests.max(self.second.requests);
        self.peak.bytes = self.peak.bytes.max(self.second.bytes);
    }

    pub(super) fn finish(mut self) -> Rate {
        self.end_second();
        let duration_ns = self.last_ns - self.first_ns;
        let seconds = duration_ns as f64 / SECOND_NS as f64;
        let per_second = |count: u64| (duration_ns > 0).then(|| count as f64 / seconds);
        Rate {
            duration_ns,
            mean_requests_per_s: per_second(self.requests),
            mean_bytes_per_s: per_second(self.bytes),
            peak_requests_in_1s: self.peak.requests,
            peak_bytes_in_1s: self.peak.bytes,
        }
    }
}
