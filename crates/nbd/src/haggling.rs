//! Options and their answers, and the state that they change.

use crate::block_status::{CONTEXT, CONTEXT_ID};
use crate::error::CloseReason;
use crate::export::{Export, Exports, LookupError};
use crate::option_data::{ContextRequest, InfoRequest};
use crate::option_reply::{Refusal, put_context, put_info, put_result, put_server};
use crate::session::Session;
use crate::tls::TlsMode;
use crate::wire::{opt, rep, string};

const ZEROES: [u8; 124] = [0; 124];
const NEEDS_TLS: Refusal = Refusal::new(rep::ERR_TLS_REQD, "TLS is required");
const UNKNOWN: Refusal = Refusal::new(rep::ERR_UNKNOWN, "no such export");
const NO_DATA: Refusal = Refusal::invalid("this option has no data");
const TOO_LONG: Refusal = Refusal::new(rep::ERR_TOO_BIG, "the data of the option are too long");
const MALFORMED: Refusal = Refusal::invalid("malformed data");

/// The state of a negotiation, as far as options change it.
#[derive(Debug, Default)]
pub(crate) struct Haggling {
    tls: TlsMode,
    has_tls: bool,
    pub(crate) fixed_newstyle: bool,
    pub(crate) no_zeroes: bool,
    pub(crate) shutting_down: bool,
    structured: bool,
    /// The export for which the client has selected the context, by the name that it used.
    context_of: Option<String>,
    /// The last option, if it gave information.
    informed: Option<Informed>,
}

/// What a client has been told about an export.
#[derive(Debug)]
struct Informed {
    name: String,
    wanted: Vec<u16>,
    export: Export,
}

/// What follows an answer.
#[derive(Debug)]
pub(crate) enum Outcome {
    NextOption,
    StartTls,
    Begin(Session),
    Close(CloseReason),
}

type Answer = Result<Outcome, Refusal>;

impl Haggling {
    pub(crate) fn new(tls: TlsMode) -> Haggling {
        Haggling { tls, ..Haggling::default() }
    }

    /// TLS has begun: nothing that was agreed before counts, because anyone may have said it.
    pub(crate) fn begin_tls(&mut self) {
        let Haggling { tls, fixed_newstyle, no_zeroes, shutting_down, .. } = *self;
        *self = Haggling {
            tls,
            has_tls: true,
            fixed_newstyle,
            no_zeroes,
            shutting_down,
            ..Haggling::default()
        };
    }

    /// Answers an option. Data that were too long are missing.
    pub(crate) fn answer(
        &mut self,
        option: u32,
        data: Option<&[u8]>,
        exports: &impl Exports,
        output: &mut Vec<u8>,
    ) -> Outcome {
        let informed = self.informed.take();
        if option == opt::EXPORT_NAME {
            return self.export_name(data, exports, output);
        }
        if !self.fixed_newstyle {
            return Outcome::Close(CloseReason::NotFixedNewstyle(option));
        }
        if option == opt::ABORT {
            put_result(option, Ok(()), output);
            return Outcome::Close(CloseReason::Aborted);
        }
        if option == opt::SET_META_CONTEXT {
            // Also if it fails.
            self.context_of = None;
        }
        let answer = match self.refusal(option) {
            Some(refusal) => Err(refusal),
            None => self.dispatch(option, data, informed, exports, output),
        };
        match answer {
            Ok(outcome) => {
                put_result(option, Ok(()), output);
                outcome
            }
            Err(refusal) => {
                put_result(option, Err(refusal), output);
                Outcome::NextOption
            }
        }
    }

    /// Why an option is refused whatever its data are.
    fn refusal(&self, option: u32) -> Option<Refusal> {
        if self.tls == TlsMode::Required && !self.has_tls && option != opt::STARTTLS {
            Some(NEEDS_TLS)
        } else if self.shutting_down {
            Some(Refusal::new(rep::ERR_SHUTDOWN, "the server is being shut down"))
        } else {
            None
        }
    }

    fn dispatch(
        &mut self,
        option: u32,
        data: Option<&[u8]>,
        informed: Option<Informed>,
        exports: &impl Exports,
        output: &mut Vec<u8>,
    ) -> Answer {
        let is_empty = data.is_some_and(<[u8]>::is_empty);
        match option {
            opt::STARTTLS => self.start_tls(is_empty),
            opt::LIST | opt::STRUCTURED_REPLY if !is_empty => Err(NO_DATA),
            opt::LIST => self.list(exports, output),
            opt::STRUCTURED_REPLY => {
                self.structured = true;
                Ok(Outcome::NextOption)
            }
            opt::INFO | opt::GO => {
                self.inform(option, data.ok_or(TOO_LONG)?, informed, exports, output)
            }
            opt::LIST_META_CONTEXT | opt::SET_META_CONTEXT => {
                self.contexts(option, data.ok_or(TOO_LONG)?, exports, output)
            }
            _ => Err(Refusal::new(rep::ERR_UNSUP, "the option is not supported")),
        }
    }

    fn start_tls(&self, is_empty: bool) -> Answer {
        match self.tls {
            _ if self.has_tls => Err(Refusal::invalid("TLS is running")),
            TlsMode::Off => Err(Refusal::new(rep::ERR_POLICY, "this server does not use TLS")),
            _ if !is_empty => Err(NO_DATA),
            _ => Ok(Outcome::StartTls),
        }
    }

    fn list(&self, exports: &impl Exports, output: &mut Vec<u8>) -> Answer {
        let Some(names) = exports.names() else {
            return Err(Refusal::new(rep::ERR_POLICY, "exports are not listed"));
        };
        let valid = names.iter().filter(|name| string(name.as_bytes()).is_some());
        for name in valid.filter(|name| self.find(name, exports).is_ok()) {
            put_server(opt::LIST, name, output);
        }
        Ok(Outcome::NextOption)
    }

    fn inform(
        &mut self,
        option: u32,
        data: &[u8],
        informed: Option<Informed>,
        exports: &impl Exports,
        output: &mut Vec<u8>,
    ) -> Answer {
        let InfoRequest { name, wanted } = InfoRequest::parse(data).ok_or(MALFORMED)?;
        let found = self.find(name, exports)?;
        // Right after the information, the same question has the same answer.
        let is_same =
            |it: &Informed| it.name == name && it.wanted == wanted && it.export.id == found.id;
        let export = match informed.filter(is_same) {
            Some(informed) => informed.export,
            None => found,
        };
        put_info(option, &export, self.structured, &wanted, output);
        if option == opt::GO {
            return Ok(Outcome::Begin(self.session(name, export)));
        }
        self.informed = Some(Informed { name: name.to_owned(), wanted, export });
        Ok(Outcome::NextOption)
    }

    fn contexts(
        &mut self,
        option: u32,
        data: &[u8],
        exports: &impl Exports,
        output: &mut Vec<u8>,
    ) -> Answer {
        if !self.structured {
            return Err(Refusal::invalid("structured replies must be negotiated first"));
        }
        let ContextRequest { name, queries } = ContextRequest::parse(data).ok_or(MALFORMED)?;
        // The need of TLS must not be told in reply to these options.
        let hidden = |refusal: Refusal| match refusal.reply {
            rep::ERR_TLS_REQD => UNKNOWN,
            _ => refusal,
        };
        self.find(name, exports).map_err(hidden)?;
        let lists = option == opt::LIST_META_CONTEXT;
        let is_all = lists && (queries.is_empty() || queries.contains(&"base:"));
        if is_all || queries.contains(&CONTEXT) {
            put_context(option, if lists { 0 } else { CONTEXT_ID }, CONTEXT, output);
            if !lists {
                self.context_of = Some(name.to_owned());
            }
        }
        Ok(Outcome::NextOption)
    }

    /// The old way to choose an export, without a reply for errors.
    fn export_name(
        &self,
        data: Option<&[u8]>,
        exports: &impl Exports,
        output: &mut Vec<u8>,
    ) -> Outcome {
        let name = data.and_then(string);
        let needs_tls = self.tls == TlsMode::Required && !self.has_tls;
        let name = name.filter(|_| !needs_tls && !self.shutting_down);
        let found = name.and_then(|name| Some((name, self.find(name, exports).ok()?)));
        let Some((name, export)) = found else {
            return Outcome::Close(CloseReason::ExportRefused);
        };
        output.extend(export.size_bytes.to_be_bytes());
        output.extend(export.transmission_flags(self.structured).to_be_bytes());
        if !self.no_zeroes {
            output.extend(ZEROES);
        }
        Outcome::Begin(self.session(name, export))
    }

    fn session(&self, name: &str, export: Export) -> Session {
        let is_selected = self.context_of.as_deref() == Some(name);
        let allocation_context = is_selected.then_some(CONTEXT_ID);
        Session { export, structured: self.structured, allocation_context }
    }

    /// An export as this client may see it now.
    fn find(&self, name: &str, exports: &impl Exports) -> Result<Export, Refusal> {
        let hides = self.tls == TlsMode::Optional && self.fixed_newstyle && !self.has_tls;
        match exports.lookup(name) {
            Ok(export) if !export.tls_required || self.has_tls => Ok(export),
            Err(LookupError::Policy) => {
                Err(Refusal::new(rep::ERR_POLICY, "the export is not for this client"))
            }
            // Without TLS, names of exports that require it cannot be found out by trying.
            Ok(_) | Err(LookupError::Unknown | LookupError::NotServed(_)) if hides => {
                Err(Refusal::new(rep::ERR_TLS_REQD, "the export does not exist or requires TLS"))
            }
            Ok(_) => Err(Refusal::new(rep::ERR_POLICY, "the export requires TLS")),
            Err(LookupError::Unknown) => Err(UNKNOWN),
            Err(LookupError::NotServed(reason)) => {
                Err(Refusal { reply: rep::ERR_UNKNOWN, reason: reason.into() })
            }
        }
    }
}
