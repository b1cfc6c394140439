//! The parts of a report.

use crate::bars::Bars;
use crate::figure::Figure;
use crate::gantt::Gantt;
use crate::heat::Heat;
use crate::html;
use crate::plot::Plot;
use crate::table::Table;

/// A report: a title, an introduction and sections.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    pub(crate) title: String,
    pub(crate) intro: String,
    pub(crate) sections: Vec<Section>,
}

/// A part of a report under a heading of its own.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Section {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) text: String,
    pub(crate) blocks: Vec<Block>,
}

/// A block of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// Paragraphs, separated by empty lines. Lines that begin with `- ` are items of a list; `code`
    /// is in backticks.
    Text(String),
    /// A table.
    Table(Table),
    /// Lines and marks over two axes.
    Plot(Plot),
    /// Activities over time, in rows.
    Gantt(Gantt),
    /// Bars of several parts.
    Bars(Bars),
    /// A grid of coloured cells.
    Heat(Heat),
}

impl Report {
    /// A report without sections.
    pub fn new(title: impl Into<String>) -> Report {
        Report { title: title.into(), ..Report::default() }
    }

    /// Its introduction, as in [`Block::Text`].
    #[must_use]
    pub fn intro(mut self, text: impl Into<String>) -> Report {
        self.intro = text.into();
        self
    }

    /// Adds a section.
    #[must_use]
    pub fn section(mut self, section: Section) -> Report {
        self.sections.push(section);
        self
    }

    /// The report as one file of HTML that needs nothing else.
    pub fn to_html(&self) -> String {
        html::page(self)
    }
}

impl Section {
    /// A section without content. `id` is the target of links; a duplicate gets a number.
    pub fn new(id: impl Into<String>, title: impl Into<String>) -> Section {
        Section { id: id.into(), title: title.into(), ..Section::default() }
    }

    /// Its introduction, as in [`Block::Text`].
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Section {
        self.text = text.into();
        self
    }

    /// Adds a block.
    #[must_use]
    pub fn block(mut self, block: impl Into<Block>) -> Section {
        self.blocks.push(block.into());
        self
    }
}

impl Block {
    /// The picture alone, for a file of its own; `None` for text and tables.
    pub fn to_svg(&self) -> Option<String> {
        self.figure().map(Figure::svg)
    }

    pub(crate) fn figure(&self) -> Option<&dyn Figure> {
        match self {
            Block::Text(_) | Block::Table(_) => None,
            Block::Plot(plot) => Some(plot),
            Block::Gantt(gantt) => Some(gantt),
            Block::Bars(bars) => Some(bars),
            Block::Heat(heat) => Some(heat),
        }
    }
}

impl From<&str> for Block {
    fn from(text: &str) -> Block {
        Block::Text(text.to_string())
    }
}

impl From<String> for Block {
    fn from(text: String) -> Block {
        Block::Text(text)
    }
}

impl From<Table> for Block {
    fn from(table: Table) -> Block {
        Block::Table(table)
    }
}

impl From<Plot> for Block {
    fn from(plot: Plot) -> Block {
        Block::Plot(plot)
    }
}

impl From<Gantt> for Block {
    fn from(gantt: Gantt) -> Block {
        Block::Gantt(gantt)
    }
}

impl From<Bars> for Block {
    fn from(bars: Bars) -> Block {
        Block::Bars(bars)
    }
}

impl From<Heat> for Block {
    fn from(heat: Heat) -> Block {
        Block::Heat(heat)
    }
}
