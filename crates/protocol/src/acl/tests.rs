use super::*;
use crate::command::{Access, COMMANDS, Keys, Spec, find};
use crate::handlers::{Handler, handler_of};
use bytes::Bytes;

fn salts() -> Box<Salts> {
    Box::new(|salt: &mut [u8]| salt.fill(7))
}

fn user(rules: &str) -> User {
    let mut user = User::new("u");
    for rule in rules.split(' ').filter(|rule| !rule.is_empty()) {
        user.apply(rule.as_bytes(), &*salts()).unwrap_or_else(|error| panic!("{rule}: {error}"));
    }
    user
}

fn refusal(rule: &str) -> String {
    User::new("u").apply(rule.as_bytes(), &*salts()).expect_err(rule).to_string()
}

/// The permitted commands, of all commands and subcommands of the table.
fn allowed(user: &User) -> Vec<&'static str> {
    let mut names = Vec::new();
    for (index, spec) in COMMANDS.iter().enumerate() {
        let places = (0..spec.subcommands.len()).map(Some);
        for place in [None].into_iter().chain(places) {
            let named = place.map_or(spec, |place| &spec.subcommands[place]);
            if user.commands.allows(index, place) {
                names.push(named.name);
            }
        }
    }
    names
}

#[test]
fn categories_and_commands_are_added_and_removed_in_order() {
    assert!(allowed(&user("")).is_empty());
    assert!(user("+@all").commands.is_all() && user("allcommands").commands.is_all());
    assert!(allowed(&user("+@all -@all")).is_empty());
    let reader = user("+@read -mget +client|id +SET");
    let names = allowed(&reader);
    for name in ["get", "strlen", "set", "client|id", "object|encoding"] {
        assert!(names.contains(&name), "{name}");
    }
    for name in ["mget", "del", "client|list", "client", "acl|setuser", "flushall"] {
        assert!(!names.contains(&name), "{name}");
    }
    assert_eq!(reader.command_rules(), "-@all +@read -mget +client|id +set");
    let most = user("+@all -@dangerous -@admin +info +config -config|set");
    let names = allowed(&most);
    assert!(names.contains(&"config|get") && names.contains(&"info"));
    for name in ["config|set", "keys", "flushall", "shutdown", "acl|setuser", "flash.record|start"]
    {
        assert!(!names.contains(&name), "{name}");
    }
    assert!(names.contains(&"acl|whoami"));
    // Rules that a later rule overrides are removed.
    assert_eq!(user("+get +get -get +client|id +client").command_rules(), "-@all -get +client");
    assert_eq!(
        user("+get +@hash").command_rules(),
        "-@all +get +@hash",
        "empty, and yet a category"
    );
}

#[test]
fn keys_are_matched_by_prefix_name_glob_and_access() {
    let user = user("~app:* %R~shared:* %W~out:* ~one ~h?llo ~x[ab]*");
    for (key, read, write) in [
        ("app:", true, true),
        ("app:1", true, true),
        ("ap", false, false),
        ("application", false, false),
        ("shared:x", true, false),
        ("out:x", false, true),
        ("one", true, true),
        ("one:", false, false),
        ("hello", true, true),
        ("hllo", false, false),
        ("xa1", true, true),
        ("xc1", false, false),
        ("", false, false),
    ] {
        let may = |access| user.may(key.as_bytes(), access);
        assert_eq!((may(Access::READ), may(Access::WRITE)), (read, write), "{key}");
        assert_eq!(may(Access::BOTH), read && write, "{key}");
        assert_eq!(user.sees(key.as_bytes()), read || write, "{key}");
    }
    assert_eq!(user.key_rules().join(" "), "~app:* %R~shared:* %W~out:* ~one ~h?llo ~x[ab]*");
    let merged = self::user("%R~a* %W~a*");
    assert_eq!(merged.key_rules(), ["~a*"]);
    assert!(self::user("%RW~*").may_all_keys(Access::BOTH));
    assert!(!self::user("%R~* %W~a*").may_all_keys(Access::WRITE));
    assert!(!self::user("+@all ~a*").may_everything());
    assert!(self::user("+@all allkeys").may_everything());
}

#[test]
fn passwords_are_hashed_with_salt_and_any_of_them_fits() {
    let mut user = user("on >first >second");
    assert!(user.accepts(b"first") && user.accepts(b"second"));
    assert!(!user.accepts(b"third") && !user.accepts(b"") && !user.accepts(b"firs"));
    let rules = user.rules();
    assert!(rules.contains("#$argon2id$v=19$m=7168,t=5,p=1$"), "{rules}");
    assert!(!rules.contains("first") && !format!("{user:?}").contains("argon2"), "{user:?}");
    // A repeated rule is not added again.
    user.apply(b">first", &*salts()).unwrap();
    assert_eq!(user.hashes().len(), 2);
    user.apply(b"<first", &*salts()).unwrap();
    assert!(!user.accepts(b"first") && user.accepts(b"second"));
    user.apply(b"off", &*salts()).unwrap();
    assert!(!user.accepts(b"second"), "a user that is off");
    user.apply(b"nopass", &*salts()).unwrap();
    assert!(!user.is_open(), "off still");
    user.apply(b"on", &*salts()).unwrap();
    assert!(user.is_open());
    user.apply(b"resetpass", &*salts()).unwrap();
    assert!(!user.is_open() && !user.accepts(b""));
}

#[test]
fn hashes_of_redis_are_taken_and_those_that_cost_too_much_are_not() {
    // Output of `ACL SETUSER bob >pw` in Redis 7.
    let redis = "#30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4";
    let known = user(&format!("on {redis}"));
    assert!(known.accepts(b"pw") && !known.accepts(b"PW"));
    assert_eq!(known.rules(), format!("on {redis} -@all"));
    let hash = user(">secret").hashes().remove(0);
    assert!(user(&format!("on #{hash}")).accepts(b"secret"));
    for (rule, reason) in [
        ("#abc".to_owned(), "exactly 64 characters"),
        (redis.to_uppercase(), "exactly 64 characters"),
        (format!("#{}", hash.replace("argon2id", "argon2i")), "must be argon2id"),
        (format!("#{}", hash.replace("m=7168", "m=4000000")), "is too expensive"),
        (format!("#{}", hash.replace("t=5", "t=500")), "is too expensive"),
        ("#$argon2id$v=19$m=7168,t=5,p=1".to_owned(), "with its salt"),
        ("!30c9".to_owned(), "exactly 64 characters"),
    ] {
        assert!(refusal(&rule).contains(reason), "{rule}: {}", refusal(&rule));
    }
}

#[test]
fn errors_name_the_rule_without_passwords() {
    for (rule, words) in [
        ("foo", "Error in ACL SETUSER modifier 'foo': Syntax error"),
        ("+nosuch", "'+nosuch': Unknown command or category name in ACL"),
        ("+@nosuch", "'+@nosuch': Unknown command or category name in ACL"),
        ("+client|nosuch", "for a command with subcommands"),
        ("%X~a", "'%X~a': Syntax error"),
        ("%~a", "Syntax error"),
        ("~a b", "Syntax error"),
        ("(+get", "Selectors are not supported"),
        ("<marker", "'<(hidden)': The password you are trying to remove"),
        ("", "Syntax error"),
    ] {
        let text = refusal(rule);
        assert!(text.contains(words) && !text.contains("marker"), "{rule}: {text}");
    }
    let after_all = User::open_default().apply(b"~a*", &*salts()).unwrap_err().to_string();
    assert!(after_all.contains("after the * pattern"), "{after_all}");
    let mut crowded = user(&(0..8).fold(String::new(), |all, n| all + &format!(" #{n:064x}")));
    let refused = crowded.apply(&format!("#{:064x}", 9).into_bytes(), &*salts()).unwrap_err();
    assert!(refused.to_string().contains("at most 8 passwords"), "{refused}");
    // Rules for missing features have no effect.
    assert_eq!(user("allchannels &* resetchannels sanitize-payload clearselectors"), user(""));
}

#[test]
fn a_file_is_read_as_it_was_written_and_every_mistake_has_its_line() {
    let salts = salts();
    let text =
        "# people\n\nuser ann on >word ~a:* +@read\nuser bob off nopass %R~b* +@all -flushall\n";
    let users = parse_users(text, &*salts).unwrap();
    let written = users_text(&users);
    assert!(!written.contains(">word") && written.lines().count() == 2, "{written}");
    assert_eq!(parse_users(&written, &*salts).unwrap(), users);
    assert!(users["ann"].accepts(b"word"));
    let acl = Acl::new(users);
    assert!(!acl.asks_for_password(), "`default` is open where the file does not speak of it");
    // A file of a server with other commands.
    let text = "user app on nopass ~app:* -@all +@read +hget -publish +client|pause\n";
    let users = parse_users(text, &*salts).unwrap();
    assert_eq!(users_text(&users), text, "the rules are kept");
    assert_eq!(parse_users(&users_text(&users), &*salts).unwrap(), users);
    for (text, line, reason) in [
        ("user a on\nnobody b", 2, "begins with `user`"),
        ("\n\nuser", 3, "name is missing"),
        ("user a on\nuser a off", 2, "already"),
        ("user a on >marker +nosuch", 1, "Unknown command"),
        ("user a <marker", 1, "does not exist"),
        ("user a\u{1} on", 1, "null characters"),
    ] {
        let error = parse_users(text, &*salts).unwrap_err().to_string();
        let expected = format!("line {line}: ");
        assert!(error.starts_with(&expected) && error.contains(reason), "{text}: {error}");
        assert!(!error.contains("marker"), "{error}");
    }
}

#[test]
fn a_password_of_the_command_line_is_the_only_one_of_default() {
    let salts = salts();
    let mut users = parse_users("user default on >old ~a* +get", &*salts).unwrap();
    FixedPassword::new(b"new", &*salts).give(&mut users);
    assert!(users["default"].accepts(b"new") && !users["default"].accepts(b"old"));
    assert_eq!(users["default"].key_rules(), ["~a*"], "what it may do stays");
    let mut none = Users::new();
    FixedPassword::new(b"new", &*salts).give(&mut none);
    let acl = Acl::new(none);
    assert!(acl.asks_for_password() && acl.user(b"default").unwrap().may_everything());
}

/// Valid arguments for a command of the table, with keys named `key0`, `key1` and so on.
fn example(spec: &Spec) -> Vec<Bytes> {
    let name = spec.name.replace('|', " ");
    let least = usize::try_from(spec.arity.unsigned_abs()).unwrap();
    let mut words: Vec<Bytes> = name.split(' ').map(|word| word.to_owned().into()).collect();
    let first = words.len();
    words.extend((first..least.max(first)).map(|at| Bytes::from(format!("key{}", at - first))));
    if let Keys::Counted(count) = spec.keys {
        words[count] = "2".into();
        words.extend(["key0".into(), "key1".into()]);
    }
    words
}

fn all_specs() -> impl Iterator<Item = (usize, Option<usize>, &'static Spec)> {
    COMMANDS.iter().enumerate().flat_map(|(index, spec)| {
        let subcommands = spec.subcommands.iter().enumerate();
        let subcommands = subcommands.map(move |(place, sub)| (index, Some(place), sub));
        [(index, None, spec)].into_iter().chain(subcommands)
    })
}

/// Checks the table: for a new command without keys among its arguments, this test must say how it
/// hides keys that its user may not see.
#[test]
fn every_command_of_the_table_is_checked() {
    // They read keys without naming them: each calls `KeyspaceContext::shows` before it returns
    // one.
    let filtered = ["keys", "randomkey", "scan"];
    // They read the whole store and return no key.
    let no_keys = [
        "config|resetstat",
        "dbsize",
        "debug",
        "flash.set|list",
        "flash.stats",
        "flash.units",
        "info",
    ];
    let nobody = user("on");
    let keyless = user("on +@all");
    let other = user("on +@all ~other:*");
    let all = User::open_default();
    for (index, place, spec) in all_specs() {
        let words = example(spec);
        let name = spec.name;
        let permits = |user: &User| user.permits(spec, index, place, &words);
        assert_eq!(permits(&nobody), Err(Refusal::Command), "{name}");
        assert_eq!(permits(&all), Ok(()), "{name}");
        match (spec.keys, handler_of(spec)) {
            (Keys::Range { .. } | Keys::Counted(_), _) => {
                assert!(matches!(permits(&keyless), Err(Refusal::Key(_))), "{name}");
                assert!(matches!(permits(&other), Err(Refusal::Key(_))), "{name}");
                // Every key is checked, not only the first.
                let keys: Vec<_> = spec.keys_of(&words).cloned().collect();
                for (at, missing) in keys.iter().enumerate() {
                    let mut most = user("on +@all");
                    most.keys = keys
                        .iter()
                        .filter(|key| *key != missing)
                        .map(|key| keys::KeyPattern::new(Access::BOTH, key))
                        .collect();
                    assert_eq!(permits(&most), Err(Refusal::Key(missing.clone())), "{name} {at}");
                }
            }
            (Keys::All, _) => assert_eq!(permits(&other), Err(Refusal::AllKeys), "{name}"),
            (Keys::None, Handler::Keyspace(_)) => {
                assert!(filtered.contains(&name) || no_keys.contains(&name), "{name}: say how");
            }
            (Keys::None, Handler::Keyed(_) | Handler::Watch) => panic!("{name} has no keys"),
            (Keys::None, _) => assert_eq!(permits(&keyless), Ok(()), "{name}"),
        }
        // Commands that change data or the server are not for readers.
        let reader = user("on allkeys +@all -@write -@admin -@dangerous");
        let changes = ["write", "admin"].iter().any(|flag| spec.flags.names().any(|n| n == *flag));
        assert!(!changes || permits(&reader).is_err(), "{name}");
        let writes = spec.flags.names().any(|flag| flag == "write");
        let only_reads = user("on +@all %R~*");
        assert!(!writes || permits(&only_reads).is_err(), "{name} writes with a right to read");
    }
}

#[test]
fn subcommands_fit_the_bits_of_a_set() {
    assert!(COMMANDS.iter().all(|spec| spec.subcommands.len() < 31));
    assert!(find(b"acl").is_some());
}
