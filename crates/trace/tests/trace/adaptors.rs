//! Adaptors of a trace compared with simple models.

#![expect(clippy::unwrap_used, reason = "tests")]

use crate::support::traces;
use proptest::prelude::*;
use softflash_trace::adapt::{AdaptError, Item};
use softflash_trace::{Kind, Request, TraceError, TraceExt};
use std::collections::HashSet;

fn items(trace: &[Request]) -> impl Iterator<Item = Item> {
    trace.iter().copied().map(Ok)
}

fn all(trace: impl Iterator<Item = Item>) -> Vec<Request> {
    trace.map(|request| request.unwrap()).collect()
}

fn request(offset_bytes: u64, bytes: u64) -> Request {
    Request { at_ns: 7, device: 1, kind: Kind::Write, offset_bytes, bytes }
}

proptest! {
    #[test]
    fn speed_divides_times_and_nothing_else(trace in traces(1 << 40, 50), factor in 0.01..100.0_f64) {
        let faster = all(items(&trace).speed(factor).unwrap());
        prop_assert_eq!(faster.len(), trace.len());
        for (before, after) in trace.iter().zip(&faster) {
            let expected = before.at_ns as f64 / factor;
            prop_assert!((after.at_ns as f64 - expected).abs() <= 1.0 + expected * 1e-12);
            prop_assert_eq!(Request { at_ns: before.at_ns, ..*after }, *before);
        }
        prop_assert!(faster.is_sorted_by_key(|request| request.at_ns));
        prop_assert_eq!(all(items(&trace).speed(1.0).unwrap()), trace);
    }

    #[test]
    fn copies_are_the_trace_several_times_over(
        trace in traces(1 << 40, 50),
        copies in 1..6_u32,
        stride in 0..1_u64 << 40,
    ) {
        let multiplied = all(items(&trace).copies(copies, stride).unwrap());
        prop_assert!(multiplied.is_sorted_by_key(|request| request.at_ns));
        prop_assert_eq!(multiplied.len(), trace.len() * copies as usize);
        for copy in 0..copies {
            let one: Vec<Request> =
                multiplied.iter().skip(copy as usize).step_by(copies as usize).copied().collect();
            let moved = |request: &Request| match request.kind {
                Kind::Flush => *request,
                _ => Request { offset_bytes: request.offset_bytes + u64::from(copy) * stride, ..*request },
            };
            prop_assert_eq!(one, trace.iter().map(moved).collect::<Vec<_>>());
        }
    }

    #[test]
    fn wrapping_touches_the_remainders_of_all_addresses(
        offset in 0..10_000_u64,
        bytes in 0..3000_u64,
        device in 1..2000_u64,
    ) {
        let wrapped = all([Ok(request(offset, bytes))].into_iter().wrap(device).unwrap());
        prop_assert!(wrapped.len() <= 2);
        let touched = |request: &Request| request.offset_bytes..request.offset_bytes + request.bytes;
        let found: Vec<u64> = wrapped.iter().flat_map(touched).collect();
        let expected: HashSet<u64> = (offset..offset + bytes).map(|address| address % device).collect();
        prop_assert_eq!(found.len(), expected.len(), "each address once");
        prop_assert_eq!(found.into_iter().collect::<HashSet<_>>(), expected);
        prop_assert!(all(wrapped.into_iter().map(Ok).within(device)).iter().all(|part| part.at_ns == 7));
    }

    #[test]
    fn a_wrapped_trace_lies_within_its_device(trace in traces(1 << 50, 50), device in 1..1_u64 << 30) {
        let wrapped = all(items(&trace).wrap(device).unwrap().within(device));
        prop_assert!(wrapped.len() >= trace.len());
        prop_assert_eq!(all(items(&trace).wrap(1 << 51).unwrap()), trace);
    }
}

#[test]
fn the_first_request_beyond_the_device_ends_the_trace_and_names_the_remedy() {
    let trace = [request(0, 4096), request(4096, 4096), request(4097, 4096), request(0, 1)];
    let mut within = items(&trace).within(8192);
    assert_eq!(within.by_ref().take(2).filter(Result::is_ok).count(), 2);
    let error = within.next().unwrap().unwrap_err();
    let TraceError::Adapt(AdaptError::BeyondDevice { offset_bytes: 4097, bytes: 4096, .. }) = error
    else {
        panic!("{error:?}");
    };
    assert!(error.to_string().contains("--wrap"), "{error}");
    assert!(within.next().is_none());
}

#[test]
fn what_makes_no_sense_is_refused() {
    let nothing = || items(&[]);
    for factor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(nothing().speed(factor).is_err(), "{factor}");
    }
    assert_eq!(nothing().copies(0, 1).err(), Some(AdaptError::NoCopies));
    assert_eq!(nothing().wrap(0).err(), Some(AdaptError::EmptyDevice));
    let slow = items(&[request(0, 512)]).speed(1e-300).unwrap().next().unwrap().unwrap_err();
    assert!(matches!(slow, TraceError::Adapt(AdaptError::TooSlow(_))), "{slow}");
    let far = [request(1 << 62, 512)];
    let mut too_far = items(&far).copies(5, 1 << 62).unwrap();
    assert_eq!(too_far.by_ref().take(3).filter(Result::is_ok).count(), 3);
    let error = too_far.next().unwrap().unwrap_err();
    assert!(matches!(error, TraceError::Adapt(AdaptError::CopyTooFar { copy: 3, .. })), "{error}");
}
