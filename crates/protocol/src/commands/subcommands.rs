//! The commands within commands.

use crate::commands::builder::command;
use crate::commands::*;

/// Within ACL.
pub(super) const ACL: &[Spec] = &[
    command("acl|cat", -2, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "6.0.0", "List the ACL categories or the commands inside a category")
        .session(acl::cat),
    command("acl|deluser", -3, &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "6.0.0", "Remove the specified ACL users and the associated rules")
        .session(acl::deluser),
    command("acl|dryrun", -4, &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(
            Group::Server,
            "7.0.0",
            "Returns whether the user can execute the given command without executing the command.",
        )
        .session(acl::dryrun),
    command("acl|genpass", -2, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(
            Group::Server,
            "6.0.0",
            "Generate a pseudorandom secure password to use for ACL users",
        )
        .session(acl::genpass),
    command("acl|getuser", 3, &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "6.0.0", "Get the rules for a specific ACL user")
        .session(acl::getuser),
    command("acl|help", 2, &[Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "6.0.0", "Show helpful text about the different subcommands")
        .session(acl::help),
    command("acl|list", 2, &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "6.0.0", "List the current ACL rules in ACL config file format")
        .session(acl::list),
    command("acl|load", 2, &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "6.0.0", "Reload the ACLs from the configured ACL file")
        .waiting(acl::load),
    command("acl|log", -2, &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "6.0.0", "List latest events denied because of ACLs in place")
        .session(acl::log),
    command("acl|save", 2, &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "6.0.0", "Save the current ACL rules in the configured ACL file")
        .waiting(acl::save),
    command("acl|setuser", -3, &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "6.0.0", "Modify or create the rules for a specific ACL user")
        .waiting(acl::setuser),
    command("acl|users", 2, &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "6.0.0", "List the username of all the configured ACL rules")
        .session(acl::users),
    command("acl|whoami", 2, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(
            Group::Server,
            "6.0.0",
            "Return the name of the user associated to the current connection",
        )
        .session(acl::whoami),
];

/// Within CLIENT.
pub(super) const CLIENT: &[Spec] = &[
    command("client|getname", 2, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(Group::Connection, "2.6.9", "Get the current connection name")
        .session(client::getname),
    command("client|help", 2, &[Flags::LOADING, Flags::STALE])
        .docs(Group::Connection, "5.0.0", "Show helpful text about the different subcommands")
        .session(client::help),
    command("client|id", 2, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(Group::Connection, "5.0.0", "Returns the client ID for the current connection")
        .session(client::id),
    command("client|info", 2, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(
            Group::Connection,
            "6.2.0",
            "Returns information about the current client connection.",
        )
        .session(client::info),
    command("client|kill", -3, &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(Group::Connection, "2.4.0", "Kill the connection of a client")
        .session(client::kill),
    command("client|list", -2, &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(Group::Connection, "2.4.0", "Get the list of client connections")
        .session(client::list),
    command("client|no-evict", 3, &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(Group::Connection, "7.0.0", "Set client eviction mode for the current connection")
        .session(client::on_or_off),
    command("client|no-touch", 3, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(
            Group::Connection,
            "7.2.0",
            "Controls whether commands sent by the client affect the LRU/LFU of accessed keys",
        )
        .session(client::on_or_off),
    command("client|reply", 3, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(Group::Connection, "3.2.0", "Instruct the server whether to reply to commands")
        .session(client::reply),
    command("client|setinfo", 4, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(Group::Connection, "7.2.0", "Set client or connection specific info")
        .session(client::setinfo),
    command("client|setname", 3, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(Group::Connection, "2.6.9", "Set the current connection name")
        .session(client::setname),
];

/// Within COMMAND.
pub(super) const COMMAND: &[Spec] = &[
    command("command|count", 2, &[Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "2.8.13", "Get total number of Redis commands")
        .session(introspection::count),
    command("command|docs", -2, &[Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "7.0.0", "Get array of specific Redis command documentation")
        .session(introspection::docs),
    command("command|getkeys", -4, &[Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "2.8.13", "Extract keys given a full Redis command")
        .session(introspection::getkeys),
    command("command|help", 2, &[Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "5.0.0", "Show helpful text about the different subcommands")
        .session(introspection::help),
    command("command|info", -2, &[Flags::LOADING, Flags::STALE])
        .docs(
            Group::Server,
            "2.8.13",
            "Get array of specific Redis command details, or all when no argument is given.",
        )
        .session(introspection::info),
    command("command|list", -2, &[Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "7.0.0", "Get an array of Redis command names")
        .session(introspection::list),
];

/// Within CONFIG.
pub(super) const CONFIG: &[Spec] = &[
    command("config|get", -3, &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "2.0.0", "Get the values of configuration parameters")
        .session(config::get),
    command("config|help", 2, &[Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "5.0.0", "Show helpful text about the different subcommands")
        .session(config::help),
    command("config|resetstat", 2, &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "2.0.0", "Reset the stats returned by INFO")
        .session(config::resetstat),
    command("config|set", -4, &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "2.0.0", "Set configuration parameters to the given values")
        .session(config::set),
];

/// Within MEMORY.
pub(super) const MEMORY: &[Spec] = &[
    command("memory|help", 2, &[Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "4.0.0", "Show helpful text about the different subcommands")
        .session(object::memory_help),
    command("memory|usage", -3, &[Flags::READONLY])
        .keys(2, 2, 1)
        .only_looking()
        .docs(Group::Server, "4.0.0", "Estimate the memory usage of a key")
        .keyed(object::usage),
];

/// Within OBJECT.
pub(super) const OBJECT: &[Spec] = &[
    command("object|encoding", 3, &[Flags::READONLY])
        .keys(2, 2, 1)
        .only_looking()
        .docs(Group::Generic, "2.2.3", "Inspect the internal encoding of a Redis object")
        .keyed(object::encoding),
    command("object|help", 2, &[Flags::LOADING, Flags::STALE])
        .docs(Group::Generic, "6.2.0", "Show helpful text about the different subcommands")
        .session(object::object_help),
    command("object|refcount", 3, &[Flags::READONLY])
        .keys(2, 2, 1)
        .only_looking()
        .docs(Group::Generic, "2.2.3", "Get the number of references to the value of the key")
        .keyed(object::refcount),
];

/// Within FLASH.RECORD.
pub(super) const RECORD: &[Spec] = &[
    command("flash.record|help", 2, &[Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "0.1.0", "Show helpful text about the different subcommands")
        .session(record::help),
    command("flash.record|read", -2, &[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_MULTI])
        .docs(Group::Server, "0.1.0", "Take what clients have read and changed")
        .session(record::read),
    command("flash.record|start", -2, &[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_MULTI])
        .docs(Group::Server, "0.1.0", "Begin to gather what clients read and change")
        .session(record::start),
    command("flash.record|stop", 2, &[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_MULTI])
        .docs(Group::Server, "0.1.0", "End to gather what clients read and change")
        .session(record::stop),
];

/// Within SLOWLOG.
pub(super) const SLOWLOG: &[Spec] = &[
    command("slowlog|get", -2, &[Flags::ADMIN, Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "2.2.12", "Get the slow log's entries")
        .session(slowlog::get),
    command("slowlog|help", 2, &[Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "6.2.0", "Show helpful text about the different subcommands")
        .session(slowlog::help),
    command("slowlog|len", 2, &[Flags::ADMIN, Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "2.2.12", "Get the slow log's length")
        .session(slowlog::len),
    command("slowlog|reset", 2, &[Flags::ADMIN, Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "2.2.12", "Clear all entries from the slow log")
        .session(slowlog::reset),
];
