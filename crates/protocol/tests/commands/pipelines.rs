//! Pipelines and transactions on a real store: commands take effect and are answered in order.

use crate::support::encode;
use crate::support::frame::Frame;
use crate::support::ours::{self, Ours};
use crate::support::store::{lines, pause, testbed, text};
use bytes::Bytes;
use softflash_base::ShardId;
use softflash_base::random::Rng;
use softflash_device::DeviceError;
use softflash_runtime::{RealExecutor, yield_now};
use softflash_store::{Durability, Entry, Store, StoreOptions, open_all};
use softflash_testing::Testbed;
use softflash_testing::faulty::{Faults, FaultyDevice, OperationKind};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A key of a shard.
fn key_on(store: &Store, shard: u16, number: u64) -> String {
    let mut candidates = (0..).map(|salt| format!("key-{number}-{salt}"));
    candidates.find(|key| store.shard_of(key.as_bytes()) == ShardId(shard)).unwrap()
}

#[test]
fn a_pipeline_is_answered_in_order_whatever_shards_it_touches() {
    for shards in [1, 3] {
        testbed(shards).run(async |stores, _| {
            let mut client = Ours::connect(&ours::context(&stores[0]), &stores[0]);
            let mut rng = Rng::seeded(7);
            let mut expected = String::new();
            let mut pipeline = Vec::new();
            let mut counters = [0; 10];
            for number in 0..2000 {
                let counter = rng.below(10) as usize;
                match rng.below(5) {
                    0 => {
                        pipeline.extend(lines(&["PING"]));
                        expected.push_str("+PONG\r\n");
                    }
                    1 => {
                        pipeline.extend(lines(&[&format!("GET counter{counter}")]));
                        expected.push_str(&match counters[counter] {
                            0 => "$-1\r\n".to_owned(),
                            count => format!("${}\r\n{count}\r\n", count.to_string().len()),
                        });
                    }
                    2 => {
                        // On several shards where there are some.
                        pipeline.extend(lines(&["MSET a 1 b 2 c 3 d 4"]));
                        expected.push_str("+OK\r\n");
                    }
                    3 if number % 10 == 0 => {
                        pipeline.extend(lines(&[
                            "MULTI",
                            &format!("INCR counter{counter}"),
                            "EXEC",
                        ]));
                        counters[counter] += 1;
                        let count = counters[counter];
                        expected.push_str(&format!("+OK\r\n+QUEUED\r\n*1\r\n:{count}\r\n"));
                    }
                    _ => {
                        pipeline.extend(lines(&[&format!("INCR counter{counter}")]));
                        counters[counter] += 1;
                        expected.push_str(&format!(":{}\r\n", counters[counter]));
                    }
                }
            }
            let answers = client.exchange(&pipeline).await;
            assert!(text(&answers) == expected, "{shards} shards");
        });
    }
}

/// Values on flash: there are more of them than fit into memory.
async fn fill_flash(client: &mut Ours, count: u64) {
    for number in 0..count {
        let value = format!("{number:06}").repeat(1000);
        let reply = client.ask(&["SET", &format!("cold{number}"), &value]).await;
        assert_eq!(reply.text(), b"OK");
    }
}

#[test]
fn reads_that_wait_for_flash_keep_their_place_before_later_writes() {
    let mut testbed = Testbed::new(1, 2, 4, 64, 1 << 20);
    testbed.options = StoreOptions {
        memory_bytes: 2 << 20,
        durability: Durability::Interval(Duration::from_millis(20)),
        ..StoreOptions::default()
    };
    testbed.run(async |stores, _| {
        let store = &stores[0];
        let mut client = Ours::connect(&ours::context(store), store);
        let count = 3000;
        fill_flash(&mut client, count).await;
        let before = store.stats().await.unwrap().flash_lookups;
        let mut rng = Rng::seeded(11);
        for round in 0..20 {
            let (mut pipeline, mut expected) = (Vec::new(), Vec::new());
            let chosen: BTreeSet<u64> = (0..150).map(|_| rng.below(count)).collect();
            for number in &chosen {
                let key = format!("cold{number}");
                let old = format!("{number:06}").repeat(1000);
                // Read, overwrite, read, remove, read, restore: all in one pipeline.
                pipeline.extend(encode(&["GET", &key]));
                expected.push(format!("$6000\r\n{old}\r\n"));
                pipeline.extend(encode(&["SET", &key, "new"]));
                expected.push("+OK\r\n".into());
                pipeline.extend(encode(&["MGET", &key, "absent"]));
                expected.push("*2\r\n$3\r\nnew\r\n$-1\r\n".into());
                pipeline.extend(encode(&["DEL", &key]));
                expected.push(":1\r\n".into());
                pipeline.extend(encode(&["STRLEN", &key]));
                expected.push(":0\r\n".into());
                pipeline.extend(encode(&["SET", &key, &old]));
                expected.push("+OK\r\n".into());
            }
            let answers = client.exchange(&pipeline).await;
            assert!(text(&answers) == expected.concat(), "round {round}");
        }
        let lookups = store.stats().await.unwrap().flash_lookups - before;
        assert!(lookups > 500, "the reads went to flash: {lookups}");
    });
}

#[test]
fn commands_held_back_by_a_transaction_keep_their_order() {
    testbed(1).run(async |stores, runtime| {
        let store = stores[0].clone();
        let mut client = Ours::connect(&ours::context(&store), &store);
        client.line("SET a old").await;
        let exclusive = store.exclusive(vec![ShardId(0)]).await.unwrap();
        let answered = Rc::new(Cell::new(false));
        let seen = Rc::clone(&answered);
        let (done, result) = result_slot();
        runtime.spawn(Box::pin(async move {
            let pipeline = lines(&["GET a", "SET a new", "GET a", "INCR n", "GET n", "DBSIZE"]);
            let answers = client.exchange(&pipeline).await;
            seen.set(true);
            done(text(&answers));
        }));
        for _ in 0..10 {
            yield_now().await;
        }
        assert!(!answered.get(), "the gate is closed");
        let mut transaction = exclusive.begin();
        transaction.put("a".into(), Entry::new(Bytes::from_static(b"inside"))).unwrap();
        store.commit(transaction).await.unwrap();
        drop(exclusive);
        let expected = "$6\r\ninside\r\n+OK\r\n$3\r\nnew\r\n:1\r\n$1\r\n1\r\n:2\r\n";
        assert_eq!(result().await, expected);
    });
}

/// A slot that one task fills and another waits for.
fn result_slot() -> (impl FnOnce(String), impl AsyncFnOnce() -> String) {
    let slot = Rc::new(Cell::new(None));
    let filled = Rc::clone(&slot);
    let wait = async move || {
        loop {
            match slot.take() {
                Some(text) => return text,
                None => yield_now().await,
            }
        }
    };
    (move |text| filled.set(Some(text)), wait)
}

#[test]
fn transfers_between_shards_never_show_half_done() {
    testbed(3).run(async |stores, runtime| {
        let context = ours::context(&stores[0]);
        let accounts: Vec<String> = (0..3).map(|shard| key_on(&stores[0], shard, 1)).collect();
        let mut client = Ours::connect(&context, &stores[0]);
        for account in &accounts {
            client.ask(&["SET", account, "100"]).await;
        }
        let working = Rc::new(Cell::new(6));
        for task in 0..6 {
            let (context, store) = (Arc::clone(&context), stores[task % 3].clone());
            let (accounts, working) = (accounts.clone(), Rc::clone(&working));
            runtime.spawn(Box::pin(async move {
                let mut client = Ours::connect(&context, &store);
                let (from, to) = (&accounts[task % 3], &accounts[(task + 1) % 3]);
                for round in 0..40 {
                    if round % 2 == 0 {
                        let transfer = lines(&[
                            "MULTI",
                            &format!("DECR {from}"),
                            &format!("INCR {to}"),
                            "EXEC",
                        ]);
                        client.exchange(&transfer).await;
                    } else {
                        // The same with optimistic transactions: a conflict causes a retry.
                        loop {
                            client.ask(&["WATCH", from, to]).await;
                            let values = client.ask(&["MGET", from, to]).await;
                            let value = |place: usize| -> i64 {
                                text(values.items()[place].text()).parse().unwrap()
                            };
                            let (less, more) =
                                ((value(0) - 1).to_string(), (value(1) + 1).to_string());
                            client.line("MULTI").await;
                            client.ask(&["MSET", from, &less, to, &more]).await;
                            if client.line("EXEC").await != Frame::Nil(b'*') {
                                break;
                            }
                        }
                    }
                    let all = client.ask(&["MGET", &accounts[0], &accounts[1], &accounts[2]]).await;
                    let total: i64 = all
                        .items()
                        .iter()
                        .map(|item| text(item.text()).parse::<i64>().unwrap())
                        .sum();
                    assert_eq!(total, 300, "{all:?}");
                }
                working.set(working.get() - 1);
            }));
        }
        while working.get() > 0 {
            yield_now().await;
        }
        let total = client.ask(&["MGET", &accounts[0], &accounts[1], &accounts[2]]).await;
        let values: Vec<_> = total.items().iter().map(|item| text(item.text())).collect();
        assert_eq!(values, ["100", "100", "100"], "each account passed on as much as it got");
    });
}

#[test]
fn a_watched_key_that_expires_stops_the_transaction() {
    testbed(1).run(async |stores, _| {
        let mut client = Ours::connect(&ours::context(&stores[0]), &stores[0]);
        client.line("SET k v PX 30").await;
        client.line("WATCH k").await;
        client.line("MULTI").await;
        client.line("GET k").await;
        pause(&stores[0], 40).await;
        assert_eq!(client.line("EXEC").await, Frame::Nil(b'*'));
        assert_eq!(client.line("GET k").await, Frame::Nil(b'$'));
        assert_eq!(client.line("PTTL k").await.integer(), Some(-2));
        // A key that had expired before WATCH counts as absent.
        client.line("WATCH k").await;
        client.line("MULTI").await;
        assert_eq!(client.line("EXEC").await.items().len(), 0);
    });
}

#[test]
fn answers_that_cannot_be_made_durable_are_withdrawn() {
    let mut testbed = Testbed::new(1, 1, 4, 24, 2 << 20);
    testbed.options.durability = Durability::Flash;
    let executor = RealExecutor::new().unwrap();
    let runtime = executor.handle();
    executor.block_on(async {
        let faults = Faults::default();
        let device = Arc::new(FaultyDevice::new(testbed.device(), faults.clone()));
        let stores = open_all(device, &testbed.layout, &testbed.options, &runtime).await.unwrap();
        let mut client = Ours::connect(&ours::context(&stores[0]), &stores[0]);
        assert_eq!(
            text(&client.exchange(&lines(&["SET a 1", "GET a"])).await),
            "+OK\r\n$1\r\n1\r\n"
        );
        faults.fail_if(|command| {
            let kind = OperationKind::of(&command.operation);
            let writes = kind == OperationKind::Program || kind == OperationKind::Flush;
            writes.then_some(DeviceError::ProgramFailed)
        });
        let answers = text(&client.exchange(&lines(&["SET a 2", "GET a", "PING"])).await);
        assert_eq!(answers.lines().count(), 3, "as many answers as questions: {answers}");
        assert!(answers.lines().all(|line| line.starts_with("-ERR ")), "{answers}");
    });
}
