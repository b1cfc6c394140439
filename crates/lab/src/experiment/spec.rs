//! The contents of an experiment's file; see `docs/laboratory.md`.

use super::published::Published;
use crate::theory::Law;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// An experiment: cells to run, rows to print of them.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// A description in one line.
    pub title: String,
    /// Where the figures that it reproduces are from.
    #[serde(default)]
    pub source: String,
    /// The text for the readers of the report.
    #[serde(default)]
    pub text: String,
    /// The seed unless another is given.
    #[serde(default = "one")]
    pub seed: u64,
    /// Runs of each cell with different seeds; rows are means over them.
    #[serde(default = "one_run")]
    #[schemars(range(min = 1, max = 1000))]
    pub replicates: u32,
    /// The cells.
    #[serde(rename = "group")]
    pub groups: Vec<Group>,
    /// Rows that are calculated from other rows.
    #[serde(default)]
    pub derived: Vec<Derived>,
    /// How rows are drawn.
    #[serde(default, rename = "plot")]
    pub plots: Vec<Plot>,
    /// The published figures, by the label of the row.
    #[serde(default)]
    pub paper: BTreeMap<String, Published>,
    /// The deviation from the published figure up to which a row agrees, as a share of the figure.
    #[serde(default = "five_percent")]
    pub tolerance: f64,
    /// The same for single rows, by label.
    #[serde(default)]
    pub tolerances: BTreeMap<String, f64>,
}

/// Cells of one kind: every device with every layout, workload, variant and value.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// The prefix of the names of its cells; by default the number of the group.
    #[serde(default)]
    pub name: Option<String>,
    /// Devices.
    #[serde(deserialize_with = "one_or_many")]
    #[schemars(with = "OneOrMany")]
    pub device: Vec<String>,
    /// Layouts; by default that of each device.
    #[serde(default, deserialize_with = "one_or_many")]
    #[schemars(with = "OneOrMany")]
    pub layout: Vec<String>,
    /// Workloads.
    #[serde(deserialize_with = "one_or_many")]
    #[schemars(with = "OneOrMany")]
    pub workload: Vec<String>,
    /// Fields of device, layout, workload and parameters that this group overrides.
    #[serde(default)]
    #[schemars(with = "Fields")]
    pub set: toml::Table,
    /// Fields with lists of values, in all combinations.
    #[serde(default)]
    #[schemars(with = "Fields")]
    pub vary: toml::Table,
    /// Named sets of fields, each combined with all other lists.
    #[serde(default, rename = "variant")]
    pub variants: Vec<Variant>,
    /// The fields that the quick form sets after all others.
    #[serde(default)]
    #[schemars(with = "Fields")]
    pub quick: toml::Table,
    /// The fields that the quick form varies instead.
    #[serde(default)]
    #[schemars(with = "Fields")]
    pub quick_vary: toml::Table,
    /// The rows of each cell.
    #[serde(rename = "row")]
    pub rows: Vec<Row>,
}

/// A named set of fields.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// The text of `{variant}` in labels.
    pub name: String,
    /// The fields.
    #[serde(default)]
    #[schemars(with = "Fields")]
    pub set: toml::Table,
}

/// A row of a cell.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Its label, with placeholders such as `{device}`.
    pub label: String,
    /// The figure; either this or `measures`.
    #[serde(default)]
    pub measure: Option<String>,
    /// Several figures of the cell, as the columns of one table.
    #[serde(default)]
    pub measures: Vec<Column>,
    /// Its unit; by default that of the measure.
    #[serde(default)]
    pub unit: Option<String>,
    /// The theory that it is compared with, instead of a published figure.
    #[serde(default)]
    pub theory: Option<Law>,
    /// The plot that it is a point of.
    #[serde(default)]
    pub plot: Option<String>,
    /// Its line of the plot, with placeholders such as `{device}`.
    #[serde(default)]
    pub series: Option<String>,
}

/// A figure in a column: the name of its measure, or a table.
#[derive(Debug, Clone, PartialEq, JsonSchema)]
pub struct Column {
    /// The figure.
    pub measure: String,
    /// The title of the column, which follows the row's label in that of the figure; by default
    /// the name of the measure.
    pub name: Option<String>,
    /// Its unit; by default that of the measure.
    pub unit: Option<String>,
    /// The theory that it is compared with, instead of a published figure.
    pub theory: Option<Law>,
    /// The plot that it is a point of.
    pub plot: Option<String>,
    /// Its line of the plot, with placeholders; by default the label of the row.
    pub series: Option<String>,
}

/// A row that is calculated from other rows.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Derived {
    /// Its label.
    pub label: String,
    /// Labels of rows; a `*` at the end matches any text.
    #[serde(deserialize_with = "one_or_many")]
    #[schemars(with = "OneOrMany")]
    pub of: Vec<String>,
    /// The rows that they are compared with, where the function compares.
    #[serde(default, deserialize_with = "one_or_many")]
    #[schemars(with = "OneOrMany")]
    pub over: Vec<String>,
    /// The function.
    #[serde(rename = "as")]
    pub function: Function,
    /// Its unit; by default that of the function or of the rows.
    #[serde(default)]
    pub unit: Option<String>,
}

/// How a row is calculated from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Function {
    /// The first of `of` divided by the first of `over`.
    Ratio,
    /// The mean of `of` divided by the mean of `over`.
    RatioOfMeans,
    /// By how many percent the first of `of` is more than the first of `over`.
    PercentMore,
    /// The first of `of` less the first of `over`.
    Difference,
    /// The largest of `of`.
    Max,
    /// The smallest of `of`.
    Min,
    /// The mean of `of`.
    Mean,
    /// Where on the x axis of their plot the rows of `of` cross those of `over`, from below.
    Crossing,
    /// The coefficient of determination of a straight line through the points of `of`.
    Linearity,
}

/// How rows are drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// Its name in rows.
    pub name: String,
    /// Its title.
    pub title: String,
    /// The field along the x axis, as `workload.clients`; not for a distribution.
    #[serde(default)]
    pub x: String,
    /// The label of the x axis; for a distribution, the kind of latency unless given.
    #[serde(default)]
    pub x_label: String,
    /// The label of the y axis; for a distribution, the share of the requests unless given.
    #[serde(default)]
    pub y_label: String,
    /// Whether the x axis is logarithmic; that of a distribution always is.
    #[serde(default)]
    pub log_x: bool,
    /// Whether the y axis is logarithmic.
    #[serde(default)]
    pub log_y: bool,
    /// `read` or `write`: draws the cumulative distribution of the latency of these requests in the
    /// runs of its rows, in place of the rows' figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<Requests>,
}

/// The requests of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Requests {
    /// Reads.
    Read,
    /// Writes and trims.
    Write,
}

fn one() -> u64 {
    1
}

fn one_run() -> u32 {
    1
}

fn five_percent() -> f64 {
    0.05
}

/// Fields by their paths, for the schema.
type Fields = BTreeMap<String, String>;

/// A string, or a list of strings.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a string or a list of strings was expected")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// `"a"` is `["a"]`.
fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(one) => vec![one],
        OneOrMany::Many(many) => many,
    })
}
