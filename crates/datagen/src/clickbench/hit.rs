//! One page view: what all columns of a row are functions of.

use super::published::{
    ADVERTISERS, COUNTERS, COUNTERS_OTHER, DAYS, PHRASES, REFERERS, SEARCH_ENGINES, URL_ASKED, URLS, USERS,
};
use crate::draw::{Draw, Population};

/// Share of rows of the counter that query 41 asks for whose referring page is the one that it asks for.
const ASKED_REFERER_SHARE: f64 = 0.1;

/// Streams of values.
#[derive(Debug, Clone, Copy)]
enum Stream {
    Users = 1,
    Phrases,
    Urls,
    Referers,
    Counters,
    Time,
    SearchEngine,
    Advertiser,
    Asked,
    /// The first of those that [`Hit::drawn`] numbers.
    OfRow = 100,
    /// The first of those that [`Hit::of_user`] numbers.
    OfUser = 1000,
}

/// The counter of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counter {
    /// By its place in [`COUNTERS`].
    Published(usize),
    /// By its number among the others.
    Other(u64),
}

/// A row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hit {
    /// The row's number.
    pub(super) row: u64,
    /// The user's number.
    pub(super) user: u64,
    /// Whether the user is the one that query 20 looks up.
    pub(super) is_looked_up: bool,
    /// The number of the page.
    pub(super) url: u64,
    /// The counter of the page.
    pub(super) counter: Counter,
    /// The number of the referring page, if there is one.
    pub(super) referer: Option<u64>,
    /// Whether it is the page that query 41 asks for.
    pub(super) is_referer_asked: bool,
    /// The number of the phrase that was searched for.
    pub(super) phrase: Option<u64>,
    /// The engine of the search, 0 without one.
    pub(super) search_engine: i16,
    /// The engine of the advertisement, 0 without one.
    pub(super) advertiser: i16,
    /// Seconds since 1970.
    pub(super) time: i64,
}

/// A table of page views.
pub(super) struct Hits {
    users: Population,
    phrases: Population,
    urls: Population,
    referers: Population,
}

impl Hits {
    /// A table of `rows` rows.
    pub(super) fn new(rows: u64) -> Hits {
        let population = |skew, stream: Stream| Population::new(rows, skew, stream as u64);
        Hits {
            users: population(USERS, Stream::Users),
            phrases: population(PHRASES, Stream::Phrases),
            urls: population(URLS, Stream::Urls),
            referers: population(REFERERS, Stream::Referers),
        }
    }

    /// The row of that number.
    pub(super) fn at(&self, row: u64) -> Hit {
        let user = self.users.at(row).unwrap_or_default();
        let url = self.urls.at(row).unwrap_or_default();
        let phrase = self.phrases.at(row);
        let counter = counter(url);
        let unit = |stream: Stream| Draw::new(stream as u64).unit(row);
        let engine = || pick(&SEARCH_ENGINES, unit(Stream::SearchEngine)).unwrap_or(SEARCH_ENGINES[0].0);
        let is_asked = is_counter_asked(counter) && unit(Stream::Asked) < ASKED_REFERER_SHARE;
        Hit {
            row,
            user,
            is_looked_up: user == self.users.distinct() / 2,
            url,
            counter,
            referer: self.referers.at(row),
            is_referer_asked: is_asked,
            phrase,
            search_engine: phrase.map_or(0, |_| engine()),
            advertiser: pick(&ADVERTISERS, unit(Stream::Advertiser)).unwrap_or_default(),
            time: i64::from(DAYS.0) * 86_400 + Draw::new(Stream::Time as u64).below(row, DAYS.1 * 86_400) as i64,
        }
    }
}

impl Hit {
    /// A number in `0..count`, of the row, by number of the value.
    pub(super) fn drawn(&self, value: u64, count: u64) -> u64 {
        Draw::new(Stream::OfRow as u64 + value).below(self.row, count)
    }

    /// A number in `0..count` that all rows of the user share, by number of the value.
    pub(super) fn of_user(&self, value: u64, count: u64) -> u64 {
        Draw::new(Stream::OfUser as u64 + value).below(self.user, count)
    }

    /// A number in `0.0..1.0` that all rows of the user share.
    pub(super) fn unit_of_user(&self, value: u64) -> f64 {
        Draw::new(Stream::OfUser as u64 + value).unit(self.user)
    }
}

/// The value in whose share a number from 0 to 1 falls, none behind all.
pub(super) fn pick<T: Copy>(shares: &[(T, f64)], mut unit: f64) -> Option<T> {
    for (value, share) in shares {
        unit -= share;
        if unit < 0.0 {
            return Some(*value);
        }
    }
    None
}

fn is_counter_asked(counter: Counter) -> bool {
    matches!(counter, Counter::Published(place) if COUNTERS[place].0 == super::published::COUNTER_ASKED)
}

/// The counter of a page. The commonest pages, whose shares would be another counter's, are of counters of their own.
fn counter(url: u64) -> Counter {
    if url == URL_ASKED.0 {
        let place = COUNTERS.iter().position(|counter| counter.0 == super::published::COUNTER_ASKED);
        return Counter::Published(place.unwrap_or_default());
    }
    if url < URL_ASKED.0 {
        return Counter::Other(url);
    }
    let draw = Draw::new(Stream::Counters as u64);
    let mut unit = draw.unit(url) * (1.0 - URLS.head.iter().sum::<f64>());
    for (place, (_, share, _)) in COUNTERS.iter().enumerate() {
        unit -= share;
        if unit < 0.0 {
            return Counter::Published(place);
        }
    }
    // Most pages of the others belong to few of these.
    let unit = draw.unit(url ^ (1 << 62));
    Counter::Other((COUNTERS_OTHER.1 as f64 * unit * unit * unit) as u64)
}
