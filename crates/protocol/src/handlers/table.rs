//! Maps each command to its handler. Names, arity, flags and keys are in [`crate::command`].

use crate::command::{CommandId, Spec};
use crate::handlers::handler::{
    Handler, Load, blind, keyed, keys_only, loading, waiting, waiting_if,
};
use crate::handlers::{
    acl, client, config, connection, counter, debug, expire, flash, flash_set, introspection,
    keyspace, multi_key, object, range, record, rename, script, server, set, slowlog, transaction,
    volume,
};

/// The handlers, in the order of [`CommandId::ALL`].
static HANDLERS: [Handler; CommandId::ALL.len()] = handlers();

const fn handlers() -> [Handler; CommandId::ALL.len()] {
    let mut all = [Handler::Container; CommandId::ALL.len()];
    let mut number = 0;
    while number < all.len() {
        all[number] = of(CommandId::ALL[number]);
        number += 1;
    }
    all
}

/// The handler of a command.
pub(crate) fn handler_of(spec: &Spec) -> &'static Handler {
    HANDLERS.get(spec.id as usize).unwrap_or(&Handler::Container)
}

const fn of(id: CommandId) -> Handler {
    match id {
        CommandId::Acl => Handler::Container,
        CommandId::AclCat => Handler::Session(acl::cat),
        CommandId::AclDeluser => Handler::Session(acl::deluser),
        CommandId::AclDryrun => Handler::Session(acl::dryrun),
        CommandId::AclGenpass => Handler::Session(acl::genpass),
        CommandId::AclGetuser => Handler::Session(acl::getuser),
        CommandId::AclHelp => Handler::Session(acl::help),
        CommandId::AclList => Handler::Session(acl::list),
        CommandId::AclLoad => waiting(acl::load),
        CommandId::AclLog => Handler::Session(acl::log),
        CommandId::AclSave => waiting(acl::save),
        CommandId::AclSetuser => waiting(acl::setuser),
        CommandId::AclUsers => Handler::Session(acl::users),
        CommandId::AclWhoami => Handler::Session(acl::whoami),
        CommandId::Append => keyed(range::append),
        CommandId::Auth => waiting(connection::auth),
        CommandId::Client => Handler::Container,
        CommandId::ClientGetname => Handler::Session(client::getname),
        CommandId::ClientHelp => Handler::Session(client::help),
        CommandId::ClientId => Handler::Session(client::id),
        CommandId::ClientInfo => Handler::Session(client::info),
        CommandId::ClientKill => Handler::Session(client::kill),
        CommandId::ClientList => Handler::Session(client::list),
        CommandId::ClientNoEvict => Handler::Session(client::on_or_off),
        CommandId::ClientNoTouch => Handler::Session(client::on_or_off),
        CommandId::ClientReply => Handler::Session(client::reply),
        CommandId::ClientSetinfo => Handler::Session(client::setinfo),
        CommandId::ClientSetname => Handler::Session(client::setname),
        CommandId::Command => Handler::Session(introspection::command),
        CommandId::CommandCount => Handler::Session(introspection::count),
        CommandId::CommandDocs => Handler::Session(introspection::docs),
        CommandId::CommandGetkeys => Handler::Session(introspection::getkeys),
        CommandId::CommandHelp => Handler::Session(introspection::help),
        CommandId::CommandInfo => Handler::Session(introspection::info),
        CommandId::CommandList => Handler::Session(introspection::list),
        CommandId::Config => Handler::Container,
        CommandId::ConfigGet => Handler::Session(config::get),
        CommandId::ConfigHelp => Handler::Session(config::help),
        CommandId::ConfigResetstat => Handler::Keyspace(config::resetstat),
        CommandId::ConfigSet => Handler::Session(config::set),
        CommandId::Copy => keyed(rename::copy),
        CommandId::Dbsize => Handler::Keyspace(keyspace::dbsize),
        CommandId::Debug => waiting(debug::debug),
        CommandId::Decr => keyed(counter::decr),
        CommandId::Decrby => keyed(counter::decrby),
        CommandId::Del => keys_only(multi_key::del),
        CommandId::Discard => Handler::Session(transaction::discard),
        CommandId::Echo => Handler::Session(connection::echo),
        CommandId::Eval => keyed(script::eval),
        CommandId::Evalsha => keyed(script::eval),
        CommandId::Exec => Handler::Exec,
        CommandId::Exists => keys_only(multi_key::exists),
        CommandId::Expire => keyed(expire::expire),
        CommandId::Expireat => keyed(expire::expireat),
        CommandId::Expiretime => keys_only(expire::expiretime),
        CommandId::FlashGrow => waiting(flash_set::grow),
        CommandId::FlashRecord => Handler::Container,
        CommandId::FlashRecordHelp => Handler::Session(record::help),
        CommandId::FlashRecordRead => Handler::Session(record::read),
        CommandId::FlashRecordStart => waiting(record::start),
        CommandId::FlashRecordStop => Handler::Session(record::stop),
        CommandId::FlashSet => Handler::Container,
        CommandId::FlashSetCreate => waiting(flash_set::change),
        CommandId::FlashSetDelete => waiting(flash_set::change),
        CommandId::FlashSetHelp => Handler::Session(flash_set::help),
        CommandId::FlashSetList => Handler::Keyspace(flash_set::list),
        CommandId::FlashSetPair => waiting(flash_set::change),
        CommandId::FlashSetResize => waiting(flash_set::change),
        CommandId::FlashSetWindow => waiting(flash_set::change),
        CommandId::FlashStats => Handler::Keyspace(flash::stats),
        CommandId::FlashUnits => Handler::Keyspace(flash::units),
        CommandId::FlashVolume => Handler::Container,
        CommandId::FlashVolumeClone => waiting(volume::change),
        CommandId::FlashVolumeCreate => waiting(volume::change),
        CommandId::FlashVolumeDelete => waiting(volume::change),
        CommandId::FlashVolumeDeletesnapshot => waiting(volume::change),
        CommandId::FlashVolumeHelp => Handler::Session(volume::help),
        CommandId::FlashVolumeList => waiting(volume::list),
        CommandId::FlashVolumeMove => waiting(volume::change),
        CommandId::FlashVolumePromote => waiting(volume::change),
        CommandId::FlashVolumeRename => waiting(volume::change),
        CommandId::FlashVolumeResize => waiting(volume::change),
        CommandId::FlashVolumeRollback => waiting(volume::change),
        CommandId::FlashVolumeSet => waiting(volume::change),
        CommandId::FlashVolumeSnapshot => waiting(volume::change),
        CommandId::Flushall => blind(keyspace::flush),
        CommandId::Flushdb => blind(keyspace::flush),
        CommandId::Get => keyed(set::get),
        CommandId::Getdel => keyed(set::getdel),
        CommandId::Getex => keyed(set::getex),
        CommandId::Getrange => keyed(range::getrange),
        CommandId::Getset => keyed(set::getset),
        CommandId::Hello => waiting_if(connection::logs_in, connection::hello),
        CommandId::Incr => keyed(counter::incr),
        CommandId::Incrby => keyed(counter::incrby),
        CommandId::Incrbyfloat => keyed(counter::incrbyfloat),
        CommandId::Info => Handler::Keyspace(server::info),
        CommandId::Keys => Handler::Keyspace(keyspace::keys),
        CommandId::Memory => Handler::Container,
        CommandId::MemoryHelp => Handler::Session(object::memory_help),
        CommandId::MemoryUsage => keyed(object::usage),
        CommandId::Mget => keyed(multi_key::mget),
        CommandId::Mset => blind(multi_key::mset),
        CommandId::Msetnx => keys_only(multi_key::msetnx),
        CommandId::Multi => Handler::Session(transaction::multi),
        CommandId::Object => Handler::Container,
        CommandId::ObjectEncoding => keyed(object::encoding),
        CommandId::ObjectHelp => Handler::Session(object::object_help),
        CommandId::ObjectRefcount => keys_only(object::refcount),
        CommandId::Persist => keyed(expire::persist),
        CommandId::Pexpire => keyed(expire::pexpire),
        CommandId::Pexpireat => keyed(expire::pexpireat),
        CommandId::Pexpiretime => keys_only(expire::pexpiretime),
        CommandId::Ping => Handler::Session(connection::ping),
        CommandId::Psetex => blind(set::psetex),
        CommandId::Pttl => keys_only(expire::pttl),
        CommandId::Quit => Handler::Session(connection::quit),
        CommandId::Randomkey => Handler::Keyspace(keyspace::randomkey),
        CommandId::Rename => keyed(rename::rename),
        CommandId::Renamenx => keyed(rename::renamenx),
        CommandId::Reset => Handler::Session(connection::reset),
        CommandId::Scan => Handler::Keyspace(keyspace::scan),
        CommandId::Script => Handler::Container,
        CommandId::ScriptExists => Handler::Session(script::exists),
        CommandId::ScriptFlush => Handler::Session(script::flush),
        CommandId::ScriptHelp => Handler::Session(script::help),
        CommandId::ScriptKill => Handler::Session(script::kill),
        CommandId::ScriptLoad => Handler::Session(script::load),
        CommandId::Select => Handler::Session(connection::select),
        CommandId::Set => loading(Load::If(set::needs_old), set::set),
        CommandId::Setex => blind(set::setex),
        CommandId::Setnx => keys_only(set::setnx),
        CommandId::Setrange => keyed(range::setrange),
        CommandId::Shutdown => Handler::Session(server::shutdown),
        CommandId::Slowlog => Handler::Container,
        CommandId::SlowlogGet => Handler::Session(slowlog::get),
        CommandId::SlowlogHelp => Handler::Session(slowlog::help),
        CommandId::SlowlogLen => Handler::Session(slowlog::len),
        CommandId::SlowlogReset => Handler::Session(slowlog::reset),
        CommandId::Strlen => keyed(set::strlen),
        CommandId::Substr => keyed(range::getrange),
        CommandId::Time => Handler::Session(server::time),
        CommandId::Touch => keys_only(multi_key::exists),
        CommandId::Ttl => keys_only(expire::ttl),
        CommandId::Type => keys_only(rename::type_of),
        CommandId::Unlink => keys_only(multi_key::del),
        CommandId::Unwatch => Handler::Session(transaction::unwatch),
        CommandId::Watch => Handler::Watch,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::COMMANDS;

    #[test]
    fn every_command_has_a_number_of_its_own_and_a_handler() {
        let commands = COMMANDS.iter().flat_map(|spec| spec.subcommands.iter().chain([spec]));
        let mut seen = Vec::new();
        for spec in commands {
            assert!(!seen.contains(&spec.id), "{}", spec.name);
            seen.push(spec.id);
            let does_nothing = matches!(handler_of(spec), Handler::Container);
            assert_eq!(does_nothing, spec.is_container, "{}", spec.name);
            assert_eq!(CommandId::ALL[spec.id as usize], spec.id, "{}", spec.name);
        }
        assert_eq!(seen.len(), CommandId::ALL.len());
    }
}
