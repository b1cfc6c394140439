//! EVAL and EVALSHA before they run: finds the known script, and checks the permissions of the
//! commands that it calls.

use crate::command::{CommandId, Spec, find};
use crate::error::{CommandError, Result};
use crate::handlers::{NOT_KNOWN, count_keys};
use crate::resp::request::Args;
use crate::scripts::Known;
use crate::session::{Moment, Refused, Session};
use bytes::Bytes;
use softflash_store::Store;

/// Letters of a SHA-1 in hexadecimal.
const DIGEST_LETTERS: usize = 40;

/// The error on which clients send the text.
const NOT_LOADED: CommandError =
    CommandError::Known("NOSCRIPT No matching script. Please use EVAL.");

impl Session {
    /// Replaces the script of EVAL and EVALSHA by the name of the known one; other commands stay
    /// unchanged.
    pub(crate) fn name_script(&self, store: &Store, spec: &Spec, args: &mut Args) -> Result<()> {
        if !matches!(spec.id, CommandId::Eval | CommandId::Evalsha) {
            return Ok(());
        }
        let is_digest = spec.id == CommandId::Evalsha;
        if is_digest && args.get(1).is_some_and(|digest| digest.len() != DIGEST_LETTERS) {
            return Err(NOT_LOADED);
        }
        count_keys(args)?;
        let scripts = &self.context.scripts;
        let Some(script) = args.get_mut(1) else { return Err(NOT_KNOWN) };
        let known = match is_digest {
            true => scripts.with_digest(script).ok_or(NOT_LOADED),
            false => scripts.load(script).map(|(_, known)| known).ok_or(NOT_KNOWN),
        }?;
        *script = Bytes::from_static(known.name.as_bytes());
        Ok(self.permit_calls(store, spec, args, self.moment())?)
    }

    /// Returns, and logs, why the client may not run one of the commands that a known script calls.
    pub(crate) fn permit_calls(
        &self,
        store: &Store,
        spec: &Spec,
        args: &[Bytes],
        moment: Moment,
    ) -> Result<(), Refused> {
        let is_script = matches!(spec.id, CommandId::Eval | CommandId::Evalsha);
        let known = args.get(1).filter(|_| is_script).and_then(|name| Known::named(name));
        let Some(known) = known.filter(|_| !self.identity.is_free()) else { return Ok(()) };
        for name in known.calls {
            let Some((index, called)) = find(name.as_bytes()) else { continue };
            for key in spec.keys_of(args) {
                let words = [Bytes::from_static(name.as_bytes()), key.clone()];
                self.permit(store, called, (index, None), &words, moment)?;
            }
        }
        Ok(())
    }
}
