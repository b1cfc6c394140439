//! Random commands of two clients, and the rules for comparing their replies.

mod values;

use crate::support::frame::Frame;
use softflash_base::random::Rng;

/// How replies may differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// Not at all.
    Exact,
    /// Lists may be in any order.
    Unordered,
    /// Numbers are times and may differ by at most this.
    Within(i64),
    /// Any key, or null on both sides.
    AnyKey,
    /// Only the types must be the same.
    SameShape,
    /// The replies of a transaction, one rule each.
    Each(Vec<Rule>),
}

impl Rule {
    /// Whether replies with different bytes are equal under one of the rules.
    pub fn all_accept(rules: &[Rule], theirs: Frame, ours: Frame) -> bool {
        rules.iter().any(|rule| rule.accepts(&theirs, &ours))
    }

    fn accepts(&self, theirs: &Frame, ours: &Frame) -> bool {
        match self {
            Rule::Exact => theirs == ours,
            Rule::Unordered => theirs.clone().sorted() == ours.clone().sorted(),
            Rule::Within(tolerance) => match (theirs.integer(), ours.integer()) {
                (Some(theirs), Some(ours)) => (theirs - ours).abs() <= *tolerance,
                _ => theirs == ours,
            },
            Rule::AnyKey => {
                theirs == ours || matches!((theirs, ours), (Frame::Bulk(..), Frame::Bulk(..)))
            }
            Rule::SameShape => match (theirs, ours) {
                (Frame::Line(a, _), Frame::Line(b, _)) | (Frame::Bulk(a, _), Frame::Bulk(b, _)) => {
                    a == b
                }
                (Frame::List(a, theirs), Frame::List(b, ours)) => {
                    a == b
                        && theirs.len() == ours.len()
                        && theirs.iter().zip(ours).all(|(theirs, ours)| self.accepts(theirs, ours))
                }
                _ => theirs == ours,
            },
            Rule::Each(rules) => match (theirs, ours) {
                (Frame::List(b'*', theirs), Frame::List(b'*', ours)) => {
                    theirs.len() == rules.len()
                        && ours.len() == rules.len()
                        && theirs.iter().zip(ours).zip(rules).all(|((theirs, ours), rule)| {
                            theirs == ours || rule.accepts(theirs, ours)
                        })
                }
                _ => theirs == ours,
            },
        }
    }
}

/// The rules for the reply of a command.
pub fn rules_of(command: &[Vec<u8>]) -> Vec<Rule> {
    let name = command.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
    let rule = match &name[..] {
        b"KEYS" => Rule::Unordered,
        b"TTL" | b"EXPIRETIME" => Rule::Within(1),
        b"PTTL" | b"PEXPIRETIME" => Rule::Within(1000),
        b"RANDOMKEY" => Rule::AnyKey,
        b"TIME" | b"HELLO" => Rule::SameShape,
        b"CLIENT" if command.get(1).is_some_and(|sub| sub.eq_ignore_ascii_case(b"ID")) => {
            Rule::SameShape
        }
        _ => Rule::Exact,
    };
    vec![rule]
}

#[derive(Default)]
struct Client {
    /// The rules of the commands queued since MULTI.
    queued: Option<Vec<Rule>>,
    watches: bool,
}

/// A generator of commands.
pub struct Generator {
    rng: Rng,
    now_ms: u64,
    clients: [Client; 2],
    /// Keys may have expired; Redis counts some expired keys.
    lapses: bool,
    rules: Vec<Rule>,
}

impl Generator {
    pub fn new(seed: u64, now_ms: u64, lapses: bool) -> Generator {
        let rng = Rng::seeded(seed);
        let clients = Default::default();
        Generator { rng, now_ms, clients, lapses, rules: Vec::new() }
    }

    /// The rules for the reply of the last command.
    pub fn rules(&self) -> Vec<Rule> {
        self.rules.clone()
    }

    /// The next command, and which client sends it.
    pub fn next(&mut self) -> (usize, Vec<Vec<u8>>) {
        let client = self.rng.below(2) as usize;
        let mut command = self.command();
        if self.rng.chance(0.02) {
            self.damage(&mut command);
        }
        if self.rng.chance(0.3)
            && let Some(name) = command.first_mut()
        {
            name.make_ascii_lowercase();
        }
        self.note(client, &command);
        (client, command)
    }

    /// Makes a mistake: one argument too many, too few, or wrong.
    fn damage(&mut self, command: &mut Vec<Vec<u8>>) {
        // Never a command that empties the store or ends the connection.
        match self.rng.below(3) {
            0 => {
                let word = self.junk();
                command.push(word);
            }
            1 if command.len() > 1 => {
                command.pop();
            }
            _ if command.len() > 1 => {
                let place = 1 + self.rng.below(command.len() as u64 - 1) as usize;
                command[place] = self.junk();
            }
            _ => command[0].push(b'x'),
        }
    }

    /// Updates the state that the rules depend on.
    fn note(&mut self, client: usize, command: &[Vec<u8>]) {
        let name = command[0].to_ascii_uppercase();
        let mut rule = rules_of(command).remove(0);
        if name == b"DBSIZE" && self.lapses {
            rule = Rule::Within(i64::MAX / 2);
        }
        let state = &mut self.clients[client];
        self.rules = vec![rule.clone()];
        match (&name[..], &mut state.queued) {
            (b"MULTI", None) if command.len() == 1 => state.queued = Some(Vec::new()),
            (b"EXEC", Some(rules)) if command.len() == 1 => {
                self.rules = vec![Rule::Each(std::mem::take(rules))];
                *state = Client::default();
            }
            // A refused EXEC also ends the transaction.
            (b"EXEC", Some(_)) => *state = Client::default(),
            (b"DISCARD", Some(_)) if command.len() == 1 => *state = Client::default(),
            (b"RESET", _) if command.len() == 1 => *state = Client::default(),
            (b"WATCH", None) if command.len() > 1 => state.watches = true,
            (b"UNWATCH", None) if command.len() == 1 => state.watches = false,
            (b"MULTI" | b"EXEC" | b"DISCARD" | b"RESET" | b"WATCH", _) => {}
            (_, Some(rules)) => {
                // A refused command aborts the transaction, so its rules do not matter.
                rules.push(rule.clone());
                self.rules.push(Rule::Exact);
            }
            _ => {}
        }
    }

    fn nobody_watches(&self) -> bool {
        self.clients.iter().all(|client| !client.watches)
    }
}
