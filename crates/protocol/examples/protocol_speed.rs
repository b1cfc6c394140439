//! Measures the cost of the protocol: pipelines of 16 commands with values of 1 KiB through a
//! connection, compared with the same operations on the store alone and with the parser alone.
//!
//! `cargo run --profile dist -p softflash-protocol --example protocol_speed [batches]`

#![expect(clippy::print_stdout, reason = "an example speaks to a person")]
#![expect(clippy::unwrap_used, reason = "an example stops at the first error")]

use bytes::{Buf, Bytes};
use softflash_protocol::{
    Connection, Context, ContextOptions, Parsed, RequestParser, Step, Unlimited,
};
use softflash_runtime::RuntimeHandle;
use softflash_store::{Durability, Entry, Store};
use softflash_testing::Testbed;
use std::sync::Arc;
use std::time::Duration;

const PIPELINE: u64 = 16;
const KEYS: u64 = 1000;

fn main() {
    let batches = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20_000);
    let mut testbed = Testbed::new(1, 1, 4, 64, 4 << 20);
    testbed.options.durability = Durability::Interval(Duration::from_millis(1000));
    testbed.run(async |stores, runtime| measure(&stores[0], runtime, batches).await);
}

async fn measure(store: &Store, runtime: &RuntimeHandle, batches: u64) {
    let value = vec![b'v'; 1024];
    let set = |key: u64| request(&[b"SET", format!("key:{key:08}").as_bytes(), &value]);
    let get = |key: u64| request(&[b"GET", format!("key:{key:08}").as_bytes()]);
    let keys = |batch: u64| (0..PIPELINE).map(move |step| (batch * PIPELINE + step) % KEYS);
    let pipelines = |command: &dyn Fn(u64) -> Vec<u8>| -> Vec<Vec<u8>> {
        (0..KEYS).map(|batch| keys(batch).flat_map(command).collect()).collect()
    };
    let (sets, gets) = (pipelines(&set), pipelines(&get));
    let (gets_per_batch, fewer) = (batches, batches / 4);

    let context = Arc::new(Context::new(ContextOptions::new(store.now_ms(), 1)));
    let address = || "127.0.0.1:1".to_owned();
    let mut connection = Connection::new(context, address(), address(), store.now_ms(), Unlimited);
    exchange(&mut connection, store, &sets, KEYS).await;

    let report = |what: &str, count: u64, begun| {
        let ns = runtime.now().since_ns(begun) as f64 / (count * PIPELINE) as f64;
        println!("{what:<28} {ns:8.0} ns/command");
        ns
    };

    let begun = runtime.now();
    parse(&gets, gets_per_batch);
    report("GET parsed only", gets_per_batch, begun);
    let begun = runtime.now();
    parse(&sets, gets_per_batch);
    report("SET parsed only", gets_per_batch, begun);

    let begun = runtime.now();
    for number in 0..gets_per_batch * PIPELINE {
        let key = Bytes::from(format!("key:{:08}", number % KEYS));
        assert!(store.begin().get(&key).await.unwrap().is_some());
    }
    let alone = report("GET on the store alone", gets_per_batch, begun);
    let begun = runtime.now();
    exchange(&mut connection, store, &gets, gets_per_batch).await;
    let through = report("GET through a connection", gets_per_batch, begun);
    println!("{:<28} {:8.0} ns/command", "  the protocol's part", through - alone);

    let begun = runtime.now();
    for number in 0..fewer * PIPELINE {
        let mut transaction = store.begin();
        let key = Bytes::from(format!("key:{:08}", number % KEYS));
        transaction.put(key, Entry::new(Bytes::copy_from_slice(&value))).unwrap();
        store.commit(transaction).await.unwrap();
    }
    let alone = report("SET on the store alone", fewer, begun);
    let begun = runtime.now();
    exchange(&mut connection, store, &sets, fewer).await;
    let through = report("SET through a connection", fewer, begun);
    println!("{:<28} {:8.0} ns/command", "  the protocol's part", through - alone);
}

fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn parse(pipelines: &[Vec<u8>], batches: u64) {
    let mut parser = RequestParser::new();
    for batch in 0..batches {
        parser.feed(&pipelines[batch as usize % pipelines.len()]);
        let mut requests = 0;
        while let Parsed::Request(request) = parser.next(true).unwrap() {
            assert!(request.args.len() > 1);
            requests += 1;
        }
        assert_eq!(requests, PIPELINE);
    }
}

async fn exchange(
    connection: &mut Connection<Unlimited>,
    store: &Store,
    pipelines: &[Vec<u8>],
    batches: u64,
) {
    for batch in 0..batches {
        connection.feed(&pipelines[batch as usize % pipelines.len()]);
        while connection.advance(store).await != Step::Read {}
        let output = connection.output();
        assert!(output.len() >= 5 * PIPELINE as usize);
        output.advance(output.remaining());
        connection.has_sent();
    }
}
