//! The columns of `hits` in their published order, each a function of the row.

use super::hit::{Counter, Hit, pick};
use super::published::{
    COUNTERS, COUNTERS_OTHER, DAYS, GOOGLE_EVERY, MODELS, PHONES, PHONES_OTHER, REFERER_HASH_ASKED, REGIONS,
    REGIONS_OTHER, URL_ASKED, USER_LOOKED_UP, USER_MEAN, WIDTHS,
};
use super::words::{LATIN, RUSSIAN};
use crate::draw::Draw;

/// How a column is made of a row.
pub(super) enum Make {
    /// 16 bits.
    Short(fn(&Hit) -> i16),
    /// 32 bits.
    Int(fn(&Hit) -> i32),
    /// 64 bits.
    Long(fn(&Hit) -> i64),
    /// Days since 1970.
    Date(fn(&Hit) -> i32),
    /// Seconds since 1970.
    Time(fn(&Hit) -> i64),
    /// Text, appended to an empty one.
    Text(fn(&Hit, &mut String)),
}

use Make::{Date, Int, Long, Short, Text, Time};

/// Names and values of all columns.
pub(super) static COLUMNS: [(&str, Make); 105] = [
    ("WatchID", Long(|hit| (Draw::new(WATCHES).bits(hit.row) >> 1) as i64)),
    ("JavaEnable", Short(|hit| flag(hit.of_user(1, 100), 80))),
    ("Title", Text(title)),
    ("GoodEvent", Short(|_| 1)),
    ("EventTime", Time(|hit| hit.time)),
    ("EventDate", Date(date)),
    ("CounterID", Int(counter_id)),
    ("ClientIP", Int(|hit| Draw::new(ADDRESSES).bits(hit.user * 9 / 16) as i32)),
    ("RegionID", Int(region)),
    ("UserID", Long(user_id)),
    ("CounterClass", Short(|hit| [0, 0, 1, -1][hit.of_user(2, 4) as usize])),
    ("OS", Short(|hit| hit.of_user(3, 90).min(hit.of_user(4, 90)) as i16)),
    ("UserAgent", Short(|hit| hit.of_user(5, 80).min(hit.of_user(6, 80)) as i16)),
    ("URL", Text(url)),
    ("Referer", Text(referer)),
    ("IsRefresh", Short(|hit| flag(hit.drawn(1, 100), 10))),
    ("RefererCategoryID", Short(|hit| hit.referer.map_or(0, |page| (page % 200) as i16 * 80))),
    ("RefererRegionID", Int(|hit| hit.referer.map_or(0, |page| (page % 5_000) as i32))),
    ("URLCategoryID", Short(|hit| (hit.url % 200) as i16 * 80)),
    ("URLRegionID", Int(|hit| (hit.url % 5_000) as i32)),
    ("ResolutionWidth", Short(width)),
    ("ResolutionHeight", Short(|hit| [768, 1024, 1080, 800, 900, 600, 1050][hit.of_user(7, 7) as usize])),
    ("ResolutionDepth", Short(|hit| [37, 37, 37, 23][hit.of_user(8, 4) as usize])),
    ("FlashMajor", Short(|hit| [15, 15, 13, 0][hit.of_user(9, 4) as usize])),
    ("FlashMinor", Short(|hit| [7, 7, 3, 0][hit.of_user(9, 4) as usize])),
    ("FlashMinor2", Text(|hit, to| to.push_str(["800", "800", "700.224", ""][hit.of_user(9, 4) as usize]))),
    ("NetMajor", Short(|hit| [0, 0, 0, 3][hit.of_user(10, 4) as usize])),
    ("NetMinor", Short(|hit| [0, 0, 0, 5][hit.of_user(10, 4) as usize])),
    ("UserAgentMajor", Short(|hit| hit.of_user(11, 60) as i16)),
    ("UserAgentMinor", Text(|hit, to| LATIN.word(hit.of_user(12, 900), to))),
    ("CookieEnable", Short(|hit| flag(hit.of_user(13, 100), 99))),
    ("JavascriptEnable", Short(|hit| flag(hit.of_user(14, 100), 99))),
    ("IsMobile", Short(|hit| i16::from(model(hit).is_some()))),
    ("MobilePhone", Short(phone)),
    ("MobilePhoneModel", Text(model_name)),
    ("Params", Text(|_, _| {})),
    ("IPNetworkID", Int(|hit| 1 + hit.of_user(15, 3_900_000) as i32)),
    ("TraficSourceID", Short(traffic_source)),
    ("SearchEngineID", Short(|hit| hit.search_engine)),
    ("SearchPhrase", Text(phrase)),
    ("AdvEngineID", Short(|hit| hit.advertiser)),
    ("IsArtifical", Short(|hit| flag(hit.drawn(2, 100), 4))),
    ("WindowClientWidth", Short(|hit| width(hit) - hit.drawn(3, 500) as i16)),
    ("WindowClientHeight", Short(|hit| 300 + hit.drawn(4, 700) as i16)),
    ("ClientTimeZone", Short(|hit| [135, 135, 135, 195, -1][hit.of_user(16, 5) as usize])),
    ("ClientEventTime", Time(|hit| hit.time + hit.drawn(5, 7_200) as i64 - 3_600)),
    ("SilverlightVersion1", Short(|hit| [0, 0, 5][hit.of_user(17, 3) as usize])),
    ("SilverlightVersion2", Short(|hit| [0, 0, 1][hit.of_user(17, 3) as usize])),
    ("SilverlightVersion3", Int(|hit| [0, 0, 19_832][hit.of_user(17, 3) as usize])),
    ("SilverlightVersion4", Short(|_| 0)),
    ("PageCharset", Text(|hit, to| to.push_str(["windows-1251;charset", "utf-8", "windows"][(hit.url % 3) as usize]))),
    ("CodeVersion", Int(|hit| [1_601, 1_571, 291, 659][hit.drawn(6, 4) as usize])),
    ("IsLink", Short(|hit| flag(hit.drawn(7, 100), 10))),
    ("IsDownload", Short(|hit| flag(hit.drawn(8, 1_000), 2))),
    ("IsNotBounce", Short(|hit| flag(hit.drawn(9, 100), 30))),
    ("FUniqID", Long(|hit| (hit.of_user(18, 1 << 60) << 3) as i64)),
    (
        "OriginalURL",
        Text(|hit, to| {
            if hit.drawn(10, 10) == 0 {
                url(hit, to)
            }
        }),
    ),
    ("HID", Int(|hit| hit.drawn(11, 1 << 30) as i32)),
    ("IsOldCounter", Short(|_| 0)),
    ("IsEvent", Short(|_| 0)),
    ("IsParameter", Short(|_| 0)),
    ("DontCountHits", Short(|hit| flag(hit.drawn(12, 100), 17))),
    ("WithHash", Short(|_| 0)),
    ("HitColor", Text(|hit, to| to.push(['5', 'g', 'S', 'E'][hit.drawn(13, 4) as usize]))),
    ("LocalEventTime", Time(|hit| hit.time + hit.drawn(14, 7_200) as i64)),
    ("Age", Short(|hit| [0, 22, 25, 31, 45, 55][hit.of_user(19, 6) as usize])),
    ("Sex", Short(|hit| hit.of_user(20, 3) as i16)),
    ("Income", Short(|hit| hit.of_user(21, 4) as i16)),
    ("Interests", Short(|hit| hit.of_user(22, 1 << 14) as i16)),
    ("Robotness", Short(|hit| hit.of_user(23, 50).saturating_sub(40) as i16)),
    ("RemoteIP", Int(|hit| Draw::new(ADDRESSES + 1).bits(hit.user * 9 / 16) as i32)),
    ("WindowName", Int(|hit| hit.drawn(15, 1 << 31) as i32)),
    ("OpenerName", Int(|hit| hit.drawn(16, 1 << 31) as i32)),
    ("HistoryLength", Short(|hit| hit.drawn(17, 100).saturating_sub(50) as i16 - 1)),
    ("BrowserLanguage", Text(|hit, to| to.push_str(["S0", "S0", "f1", "nA"][hit.of_user(24, 4) as usize]))),
    ("BrowserCountry", Text(|hit, to| to.push_str(["\u{410}Y", "\u{411}h", "mD"][hit.of_user(25, 3) as usize]))),
    (
        "SocialNetwork",
        Text(|hit, to| {
            if hit.drawn(18, 5_000) == 0 {
                to.push_str("vkontakte")
            }
        }),
    ),
    (
        "SocialAction",
        Text(|hit, to| {
            if hit.drawn(18, 5_000) == 0 {
                to.push_str("like")
            }
        }),
    ),
    ("HTTPError", Short(|_| 0)),
    ("SendTiming", Int(|hit| hit.drawn(19, 4_000).saturating_sub(3_000) as i32)),
    ("DNSTiming", Int(|hit| hit.drawn(20, 4_000).saturating_sub(3_700) as i32)),
    ("ConnectTiming", Int(|hit| hit.drawn(21, 4_000).saturating_sub(3_700) as i32)),
    ("ResponseStartTiming", Int(|hit| hit.drawn(22, 4_000).saturating_sub(3_000) as i32)),
    ("ResponseEndTiming", Int(|hit| hit.drawn(23, 9_000).saturating_sub(6_000) as i32)),
    ("FetchTiming", Int(|hit| hit.drawn(24, 9_000).saturating_sub(6_000) as i32)),
    ("SocialSourceNetworkID", Short(|hit| if hit.drawn(25, 200) == 0 { 3 } else { 0 })),
    (
        "SocialSourcePage",
        Text(|hit, to| {
            if hit.drawn(25, 200) == 0 {
                LATIN.word(hit.drawn(26, 1 << 20), to)
            }
        }),
    ),
    ("ParamPrice", Long(|_| 0)),
    ("ParamOrderID", Text(|_, _| {})),
    ("ParamCurrency", Text(|_, to| to.push_str("NH\u{1c}"))),
    ("ParamCurrencyID", Short(|_| 0)),
    ("OpenstatServiceName", Text(|hit, to| campaign(hit, 40, to))),
    ("OpenstatCampaignID", Text(|hit, to| campaign(hit, 3_000, to))),
    ("OpenstatAdID", Text(|hit, to| campaign(hit, 30_000, to))),
    ("OpenstatSourceID", Text(|hit, to| campaign(hit, 9_000, to))),
    ("UTMSource", Text(|hit, to| campaign(hit, 100, to))),
    ("UTMMedium", Text(|hit, to| campaign(hit, 30, to))),
    ("UTMCampaign", Text(|hit, to| campaign(hit, 2_000, to))),
    ("UTMContent", Text(|hit, to| campaign(hit, 5_000, to))),
    ("UTMTerm", Text(|hit, to| campaign(hit, 9_000, to))),
    ("FromTag", Text(|hit, to| campaign(hit, 500, to))),
    ("HasGCLID", Short(|hit| flag(hit.drawn(28, 1_000), 3))),
    ("RefererHash", Long(referer_hash)),
    ("URLHash", Long(url_hash)),
    ("CLID", Int(|hit| if hit.drawn(29, 20) == 0 { hit.drawn(30, 3_000_000) as i32 } else { 0 })),
];

/// Streams beside those of rows.
const WATCHES: u64 = 20;
const ADDRESSES: u64 = 21;
const USER_IDS: u64 = 23;
const URL_HASHES: u64 = 24;
const URL_WORDS: u64 = 25;
const TITLE_WORDS: u64 = 26;
const PHRASE_WORDS: u64 = 27;
/// Bytes of an address before its words: `http://`, a host of two to four syllables and `.ru`.
const URL_HEAD: u64 = 15;

/// 1 for the first `percent` of a hundred or thousand, or 0.
fn flag(drawn: u64, percent: u64) -> i16 {
    i16::from(drawn < percent)
}

fn date(hit: &Hit) -> i32 {
    DAYS.0 + ((hit.time - i64::from(DAYS.0) * 86_400) / 86_400) as i32
}

fn counter_id(hit: &Hit) -> i32 {
    match hit.counter {
        Counter::Published(place) => COUNTERS[place].0,
        // Behind the largest that is published.
        Counter::Other(number) => 260_000 + number as i32,
    }
}

fn region(hit: &Hit) -> i32 {
    pick(&REGIONS, hit.unit_of_user(1)).unwrap_or_else(|| {
        let unit = hit.unit_of_user(2);
        300 + (REGIONS_OTHER as f64 * unit * unit * unit) as i32
    })
}

fn user_id(hit: &Hit) -> i64 {
    match hit.is_looked_up {
        true => USER_LOOKED_UP,
        false => Draw::new(USER_IDS).below(hit.user, 2 * USER_MEAN) as i64,
    }
}

fn width(hit: &Hit) -> i16 {
    pick(&WIDTHS, hit.unit_of_user(3)).unwrap_or(WIDTHS[0].0)
}

/// The place of the user's telephone among the published models, or the number of another; none of most users.
fn model(hit: &Hit) -> Option<u64> {
    let unit = hit.unit_of_user(4);
    let known: f64 = MODELS.iter().map(|model| model.1).sum();
    let mut left = unit;
    let place = MODELS.iter().position(|model| {
        left -= model.1;
        left < 0.0
    });
    // 150 more, a few users each.
    let other = (unit < known + 2e-3).then(|| MODELS.len() as u64 + hit.of_user(26, 150));
    place.map(|place| place as u64).or(other)
}

fn model_name(hit: &Hit, to: &mut String) {
    match model(hit) {
        Some(place) if (place as usize) < MODELS.len() => to.push_str(MODELS[place as usize].0),
        Some(number) => {
            to.push_str("GT-");
            LATIN.word(number, to);
        }
        None => {}
    }
}

fn phone(hit: &Hit) -> i16 {
    match model(hit) {
        None => 0,
        Some(0) => pick(&PHONES, hit.unit_of_user(5)).unwrap_or(PHONES[0].0),
        Some(place) => PHONES_OTHER.get(place as usize - 1).copied().unwrap_or(20 + (place % 100) as i16),
    }
}

/// Where the visit came from: a search 2, an advertisement 3, a page 1 or, as queries 41 and 42 ask, -1 and 6.
fn traffic_source(hit: &Hit) -> i16 {
    match (hit.phrase, hit.advertiser) {
        (Some(_), _) => 2,
        (None, 1..) => 3,
        _ => [-1, -1, -1, 0, 0, 0, 1, 1, 5, 6][hit.drawn(27, 10) as usize],
    }
}

/// The length of the address of a page: that of its counter in the mean, from half of it to one and a half.
fn url_length(hit: &Hit) -> u64 {
    let mean = match hit.counter {
        Counter::Published(place) => COUNTERS[place].2,
        Counter::Other(_) => COUNTERS_OTHER.0,
    };
    mean / 2 + Draw::new(URL_WORDS + 100).below(hit.url, mean + 1)
}

fn url(hit: &Hit, to: &mut String) {
    let host = match hit.counter {
        Counter::Published(place) => place as u64,
        Counter::Other(number) => 100 + number,
    };
    to.push_str("http://");
    LATIN.word(1024 + host, to);
    to.push_str(".ru/");
    LATIN.word(hit.url, to);
    if hit.url % GOOGLE_EVERY == GOOGLE_EVERY / 2 {
        to.push_str("/google");
    }
    let left = url_length(hit).saturating_sub(URL_HEAD + 6);
    LATIN.fill(Draw::new(URL_WORDS), hit.url, '/', left, to);
}

fn url_hash(hit: &Hit) -> i64 {
    match hit.url == URL_ASKED.0 {
        true => URL_ASKED.1,
        false => Draw::new(URL_HASHES).bits(hit.url) as i64,
    }
}

/// Two pages have one title.
fn title(hit: &Hit, to: &mut String) {
    let title = hit.url / 2;
    // Without a title are as many pages as have a telephone's model in it.
    if title % 14 == 13 {
        return;
    }
    RUSSIAN.word(title, to);
    if title % GOOGLE_EVERY == GOOGLE_EVERY / 3 {
        to.push_str(" Google");
    }
    let draw = Draw::new(TITLE_WORDS);
    RUSSIAN.fill(draw, title, ' ', 20 + draw.below(title, 60), to);
}

fn referer(hit: &Hit, to: &mut String) {
    let page = match (hit.is_referer_asked, hit.referer) {
        (false, None) => return,
        (true, _) => u64::MAX >> 8,
        (false, Some(page)) => page,
    };
    // A fifth of them are of few hosts, as search engines have.
    let host = if page % 5 == 0 { page / 5 % 20 } else { page % 50_000 };
    to.push_str(if page % 3 == 0 { "https://www." } else { "http://" });
    LATIN.word(32 + host, to);
    to.push_str(".ru/");
    LATIN.word(page, to);
    let draw = Draw::new(URL_WORDS + 1);
    LATIN.fill(draw, page, '/', draw.below(page, 100), to);
    if page % 2 == 0 {
        to.push('/');
    }
}

fn referer_hash(hit: &Hit) -> i64 {
    match (hit.is_referer_asked, hit.referer) {
        (true, _) => REFERER_HASH_ASKED,
        (false, page) => Draw::new(URL_HASHES + 1000).bits(page.map_or(0, |page| page + 1)) as i64,
    }
}

fn phrase(hit: &Hit, to: &mut String) {
    let Some(phrase) = hit.phrase else { return };
    let draw = Draw::new(PHRASE_WORDS);
    RUSSIAN.word(phrase, to);
    RUSSIAN.fill(draw, phrase, ' ', draw.below(phrase, 32), to);
}

/// One of `count` labels of campaigns, which one visit in fifty has.
fn campaign(hit: &Hit, count: u64, to: &mut String) {
    if hit.drawn(31, 50) == 0 {
        LATIN.word(hit.drawn(32, count), to);
    }
}
