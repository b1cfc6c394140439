//! The activities of dies and buses, for charts.

use serde::{Deserialize, Serialize};

/// An activity of a die, or of the bus for that die. Result files call a sense `read`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    /// The cell array senses a page that is sent to the host.
    #[serde(rename = "read")]
    Sense,
    /// The cell array programs a page.
    Program,
    /// The cell array erases blocks.
    Erase,
    /// The cell array senses or programs a page that garbage collection moves.
    Move,
    /// The bus transfers data to or from the die.
    Transfer,
}
