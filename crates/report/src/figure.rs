//! The common parts of all figures.

use crate::table::Table;

/// A picture with its words and its numbers.
pub(crate) trait Figure {
    /// Its title.
    fn title(&self) -> &str;
    /// A note; may be empty.
    fn note(&self) -> &str;
    /// The picture, as SVG that can stand alone.
    fn svg(&self) -> String;
    /// Every number in it.
    fn data(&self) -> Table;
}
