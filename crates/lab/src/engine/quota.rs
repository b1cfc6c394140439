//! Quotas of requests and time for the clients of a run.

use crate::cell::Limits;
use softflash_base::Time;

/// The number of requests that a client may still submit, and the time limit.
#[derive(Debug, Clone, Copy)]
pub struct Quota {
    /// Requests.
    pub requests: Option<u64>,
    /// No request is submitted from then on.
    pub until: Option<Time>,
}

impl Quota {
    /// The share of client number `client` out of `clients` in the limits of a run that begins at
    /// `begin`.
    pub fn share(limits: &Limits, begin: Time, client: u64, clients: u64) -> Quota {
        let share = |all: u64| all / clients + u64::from(client < all % clients);
        Quota {
            requests: limits.requests.map(share),
            until: limits.duration_ns.map(|ns| begin + ns),
        }
    }

    /// A quota of time alone.
    pub fn until(time: Time) -> Quota {
        Quota { requests: None, until: Some(time) }
    }

    /// Takes one request, if there is one left.
    pub fn take(&mut self, now: Time) -> bool {
        let in_time = self.until.is_none_or(|until| now < until);
        match &mut self.requests {
            Some(0) => false,
            Some(left) if in_time => {
                *left -= 1;
                true
            }
            _ => in_time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_share_out_every_request() {
        let limits = Limits { requests: Some(10), duration_ns: None, warm_up_ns: 0, samples: 1 };
        let mut made = 0;
        for client in 0..4 {
            let mut quota = Quota::share(&limits, Time::ZERO, client, 4);
            while quota.take(Time(7)) {
                made += 1;
            }
        }
        assert_eq!(made, 10);
        assert!(Quota::until(Time(8)).take(Time(7)) && !Quota::until(Time(8)).take(Time(8)));
    }
}
