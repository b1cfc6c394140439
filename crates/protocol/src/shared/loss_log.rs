//! The log's lines about data losses that clients are told: each place once an hour, because a
//! client may read a lost key again and again.

use crate::shared::lock::lock;
use softflash_base::Time;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

/// A place is not logged again within this time.
const QUIET: Duration = Duration::from_secs(3600);
/// Places logged within that time, at most; one more line says that there are others.
const MOST: usize = 100;

/// The places that were logged.
#[derive(Debug, Default)]
pub(crate) struct LossLog {
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    /// When each place was logged.
    places: HashMap<String, Time>,
    /// When the log said that there are more.
    more: Option<Time>,
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
                "clients are told of data loss at more than {MOST} places within an hour; not all \
                 of them are logged, data_losses of FLASH.STATS counts"
            ),
        }
    }

    fn line_for(&self, place: &str, now: Time) -> Line {
        let is_recent = |at: Time| now < at + QUIET;
        let mut told = lock(&self.told);
        told.places.retain(|_, at| is_recent(*at));
        if told.places.contains_key(place) {
            return Line::Nothing;
        }
        if told.places.len() < MOST {
            told.places.insert(place.to_owned(), now);
            return Line::Place;
        }
        if told.more.is_some_and(is_recent) {
            return Line::Nothing;
        }
        told.more = Some(now);
        Line::More
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
        assert_eq!(log.line_for("patch 8", at(3000)), Line::Place);
        assert_eq!(log.line_for("patch 7", at(3600)), Line::Nothing);
        assert_eq!(log.line_for("patch 7", at(3601)), Line::Place, "an hour later");
        assert_eq!(log.line_for("patch 8", at(3601)), Line::Nothing, "it has an hour of its own");
        let lines_at = |seconds| {
            let places = (0..300).map(|place| format!("block {place}"));
            let lines: Vec<_> = places.map(|place| log.line_for(&place, at(seconds))).collect();
            let count = |wanted| lines.iter().filter(|line| **line == wanted).count();
            (count(Line::Place), count(Line::More))
        };
        assert_eq!(lines_at(3700), (MOST - 2, 1));
        assert_eq!(lines_at(6600), (1, 0), "the hour of patch 8 is over");
        assert_eq!(lines_at(7300), (MOST - 1, 1));
    }
}
