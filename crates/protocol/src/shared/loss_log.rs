//! The log's lines about data losses that clients are told: each place once in a while, because a
//! client may read a lost key again and again.

use crate::shared::lock::lock;
use softflash_base::Time;
use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

/// A place is not logged again within this time.
const QUIET: Duration = Duration::from_secs(3600);
/// Places logged within that time; one more line says that there are more.
const MOST: usize = 100;

/// The places that were logged.
#[derive(Debug, Default)]
pub(crate) struct LossLog {
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    since: Time,
    places: HashSet<String>,
}

/// What is logged of a loss.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Nothing,
    Place,
    /// There are more places than are logged.
    More,
}

impl LossLog {
    /// A command was answered with the loss of the data at a place.
    pub fn tell(&self, command: &str, place: &str, now: Time) {
        match self.line_for(place, now) {
            Line::Nothing => {}
            Line::Place => tracing::error!(
                command,
                place,
                "a client was told of data loss; this place is not logged again for an hour, \
                 data_losses of FLASH.STATS counts; `softflash check --repair` keeps what is readable"
            ),
            Line::More => tracing::error!(
                command,
                "clients are told of data loss at more than {MOST} places; the others are not \
                 logged for an hour, data_losses of FLASH.STATS counts"
            ),
        }
    }

    fn line_for(&self, place: &str, now: Time) -> Line {
        let mut told = lock(&self.told);
        if told.places.is_empty() || now >= told.since + QUIET {
            *told = Told { since: now, places: HashSet::new() };
        }
        let known = told.places.len();
        if known > MOST || !told.places.insert(place.to_owned()) {
            return Line::Nothing;
        }
        if known == MOST { Line::More } else { Line::Place }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_logged_once_an_hour_and_many_places_do_not_flood_the_log() {
        let log = LossLog::default();
        let at = |seconds| Time(0) + Duration::from_secs(seconds);
        assert_eq!(log.line_for("patch 7", at(1)), Line::Place);
        assert_eq!(log.line_for("patch 7", at(2)), Line::Nothing);
        assert_eq!(log.line_for("patch 8", at(2)), Line::Place);
        assert_eq!(log.line_for("patch 7", at(3600)), Line::Nothing);
        assert_eq!(log.line_for("patch 7", at(3601)), Line::Place, "an hour later");
        let lines: Vec<_> =
            (0..300).map(|place| log.line_for(&format!("block {place}"), at(3700))).collect();
        let count = |wanted| lines.iter().filter(|line| **line == wanted).count();
        assert_eq!((count(Line::Place), count(Line::More)), (MOST - 1, 1));
    }
}
