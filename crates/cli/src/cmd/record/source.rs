//! What a recording is of.

use super::tape::Tape;
use serde::Serialize;
use std::io::{self, Write};

/// A source of events, and how they become requests of a trace.
pub trait Source {
    /// An event that the server has recorded.
    type Event;
    /// What the summary has beside the counts of requests.
    type Figures: Serialize;

    /// The volume, unless it is a recording of keys.
    fn volume(&self) -> Option<&str>;

    /// The event of a line, if it is one.
    fn event(line: &str) -> Option<Self::Event>;

    /// Writes the requests of an event.
    fn put<W: Write>(&mut self, event: &Self::Event, tape: &mut Tape<W>) -> io::Result<()>;

    /// The figures at the end.
    fn figures(self) -> Self::Figures;

    /// What a person is told at the end: of what the requests are, and further lines.
    fn tell(&self) -> (String, Vec<String>);
}
