//! Identifiers of commands, which index the handler table.

macro_rules! ids {
    ($($id:ident)*) => {
        /// A command or subcommand.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum CommandId {
            $($id,)*
        }

        impl CommandId {
            /// All of them, in their order.
            pub const ALL: &[CommandId] = &[$(CommandId::$id,)*];
        }
    };
}

ids! {
    Acl
    AclCat
    AclDeluser
    AclDryrun
    AclGenpass
    AclGetuser
    AclHelp
    AclList
    AclLoad
    AclLog
    AclSave
    AclSetuser
    AclUsers
    AclWhoami
    Append
    Auth
    Client
    ClientGetname
    ClientHelp
    ClientId
    ClientInfo
    ClientKill
    ClientList
    ClientNoEvict
    ClientNoTouch
    ClientReply
    ClientSetinfo
    ClientSetname
    Command
    CommandCount
    CommandDocs
    CommandGetkeys
    CommandHelp
    CommandInfo
    CommandList
    Config
    ConfigGet
    ConfigHelp
    ConfigResetstat
    ConfigSet
    Copy
    Dbsize
    Debug
    Decr
    Decrby
    Del
    Discard
    Echo
    Exec
    Exists
    Expire
    Expireat
    Expiretime
    FlashRecord
    FlashRecordHelp
    FlashRecordRead
    FlashRecordStart
    FlashRecordStop
    FlashStats
    FlashUnits
    Flushall
    Flushdb
    Get
    Getdel
    Getex
    Getrange
    Getset
    Hello
    Incr
    Incrby
    Incrbyfloat
    Info
    Keys
    Memory
    MemoryHelp
    MemoryUsage
    Mget
    Mset
    Msetnx
    Multi
    Object
    ObjectEncoding
    ObjectHelp
    ObjectRefcount
    Persist
    Pexpire
    Pexpireat
    Pexpiretime
    Ping
    Psetex
    Pttl
    Quit
    Randomkey
    Rename
    Renamenx
    Reset
    Scan
    Select
    Set
    Setex
    Setnx
    Setrange
    Shutdown
    Slowlog
    SlowlogGet
    SlowlogHelp
    SlowlogLen
    SlowlogReset
    Strlen
    Substr
    Time
    Touch
    Ttl
    Type
    Unlink
    Unwatch
    Watch
}
