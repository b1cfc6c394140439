//! What all figures have in common.

use crate::table::Table;

/// A picture with its words and its numbers.
pub(crate) trait Figure {
    /// What it shows.
    fn title(&self) -> &str;
    /// What to know about it; may be empty.
    fn note(&self) -> &str;
    /// The picture, as SVG that can stand alone.
    fn svg(&self) -> String;
    /// Every number in it.
    fn data(&self) -> Table;
}
