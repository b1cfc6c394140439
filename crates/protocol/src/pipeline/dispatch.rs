//! From a request to a runnable command: looks the command up and checks whether it may run.

use crate::command::{Command, Flags, Scope, Spec, find, suppressed};
use crate::error::CommandError;
use crate::handlers::{Handler, handler_of, unknown_command, unknown_subcommand};
use crate::resp::reply::Reply;
use crate::resp::request::{Args, Request};
use crate::session::{Session, Stopwatch};
use crate::shared::forgery::is_http;
use softflash_store::Store;

/// A request after the checks.
pub(crate) enum Admitted {
    /// The reply is known.
    Answer(Reply),
    /// To be run on the entries of its keys.
    Keyed(Command),
    /// To be run on the whole keyspace.
    Keyspace(Command),
    Watch(Command),
    /// To be run once all commands before it have been answered.
    Waiting(Command),
    Exec(Command),
}

impl Admitted {
    /// Whether all commands before it have to be answered first.
    pub fn runs_alone(&self, store: &Store) -> bool {
        match self {
            Admitted::Answer(_) | Admitted::Waiting(_) => false,
            Admitted::Keyed(command) => match command.scope(store.layout()) {
                Scope::One(_) => false,
                Scope::Several(_) => true,
            },
            Admitted::Keyspace(_) | Admitted::Watch(_) | Admitted::Exec(_) => true,
        }
    }
}

impl Session {
    /// Checks a request in Redis' order, queues it in a transaction, and runs commands that do not
    /// need the store.
    pub(crate) fn admit(
        &mut self,
        store: &Store,
        request: Request,
        watch: &Stopwatch<'_>,
    ) -> Admitted {
        if request.args.first().is_some_and(|name| is_http(name)) {
            return self.refuse_http(store);
        }
        let admitted = self.admit_command(store, request, watch);
        // The commands of a transaction may change the mode.
        if !matches!(admitted, Admitted::Exec(_)) {
            self.reply_mode.end_command();
        }
        admitted
    }

    /// Closes the connection: whatever follows is the rest of a request of HTTP.
    fn refuse_http(&mut self, store: &Store) -> Admitted {
        self.context.forgery_log.tell(&self.client.address, store.runtime().now());
        self.close();
        Admitted::Answer(Reply::None)
    }

    fn admit_command(
        &mut self,
        store: &Store,
        request: Request,
        watch: &Stopwatch<'_>,
    ) -> Admitted {
        let silent = self.reply_mode.is_silent();
        let received = request.admitted_bytes;
        let mut args = request.args;
        let refused = request.refused.map(|text| CommandError::Quoting(text.into_bytes()));
        let checked = refused.map_or(Ok(()), Err).and_then(|()| self.check(store, &args));
        let checked = checked.and_then(|spec| {
            // Redis runs the script that it then does not find, so the slow log has it.
            self.name_script(store, spec, &mut args).inspect_err(|_| watch.lap(spec, &args))?;
            Ok(spec)
        });
        let spec = match checked {
            Ok(spec) => spec,
            Err(refused) => {
                let reply = Reply::Error(self.refuse(&args, refused));
                return Admitted::Answer(if silent { Reply::None } else { reply });
            }
        };
        if let Some(transaction) = &mut self.transaction
            && !spec.flags.has(Flags::UNQUEUED)
        {
            let name = args.first().cloned();
            let reply = match transaction.queue(Command { spec, args, silent: false }, received) {
                Ok(()) => Reply::Status("QUEUED"),
                Err(error) => Reply::Error(self.refuse(&name.into_iter().collect(), error)),
            };
            return Admitted::Answer(if silent { Reply::None } else { reply });
        }
        if spec.flags.has(Flags::READONLY) && self.client.has_left() {
            return Admitted::Answer(Reply::Error(CommandError::HAS_LEFT));
        }
        match handler_of(spec) {
            // It is counted when it runs.
            Handler::Waiting(_) => return Admitted::Waiting(Command { spec, args, silent }),
            _ => self.tally.add(spec.id),
        }
        match handler_of(spec) {
            Handler::Keyed(_) => Admitted::Keyed(Command { spec, args, silent }),
            Handler::Keyspace(_) => Admitted::Keyspace(Command { spec, args, silent }),
            Handler::Watch => Admitted::Watch(Command { spec, args, silent }),
            Handler::Exec => Admitted::Exec(Command { spec, args, silent }),
            Handler::Session(run) => {
                let reply = Reply::from(run(self, store, &args));
                watch.lap(spec, &args);
                self.context.note_reply(store, spec, &reply);
                let is_silent = self.reply_mode.is_silent();
                Admitted::Answer(if is_silent { suppressed(reply) } else { reply })
            }
            Handler::Waiting(_) | Handler::Container => Admitted::Answer(Reply::None),
        }
    }

    /// A command that is refused before it is queued aborts the transaction; an EXEC that is
    /// refused ends it.
    fn refuse(&mut self, args: &Args, refused: CommandError) -> CommandError {
        let command = args.first().and_then(|name| find(name)).map(|(_, spec)| spec);
        let subcommand = command.zip(args.get(1)).and_then(|(spec, name)| spec.subcommand(name));
        if command.is_some_and(|spec| matches!(handler_of(spec), Handler::Exec)) {
            self.transaction = None;
            self.watched.clear();
            let text = refused.text();
            let text = text.strip_prefix(b"ERR ").unwrap_or(&text);
            let reason: &[u8] = b"EXECABORT Transaction discarded because of: ";
            let aborted = CommandError::quoting(&[reason, text]);
            self.context.note_refused(command, &aborted);
            return aborted;
        }
        self.context.note_refused(subcommand.or(command), &refused);
        if let Some(transaction) = &mut self.transaction {
            transaction.spoil();
        }
        refused
    }

    /// The command, if it exists, has enough arguments and is allowed now.
    fn check(&mut self, store: &Store, args: &Args) -> Result<&'static Spec, CommandError> {
        let name = args.first().map(|name| &name[..]).unwrap_or_default();
        let Some((index, mut spec)) = find(name) else { return Err(unknown_command(args)) };
        let mut place = None;
        if let (Some(subcommand), false) = (args.get(1), spec.subcommands.is_empty()) {
            place = spec.subcommand_place(subcommand);
            spec = place
                .and_then(|place| spec.subcommands.get(place))
                .ok_or_else(|| unknown_subcommand(spec, subcommand))?;
        }
        self.last_command = spec.name;
        if !spec.takes(args.len()) {
            return Err(CommandError::WrongArity(spec.name));
        }
        if !self.identity.is_free() {
            self.permit(store, spec, (index, place), args, self.moment())?;
        }
        if self.transaction.is_some() && is_alone(spec, args) {
            return Err(CommandError::Known("ERR Command not allowed inside a transaction"));
        }
        Ok(spec)
    }
}

/// Whether the command is not allowed in a transaction.
fn is_alone(spec: &Spec, args: &Args) -> bool {
    let takes_long = match handler_of(spec) {
        Handler::Waiting(waiting) => (waiting.takes_long)(args),
        _ => false,
    };
    takes_long || spec.flags.has(Flags::NO_MULTI)
}
