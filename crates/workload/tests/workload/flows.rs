//! Workloads of several flows, and the parts of a device that they use.

use softflash_base::random::Rng;
use softflash_workload::{Begin, BlockWorkload, FlowWorkload, Pattern, RequestSize, Span};

const MIB: u64 = 1 << 20;

const TWO: &str = "\
name = \"two\"
[[flow]]
name = \"a\"
read_fraction = 1.0
size = 4096
copies = 3
copy_offset_bytes = 1048576
begin = { bytes = 8192 }
span = { bytes = 1048576 }
[[flow]]
name = \"b\"
read_fraction = 0.0
size = 65536
start_ns = 5
begin = { share = 0.5 }
";

fn read(text: &str) -> Result<FlowWorkload, String> {
    let workload: FlowWorkload = toml::from_str(text).map_err(|error| error.to_string())?;
    workload.validate().map_err(|error| error.to_string())?;
    Ok(workload)
}

#[test]
fn flows_are_read_as_they_are_written_and_keep_to_their_parts() {
    let workload = read(TWO).unwrap();
    let again: FlowWorkload = toml::from_str(&toml::to_string(&workload).unwrap()).unwrap();
    assert_eq!(again, workload);
    let capacity_bytes = 100 * MIB + 4096;
    let places = |flow: usize, copy| {
        let own = workload.flows[flow].copy(copy, capacity_bytes).unwrap();
        let mut source = own.source(capacity_bytes, Rng::seeded(1)).unwrap();
        let all: Vec<_> = (0..1000).map(|_| source.next()).collect();
        let begin = all.iter().map(|access| access.offset_bytes).min().unwrap();
        (begin, all.iter().map(|access| access.end_bytes()).max().unwrap())
    };
    for copy in 0..3 {
        let (begin, end) = places(0, copy);
        let expected = 8192 + u64::from(copy) * MIB;
        assert!(begin >= expected && end <= expected + MIB, "{copy}: {begin} to {end}");
        assert!(end - begin > MIB / 2, "{copy}: {begin} to {end}");
    }
    // A share is rounded down to the alignment, and a span of all ends with the device.
    let (begin, end) = places(1, 0);
    assert!((50 * MIB..60 * MIB).contains(&begin), "{begin}");
    assert!((90 * MIB..=capacity_bytes).contains(&end), "{end}");
}

#[test]
fn mistakes_in_flows_are_named() {
    for (from, to, told) in [
        ("name = \"b\"", "name = \"a\"", "two flows have the name `a`"),
        ("name = \"b\"", "name = \"\"", "flow 2 has no name"),
        ("size = 65536", "size = 0", "flow `b`: size is 0"),
        ("size = 65536", "sise = 0", "unknown field `sise`"),
        ("copies = 3", "copies = 0", "flow `a`: copies is 0"),
        ("copies = 3", "copies = 1024", "flows with their copies = 1025 is more than 1024"),
        ("share = 0.5", "share = -1.0", "begin.share = -1 is not between 0 and 1"),
        ("start_ns = 5", "start_ns = \"5\"", "invalid type"),
        ("start_ns = 5", "after_previous = true", "flow `a` never ends"),
        ("start_ns = 5", "passes = 0", "flow `b`: passes is 0"),
    ] {
        assert!(TWO.contains(from), "{from}");
        let error = read(&TWO.replace(from, to)).unwrap_err();
        assert!(error.contains(told), "{told}: {error}");
    }
    let none = read("name = \"none\"\nflow = []\n").unwrap_err();
    assert!(none.contains("it has no flow; add a table [[flow]]"), "{none}");
    let flow = &read(TWO).unwrap().flows[0];
    let beyond = flow.copy(2, 4 * MIB).unwrap().source(2 * MIB, Rng::seeded(1)).unwrap_err();
    assert!(beyond.to_string().contains("is not below the capacity of 2097152"), "{beyond}");
}

#[test]
fn limits_are_those_of_the_workload_or_of_all_flows() {
    let limits = |a: &str, b: &str| {
        let text = TWO.replace("copies = 3", &format!("copies = 3\n{a}"));
        read(&text.replace("start_ns = 5", b)).unwrap().limits()
    };
    assert_eq!(limits("", "requests = 7"), (None, None));
    assert_eq!(limits("requests = 5", "requests = 7"), (Some(22), None));
    assert_eq!(limits("duration_ns = 5", "duration_ns = 7"), (None, Some(7)));
    assert_eq!(limits("duration_ns = 5", "requests = 7"), (Some(u64::MAX), None));
    let flow = &read(&TWO.replace("copies = 3", "passes = 2")).unwrap().flows[0];
    assert_eq!(flow.most_requests(100 * MIB).unwrap(), Some(2 * MIB / 4096));
}

/// A share `s` of the space has `1 - s` of the accesses, and so again within it.
#[test]
fn pareto_is_the_law_of_fio() {
    let seed = 9;
    println!("seed {seed}");
    let pattern = Pattern::Pareto { share: 0.2, scattered: false };
    let mut workload = BlockWorkload::new("p", RequestSize::Fixed(4096), pattern);
    workload.span = Span::Bytes(100 * MIB);
    let mut source = workload.source(100 * MIB, Rng::seeded(seed)).unwrap();
    let places: Vec<u64> = (0..100_000).map(|_| source.next().offset_bytes).collect();
    let below = |share: f64| {
        let bound = (share * (100 * MIB) as f64) as u64;
        places.iter().filter(|place| **place < bound).count() as f64 / places.len() as f64
    };
    assert!((below(0.2) - 0.8).abs() < 0.01, "{}", below(0.2));
    assert!((below(0.04) - 0.64).abs() < 0.01, "{}", below(0.04));
    workload.pattern = Pattern::Pareto { share: 1.0, scattered: false };
    let error = workload.validate().unwrap_err().to_string();
    assert!(error.contains("pattern.pareto.share = 1 is not above 0 and below 1"), "{error}");
    workload.begin = Begin::Share(0.5);
    assert!(toml::to_string(&workload).unwrap().contains("[begin]"));
}
