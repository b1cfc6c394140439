//! The activities of dies and buses, for charts.

use serde::{Deserialize, Serialize};

/// The activity of a die, or of the bus for that die. Result files name a sense after its purpose:
/// `read`.
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
    /// The bus moves the die's data, either way.
    Transfer,
}
