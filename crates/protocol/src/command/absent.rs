//! Commands of Redis that are not built here, so that the error can say so.

/// Why commands of Redis 8 are absent, and their names, of subcommands as `client|pause`.
const ABSENT: &[(&str, &str)] = &[
    (
        "it holds strings only, no lists",
        "blmove blmpop blpop brpop brpoplpush lindex linsert llen lmove lmpop lpop lpos lpush \
         lpushx lrange lrem lset ltrim rpop rpoplpush rpush rpushx sort sort_ro",
    ),
    (
        "it holds strings only, no hashes",
        "hdel hexists hexpire hexpireat hexpiretime hget hgetall hgetdel hgetex hincrby \
         hincrbyfloat hkeys hlen hmget hmset hpersist hpexpire hpexpireat hpexpiretime hpttl \
         hrandfield hscan hset hsetex hsetnx hstrlen httl hvals",
    ),
    (
        "it holds strings only, no sets",
        "sadd scard sdiff sdiffstore sinter sintercard sinterstore sismember smembers \
         smismember smove spop srandmember srem sscan sunion sunionstore",
    ),
    (
        "it holds strings only, no sorted sets",
        "bzmpop bzpopmax bzpopmin geoadd geodist geohash geopos georadius georadius_ro \
         georadiusbymember georadiusbymember_ro geosearch geosearchstore zadd zcard zcount \
         zdiff zdiffstore zincrby zinter zintercard zinterstore zlexcount zmpop zmscore \
         zpopmax zpopmin zrandmember zrange zrangebylex zrangebyscore zrangestore zrank zrem \
         zremrangebylex zremrangebyrank zremrangebyscore zrevrange zrevrangebylex \
         zrevrangebyscore zrevrank zscan zscore zunion zunionstore",
    ),
    (
        "it holds strings only, no streams",
        "xack xackdel xadd xautoclaim xclaim xdel xdelex xgroup xgroup|create \
         xgroup|createconsumer xgroup|delconsumer xgroup|destroy xgroup|help xgroup|setid xinfo \
         xinfo|consumers xinfo|groups xinfo|help xinfo|stream xlen xpending xrange xread \
         xreadgroup xrevrange xsetid xtrim",
    ),
    (
        "it holds strings only, no vector sets",
        "vadd vcard vdim vemb vgetattr vinfo vismember vlinks vrandmember vrange vrem \
         vsetattr vsim",
    ),
    ("strings are not bitmaps", "bitcount bitfield bitfield_ro bitop bitpos getbit setbit"),
    ("there are no HyperLogLogs", "pfadd pfcount pfdebug pfmerge pfselftest"),
    (
        "there is no publish/subscribe",
        "psubscribe publish pubsub pubsub|channels pubsub|help pubsub|numpat pubsub|numsub \
         pubsub|shardchannels pubsub|shardnumsub punsubscribe spublish ssubscribe subscribe \
         sunsubscribe unsubscribe",
    ),
    (
        "there are no scripts but those of locks",
        "eval_ro evalsha_ro fcall fcall_ro function function|delete function|dump function|flush \
         function|help function|kill function|list function|load function|restore \
         function|stats script|debug script|show",
    ),
    ("there is no replication", "failover psync replconf replicaof role slaveof sync wait waitaof"),
    (
        "there is no cluster",
        "asking cluster cluster|addslots cluster|addslotsrange cluster|bumpepoch \
         cluster|count-failure-reports cluster|countkeysinslot cluster|delslots \
         cluster|delslotsrange cluster|failover cluster|flushslots cluster|forget \
         cluster|getkeysinslot cluster|help cluster|info cluster|keyslot cluster|links \
         cluster|meet cluster|myid cluster|myshardid cluster|nodes cluster|replicas \
         cluster|replicate cluster|reset cluster|saveconfig cluster|set-config-epoch \
         cluster|setslot cluster|shards cluster|slaves cluster|slot-stats cluster|slots \
         migrate readonly readwrite restore-asking",
    ),
    ("there is one database", "move swapdb"),
    ("the log has every write", "bgrewriteaof bgsave lastsave save"),
    ("FLASH.RECORD records the accesses of clients", "monitor"),
    ("the settings are options of `softflash serve`", "config|rewrite"),
    (
        "there are no modules",
        "module module|help module|list module|load module|loadex module|unload",
    ),
    ("nothing counts the uses of a key", "object|freq object|idletime"),
    ("of strings and keys, only the listed commands are", "delex digest dump lcs msetex restore"),
    (
        "there is no client-side caching",
        "client|caching client|getredir client|tracking client|trackinginfo",
    ),
    ("no command blocks, and clients are not paused", "client|pause client|unblock client|unpause"),
    (
        "INFO latencystats and SLOWLOG have the latencies",
        "latency latency|doctor latency|graph latency|help latency|histogram latency|history \
         latency|latest latency|reset",
    ),
    (
        "INFO memory and FLASH.STATS have the memory in use",
        "memory|doctor memory|malloc-stats memory|purge memory|stats",
    ),
    ("COMMAND GETKEYS has the keys", "command|getkeysandflags"),
    ("it draws nothing", "lolwut"),
];

/// Prefixes of the commands of the modules that come with Redis 8.
const MODULES: [&str; 8] = ["bf.", "cf.", "cms.", "ft.", "json.", "tdigest.", "topk.", "ts."];

/// Why a command of Redis, in any case, is absent; none for a name that Redis does not know either.
pub(crate) fn reason(name: &[u8]) -> Option<&'static str> {
    let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
    if MODULES.iter().any(|prefix| name.starts_with(prefix)) {
        return Some("there are no modules");
    }
    let has = |(_, names): &&(&str, &str)| names.split(' ').any(|known| known == name);
    ABSENT.iter().find(has).map(|(reason, _)| *reason)
}

/// The command that is built and has its keys at the same places as this absent one; only for those
/// whose number of keys is among their words, which clients ask COMMAND GETKEYS about.
pub(crate) fn same_keys(name: &[u8]) -> Option<&'static [u8]> {
    let like_eval = [&b"eval_ro"[..], b"evalsha_ro", b"fcall", b"fcall_ro"];
    like_eval.iter().any(|known| known.eq_ignore_ascii_case(name)).then_some(b"eval")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::find;

    #[test]
    fn no_absent_command_is_in_the_table_and_each_is_named_once() {
        let mut seen: Vec<&str> = Vec::new();
        for name in ABSENT.iter().flat_map(|(_, names)| names.split(' ')) {
            let (command, subcommand) = name.split_once('|').unwrap_or((name, ""));
            let spec = find(command.as_bytes()).map(|(_, spec)| spec);
            match subcommand {
                "" => assert!(spec.is_none(), "{name} is built"),
                subcommand => match spec {
                    Some(spec) => {
                        let built = spec.subcommand(subcommand.as_bytes());
                        assert!(built.is_none(), "{name} is built");
                    }
                    None => assert!(reason(command.as_bytes()).is_some(), "{command} is unknown"),
                },
            }
            assert!(!seen.contains(&name), "{name} is named twice");
            seen.push(name);
        }
        assert!(reason(b"hSet").is_some_and(|reason| reason.contains("hashes")));
        assert!(reason(b"FT.SEARCH").is_some() && reason(b"nosuchcommand").is_none());
    }
}
