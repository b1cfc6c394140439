//! The known scripts: they do what a real redis-server does with their texts.

use crate::differential::Pair;
use crate::generator::Rule;
use crate::support::frame::Frame;
use crate::support::ours::{self, Ours};
use crate::support::redis::RedisServer;
use crate::support::seed;
use crate::support::store::testbed;
use futures_util::future::join;
use softflash_base::random::Rng;

/// Scripts of client libraries in their spellings, with the number of their keys (0: any).
const SCRIPTS: [(&str, usize); 21] = [
    // redis-py, coredis
    (
        "
        local token = redis.call('get', KEYS[1])
        if not token or token ~= ARGV[1] then
            return 0
        end
        redis.call('del', KEYS[1])
        return 1
    ",
        1,
    ),
    (
        "
        local token = redis.call('get', KEYS[1])
        if not token or token ~= ARGV[1] then
            return 0
        end
        local expiration = redis.call('pttl', KEYS[1])
        if not expiration then
            expiration = 0
        end
        if expiration < 0 then
            return 0
        end

        local newttl = ARGV[2]
        if ARGV[3] == \"0\" then
            newttl = ARGV[2] + expiration
        end
        redis.call('pexpire', KEYS[1], newttl)
        return 1
    ",
        1,
    ),
    (
        "-- KEYS[1] - lock name\nlocal token = redis.call('get', KEYS[1])\n\
         if not token or token ~= ARGV[1] then\n    return 0\nend\n\
         local expiration = redis.call('pttl', KEYS[1])\nif not expiration then\n\
         expiration = 0\nend\nif expiration < 0 then\n    return 0\nend\n\
         redis.call('pexpire', KEYS[1], expiration + ARGV[2])\nreturn 1\n",
        1,
    ),
    (
        "
        local token = redis.call('get', KEYS[1])
        if not token or token ~= ARGV[1] then
            return 0
        end
        redis.call('pexpire', KEYS[1], ARGV[2])
        return 1
    ",
        1,
    ),
    // Redis' documentation, and most others
    (
        "if redis.call(\"get\",KEYS[1]) == ARGV[1]\nthen\n    return redis.call(\"del\",KEYS[1])\n\
         else\n    return 0\nend",
        1,
    ),
    (
        "if (redis.call('get', KEYS[1]) == ARGV[1]) then return redis.call('unlink', KEYS[1]); end; \
         return 0;",
        1,
    ),
    (
        "if redis.call(\"get\", KEYS[1]) == ARGV[1] then return redis.call(\"pexpire\", KEYS[1], \
         ARGV[2]) else return 0 end",
        1,
    ),
    (
        "if redis.call('get', KEYS[1]) == ARGV[1] then\n  return redis.call('expire', KEYS[1], \
         ARGV[2])\nelse\n  return 0\nend",
        1,
    ),
    // redsync
    (
        "\n\tlocal val = redis.call(\"GET\", KEYS[1])\n\tif val == ARGV[1] then\n\t\treturn \
         redis.call(\"DEL\", KEYS[1])\n\telseif val == false then\n\t\treturn -1\n\telse\n\t\t\
         return 0\n\tend\n",
        1,
    ),
    (
        "\n\tif redis.call(\"GET\", KEYS[1]) == ARGV[1] then\n\t\treturn redis.call(\"PEXPIRE\", \
         KEYS[1], ARGV[2])\n\telseif redis.call(\"SET\", KEYS[1], ARGV[1], \"PX\", ARGV[2], \"NX\") \
         then\n\t\treturn 1\n\telse\n\t\treturn 0\n\tend\n",
        1,
    ),
    // node-redlock 4 and 5
    ("return redis.call(\"set\", KEYS[1], ARGV[1], \"NX\", \"PX\", ARGV[2])", 1),
    (
        "
  -- Return 0 if an entry already exists.
  for i, key in ipairs(KEYS) do
    if redis.call(\"exists\", key) == 1 then
      return 0
    end
  end

  -- Create an entry for each provided key.
  for i, key in ipairs(KEYS) do
    redis.call(\"set\", key, ARGV[1], \"PX\", ARGV[2])
  end

  -- Return the number of entries added.
  return #KEYS
",
        0,
    ),
    (
        "
  for i, key in ipairs(KEYS) do
    if redis.call(\"get\", key) ~= ARGV[1] then
      return 0
    end
  end
  for i, key in ipairs(KEYS) do
    redis.call(\"set\", key, ARGV[1], \"PX\", ARGV[2])
  end
  return #KEYS
",
        0,
    ),
    (
        "
  local count = 0
  for i, key in ipairs(KEYS) do
    -- Only remove entries for *this* lock value.
    if redis.call(\"get\", key) == ARGV[1] then
      redis.pcall(\"del\", key)
      count = count + 1
    end
  end
  return count
",
        0,
    ),
    // Spring Integration
    (
        "local lockClientId = redis.call('GET', KEYS[1])\nif lockClientId == ARGV[1] then\n  \
         redis.call('PEXPIRE', KEYS[1], ARGV[2])\n  return true\nelseif not lockClientId then\n  \
         redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])\n  return true\nend\nreturn false",
        1,
    ),
    (
        "local lockClientId = redis.call('GET', KEYS[1])\nif lockClientId == ARGV[1] then\n\
         redis.call('UNLINK', KEYS[1])\nreturn true\n end\n return false\n",
        1,
    ),
    // RedLock.net
    (
        "local currentVal = redis.call('get', KEYS[1])\nif (currentVal == false) then\n\treturn \
         redis.call('set', KEYS[1], ARGV[1], 'PX', ARGV[2]) and 1 or 0\nelseif (currentVal == \
         ARGV[1]) then\n\treturn redis.call('pexpire', KEYS[1], ARGV[2])\nelse\n\treturn -1\nend",
        1,
    ),
    // redlock-rb
    (
        "      if (redis.call(\"exists\", KEYS[1]) == 0 and ARGV[3] == \"yes\") or \
         redis.call(\"get\", KEYS[1]) == ARGV[1] then\n        return redis.call(\"set\", KEYS[1], \
         ARGV[1], \"PX\", ARGV[2])\n      end\n",
        1,
    ),
    ("      return { redis.call(\"get\", KEYS[1]), redis.call(\"pttl\", KEYS[1]) }\n", 1),
    // redislock, its scripts for one key
    (
        "if redis.call(\"get\", KEYS[1]) == ARGV[1] then return redis.call(\"pttl\", KEYS[1]) else \
         return -3 end",
        1,
    ),
    // Laravel
    ("return redis.call('exists',KEYS[1])<1 and redis.call('setex',KEYS[1],ARGV[2],ARGV[1])", 1),
];

const KEYS: [&str; 4] = ["a", "b", "c", "{a}2"];
const TOKENS: [&str; 3] = ["one", "two", ""];

/// A command with scripts, or one that shows or changes what they see.
fn random_command(rng: &mut Rng) -> Vec<String> {
    fn pick<'a>(rng: &mut Rng, words: &[&'a str]) -> &'a str {
        words[rng.below(words.len() as u64) as usize]
    }
    let key = pick(rng, &KEYS);
    let words: Vec<&str> = match rng.below(12) {
        0 => vec!["SET", key, pick(rng, &TOKENS), "PX", "5000000"],
        1 => vec!["SET", key, pick(rng, &TOKENS)],
        2 => vec!["GET", key],
        3 => vec!["PTTL", key],
        _ => {
            let (script, keys) = SCRIPTS[rng.below(SCRIPTS.len() as u64) as usize];
            let keys = if keys == 0 { 1 + rng.below(3) as usize } else { keys };
            let count = keys.to_string();
            let mut words = vec!["EVAL".to_owned(), script.to_owned(), count];
            words.extend((0..keys).map(|_| pick(rng, &KEYS).to_owned()));
            let times = ["9000000", "4000000", "1", "0", "-5", "x", "1.5"];
            words.push(pick(rng, &TOKENS).to_owned());
            // A time of 1 ms and the like would make replies depend on the time of the test.
            let time =
                if rng.chance(0.9) { pick(rng, &times[..2]) } else { pick(rng, &times[3..]) };
            words.push(time.to_owned());
            words.push(pick(rng, &["0", "1", "yes", "no"]).to_owned());
            return words;
        }
    };
    words.into_iter().map(str::to_owned).collect()
}

#[test]
fn known_scripts_answer_as_redis_does() {
    let Some(server) = RedisServer::start() else { return };
    let seed = seed("SOFTFLASH_DIFFERENTIAL_SEED", 7);
    for shards in [1, 3] {
        testbed(shards).run(async |stores, _| {
            let context = ours::context(&stores[0]);
            let mut pair = Pair::connect(&server, &context, &stores[0]);
            assert_eq!(pair.difference(&words(&["FLUSHALL"]), &[]).await, None);
            let mut rng = Rng::seeded(seed);
            for number in 0..4000 {
                let command = random_command(&mut rng);
                let rules = match (&command[0][..], command.get(1)) {
                    ("PTTL", _) => vec![Rule::Within(2000)],
                    (_, Some(script)) if script.contains("pttl") => times(),
                    _ => vec![],
                };
                let difference = pair.difference(&words(&command), &rules).await;
                // The texts of errors name the script's place, here and in Redis differently.
                let are_errors =
                    |text: &String| text.contains("redis: -ERR ") && text.contains("ours: -ERR ");
                if let Some(text) = difference.filter(|text| !are_errors(text)) {
                    panic!("seed {seed}, {shards} shards, command {number}: {text}");
                }
            }
            for key in KEYS {
                let get = words(&["GET", key]);
                assert_eq!(pair.difference(&get, &[]).await, None, "seed {seed}, {key}");
            }
        });
    }
}

/// The rules for replies with times.
fn times() -> Vec<Rule> {
    vec![Rule::Within(2000), Rule::Each(vec![Rule::Exact, Rule::Within(2000)])]
}

fn words<W: AsRef<str>>(words: &[W]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_ref().as_bytes().to_vec()).collect()
}

#[test]
fn scripts_are_loaded_and_forgotten_as_in_redis() {
    let Some(server) = RedisServer::start() else { return };
    testbed(1).run(async |stores, _| {
        let mut pair = Pair::connect(&server, &ours::context(&stores[0]), &stores[0]);
        let mut same = async |command: &[&str]| {
            assert_eq!(pair.difference(&words(command), &times()).await, None);
            pair.ours.ask(command).await
        };
        same(&["SCRIPT", "FLUSH"]).await;
        for (script, _) in SCRIPTS {
            let digest = same(&["SCRIPT", "LOAD", script]).await;
            let digest = String::from_utf8(digest.text().to_vec()).unwrap();
            same(&["SCRIPT", "EXISTS", &digest, &digest.to_uppercase(), "0000"]).await;
            same(&["SET", "k", "one", "PX", "100000"]).await;
            same(&["EVALSHA", &digest, "1", "k", "one", "100000", "0"]).await;
            same(&["SCRIPT", "FLUSH", "SYNC"]).await;
            let gone = same(&["EVALSHA", &digest, "1", "k", "one", "100000", "0"]).await;
            assert!(gone.text().starts_with(b"NOSCRIPT"), "{gone:?}");
        }
        for mistake in [
            &["EVAL", "return 1"][..],
            &["EVALSHA", "00", "x"],
            &["EVALSHA", "00", "-1"],
            &["EVALSHA", "00", "2", "k"],
            &["SCRIPT"],
            &["SCRIPT", "FLUSH", "LATER"],
            &["SCRIPT", "KILL"],
        ] {
            same(mistake).await;
        }
        for name in ["EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "FCALL", "fcall_ro"] {
            for rest in ["x 2 a b c", "x 0", "x 0 a", "x 3 a b", "x y", "x"] {
                let line = format!("COMMAND GETKEYS {name} {rest}");
                same(&line.split(' ').collect::<Vec<_>>()).await;
            }
        }
    });
}

#[test]
fn an_unknown_script_is_refused_and_the_error_names_the_page() {
    testbed(1).run(async |stores, _| {
        let mut client = Ours::connect(&ours::context(&stores[0]), &stores[0]);
        for command in [
            ["EVAL", "return redis.call('incr', KEYS[1])", "1", "k"].as_slice(),
            &["SCRIPT", "LOAD", "return redis.call('get', KEYS[2])"],
        ] {
            let refused = client.ask(command).await;
            let text = String::from_utf8_lossy(refused.text()).into_owned();
            assert!(
                text.contains("scripts are not built") && text.contains("docs/redis.md"),
                "{text}"
            );
        }
        let keyless = client.ask(&["EVAL", SCRIPTS[0].0, "0", "token"]).await;
        assert!(keyless.text().starts_with(b"ERR the script needs a key"), "{keyless:?}");
        client.line("SET k v").await;
        let timeless = client.ask(&["EVAL", SCRIPTS[6].0, "1", "k", "v"]).await;
        assert!(timeless.text().starts_with(b"ERR the script needs more"), "{timeless:?}");
        // Without a token nothing is held, not even an empty value.
        client.ask(&["SET", "k", ""]).await;
        assert_eq!(client.ask(&["EVAL", SCRIPTS[0].0, "1", "k"]).await.integer(), Some(0));
    });
}

#[test]
fn a_lock_is_released_once_and_only_with_its_token() {
    for shards in [1, 3] {
        testbed(shards).run(async |stores, _| {
            let context = ours::context(&stores[0]);
            let mut clients =
                [&stores[0], &stores[stores.len() - 1]].map(|store| Ours::connect(&context, store));
            for key in KEYS {
                for round in 0..20 {
                    let token = format!("token{round}");
                    clients[0].ask(&["SET", key, &token, "PX", "60000"]).await;
                    let release = |token| ["EVAL", SCRIPTS[0].0, "1", key, token];
                    let wrong = clients[1].ask(&release("other")).await;
                    assert_eq!(wrong.integer(), Some(0));
                    let [one, other] = &mut clients;
                    let (one, other) =
                        join(one.ask(&release(&token)), other.ask(&release(&token))).await;
                    let released: i64 = [one, other].iter().filter_map(Frame::integer).sum();
                    assert_eq!(released, 1, "{key}");
                }
            }
        });
    }
}

#[test]
fn a_script_needs_the_permissions_of_the_commands_that_it_calls() {
    testbed(1).run(async |stores, _| {
        let context = ours::context(&stores[0]);
        let mut admin = Ours::connect(&context, &stores[0]);
        admin.line("SET lock token").await;
        admin.line("SET other token").await;
        admin.line("ACL SETUSER u on nopass ~lock +eval +multi +exec +get").await;
        let mut client = Ours::connect(&context, &stores[0]);
        client.line("AUTH u x").await;
        let release = |key| ["EVAL", SCRIPTS[0].0, "1", key, "token"];
        let refused = client.ask(&release("lock")).await;
        assert!(
            refused.text().starts_with(b"NOPERM") && refused.text().ends_with(b"'del' command")
        );
        admin.line("ACL SETUSER u +del").await;
        assert!(client.ask(&release("other")).await.text().starts_with(b"NOPERM"));
        // The permission that counts is the one at EXEC.
        client.line("MULTI").await;
        assert_eq!(client.ask(&release("lock")).await.text(), b"QUEUED");
        admin.line("ACL SETUSER u -del").await;
        let replies = client.line("EXEC").await;
        assert!(replies.items()[0].text().starts_with(b"NOPERM ACLs rules changed"), "{replies:?}");
        admin.line("ACL SETUSER u +del").await;
        assert_eq!(client.ask(&release("lock")).await.integer(), Some(1));
    });
}
