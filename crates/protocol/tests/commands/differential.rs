//! Differential tests: the same commands to a real redis-server and to a session give the same
//! bytes.
//!
//! `SOFTFLASH_DIFFERENTIAL_SEED` repeats a sequence, `SOFTFLASH_DIFFERENTIAL_COMMANDS` makes the
//! sequences longer.

use crate::generator::{Generator, Rule, rules_of};
use crate::support::frame::Frame;
use crate::support::ours::{self, Ours};
use crate::support::redis::{RedisClient, RedisServer};
use crate::support::store::testbed;
use crate::support::{seed, shown, words};
use softflash_protocol::command::COMMANDS;
use softflash_store::Store;
use std::sync::Arc;

/// A client of each server.
pub struct Pair {
    pub theirs: RedisClient,
    pub ours: Ours,
}

impl Pair {
    pub fn connect(
        server: &RedisServer,
        context: &Arc<softflash_protocol::Context>,
        store: &Store,
    ) -> Pair {
        Pair { theirs: server.connect(), ours: Ours::connect(context, store) }
    }

    /// How the counted hits and misses differ, if they do.
    pub async fn lookups(&mut self) -> Option<String> {
        let question = ["INFO", "stats"];
        let theirs = Frame::whole(&self.theirs.ask(&question));
        let ours = self.ours.ask(&question).await;
        let [theirs, ours] = [theirs, ours].map(|info| {
            let info = String::from_utf8_lossy(info.text()).into_owned();
            let of_keys = |line: &&str| line.starts_with("keyspace_");
            info.lines().filter(of_keys).collect::<Vec<_>>().join(" ")
        });
        (theirs != ours).then(|| format!("{ours} in place of {theirs}"))
    }

    /// Sends a command to both; returns how the replies differ, if they do.
    pub async fn difference(&mut self, command: &[Vec<u8>], rules: &[Rule]) -> Option<String> {
        let theirs = self.theirs.ask(command);
        let ours = self.ours.exchange(&crate::support::encode(command)).await;
        let whole = Frame::parse(&ours).is_some_and(|(_, length)| length == ours.len());
        let same = theirs == ours
            || whole && Rule::all_accept(rules, Frame::whole(&theirs), Frame::whole(&ours));
        (!same).then(|| {
            let command: Vec<_> = command.iter().map(|word| shown(word)).collect();
            let (theirs, ours) = (shown(&theirs), shown(&ours));
            format!("{command:?}\n redis: {theirs}\n  ours: {ours}\n rules: {rules:?}\n")
        })
    }
}

/// Commands between two comparisons of the lookups.
const LOOKUPS_EVERY: usize = 500;

fn random_commands(shards: u16, seed_offset: u64, lapses: bool) {
    let Some(server) = RedisServer::start() else { return };
    let seed = seed("SOFTFLASH_DIFFERENTIAL_SEED", 20_240_101 + seed_offset);
    let count = seed_count();
    testbed(shards).run(async |stores, _| {
        let context = ours::context(&stores[0]);
        let mut pairs =
            [&stores[0], &stores[stores.len() - 1]].map(|store| Pair::connect(&server, &context, store));
        let mut generator = Generator::new(seed, stores[0].now_ms(), lapses);
        let mut history = Vec::new();
        let mut observer = Pair::connect(&server, &context, &stores[0]);
        observer.theirs.ask(&["CONFIG", "RESETSTAT"]);
        observer.ours.line("CONFIG RESETSTAT").await;
        for number in 0..count {
            let (client, command) = generator.next();
            let rules = generator.rules();
            if let Some(difference) = pairs[client].difference(&command, &rules).await {
                let earlier = history_of(client, &command, &history);
                panic!("seed {seed}, {shards} shards, command {number} of client {client}\n{earlier}{difference}");
            }
            history.push((client, command));
            if (number + 1).is_multiple_of(LOOKUPS_EVERY)
                && let Some(difference) = observer.lookups().await
            {
                panic!("seed {seed}, {shards} shards, in the {LOOKUPS_EVERY} commands to {number}: {difference}");
            }
        }
        pairs[0].ours.line("RESET").await;
        pairs[0].theirs.ask(&["RESET"]);
        assert_eq!(observer.lookups().await, None, "seed {seed}");
        // A whole iteration finds the same keys, however it is paged.
        let mut found = Vec::new();
        let mut cursor = b"0".to_vec();
        loop {
            let page = pairs[0].ours.ask(&[&b"SCAN"[..], &cursor, b"COUNT", b"3"]).await;
            let [next, keys] = page.items() else { panic!("{page:?}") };
            found.extend(keys.items().iter().map(|key| key.text().to_vec()));
            cursor = next.text().to_vec();
            if cursor == b"0" {
                break;
            }
        }
        found.sort();
        let theirs = Frame::whole(&pairs[0].theirs.ask(&["KEYS", "*"])).sorted();
        let theirs: Vec<_> = theirs.items().iter().map(|key| key.text().to_vec()).collect();
        assert_eq!(found, theirs, "seed {seed}");
    });
}

/// The commands before a failing one: for EXEC the transaction, else the commands with the same
/// key.
fn history_of(client: usize, failed: &[Vec<u8>], history: &[(usize, Vec<Vec<u8>>)]) -> String {
    let is = |command: &[Vec<u8>], name: &str| command[0].eq_ignore_ascii_case(name.as_bytes());
    let key = failed.get(1);
    let of_interest: Vec<_> = if is(failed, "EXEC") {
        let own = history.iter().filter(|(of, _)| *of == client);
        let mut since: Vec<_> = own.rev().take_while(|(_, c)| !is(c, "EXEC")).collect();
        since.reverse();
        since
    } else {
        let names_key = |command: &[Vec<u8>]| key.is_some_and(|key| command[1..].contains(key));
        history
            .iter()
            .filter(|(_, c)| names_key(c) || is(c, "FLUSHALL") || is(c, "FLUSHDB"))
            .collect()
    };
    let lines: Vec<_> = of_interest
        .iter()
        .map(|(client, command)| {
            let words: Vec<_> = command.iter().map(|word| shown(word)).collect();
            format!("  client {client}: {words:?}\n")
        })
        .collect();
    lines[lines.len().saturating_sub(30)..].concat()
}

fn seed_count() -> usize {
    let count = std::env::var("SOFTFLASH_DIFFERENTIAL_COMMANDS").ok();
    count.and_then(|count| count.parse().ok()).unwrap_or(6000)
}

#[test]
fn random_commands_on_one_shard_answer_as_redis_does() {
    random_commands(1, 0, false);
    random_commands(1, 1, true);
}

#[test]
fn random_commands_on_three_shards_answer_as_redis_does() {
    random_commands(3, 2, false);
    random_commands(3, 3, true);
}

/// Commands whose arguments matter more than the data.
const SCRIPT: &str = include_str!("script.txt");

#[test]
fn a_script_of_special_cases_answers_as_redis_does() {
    let Some(server) = RedisServer::start() else { return };
    for shards in [1, 3] {
        testbed(shards).run(async |stores, _| {
            let context = ours::context(&stores[0]);
            for protocol in ["2", "3"] {
                let mut pair = Pair::connect(&server, &context, &stores[0]);
                let mut differences = String::new();
                let beginning = [format!("HELLO {protocol}"), "FLUSHALL".into()];
                let beginning = beginning.iter().map(String::as_str);
                let script = SCRIPT.lines().filter(|line| !line.starts_with('#'));
                for line in beginning.chain(script) {
                    let command = words(line);
                    let rules = rules_of(&command);
                    let difference = pair.difference(&command, &rules).await;
                    differences.push_str(&difference.unwrap_or_default());
                }
                assert!(differences.is_empty(), "{shards} shards, RESP{protocol}:\n{differences}");
            }
        });
    }
}

#[test]
fn command_info_is_that_of_redis() {
    let Some(server) = RedisServer::start() else { return };
    testbed(1).run(async |stores, _| {
        let context = ours::context(&stores[0]);
        let mut pair = Pair::connect(&server, &context, &stores[0]);
        let names = COMMANDS.iter().flat_map(|spec| [spec].into_iter().chain(spec.subcommands));
        for spec in names.filter(|spec| !spec.name.starts_with("flash.")) {
            let question = ["COMMAND", "INFO", spec.name];
            let (theirs, ours) =
                (Frame::whole(&pair.theirs.ask(&question)), pair.ours.ask(&question).await);
            if theirs.items()[0].items().is_empty() {
                let newer = ["client|setinfo", "client|no-touch"];
                assert!(newer.contains(&spec.name), "{} is not a command of Redis", spec.name);
                continue;
            }
            let (theirs, ours) = (theirs.items()[0].items(), ours.items()[0].items());
            // Name, arity, flags, positions of keys; for commands also the categories.
            let compared = if spec.name.contains('|') { 6 } else { 7 };
            assert_eq!(theirs[..compared], ours[..compared], "{}", spec.name);
        }
    });
}

/// The same users on both servers; every command of the table, with every kind of key, must be
/// permitted to the same users.
#[test]
fn users_may_run_the_same_commands() {
    let Some(server) = RedisServer::start() else { return };
    testbed(1).run(async |stores, _| {
        let context = ours::context(&stores[0]);
        let mut pair = Pair::connect(&server, &context, &stores[0]);
        let users = [
            "resetkeys -@all",
            "allkeys +@all",
            "resetkeys +@all",
            "allkeys +@read",
            "allkeys +@write -@dangerous",
            "allkeys +@all -@admin -@slow",
            "allkeys +@fast +@connection -@transaction",
            "allkeys +@keyspace +@string -get +client -client|kill",
            "%R~a* +@all",
            "%W~a* +@all",
            "%R~a* %W~b* +@all",
            "%W~a* %R~b* +@all",
            "~a* +@all -@write +set",
            "~?[ab]* ~b +@all",
        ];
        let mut differences = String::new();
        let mut compared = 0;
        for rules in users {
            let set = words(&format!("ACL SETUSER u reset on nopass {rules}"));
            assert_eq!(pair.difference(&set, &[Rule::Exact]).await, None, "{rules}");
            let specs = COMMANDS.iter().flat_map(|spec| [spec].into_iter().chain(spec.subcommands));
            for spec in specs.filter(|spec| !spec.name.starts_with("flash.")) {
                // Commands of later versions; and Redis permits FLUSHALL to users without
                // permission for all keys.
                if ["client|setinfo", "client|no-touch", "flushall", "flushdb"].contains(&spec.name)
                {
                    continue;
                }
                let name = spec.name.replace('|', " ");
                let named = name.split(' ').count();
                let least = usize::try_from(spec.arity.unsigned_abs()).unwrap().max(named);
                for keys in [["a1", "a2"], ["b", "a1"], ["a1", "b"], ["xa", "zz"]] {
                    let rest = (named..least).map(|at| keys[(at - named) % 2].to_owned());
                    let mut line: Vec<String> = name.split(' ').map(str::to_owned).collect();
                    line.extend(rest);
                    let mut lines = vec![line.clone()];
                    if spec.name == "set" {
                        lines.push([line.clone(), vec!["GET".into()]].concat());
                    }
                    for line in lines {
                        let line: Vec<_> =
                            line.iter().map(|word| word.as_bytes().to_vec()).collect();
                        let ask = [words("ACL DRYRUN u"), line].concat();
                        compared += 1;
                        if let Some(difference) = pair.difference(&ask, &[Rule::Exact]).await {
                            differences.push_str(&format!("{rules}: {difference}"));
                        }
                    }
                }
            }
        }
        assert!(differences.is_empty(), "{differences}");
        assert!(compared > 3000, "{compared}");
    });
}

#[test]
fn input_that_is_not_resp_gets_the_same_errors() {
    let Some(server) = RedisServer::start() else { return };
    let long = vec![b'x'; 70_000];
    let inputs: Vec<Vec<u8>> = vec![
        b"*abc\r\n".to_vec(),
        b"*99999999999\r\n".to_vec(),
        b"*01\r\n".to_vec(),
        b"*1\r\nping\r\n".to_vec(),
        b"*1\r\n:4\r\nping\r\n".to_vec(),
        b"*1\r\n\xff4\r\nping\r\n".to_vec(),
        b"*1\r\n$abc\r\n".to_vec(),
        b"*1\r\n$-1\r\n".to_vec(),
        b"*1\r\n$999999999999\r\n".to_vec(),
        b"*1\r\n$ 4\r\nping\r\n".to_vec(),
        b"set k \"abc\r\n".to_vec(),
        b"set k 'abc'x\r\n".to_vec(),
        [b"*", &long[..]].concat(),
        [b"*1\r\n$", &long[..]].concat(),
        long.clone(),
        b"PING\r\nset k \"unclosed\r\nPING\r\n".to_vec(),
    ];
    let harmless: Vec<Vec<u8>> = vec![
        b"PING\r\n".to_vec(),
        b"\r\n\r\nPING\r\n".to_vec(),
        b"ECHO \"a\\x41\\n\"\nPING\n".to_vec(),
        b"*0\r\n*-1\r\n*-5\r\n*1\r\n$4\r\nPING\r\n".to_vec(),
        b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n".to_vec(),
        b"*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n".to_vec(),
        b"echo 'a\\'b' \r\n".to_vec(),
        b"QUIT\r\nPING\r\n".to_vec(),
        b"CLIENT REPLY SKIP\r\nPING\r\nECHO a\r\n".to_vec(),
        b"CLIENT REPLY OFF\r\nPING\r\nCLIENT REPLY ON\r\nECHO a\r\n".to_vec(),
        b"CLIENT REPLY OFF\r\nNOSUCH\r\nMULTI\r\nPING\r\nEXEC\r\nCLIENT REPLY ON\r\nPING\r\n"
            .to_vec(),
        b"MULTI\r\nCLIENT REPLY SKIP\r\nEXEC\r\nPING\r\n".to_vec(),
    ];
    testbed(1).run(async |stores, _| {
        let context = ours::context(&stores[0]);
        let cases = inputs.iter().map(|input| (input, true));
        for (input, closes) in cases.chain(harmless.iter().map(|input| (input, false))) {
            let mut pair = Pair::connect(&server, &context, &stores[0]);
            pair.theirs.send(input);
            let theirs = pair.theirs.until_closed();
            let ours = (pair.ours.exchange(input).await, pair.ours.closed);
            assert_eq!(shown(&ours.0), shown(&theirs.0), "{}", shown(input));
            assert_eq!(ours.1, theirs.1, "closed after {}", shown(input));
            assert!(ours.1 || !closes, "{}", shown(input));
        }
    });
}
