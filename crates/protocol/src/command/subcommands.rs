//! Tables of subcommands.

use crate::command::builder::command;
use crate::command::{CommandId, Flags, Group, Spec};

/// Subcommands of ACL.
pub(super) const ACL: &[Spec] = &[
    command(CommandId::AclCat, "acl|cat", -2, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "6.0.0", "List the ACL categories or the commands inside a category"),
    command(
        CommandId::AclDeluser,
        "acl|deluser",
        -3,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE],
    )
    .docs(Group::Server, "6.0.0", "Remove the specified ACL users and the associated rules"),
    command(
        CommandId::AclDryrun,
        "acl|dryrun",
        -4,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE],
    )
    .docs(
        Group::Server,
        "7.0.0",
        "Returns whether the user can execute the given command without executing the command.",
    ),
    command(
        CommandId::AclGenpass,
        "acl|genpass",
        -2,
        &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE],
    )
    .docs(
        Group::Server,
        "6.0.0",
        "Generate a pseudorandom secure password to use for ACL users",
    ),
    command(
        CommandId::AclGetuser,
        "acl|getuser",
        3,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE],
    )
    .docs(Group::Server, "6.0.0", "Get the rules for a specific ACL user"),
    command(CommandId::AclHelp, "acl|help", 2, &[Flags::LOADING, Flags::STALE]).docs(
        Group::Server,
        "6.0.0",
        "Show helpful text about the different subcommands",
    ),
    command(
        CommandId::AclList,
        "acl|list",
        2,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE],
    )
    .docs(Group::Server, "6.0.0", "List the current ACL rules in ACL config file format"),
    command(
        CommandId::AclLoad,
        "acl|load",
        2,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE],
    )
    .docs(Group::Server, "6.0.0", "Reload the ACLs from the configured ACL file"),
    command(
        CommandId::AclLog,
        "acl|log",
        -2,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE],
    )
    .docs(Group::Server, "6.0.0", "List latest events denied because of ACLs in place"),
    command(
        CommandId::AclSave,
        "acl|save",
        2,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE],
    )
    .docs(Group::Server, "6.0.0", "Save the current ACL rules in the configured ACL file"),
    command(
        CommandId::AclSetuser,
        "acl|setuser",
        -3,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE],
    )
    .docs(Group::Server, "6.0.0", "Modify or create the rules for a specific ACL user"),
    command(
        CommandId::AclUsers,
        "acl|users",
        2,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE],
    )
    .docs(Group::Server, "6.0.0", "List the username of all the configured ACL rules"),
    command(
        CommandId::AclWhoami,
        "acl|whoami",
        2,
        &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE],
    )
    .docs(
        Group::Server,
        "6.0.0",
        "Return the name of the user associated to the current connection",
    ),
];

/// Subcommands of CLIENT.
pub(super) const CLIENT: &[Spec] = &[
    command(
        CommandId::ClientGetname,
        "client|getname",
        2,
        &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE],
    )
    .docs(Group::Connection, "2.6.9", "Get the current connection name"),
    command(CommandId::ClientHelp, "client|help", 2, &[Flags::LOADING, Flags::STALE]).docs(
        Group::Connection,
        "5.0.0",
        "Show helpful text about the different subcommands",
    ),
    command(CommandId::ClientId, "client|id", 2, &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE])
        .docs(Group::Connection, "5.0.0", "Returns the client ID for the current connection"),
    command(
        CommandId::ClientInfo,
        "client|info",
        2,
        &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE],
    )
    .docs(
        Group::Connection,
        "6.2.0",
        "Returns information about the current client connection.",
    ),
    command(
        CommandId::ClientKill,
        "client|kill",
        -3,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE],
    )
    .docs(Group::Connection, "2.4.0", "Kill the connection of a client"),
    command(
        CommandId::ClientList,
        "client|list",
        -2,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE],
    )
    .docs(Group::Connection, "2.4.0", "Get the list of client connections"),
    command(
        CommandId::ClientNoEvict,
        "client|no-evict",
        3,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE],
    )
    .docs(Group::Connection, "7.0.0", "Set client eviction mode for the current connection"),
    command(
        CommandId::ClientNoTouch,
        "client|no-touch",
        3,
        &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE],
    )
    .docs(
        Group::Connection,
        "7.2.0",
        "Controls whether commands sent by the client affect the LRU/LFU of accessed keys",
    ),
    command(
        CommandId::ClientReply,
        "client|reply",
        3,
        &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE],
    )
    .docs(Group::Connection, "3.2.0", "Instruct the server whether to reply to commands"),
    command(
        CommandId::ClientSetinfo,
        "client|setinfo",
        4,
        &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE],
    )
    .docs(Group::Connection, "7.2.0", "Set client or connection specific info"),
    command(
        CommandId::ClientSetname,
        "client|setname",
        3,
        &[Flags::NOSCRIPT, Flags::LOADING, Flags::STALE],
    )
    .docs(Group::Connection, "2.6.9", "Set the current connection name"),
];

/// Subcommands of COMMAND.
pub(super) const COMMAND: &[Spec] = &[
    command(CommandId::CommandCount, "command|count", 2, &[Flags::LOADING, Flags::STALE]).docs(
        Group::Server,
        "2.8.13",
        "Get total number of Redis commands",
    ),
    command(CommandId::CommandDocs, "command|docs", -2, &[Flags::LOADING, Flags::STALE]).docs(
        Group::Server,
        "7.0.0",
        "Get array of specific Redis command documentation",
    ),
    command(CommandId::CommandGetkeys, "command|getkeys", -4, &[Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "2.8.13", "Extract keys given a full Redis command"),
    command(CommandId::CommandHelp, "command|help", 2, &[Flags::LOADING, Flags::STALE]).docs(
        Group::Server,
        "5.0.0",
        "Show helpful text about the different subcommands",
    ),
    command(CommandId::CommandInfo, "command|info", -2, &[Flags::LOADING, Flags::STALE]).docs(
        Group::Server,
        "2.8.13",
        "Get array of specific Redis command details, or all when no argument is given.",
    ),
    command(CommandId::CommandList, "command|list", -2, &[Flags::LOADING, Flags::STALE]).docs(
        Group::Server,
        "7.0.0",
        "Get an array of Redis command names",
    ),
];

/// Subcommands of CONFIG.
pub(super) const CONFIG: &[Spec] = &[
    command(
        CommandId::ConfigGet,
        "config|get",
        -3,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE],
    )
    .docs(Group::Server, "2.0.0", "Get the values of configuration parameters"),
    command(CommandId::ConfigHelp, "config|help", 2, &[Flags::LOADING, Flags::STALE]).docs(
        Group::Server,
        "5.0.0",
        "Show helpful text about the different subcommands",
    ),
    command(
        CommandId::ConfigResetstat,
        "config|resetstat",
        2,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE],
    )
    .docs(Group::Server, "2.0.0", "Reset the stats returned by INFO"),
    command(
        CommandId::ConfigSet,
        "config|set",
        -4,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::LOADING, Flags::STALE],
    )
    .docs(Group::Server, "2.0.0", "Set configuration parameters to the given values"),
];

/// Subcommands of MEMORY.
pub(super) const MEMORY: &[Spec] = &[
    command(CommandId::MemoryHelp, "memory|help", 2, &[Flags::LOADING, Flags::STALE]).docs(
        Group::Server,
        "4.0.0",
        "Show helpful text about the different subcommands",
    ),
    command(CommandId::MemoryUsage, "memory|usage", -3, &[Flags::READONLY])
        .keys(2, 2, 1)
        .only_looking()
        .docs(Group::Server, "4.0.0", "Estimate the memory usage of a key"),
];

/// Subcommands of OBJECT.
pub(super) const OBJECT: &[Spec] = &[
    command(CommandId::ObjectEncoding, "object|encoding", 3, &[Flags::READONLY])
        .keys(2, 2, 1)
        .only_looking()
        .docs(Group::Generic, "2.2.3", "Inspect the internal encoding of a Redis object"),
    command(CommandId::ObjectHelp, "object|help", 2, &[Flags::LOADING, Flags::STALE]).docs(
        Group::Generic,
        "6.2.0",
        "Show helpful text about the different subcommands",
    ),
    command(CommandId::ObjectRefcount, "object|refcount", 3, &[Flags::READONLY])
        .keys(2, 2, 1)
        .only_looking()
        .docs(Group::Generic, "2.2.3", "Get the number of references to the value of the key"),
];

/// Subcommands of FLASH.SET.
pub(super) const SET: &[Spec] =
    &[
        command(
            CommandId::FlashSetCreate,
            "flash.set|create",
            -4,
            &[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_MULTI],
        )
        .docs(Group::Server, "0.1.0", "Create a set of units for volumes"),
        command(
            CommandId::FlashSetDelete,
            "flash.set|delete",
            3,
            &[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_MULTI],
        )
        .docs(Group::Server, "0.1.0", "Delete a set of units for volumes"),
        command(CommandId::FlashSetHelp, "flash.set|help", 2, &[Flags::LOADING, Flags::STALE])
            .docs(Group::Server, "0.1.0", "Show helpful text about the different subcommands"),
        command(CommandId::FlashSetList, "flash.set|list", 2, &[Flags::READONLY]).docs(
            Group::Server,
            "0.1.0",
            "Return all sets of units",
        ),
        command(
            CommandId::FlashSetPair,
            "flash.set|pair",
            4,
            &[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_MULTI],
        )
        .docs(Group::Server, "0.1.0", "Make a pair of two sets of units for volumes"),
        command(
            CommandId::FlashSetResize,
            "flash.set|resize",
            4,
            &[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_MULTI],
        )
        .docs(Group::Server, "0.1.0", "Change the number of units of a set"),
        command(
            CommandId::FlashSetWindow,
            "flash.set|window",
            4,
            &[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_MULTI],
        )
        .docs(Group::Server, "0.1.0", "Change the windows of a pair of sets"),
    ];

/// Subcommands of FLASH.RECORD.
pub(super) const RECORD: &[Spec] = &[
    command(CommandId::FlashRecordHelp, "flash.record|help", 2, &[Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "0.1.0", "Show helpful text about the different subcommands"),
    command(
        CommandId::FlashRecordRead,
        "flash.record|read",
        -2,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_MULTI],
    )
    .docs(Group::Server, "0.1.0", "Take the recorded events"),
    command(
        CommandId::FlashRecordStart,
        "flash.record|start",
        -2,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_MULTI],
    )
    .docs(Group::Server, "0.1.0", "Start recording keys, or requests to a volume"),
    command(
        CommandId::FlashRecordStop,
        "flash.record|stop",
        2,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_MULTI],
    )
    .docs(Group::Server, "0.1.0", "Stop recording"),
];

/// Subcommands of FLASH.VOLUME.
pub(super) const VOLUME: &[Spec] = &[
    command(
        CommandId::FlashVolumeClone,
        "flash.volume|clone",
        5,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_MULTI],
    )
    .docs(Group::Server, "0.1.0", "Create a volume with the contents of a snapshot"),
    command(
        CommandId::FlashVolumeCreate,
        "flash.volume|create",
        -4,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_MULTI],
    )
    .docs(Group::Server, "0.1.0", "Create a volume"),
    command(
        CommandId::FlashVolumeDelete,
        "flash.volume|delete",
        3,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_MULTI],
    )
    .docs(Group::Server, "0.1.0", "Delete a volume"),
    command(
        CommandId::FlashVolumeDeletesnapshot,
        "flash.volume|deletesnapshot",
        4,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_MULTI],
    )
    .docs(Group::Server, "0.1.0", "Delete a snapshot of a volume"),
    command(CommandId::FlashVolumeHelp, "flash.volume|help", 2, &[Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "0.1.0", "Show helpful text about the different subcommands"),
    command(
        CommandId::FlashVolumeList,
        "flash.volume|list",
        2,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_MULTI],
    )
    .docs(Group::Server, "0.1.0", "List the volumes and their snapshots"),
    command(
        CommandId::FlashVolumeMove,
        "flash.volume|move",
        4,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_MULTI],
    )
    .docs(Group::Server, "0.1.0", "Move a volume to another set of units"),
    command(
        CommandId::FlashVolumePromote,
        "flash.volume|promote",
        3,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_MULTI],
    )
    .docs(Group::Server, "0.1.0", "Let a clone own the snapshot that it was made from"),
    command(
        CommandId::FlashVolumeRename,
        "flash.volume|rename",
        4,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_MULTI],
    )
    .docs(Group::Server, "0.1.0", "Give a volume another name"),
    command(
        CommandId::FlashVolumeResize,
        "flash.volume|resize",
        -4,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_MULTI],
    )
    .docs(Group::Server, "0.1.0", "Change the size of a volume"),
    command(
        CommandId::FlashVolumeRollback,
        "flash.volume|rollback",
        4,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_MULTI],
    )
    .docs(Group::Server, "0.1.0", "Give a volume the contents of its newest snapshot"),
    command(
        CommandId::FlashVolumeSet,
        "flash.volume|set",
        -5,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_MULTI],
    )
    .docs(Group::Server, "0.1.0", "Change quota, limits, weight and hints of a volume"),
    command(
        CommandId::FlashVolumeSnapshot,
        "flash.volume|snapshot",
        4,
        &[Flags::ADMIN, Flags::NOSCRIPT, Flags::NO_MULTI],
    )
    .docs(Group::Server, "0.1.0", "Take a snapshot of a volume"),
];

/// Subcommands of SCRIPT.
pub(super) const SCRIPT: &[Spec] =
    &[
        command(CommandId::ScriptExists, "script|exists", -3, &[Flags::NOSCRIPT]).docs(
            Group::Scripting,
            "2.6.0",
            "Determine whether scripts are loaded",
        ),
        command(CommandId::ScriptFlush, "script|flush", -2, &[Flags::NOSCRIPT]).docs(
            Group::Scripting,
            "2.6.0",
            "Forget all loaded scripts",
        ),
        command(CommandId::ScriptHelp, "script|help", 2, &[Flags::LOADING, Flags::STALE]).docs(
            Group::Scripting,
            "5.0.0",
            "Show helpful text about the different subcommands",
        ),
        command(CommandId::ScriptKill, "script|kill", 2, &[Flags::NOSCRIPT, Flags::ALLOW_BUSY])
            .docs(Group::Scripting, "2.6.0", "Stop a script that is running"),
        command(CommandId::ScriptLoad, "script|load", 3, &[Flags::NOSCRIPT, Flags::STALE]).docs(
            Group::Scripting,
            "2.6.0",
            "Load a script that is one of a client library's",
        ),
    ];

/// Subcommands of SLOWLOG.
pub(super) const SLOWLOG: &[Spec] = &[
    command(
        CommandId::SlowlogGet,
        "slowlog|get",
        -2,
        &[Flags::ADMIN, Flags::LOADING, Flags::STALE],
    )
    .docs(Group::Server, "2.2.12", "Get the slow log's entries"),
    command(CommandId::SlowlogHelp, "slowlog|help", 2, &[Flags::LOADING, Flags::STALE]).docs(
        Group::Server,
        "6.2.0",
        "Show helpful text about the different subcommands",
    ),
    command(CommandId::SlowlogLen, "slowlog|len", 2, &[Flags::ADMIN, Flags::LOADING, Flags::STALE])
        .docs(Group::Server, "2.2.12", "Get the slow log's length"),
    command(
        CommandId::SlowlogReset,
        "slowlog|reset",
        2,
        &[Flags::ADMIN, Flags::LOADING, Flags::STALE],
    )
    .docs(Group::Server, "2.2.12", "Clear all entries from the slow log"),
];
