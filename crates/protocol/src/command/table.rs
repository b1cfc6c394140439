//! The command table: name, arity, flags, keys and access of each command. The handlers are in
//! `handlers/table.rs`.

use crate::command::builder::command;
use crate::command::subcommands::{
    ACL, CLIENT, COMMAND, CONFIG, MEMORY, OBJECT, RECORD, SCRIPT, SET, SLOWLOG, VOLUME,
};
use crate::command::{Access, CommandId, Flags, Group, Spec, Touches, access};

/// All commands, by name.
pub static COMMANDS: &[Spec] = &[
    command(CommandId::Acl, "acl", -2, &[])
        .docs(Group::Server, "6.0.0", "A container for Access List Control commands")
        .containing(ACL),
    command(CommandId::Append, "append", 3, &[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(1, 1, 1)
        .only_writing()
        .docs(Group::String, "2.0.0", "Append a value to a key"),
    command(CommandId::Auth, "auth", -2, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::NO_AUTH, Flags::ALLOW_BUSY])
        .docs(Group::Connection, "1.0.0", "Authenticate to the server"),
    command(CommandId::Client, "client", -2, &[])
        .docs(Group::Connection, "2.4.0", "A container for client connection commands")
        .containing(CLIENT),
    command(CommandId::Command, "command", -1, &[Flags::LOADING, Flags::STALE])
        .docs(Group::Connection, "2.8.13", "Get array of command details")
        .also_containing(COMMAND),
    command(CommandId::Config, "config", -2, &[])
        .docs(Group::Server, "2.0.0", "A container for server configuration commands")
        .containing(CONFIG),
    command(CommandId::Copy, "copy", -3, &[Flags::WRITE, Flags::DENYOOM])
        .keys(1, 2, 1)
        .touching(Touches::FirstAndOthers(Access::READ, Access::WRITE))
        .docs(Group::Generic, "6.2.0", "Copy a key"),
    command(CommandId::Dbsize, "dbsize", 1, &[Flags::READONLY, Flags::FAST])
        .docs(Group::Generic, "1.0.0", "Return the number of keys in the database"),
    command(CommandId::Debug, "debug", -2, &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "1.0.0", "Wait for a time"),
    command(CommandId::Decr, "decr", 2, &[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::String, "1.0.0", "Decrement the integer value of a key by one"),
    command(CommandId::Decrby, "decrby", 3, &[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::String, "1.0.0", "Decrement the integer value of a key by the given number"),
    command(CommandId::Del, "del", -2, &[Flags::WRITE])
        .keys(1, -1, 1)
        .only_writing()
        .docs(Group::Generic, "1.0.0", "Delete a key"),
    command(CommandId::Discard, "discard", 1, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::ALLOW_BUSY, Flags::UNQUEUED])
        .docs(Group::Transactions, "2.0.0", "Discard all commands issued after MULTI"),
    command(CommandId::Echo, "echo", 2, &[Flags::LOADING, Flags::STALE, Flags::FAST])
        .docs(Group::Connection, "1.0.0", "Echo the given string"),
    command(CommandId::Eval, "eval", -3, &[Flags::NOSCRIPT, Flags::STALE, Flags::SKIP_MONITOR, Flags::NO_MANDATORY_KEYS, Flags::MOVABLE_KEYS])
        .counted_keys(2)
        .touching(Touches::Each(Access::BOTH))
        .docs(Group::Scripting, "2.6.0", "Execute a script that is one of a client library's"),
    command(CommandId::Evalsha, "evalsha", -3, &[Flags::NOSCRIPT, Flags::STALE, Flags::SKIP_MONITOR, Flags::NO_MANDATORY_KEYS, Flags::MOVABLE_KEYS])
        .counted_keys(2)
        .touching(Touches::Each(Access::BOTH))
        .docs(Group::Scripting, "2.6.0", "Execute a loaded script by its SHA-1"),
    command(CommandId::Exec, "exec", 1, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::SKIP_SLOWLOG, Flags::UNQUEUED])
        .docs(Group::Transactions, "1.2.0", "Execute all commands issued after MULTI"),
    command(CommandId::Exists, "exists", -2, &[Flags::READONLY, Flags::FAST])
        .keys(1, -1, 1)
        .only_looking()
        .docs(Group::Generic, "1.0.0", "Determine if a key exists"),
    command(CommandId::Expire, "expire", -3, &[Flags::WRITE, Flags::FAST])
        .keys(1, 1, 1)
        .only_writing()
        .docs(Group::Generic, "1.0.0", "Set a key's time to live in seconds"),
    command(CommandId::Expireat, "expireat", -3, &[Flags::WRITE, Flags::FAST])
        .keys(1, 1, 1)
        .only_writing()
        .docs(Group::Generic, "1.2.0", "Set the expiration for a key as a UNIX timestamp"),
    command(CommandId::Expiretime, "expiretime", 2, &[Flags::READONLY, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::Generic, "7.0.0", "Get the expiration Unix timestamp for a key"),
    command(CommandId::FlashGrow, "flash.grow", -2, &[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_MULTI])
        .docs(Group::Server, "0.1.0", "Enlarge the device by more units"),
    command(CommandId::FlashRecord, "flash.record", -2, &[])
        .docs(Group::Server, "0.1.0", "A container for commands that record reads and changes")
        .containing(RECORD),
    command(CommandId::FlashSet, "flash.set", -2, &[])
        .docs(Group::Server, "0.1.0", "A container for commands on sets of units")
        .containing(SET),
    command(CommandId::FlashStats, "flash.stats", 1, &[Flags::READONLY])
        .docs(Group::Server, "0.1.0", "Return the counters of the store on flash"),
    command(CommandId::FlashUnits, "flash.units", 1, &[Flags::READONLY])
        .docs(Group::Server, "0.1.0", "Return the state of every unit of the flash"),
    command(CommandId::FlashVolume, "flash.volume", -2, &[])
        .docs(Group::Server, "0.1.0", "A container for commands on volumes")
        .containing(VOLUME),
    command(CommandId::Flushall, "flushall", -1, &[Flags::WRITE, Flags::DANGEROUS])
        .over_everything()
        .only_writing()
        .docs(Group::Generic, "1.0.0", "Remove all keys from all databases"),
    command(CommandId::Flushdb, "flushdb", -1, &[Flags::WRITE, Flags::DANGEROUS])
        .over_everything()
        .only_writing()
        .docs(Group::Generic, "1.0.0", "Remove all keys from the current database"),
    command(CommandId::Get, "get", 2, &[Flags::READONLY, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::String, "1.0.0", "Get the value of a key"),
    command(CommandId::Getdel, "getdel", 2, &[Flags::WRITE, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::String, "6.2.0", "Get the value of a key and delete the key"),
    command(CommandId::Getex, "getex", -2, &[Flags::WRITE, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::String, "6.2.0", "Get the value of a key and optionally set its expiration"),
    command(CommandId::Getrange, "getrange", 4, &[Flags::READONLY])
        .keys(1, 1, 1)
        .docs(Group::String, "2.4.0", "Get a substring of the string stored at a key"),
    command(CommandId::Getset, "getset", 3, &[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::String, "1.0.0", "Set the string value of a key and return its old value"),
    command(CommandId::Hello, "hello", -1, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::NO_AUTH, Flags::ALLOW_BUSY])
        .docs(Group::Connection, "6.0.0", "Handshake with Redis"),
    command(CommandId::Incr, "incr", 2, &[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::String, "1.0.0", "Increment the integer value of a key by one"),
    command(CommandId::Incrby, "incrby", 3, &[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::String, "1.0.0", "Increment the integer value of a key by the given amount"),
    command(CommandId::Incrbyfloat, "incrbyfloat", 3, &[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::String, "2.6.0", "Increment the float value of a key by the given amount"),
    command(CommandId::Info, "info", -1, &[Flags::LOADING, Flags::STALE, Flags::DANGEROUS])
        .docs(Group::Server, "1.0.0", "Get information and statistics about the server"),
    command(CommandId::Keys, "keys", 2, &[Flags::READONLY, Flags::DANGEROUS])
        .docs(Group::Generic, "1.0.0", "Find all keys matching the given pattern"),
    command(CommandId::Memory, "memory", -2, &[])
        .docs(Group::Server, "4.0.0", "A container for memory diagnostics commands")
        .containing(MEMORY),
    command(CommandId::Mget, "mget", -2, &[Flags::READONLY, Flags::FAST])
        .keys(1, -1, 1)
        .docs(Group::String, "1.0.0", "Get the values of all the given keys"),
    command(CommandId::Mset, "mset", -3, &[Flags::WRITE, Flags::DENYOOM])
        .keys(1, -1, 2)
        .only_writing()
        .docs(Group::String, "1.0.1", "Set multiple keys to multiple values"),
    command(CommandId::Msetnx, "msetnx", -3, &[Flags::WRITE, Flags::DENYOOM])
        .keys(1, -1, 2)
        .only_writing()
        .docs(Group::String, "1.0.1", "Set multiple keys to multiple values, only if none of the keys exist"),
    command(CommandId::Multi, "multi", 1, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::ALLOW_BUSY, Flags::UNQUEUED])
        .docs(Group::Transactions, "1.2.0", "Mark the start of a transaction block"),
    command(CommandId::Object, "object", -2, &[])
        .docs(Group::Generic, "2.2.3", "A container for object introspection commands")
        .containing(OBJECT),
    command(CommandId::Persist, "persist", 2, &[Flags::WRITE, Flags::FAST])
        .keys(1, 1, 1)
        .only_writing()
        .docs(Group::Generic, "2.2.0", "Remove the expiration from a key"),
    command(CommandId::Pexpire, "pexpire", -3, &[Flags::WRITE, Flags::FAST])
        .keys(1, 1, 1)
        .only_writing()
        .docs(Group::Generic, "2.6.0", "Set a key's time to live in milliseconds"),
    command(CommandId::Pexpireat, "pexpireat", -3, &[Flags::WRITE, Flags::FAST])
        .keys(1, 1, 1)
        .only_writing()
        .docs(Group::Generic, "2.6.0", "Set the expiration for a key as a UNIX timestamp specified in milliseconds"),
    command(CommandId::Pexpiretime, "pexpiretime", 2, &[Flags::READONLY, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::Generic, "7.0.0", "Get the expiration Unix timestamp for a key in milliseconds"),
    command(CommandId::Ping, "ping", -1, &[Flags::FAST])
        .docs(Group::Connection, "1.0.0", "Ping the server"),
    command(CommandId::Psetex, "psetex", 4, &[Flags::WRITE, Flags::DENYOOM])
        .keys(1, 1, 1)
        .only_writing()
        .docs(Group::String, "2.6.0", "Set the value and expiration in milliseconds of a key"),
    command(CommandId::Pttl, "pttl", 2, &[Flags::READONLY, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::Generic, "2.6.0", "Get the time to live for a key in milliseconds"),
    command(CommandId::Quit, "quit", -1, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::NO_AUTH, Flags::ALLOW_BUSY, Flags::UNQUEUED])
        .docs(Group::Connection, "1.0.0", "Close the connection"),
    command(CommandId::Randomkey, "randomkey", 1, &[Flags::READONLY])
        .docs(Group::Generic, "1.0.0", "Return a random key from the keyspace"),
    command(CommandId::Rename, "rename", 3, &[Flags::WRITE])
        .keys(1, 2, 1)
        .touching(Touches::FirstAndOthers(Access::BOTH, Access::WRITE))
        .docs(Group::Generic, "1.0.0", "Rename a key"),
    command(CommandId::Renamenx, "renamenx", 3, &[Flags::WRITE, Flags::FAST])
        .keys(1, 2, 1)
        .touching(Touches::FirstAndOthers(Access::BOTH, Access::WRITE))
        .docs(Group::Generic, "1.0.0", "Rename a key, only if the new key does not exist"),
    command(CommandId::Reset, "reset", 1, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::NO_AUTH, Flags::ALLOW_BUSY, Flags::UNQUEUED])
        .docs(Group::Connection, "6.2.0", "Reset the connection"),
    command(CommandId::Scan, "scan", -2, &[Flags::READONLY])
        .docs(Group::Generic, "2.8.0", "Incrementally iterate the keys space"),
    command(CommandId::Script, "script", -2, &[])
        .docs(Group::Scripting, "2.6.0", "A container for commands on scripts")
        .containing(SCRIPT),
    command(CommandId::Select, "select", 2, &[Flags::LOADING, Flags::STALE, Flags::FAST])
        .docs(Group::Connection, "1.0.0", "Change the selected database for the current connection"),
    command(CommandId::Set, "set", -3, &[Flags::WRITE, Flags::DENYOOM])
        .keys(1, 1, 1)
        .touching(Touches::ByWords(access::of_set))
        .docs(Group::String, "1.0.0", "Set the string value of a key"),
    command(CommandId::Setex, "setex", 4, &[Flags::WRITE, Flags::DENYOOM])
        .keys(1, 1, 1)
        .only_writing()
        .docs(Group::String, "2.0.0", "Set the value and expiration of a key"),
    command(CommandId::Setnx, "setnx", 3, &[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(1, 1, 1)
        .only_writing()
        .docs(Group::String, "1.0.0", "Set the value of a key, only if the key does not exist"),
    command(CommandId::Setrange, "setrange", 4, &[Flags::WRITE, Flags::DENYOOM])
        .keys(1, 1, 1)
        .only_writing()
        .docs(Group::String, "2.2.0", "Overwrite part of a string at key starting at the specified offset"),
    command(CommandId::Shutdown, "shutdown", -1, &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::NO_MULTI, Flags::ALLOW_BUSY])
        .docs(Group::Server, "1.0.0", "Synchronously save the dataset to disk and then shut down the server"),
    command(CommandId::Slowlog, "slowlog", -2, &[])
        .docs(Group::Server, "2.2.12", "A container for slow log commands")
        .containing(SLOWLOG),
    command(CommandId::Strlen, "strlen", 2, &[Flags::READONLY, Flags::FAST])
        .keys(1, 1, 1)
        .only_looking()
        .docs(Group::String, "2.2.0", "Get the length of the value stored in a key"),
    command(CommandId::Substr, "substr", 4, &[Flags::READONLY])
        .keys(1, 1, 1)
        .docs(Group::String, "1.0.0", "Get a substring of the string stored at a key"),
    command(CommandId::Time, "time", 1, &[Flags::LOADING, Flags::STALE, Flags::FAST])
        .docs(Group::Server, "2.6.0", "Return the current server time"),
    command(CommandId::Touch, "touch", -2, &[Flags::READONLY, Flags::FAST])
        .keys(1, -1, 1)
        .only_looking()
        .docs(Group::Generic, "3.2.1", "Alters the last access time of a key(s). Returns the number of existing keys specified."),
    command(CommandId::Ttl, "ttl", 2, &[Flags::READONLY, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::Generic, "1.0.0", "Get the time to live for a key in seconds"),
    command(CommandId::Type, "type", 2, &[Flags::READONLY, Flags::FAST])
        .keys(1, 1, 1)
        .only_looking()
        .docs(Group::Generic, "1.0.0", "Determine the type stored at key"),
    command(CommandId::Unlink, "unlink", -2, &[Flags::WRITE, Flags::FAST])
        .keys(1, -1, 1)
        .only_writing()
        .docs(Group::Generic, "4.0.0", "Delete a key asynchronously in another thread. Otherwise it is just as DEL, but non blocking."),
    command(CommandId::Unwatch, "unwatch", 1, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::ALLOW_BUSY])
        .docs(Group::Transactions, "2.2.0", "Forget about all watched keys"),
    command(CommandId::Watch, "watch", -2, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::ALLOW_BUSY, Flags::UNQUEUED])
        .keys(1, -1, 1)
        .only_looking()
        .docs(Group::Transactions, "2.2.0", "Watch the given keys to determine execution of the MULTI/EXEC block"),
];
