//! The table of commands. Everything that is said of a command is said here, once.

use crate::acl::Access;
use crate::commands::builder::command;
use crate::commands::subcommands::{ACL, CLIENT, COMMAND, CONFIG, MEMORY, OBJECT, RECORD, SLOWLOG};
use crate::commands::*;

/// All commands, by name.
pub static COMMANDS: &[Spec] = &[
    command("acl", -2, &[])
        .docs(Group::Server, "6.0.0", "A container for Access List Control commands")
        .containing(ACL),
    command("append", 3, &[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(1, 1, 1)
        .only_writing()
        .docs(Group::String, "2.0.0", "Append a value to a key")
        .keyed(range::append),
    command("auth", -2, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::NO_AUTH, Flags::ALLOW_BUSY])
        .docs(Group::Connection, "1.0.0", "Authenticate to the server")
        .waiting(connection::auth),
    command("client", -2, &[])
        .docs(Group::Connection, "2.4.0", "A container for client connection commands")
        .containing(CLIENT),
    command("command", -1, &[Flags::LOADING, Flags::STALE])
        .docs(Group::Connection, "2.8.13", "Get array of command details")
        .session(introspection::command)
        .containing(COMMAND),
    command("config", -2, &[])
        .docs(Group::Server, "2.0.0", "A container for server configuration commands")
        .containing(CONFIG),
    command("copy", -3, &[Flags::WRITE, Flags::DENYOOM])
        .keys(1, 2, 1)
        .touching(Touches::FirstAndOthers(Access::READ, Access::WRITE))
        .docs(Group::Generic, "6.2.0", "Copy a key")
        .keyed(rename::copy),
    command("dbsize", 1, &[Flags::READONLY, Flags::FAST])
        .docs(Group::Generic, "1.0.0", "Return the number of keys in the database")
        .wide(keyspace::dbsize),
    command("debug", -2, &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "1.0.0", "Wait for a time")
        .waiting(debug::debug),
    command("decr", 2, &[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::String, "1.0.0", "Decrement the integer value of a key by one")
        .keyed(counter::decr),
    command("decrby", 3, &[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::String, "1.0.0", "Decrement the integer value of a key by the given number")
        .keyed(counter::decrby),
    command("del", -2, &[Flags::WRITE])
        .keys(1, -1, 1)
        .only_writing()
        .docs(Group::Generic, "1.0.0", "Delete a key")
        .keyed(multi_key::del),
    command("discard", 1, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::ALLOW_BUSY, Flags::UNQUEUED])
        .docs(Group::Transactions, "2.0.0", "Discard all commands issued after MULTI")
        .session(transaction::discard),
    command("echo", 2, &[Flags::LOADING, Flags::STALE, Flags::FAST])
        .docs(Group::Connection, "1.0.0", "Echo the given string")
        .session(connection::echo),
    command("exec", 1, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::SKIP_SLOWLOG, Flags::UNQUEUED])
        .docs(Group::Transactions, "1.2.0", "Execute all commands issued after MULTI")
        .run_by(Handler::Exec),
    command("exists", -2, &[Flags::READONLY, Flags::FAST])
        .keys(1, -1, 1)
        .only_looking()
        .docs(Group::Generic, "1.0.0", "Determine if a key exists")
        .keyed(multi_key::exists),
    command("expire", -3, &[Flags::WRITE, Flags::FAST])
        .keys(1, 1, 1)
        .only_writing()
        .docs(Group::Generic, "1.0.0", "Set a key's time to live in seconds")
        .keyed(expire::expire),
    command("expireat", -3, &[Flags::WRITE, Flags::FAST])
        .keys(1, 1, 1)
        .only_writing()
        .docs(Group::Generic, "1.2.0", "Set the expiration for a key as a UNIX timestamp")
        .keyed(expire::expireat),
    command("expiretime", 2, &[Flags::READONLY, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::Generic, "7.0.0", "Get the expiration Unix timestamp for a key")
        .keyed(expire::expiretime),
    command("flash.record", -2, &[])
        .docs(Group::Server, "0.1.0", "A container for commands that record what clients do")
        .containing(RECORD),
    command("flash.stats", 1, &[Flags::READONLY])
        .docs(Group::Server, "0.1.0", "Return the counters of the store on flash")
        .wide(flash::stats),
    command("flash.units", 1, &[Flags::READONLY])
        .docs(Group::Server, "0.1.0", "Return the state of every unit of the flash")
        .wide(flash::units),
    command("flushall", -1, &[Flags::WRITE, Flags::DANGEROUS])
        .over_everything()
        .only_writing()
        .docs(Group::Generic, "1.0.0", "Remove all keys from all databases")
        .blind(keyspace::flush),
    command("flushdb", -1, &[Flags::WRITE, Flags::DANGEROUS])
        .over_everything()
        .only_writing()
        .docs(Group::Generic, "1.0.0", "Remove all keys from the current database")
        .blind(keyspace::flush),
    command("get", 2, &[Flags::READONLY, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::String, "1.0.0", "Get the value of a key")
        .keyed(set::get),
    command("getdel", 2, &[Flags::WRITE, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::String, "6.2.0", "Get the value of a key and delete the key")
        .keyed(set::getdel),
    command("getex", -2, &[Flags::WRITE, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::String, "6.2.0", "Get the value of a key and optionally set its expiration")
        .keyed(set::getex),
    command("getrange", 4, &[Flags::READONLY])
        .keys(1, 1, 1)
        .docs(Group::String, "2.4.0", "Get a substring of the string stored at a key")
        .keyed(range::getrange),
    command("getset", 3, &[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::String, "1.0.0", "Set the string value of a key and return its old value")
        .keyed(set::getset),
    command("hello", -1, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::NO_AUTH, Flags::ALLOW_BUSY])
        .docs(Group::Connection, "6.0.0", "Handshake with Redis")
        .waiting_if(connection::logs_in, connection::hello),
    command("incr", 2, &[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::String, "1.0.0", "Increment the integer value of a key by one")
        .keyed(counter::incr),
    command("incrby", 3, &[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::String, "1.0.0", "Increment the integer value of a key by the given amount")
        .keyed(counter::incrby),
    command("incrbyfloat", 3, &[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::String, "2.6.0", "Increment the float value of a key by the given amount")
        .keyed(counter::incrbyfloat),
    command("info", -1, &[Flags::LOADING, Flags::STALE, Flags::DANGEROUS])
        .docs(Group::Server, "1.0.0", "Get information and statistics about the server")
        .wide(server::info),
    command("keys", 2, &[Flags::READONLY, Flags::DANGEROUS])
        .docs(Group::Generic, "1.0.0", "Find all keys matching the given pattern")
        .wide(keyspace::keys),
    command("memory", -2, &[])
        .docs(Group::Server, "4.0.0", "A container for memory diagnostics commands")
        .containing(MEMORY),
    command("mget", -2, &[Flags::READONLY, Flags::FAST])
        .keys(1, -1, 1)
        .docs(Group::String, "1.0.0", "Get the values of all the given keys")
        .keyed(multi_key::mget),
    command("mset", -3, &[Flags::WRITE, Flags::DENYOOM])
        .keys(1, -1, 2)
        .only_writing()
        .docs(Group::String, "1.0.1", "Set multiple keys to multiple values")
        .blind(multi_key::mset),
    command("msetnx", -3, &[Flags::WRITE, Flags::DENYOOM])
        .keys(1, -1, 2)
        .only_writing()
        .docs(Group::String, "1.0.1", "Set multiple keys to multiple values, only if none of the keys exist")
        .keyed(multi_key::msetnx),
    command("multi", 1, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::ALLOW_BUSY, Flags::UNQUEUED])
        .docs(Group::Transactions, "1.2.0", "Mark the start of a transaction block")
        .session(transaction::multi),
    command("object", -2, &[])
        .docs(Group::Generic, "2.2.3", "A container for object introspection commands")
        .containing(OBJECT),
    command("persist", 2, &[Flags::WRITE, Flags::FAST])
        .keys(1, 1, 1)
        .only_writing()
        .docs(Group::Generic, "2.2.0", "Remove the expiration from a key")
        .keyed(expire::persist),
    command("pexpire", -3, &[Flags::WRITE, Flags::FAST])
        .keys(1, 1, 1)
        .only_writing()
        .docs(Group::Generic, "2.6.0", "Set a key's time to live in milliseconds")
        .keyed(expire::pexpire),
    command("pexpireat", -3, &[Flags::WRITE, Flags::FAST])
        .keys(1, 1, 1)
        .only_writing()
        .docs(Group::Generic, "2.6.0", "Set the expiration for a key as a UNIX timestamp specified in milliseconds")
        .keyed(expire::pexpireat),
    command("pexpiretime", 2, &[Flags::READONLY, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::Generic, "7.0.0", "Get the expiration Unix timestamp for a key in milliseconds")
        .keyed(expire::pexpiretime),
    command("ping", -1, &[Flags::FAST])
        .docs(Group::Connection, "1.0.0", "Ping the server")
        .session(connection::ping),
    command("psetex", 4, &[Flags::WRITE, Flags::DENYOOM])
        .keys(1, 1, 1)
        .only_writing()
        .docs(Group::String, "2.6.0", "Set the value and expiration in milliseconds of a key")
        .blind(set::psetex),
    command("pttl", 2, &[Flags::READONLY, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::Generic, "2.6.0", "Get the time to live for a key in milliseconds")
        .keyed(expire::pttl),
    command("quit", -1, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::NO_AUTH, Flags::ALLOW_BUSY, Flags::UNQUEUED])
        .docs(Group::Connection, "1.0.0", "Close the connection")
        .session(connection::quit),
    command("randomkey", 1, &[Flags::READONLY])
        .docs(Group::Generic, "1.0.0", "Return a random key from the keyspace")
        .wide(keyspace::randomkey),
    command("rename", 3, &[Flags::WRITE])
        .keys(1, 2, 1)
        .touching(Touches::FirstAndOthers(Access::BOTH, Access::WRITE))
        .docs(Group::Generic, "1.0.0", "Rename a key")
        .keyed(rename::rename),
    command("renamenx", 3, &[Flags::WRITE, Flags::FAST])
        .keys(1, 2, 1)
        .touching(Touches::FirstAndOthers(Access::BOTH, Access::WRITE))
        .docs(Group::Generic, "1.0.0", "Rename a key, only if the new key does not exist")
        .keyed(rename::renamenx),
    command("reset", 1, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::NO_AUTH, Flags::ALLOW_BUSY, Flags::UNQUEUED])
        .docs(Group::Connection, "6.2.0", "Reset the connection")
        .session(connection::reset),
    command("scan", -2, &[Flags::READONLY])
        .docs(Group::Generic, "2.8.0", "Incrementally iterate the keys space")
        .wide(keyspace::scan),
    command("select", 2, &[Flags::LOADING, Flags::STALE, Flags::FAST])
        .docs(Group::Connection, "1.0.0", "Change the selected database for the current connection")
        .session(connection::select),
    command("set", -3, &[Flags::WRITE, Flags::DENYOOM])
        .keys(1, 1, 1)
        .touching(Touches::ByWords(set::touches))
        .docs(Group::String, "1.0.0", "Set the string value of a key")
        .loading(Load::If(set::needs_old), set::set),
    command("setex", 4, &[Flags::WRITE, Flags::DENYOOM])
        .keys(1, 1, 1)
        .only_writing()
        .docs(Group::String, "2.0.0", "Set the value and expiration of a key")
        .blind(set::setex),
    command("setnx", 3, &[Flags::WRITE, Flags::DENYOOM, Flags::FAST])
        .keys(1, 1, 1)
        .only_writing()
        .docs(Group::String, "1.0.0", "Set the value of a key, only if the key does not exist")
        .keyed(set::setnx),
    command("setrange", 4, &[Flags::WRITE, Flags::DENYOOM])
        .keys(1, 1, 1)
        .only_writing()
        .docs(Group::String, "2.2.0", "Overwrite part of a string at key starting at the specified offset")
        .keyed(range::setrange),
    command("shutdown", -1, &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::NO_MULTI, Flags::ALLOW_BUSY])
        .docs(Group::Server, "1.0.0", "Synchronously save the dataset to disk and then shut down the server")
        .session(server::shutdown),
    command("slowlog", -2, &[])
        .docs(Group::Server, "2.2.12", "A container for slow log commands")
        .containing(SLOWLOG),
    command("strlen", 2, &[Flags::READONLY, Flags::FAST])
        .keys(1, 1, 1)
        .only_looking()
        .docs(Group::String, "2.2.0", "Get the length of the value stored in a key")
        .keyed(set::strlen),
    command("substr", 4, &[Flags::READONLY])
        .keys(1, 1, 1)
        .docs(Group::String, "1.0.0", "Get a substring of the string stored at a key")
        .keyed(range::getrange),
    command("time", 1, &[Flags::LOADING, Flags::STALE, Flags::FAST])
        .docs(Group::Server, "2.6.0", "Return the current server time")
        .session(server::time),
    command("touch", -2, &[Flags::READONLY, Flags::FAST])
        .keys(1, -1, 1)
        .only_looking()
        .docs(Group::Generic, "3.2.1", "Alters the last access time of a key(s). Returns the number of existing keys specified.")
        .keyed(multi_key::exists),
    command("ttl", 2, &[Flags::READONLY, Flags::FAST])
        .keys(1, 1, 1)
        .docs(Group::Generic, "1.0.0", "Get the time to live for a key in seconds")
        .keyed(expire::ttl),
    command("type", 2, &[Flags::READONLY, Flags::FAST])
        .keys(1, 1, 1)
        .only_looking()
        .docs(Group::Generic, "1.0.0", "Determine the type stored at key")
        .keyed(rename::type_of),
    command("unlink", -2, &[Flags::WRITE, Flags::FAST])
        .keys(1, -1, 1)
        .only_writing()
        .docs(Group::Generic, "4.0.0", "Delete a key asynchronously in another thread. Otherwise it is just as DEL, but non blocking.")
        .keyed(multi_key::del),
    command("unwatch", 1, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::ALLOW_BUSY])
        .docs(Group::Transactions, "2.2.0", "Forget about all watched keys")
        .session(transaction::unwatch),
    command("watch", -2, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE, Flags::FAST, Flags::ALLOW_BUSY, Flags::UNQUEUED])
        .keys(1, -1, 1)
        .only_looking()
        .docs(Group::Transactions, "2.2.0", "Watch the given keys to determine execution of the MULTI/EXEC block")
        .run_by(Handler::Watch),
];
