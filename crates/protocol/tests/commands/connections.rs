//! The loop of a connection: batches, memory, and its end.

use crate::support::encode;
use crate::support::store::{lines, testbed, text};
use futures_util::future::{Either, select};
use softflash_protocol::{
    Admission, Connection, Context, ContextOptions, KeptMemory, ReplyPermit, Step, Unlimited,
};
use softflash_store::Store;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// An admission with little memory that counts all requests to it.
#[derive(Clone)]
struct Tight {
    limit: u64,
    held: Rc<Cell<u64>>,
    /// Replies of a batch besides the first.
    extensions: Rc<Cell<u64>>,
    /// Number of permits held.
    permits: Rc<Cell<u64>>,
    settled: Rc<RefCell<Vec<(u64, u64)>>>,
    charged: Rc<Cell<u64>>,
}

struct TightPermit(Tight);

impl Tight {
    fn new(limit: u64, extensions: u64) -> Tight {
        Tight {
            limit,
            held: Rc::default(),
            extensions: Rc::new(Cell::new(extensions)),
            permits: Rc::default(),
            settled: Rc::default(),
            charged: Rc::default(),
        }
    }

    fn connect(&self, store: &Store, password: Option<&str>) -> Connection<Tight> {
        let options = ContextOptions {
            password: password.map(str::to_owned),
            ..ContextOptions::new(store.now_ms(), 1)
        };
        let address = || "127.0.0.1:1".to_owned();
        let context = Arc::new(Context::new(options));
        Connection::new(context, address(), address(), store.now_ms(), self.clone())
    }

    fn permit(&self) -> TightPermit {
        assert_eq!(self.permits.replace(1), 0, "one batch at a time");
        TightPermit(self.clone())
    }
}

impl Admission for Tight {
    type Permit = TightPermit;
    type Refusal = String;

    fn free_request_bytes(&self) -> u64 {
        200
    }

    async fn reserve(&mut self, bytes: u64) -> Result<(), String> {
        let held = self.held.get() + bytes;
        if held > self.limit {
            return Err(format!("{held} bytes are too many"));
        }
        self.held.set(held);
        Ok(())
    }

    fn keep(&mut self, bytes: u64) {
        assert!(bytes <= self.held.replace(bytes));
    }

    async fn begin(&mut self) -> TightPermit {
        self.permit()
    }

    fn begin_little(&mut self) -> TightPermit {
        self.permit()
    }
}

impl ReplyPermit for TightPermit {
    fn try_extend(&mut self) -> bool {
        let left = self.0.extensions.get();
        self.0.extensions.set(left.saturating_sub(1));
        left > 0
    }

    fn expect(&self, bytes: u64) {
        assert!(bytes > 0);
    }

    fn settle(&mut self, bytes: u64, commands: u64) {
        self.0.settled.borrow_mut().push((bytes, commands));
        self.recharge(bytes);
    }

    fn recharge(&mut self, bytes: u64) {
        self.0.charged.set(bytes);
    }
}

impl Drop for TightPermit {
    fn drop(&mut self) {
        self.0.permits.set(0);
    }
}

/// Sends all input; returns the output and the step.
async fn advance(connection: &mut Connection<Tight>, store: &Store) -> (String, Step) {
    let step = connection.advance(store).await;
    let sent = connection.output().take_bytes();
    connection.has_sent();
    (text(&sent), step)
}

#[test]
fn a_batch_has_as_many_replies_as_are_permitted_and_holds_them_until_they_are_sent() {
    testbed(1).run(async |stores, _| {
        let (store, tight) = (&stores[0], Tight::new(0, 2));
        let mut connection = tight.connect(store, None);
        connection.feed(&lines(&["SET k value", "GET k", "GET k", "GET k", "GET k"]));
        let step = connection.advance(store).await;
        assert_eq!(step, Step::Again);
        assert_eq!(tight.permits.get(), 1, "held while nothing is sent");
        assert_eq!(tight.charged.get(), 5 + 2 * 11);
        assert_eq!(
            text(&connection.output().take_bytes()),
            "+OK\r\n$5\r\nvalue\r\n$5\r\nvalue\r\n"
        );
        connection.has_sent();
        assert_eq!(tight.permits.get(), 0);
        let value = || "$5\r\nvalue\r\n".to_owned();
        assert_eq!(advance(&mut connection, store).await, (value(), Step::Again));
        assert_eq!(advance(&mut connection, store).await, (value(), Step::Read));
        assert_eq!(*tight.settled.borrow(), [(27, 3), (11, 1), (11, 1)]);
    });
}

#[test]
fn part_of_the_output_gives_part_of_the_memory_back() {
    testbed(1).run(async |stores, _| {
        let (store, tight) = (&stores[0], Tight::new(0, 9));
        let mut connection = tight.connect(store, None);
        connection.feed(&lines(&["PING", "PING"]));
        assert_eq!(connection.advance(store).await, Step::Read);
        bytes::Buf::advance(connection.output(), 7);
        connection.has_sent();
        assert_eq!((tight.charged.get(), tight.permits.get()), (7, 1));
        bytes::Buf::advance(connection.output(), 7);
        connection.has_sent();
        assert_eq!(tight.permits.get(), 0);
    });
}

#[test]
fn a_batch_without_output_holds_nothing() {
    testbed(1).run(async |stores, _| {
        let (store, tight) = (&stores[0], Tight::new(0, 9));
        let mut connection = tight.connect(store, None);
        connection.feed(b"*1\r\n$4\r\nPI");
        assert_eq!(advance(&mut connection, store).await, (String::new(), Step::Read));
        assert!(!connection.is_between_requests());
        assert_eq!(tight.permits.get(), 0);
        connection.free_read_buffer();
        connection.feed(b"NG\r\n");
        assert_eq!(advance(&mut connection, store).await, ("+PONG\r\n".to_owned(), Step::Read));
        assert!(connection.is_between_requests(), "what was begun was kept");
    });
}

#[test]
fn memory_is_reserved_before_a_body_is_received_and_goes_back_when_it_has_run() {
    testbed(1).run(async |stores, _| {
        let (store, tight) = (&stores[0], Tight::new(800, 9));
        let mut connection = tight.connect(store, None);
        let value = "v".repeat(400);
        let set = encode(&["SET", "k", &value]);
        connection.feed(&lines(&["PING"]));
        connection.feed(&set[..set.len() / 2]);
        assert_eq!(advance(&mut connection, store).await, ("+PONG\r\n".to_owned(), Step::Again));
        assert_eq!(tight.held.get(), 0, "the replies before it are sent first");
        assert_eq!(advance(&mut connection, store).await, (String::new(), Step::Read));
        let held = tight.held.get();
        assert!((300..500).contains(&held), "{held}");
        connection.feed(&set[set.len() / 2..]);
        assert_eq!(advance(&mut connection, store).await, ("+OK\r\n".to_owned(), Step::Read));
        assert_eq!(tight.held.get(), 0);

        connection.feed(&lines(&["MULTI"]));
        connection.feed(&set);
        connection.feed(&set);
        let large = encode(&["SET", "k", &"v".repeat(2000)]);
        connection.feed(&[&large[..], &lines(&["EXEC", "PING"])].concat());
        let mut replies = String::new();
        loop {
            let (sent, step) = advance(&mut connection, store).await;
            replies += &sent;
            match step {
                Step::Again => {}
                Step::Read => break,
                other => panic!("{other:?}"),
            }
        }
        let (queued, refused) = replies.split_once("-ERR ").expect("one is refused");
        assert_eq!(queued, "+OK\r\n+QUEUED\r\n+QUEUED\r\n");
        let expected = "bytes are too many\r\n-EXECABORT Transaction discarded because of previous \
             errors.\r\n+PONG\r\n";
        assert!(refused.ends_with(expected), "the connection goes on: {refused}");
        assert_eq!(tight.held.get(), 0);
    });
}

/// An admission without room for replies, except for small ones.
struct Full;

impl Admission for Full {
    type Permit = Unlimited;
    type Refusal = String;

    async fn reserve(&mut self, _bytes: u64) -> Result<(), String> {
        Ok(())
    }

    fn keep(&mut self, _bytes: u64) {}

    async fn try_begin(&mut self) -> Option<Unlimited> {
        None
    }

    async fn begin(&mut self) -> Unlimited {
        std::future::pending().await
    }

    fn begin_little(&mut self) -> Unlimited {
        Unlimited
    }
}

/// What is sent for the input, and whether the rest of it waits for memory.
async fn sent_without_room(store: &Store, input: &[u8]) -> (String, bool) {
    let context = Arc::new(Context::new(ContextOptions::new(store.now_ms(), 1)));
    let address = || "127.0.0.1:1".to_owned();
    let mut connection = Connection::new(context, address(), address(), store.now_ms(), Full);
    connection.feed(input);
    let mut sent = String::new();
    loop {
        let limit = store.runtime().sleep_until(store.runtime().now() + Duration::from_secs(5));
        let step = match select(Box::pin(connection.advance(store)), limit).await {
            Either::Left((step, _)) => step,
            Either::Right(_) => return (sent, true),
        };
        sent += &text(&connection.output().take_bytes());
        connection.has_sent();
        match step {
            Step::Again => {}
            _ => return (sent, false),
        }
    }
}

#[test]
fn small_requests_run_while_there_is_no_memory_for_replies() {
    testbed(2).run(async |stores, _| {
        let store = &stores[0];
        let large = "v".repeat(70_000);
        let set = |key: &str| encode(&["SET", key, &large]);
        let (stored, waits) =
            sent_without_room(store, &[set("large"), set("other")].concat()).await;
        assert!(stored == "+OK\r\n+OK\r\n" && !waits, "what is written needs no reply memory");
        let small = [
            "SET a 1",
            "GET a",
            "GET none",
            "MGET a b c",
            "INCR a",
            "STRLEN a",
            "EXISTS large",
            "SCAN 0",
            "TTL large",
            "MULTI",
            "SET a 5",
            "GET a",
            "EXEC",
            "PING",
            "DBSIZE",
        ];
        let (sent, waits) = sent_without_room(store, &lines(&small)).await;
        assert!(!waits, "{sent}");
        assert!(sent.contains("+QUEUED\r\n*2\r\n+OK\r\n$1\r\n5\r\n+PONG\r\n"), "{sent}");
        for words in [
            "GET large",
            "MGET a large",
            "STRLEN large",
            "APPEND large x",
            "KEYS *",
            "SCAN 0 COUNT 5000",
        ] {
            let (sent, waits) = sent_without_room(store, &lines(&["PING", words, "PING"])).await;
            assert!(waits && sent == "+PONG\r\n", "{words}: {sent}");
        }
        let transaction = ["MULTI", "GET large", "EXEC"];
        let (sent, waits) = sent_without_room(store, &lines(&transaction)).await;
        assert!(waits && sent == "+OK\r\n+QUEUED\r\n", "{sent}");
        // A pipeline keeps its order, and the batches end before their replies are many.
        let many = ["PING"; 2000];
        let (sent, waits) = sent_without_room(store, &lines(&many)).await;
        assert_eq!((sent.len(), waits), (2000 * 7, false));
        let long = encode(&["ECHO", &"x".repeat(70_000)]);
        assert!(sent_without_room(store, &long).await.1);
    });
}

/// Room for so many bytes that sessions keep.
struct Room(AtomicU64);

impl KeptMemory for Room {
    fn try_take(&self, bytes: u64, _received: u64) -> bool {
        let less = |free: u64| free.checked_sub(bytes);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[test]
fn queues_and_watched_keys_without_room_are_refused_as_redis_refuses_them() {
    testbed(1).run(async |stores, _| {
        let store = &stores[0];
        let room = Arc::new(Room(AtomicU64::new(200_000)));
        let kept_memory = Arc::clone(&room) as Arc<dyn KeptMemory>;
        let options = ContextOptions { kept_memory, ..ContextOptions::new(store.now_ms(), 1) };
        let context = Arc::new(Context::new(options));
        let address = || "127.0.0.1:1".to_owned();
        let connect = || Connection::new(Arc::clone(&context), address(), address(), 0, Unlimited);
        let (mut connection, mut other) = (connect(), connect());
        let set = encode(&["SET", "k", &"v".repeat(50_000)]);
        connection
            .feed(&[&lines(&["MULTI"])[..], &set.repeat(8), &lines(&["EXEC", "PING"])].concat());
        let mut sent = String::new();
        while connection.advance(store).await == Step::Again {}
        sent += &text(&connection.output().take_bytes());
        connection.has_sent();
        assert!(sent.starts_with("+OK\r\n+QUEUED\r\n"), "{sent}");
        let queued = sent.matches("+QUEUED").count();
        assert!((4..=6).contains(&queued), "{sent}");
        assert!(
            sent.contains("-OOM command not allowed when used memory > 'maxmemory'."),
            "{sent}"
        );
        assert!(sent.ends_with(
            "-EXECABORT Transaction discarded because of previous errors.\r\n+PONG\r\n"
        ));
        assert_eq!(room.0.load(Ordering::Relaxed), 200_000, "all is given back");
        let keys: Vec<String> = (0..2000).map(|key| format!("key:{key}")).collect();
        let words = [&["WATCH".to_owned()][..], &keys].concat();
        other.feed(&encode(&words));
        while other.advance(store).await == Step::Again {}
        let sent = text(&other.output().take_bytes());
        assert!(sent.starts_with("-OOM "), "{sent}");
        assert!(other.session().kept_bytes() > 0);
        drop(other);
        assert_eq!(room.0.load(Ordering::Relaxed), 200_000);
    });
}

#[test]
fn a_client_that_has_not_authenticated_gets_few_commands_a_batch() {
    testbed(1).run(async |stores, _| {
        let (store, tight) = (&stores[0], Tight::new(0, u64::MAX));
        let mut connection = tight.connect(store, Some("secret"));
        connection.feed(&lines(&["PING"; 20]));
        let refusals = |count| "-NOAUTH Authentication required.\r\n".repeat(count);
        assert_eq!(advance(&mut connection, store).await, (refusals(8), Step::Again));
        assert_eq!(advance(&mut connection, store).await, (refusals(8), Step::Again));
        assert_eq!(advance(&mut connection, store).await, (refusals(4), Step::Read));
        assert!(tight.settled.borrow().is_empty(), "their replies say nothing about others'");
    });
}

#[test]
fn large_replies_make_the_next_batch_small() {
    testbed(1).run(async |stores, _| {
        let (store, tight) = (&stores[0], Tight::new(1 << 20, u64::MAX));
        let mut connection = tight.connect(store, None);
        let value = "v".repeat(100_000);
        connection.feed(&encode(&["SET", "k", &value]));
        while advance(&mut connection, store).await.1 == Step::Again {}
        tight.settled.borrow_mut().clear();
        connection.feed(&lines(&["PING"; 100]));
        while advance(&mut connection, store).await.1 == Step::Again {}
        connection.feed(&lines(&["GET k"; 100]));
        while advance(&mut connection, store).await.1 == Step::Again {}
        let commands: Vec<u64> = tight.settled.borrow().iter().map(|(_, count)| *count).collect();
        assert_eq!(commands[..3], [32, 64, 4], "with little to reply, twice as many");
        let rest = [&[11][..], &[8; 11], &[1]].concat();
        assert_eq!(commands[3..], rest, "as many as make a megabyte, then few");
    });
}

#[test]
fn input_that_is_not_resp_is_refused_behind_the_replies_before_it() {
    testbed(1).run(async |stores, _| {
        let (store, tight) = (&stores[0], Tight::new(0, 9));
        let mut connection = tight.connect(store, None);
        connection.feed(&[lines(&["PING"]), b"*1\r\n+4\r\n".to_vec()].concat());
        let (sent, step) = advance(&mut connection, store).await;
        assert_eq!(sent, "+PONG\r\n-ERR Protocol error: expected '$', got '+'\r\n");
        assert_eq!(step, Step::Refuse);
    });
}
