//! Invalid workloads are refused, and the error names the workload, the field and the remedy.

#![expect(clippy::unwrap_used, reason = "a helper of tests")]

use softflash_base::random::Rng;
use softflash_workload::{BlockWorkload, KvWorkload, Load, Pattern, Precondition, RequestSize};

/// The error of a block workload of `lines` with a name, and with a mix and a size unless `lines`
/// have them.
fn block_error(lines: &str) -> String {
    let size = if lines.contains("size") { "" } else { "size = 4096\n" };
    let mix = if lines.contains("read_fraction") { "" } else { "read_fraction = 0.5\n" };
    let text = format!("name = \"bad\"\n{mix}{size}{lines}\n");
    match toml::from_str::<BlockWorkload>(&text) {
        Ok(workload) => workload.source(1 << 20, Rng::seeded(1)).unwrap_err().to_string(),
        Err(error) => error.to_string(),
    }
}

fn kv_error(lines: &str) -> String {
    let given = |field: &str, line: &'static str| if lines.contains(field) { "" } else { line };
    let operation = given("operation", "operation = \"read\"\n");
    let value = given("value_bytes", "value_bytes = 100\n");
    let keys = given("_slice", "keys_per_slice = 1000\n");
    let text = format!("name = \"bad\"\n{operation}{value}{keys}{lines}\n");
    match toml::from_str::<KvWorkload>(&text) {
        Ok(workload) => match workload.key_maker(b"") {
            Ok(_) => workload.source(0, 0, &Rng::seeded(1)).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        },
        Err(error) => error.to_string(),
    }
}

#[test]
fn block_workloads_that_make_no_sense_say_why() {
    let cases = [
        ("read_fraction = 1.5", "read_fraction = 1.5 is not between 0 and 1"),
        ("read_fraction = nan", "read_fraction = NaN is not between"),
        ("trim_fraction = 0.6", "the sum of read_fraction and trim_fraction is 1.1, more than 1"),
        ("size = 0", "size is 0"),
        ("size = -1", "expected a number of bytes below 4 GiB"),
        ("size = 4294967296", "expected a number of bytes below 4 GiB"),
        ("size = \"8k\"", "expected a number of bytes below 4 GiB"),
        ("size = []", "size has no size with a weight above 0"),
        ("size = [{ bytes = 1, weight = -1.0 }]", "weight -1 of 1 bytes"),
        ("size = [{ bytes = 1, wait = 1.0 }]", "unknown field `wait`"),
        ("write_size = 4096", "reads have no size; give size or read_size"),
        ("read_size = 4096", "writes have no size; give size or write_size"),
        ("align_bytes = 0", "align_bytes is 0"),
        ("patern = \"random\"", "unknown field `patern`"),
        ("pattern = \"randon\"", "unknown variant `randon`"),
        ("pattern = \"zipf\"", "{ zipf = { exponent = 0.99 } }"),
        ("pattern = 3", "expected \"random\", \"sequential\", or a table"),
        ("pattern = { zipf = { exponent = -1.0 } }", "Zipf exponent -1"),
        ("pattern = { zipf = { exponent = 1.0, scatter = true } }", "unknown field `scatter`"),
        ("pattern = { sequential = { streams = 0 } }", "pattern.sequential.streams is 0"),
        ("pattern = { sequential = { streams = 257 } }", "257 sequential streams"),
        ("pattern = { hot-cold = { hot_space = 0.0, hot_accesses = 0.5 } }", "hot_space = 0"),
        ("span = { share = 0.0 }", "span.share = 0 is not above 0"),
        ("span = { bytes = 2097152 }", "ends beyond the capacity of 1048576 bytes"),
        ("span = { bytes = 100 }", "does not fit into the span of 100 bytes"),
        ("load = { closed = { threads = 0 } }", "load.closed.threads is 0"),
        ("load = { closed = { thread = 1 } }", "keys in table: thread, available keys: threads"),
        ("load = { closed = { threads = 65536, queue_depth = 65536 } }", "is more than 16777216"),
        (
            "load = { open = { requests_per_second = 0.0 } }",
            "requests_per_second = 0 is not a number",
        ),
        ("load = { open = { requests_per_second = inf } }", "requests_per_second = inf is not"),
        (
            "load = { open = { requests_per_second = 1.0, arrivals = { bursts = { on_ns = 0, off_ns = 1 } } } }",
            "arrivals.bursts.on_ns is 0",
        ),
        ("rate_caps = { read_bytes_per_second = 0 }", "rate_caps.read_bytes_per_second is 0"),
    ];
    for (lines, expected) in cases {
        let error = block_error(lines);
        assert!(error.contains(expected), "{lines}: {error}");
        assert!(error.contains("'bad'") || error.contains("line"), "{lines}: {error}");
    }
}

#[test]
fn key_value_workloads_that_make_no_sense_say_why() {
    let cases = [
        ("slices = 0", "slices is 0"),
        ("clients = 100000", "clients = 100000 is more than 65536"),
        ("batch = 0", "batch is 0"),
        ("value_bytes = 0", "value_bytes is 0"),
        ("value_bytes = { min = 5, max = 4 }", "min = 5 is more than max = 4"),
        ("value_bytes = { min = 5 }", "missing field `max`"),
        ("operation = \"delete\"", "unknown variant `delete`"),
        ("operation = { scan = { scan_bytes = 0 } }", "operation.scan.scan_bytes is 0"),
        ("operation = { mixed = { read_fraction = 2.0 } }", "read_fraction = 2 is not between"),
        ("order = { zipf = { exponent = inf } }", "Zipf exponent inf"),
        ("order = { strided = { keys = 0 } }", "order.strided.keys is 0"),
        ("key_bytes = 2", "take at least 3"),
        ("keys_per_slice = 5\ndata_bytes_per_slice = 5", "either keys_per_slice or"),
        ("data_bytes_per_slice = 5", "is 0; it must be at least 1"),
        ("keys_per_slices = 5", "unknown field `keys_per_slices`"),
    ];
    for (lines, expected) in cases {
        let error = kv_error(lines);
        assert!(error.contains(expected), "{lines}: {error}");
    }
    let neither: KvWorkload =
        toml::from_str("name = \"bad\"\noperation = \"read\"\nvalue_bytes = 1").unwrap();
    assert!(neither.validate().unwrap_err().to_string().contains("either keys_per_slice or"));
    let error = KvWorkload::new("few").source(1, 0, &Rng::seeded(1)).unwrap_err().to_string();
    assert!(error.contains("'few': slice 1 does not exist; the workload has 1"), "{error}");
}

#[test]
fn a_capacity_of_nothing_or_beyond_all_measure_is_refused() {
    let workload = BlockWorkload::new("bad", RequestSize::Fixed(1), Pattern::SEQUENTIAL);
    for capacity_bytes in [0, u64::MAX] {
        let error = workload.source(capacity_bytes, Rng::seeded(1)).unwrap_err().to_string();
        assert!(error.contains("the capacity"), "{error}");
    }
}

#[test]
fn writers_beside_readers_need_a_size_and_have_a_limit() {
    let reads = BlockWorkload {
        read_fraction: 1.0,
        read_size: Some(RequestSize::Fixed(4096)),
        writers: 4,
        ..BlockWorkload::new("bad", RequestSize::Fixed(1), Pattern::Random)
    };
    let reads = BlockWorkload { size: None, ..reads };
    let error = reads.validate().unwrap_err().to_string();
    assert!(error.contains("writes have no size; give size or write_size"), "{error}");
    let many = BlockWorkload { size: Some(RequestSize::Fixed(1)), writers: 1 << 25, ..reads };
    let error = many.validate().unwrap_err().to_string();
    assert!(error.contains("writers = 33554432 is more than 16777216"), "{error}");
}

#[test]
fn what_is_not_said_has_its_default() {
    let text = "name = \"least\"\nread_fraction = 1\nsize = 512\npattern = \"sequential\"";
    let workload: BlockWorkload = toml::from_str(text).unwrap();
    assert_eq!(workload.pattern, Pattern::Sequential { streams: 1 });
    assert_eq!(workload.load, Load::closed(1, 1));
    let state: Precondition =
        toml::from_str::<toml::Table>("state = { overwrite = { times = 2 } }").unwrap()["state"]
            .clone()
            .try_into()
            .unwrap();
    assert_eq!(state, Precondition::Overwrite { times: 2 });
}
