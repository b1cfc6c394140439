//! How near the predictions of an experiment are to the published figures.

use super::rows::{ExperimentResult, ResultRow};
use std::fmt::{self, Display, Formatter};

/// The end of the label of a row whose figure was fitted to the published one.
const FITTED: &str = "(fitted)";
/// A prediction is near up to this difference, as a share of the published figure.
const NEAR: f64 = 0.15;
/// ... and far beyond this one.
const FAR: f64 = 0.4;

/// The rows of an experiment that have a published figure which is no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreement {
    /// Fitted ones, which say nothing about the model.
    pub fitted: usize,
    /// The others.
    pub predicted: usize,
    /// Predictions within 15 % of the published figures.
    pub near: usize,
    /// Predictions within 40 %.
    pub not_far: usize,
}

impl Agreement {
    /// That of these results.
    pub fn of(result: &ExperimentResult) -> Agreement {
        let is_compared = |row: &&ResultRow| row.paper.is_some() && row.bound.is_none();
        let compared = result.rows.iter().filter(is_compared);
        let (fitted, predicted): (Vec<_>, Vec<_>) =
            compared.partition(|row| row.label.ends_with(FITTED));
        let within = |share: f64| {
            let is_within =
                |row: &&&ResultRow| row.ratio.is_some_and(|it| (it - 1.0).abs() <= share);
            predicted.iter().filter(is_within).count()
        };
        Agreement {
            fitted: fitted.len(),
            predicted: predicted.len(),
            near: within(NEAR),
            not_far: within(FAR),
        }
    }
}

impl Display for Agreement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Agreement { fitted, predicted, near, not_far } = self;
        write!(
            f,
            "{near} of {predicted} predictions are within 15 % of the published figures, {not_far} within 40 %"
        )?;
        match fitted {
            0 => Ok(()),
            fitted => write!(f, "; {fitted} more figures are fitted"),
        }
    }
}
