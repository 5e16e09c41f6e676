//! What is published of the table `hits`: answers of ClickBench's queries over its 100 million rows, as DuckDB's and
//! ClickHouse's results of the benchmark list them. Shares are of all rows.

use crate::draw::Skew;

/// Users: 17,630,976, the most active of whom have 29,097, 25,333, 10,611, … rows (queries 5 and 16).
pub(super) const USERS: Skew = Skew {
    distinct: 0.17630976,
    filled: 1.0,
    head: &[2.91e-4, 2.53e-4, 1.06e-4, 7.6e-5, 6.7e-5, 6.4e-5, 6.2e-5, 6.0e-5, 5.2e-5, 4.9e-5],
    tail: 4.8e-5,
};
/// The mean of `UserID` (query 4), which is drawn evenly from 0 to twice that.
pub(super) const USER_MEAN: u64 = 2_528_953_029_789_716_035;
/// The user whom query 20 looks up.
pub(super) const USER_LOOKED_UP: i64 = 435_090_932_899_640_449;

/// Search phrases: 6,019,103 in 13,172,392 rows, the commonest in 70,263, 34,675, 24,579, … of them (queries 6, 13).
pub(super) const PHRASES: Skew = Skew {
    distinct: 0.06019103,
    filled: 0.13172392,
    head: &[7.03e-4, 3.47e-4, 2.46e-4, 2.16e-4, 1.97e-4, 1.92e-4, 1.73e-4, 1.67e-4, 1.66e-4, 1.23e-4],
    tail: 1.1e-4,
};
/// Engines of searches, with their shares of these (query 15: two thirds of the commonest phrases come from 2).
pub(super) const SEARCH_ENGINES: [(i16, f64); 6] = [(2, 0.68), (3, 0.2), (4, 0.05), (13, 0.03), (82, 0.02), (1, 0.02)];

/// Addresses of pages: 18,342,035, the commonest in 3,288,173, 1,625,251, 791,465, … rows (query 34). Behind these ten
/// comes the page that query 42 asks for.
pub(super) const URLS: Skew = Skew {
    distinct: 0.18342035,
    filled: 1.0,
    head: &[0.0329, 0.0163, 0.0079, 0.0058, 0.0051, 0.0051, 0.0036, 0.0035, 0.0032, 0.0029, 0.0015],
    tail: 4e-4,
};
/// The number of the page that query 42 asks for, and its hash.
pub(super) const URL_ASKED: (u64, i64) = (10, 2_868_770_270_353_813_622);
/// The hash of the referring page that query 41 asks for.
pub(super) const REFERER_HASH_ASKED: i64 = 3_594_120_000_172_545_465;
/// One address of so many has `google` in it, and one title `Google` (queries 21 to 24: 15,911 rows).
pub(super) const GOOGLE_EVERY: u64 = 6_000;

/// Referring pages.
pub(super) const REFERERS: Skew = Skew {
    distinct: 0.15,
    filled: 0.81,
    head: &[0.02, 0.01, 0.008, 0.006, 0.005, 0.004, 0.004, 0.003, 0.003, 0.003],
    tail: 4e-4,
};

/// Counters with their share of rows and the mean length of their pages' addresses (query 28).
pub(super) const COUNTERS: [(i32, f64, u64); 25] = [
    (3922, 0.0852707, 88),
    (199_550, 0.0711541, 110),
    (122_612, 0.0357401, 239),
    (233_773, 0.0293887, 469),
    (245_438, 0.0251010, 272),
    (256_004, 0.0085817, 125),
    (186_300, 0.0080256, 84),
    (COUNTER_ASKED, 0.0073815, 93),
    (146_891, 0.0060529, 78),
    (38, 0.0050777, 76),
    (220_992, 0.0049461, 106),
    (96_948, 0.0039609, 93),
    (95_427, 0.0037431, 120),
    (1634, 0.0032323, 198),
    (188_878, 0.0031200, 92),
    (77_639, 0.0025396, 75),
    (234_004, 0.0023866, 204),
    (114_157, 0.0021641, 143),
    (230_962, 0.0016922, 76),
    (196_239, 0.0016380, 98),
    (515, 0.0014691, 126),
    (97_467, 0.0013118, 84),
    (191_697, 0.0012466, 87),
    (786, 0.0012053, 187),
    (249_603, 0.0012033, 92),
];
/// The counter that queries 37 to 43 ask for.
pub(super) const COUNTER_ASKED: i32 = 62;
/// The mean length of addresses of all other counters, and how many there are of these.
pub(super) const COUNTERS_OTHER: (u64, u64) = (64, 6_481);

/// Regions with their share of rows (query 10).
pub(super) const REGIONS: [(i32, f64); 10] = [
    (229, 0.1829643),
    (2, 0.0668771),
    (208, 0.0426195),
    (169, 0.0332029),
    (32, 0.0184372),
    (34, 0.0179241),
    (184, 0.0175522),
    (42, 0.0154277),
    (107, 0.0151672),
    (51, 0.0143560),
];
/// Regions beside these.
pub(super) const REGIONS_OTHER: u64 = 9_030;

/// Engines of advertisements with their share of rows (queries 2 and 8: 630,500 rows).
pub(super) const ADVERTISERS: [(i16, f64); 18] = [
    (2, 4.04602e-3),
    (27, 1.13167e-3),
    (13, 4.5631e-4),
    (45, 3.896e-4),
    (44, 9.73e-5),
    (3, 6.896e-5),
    (62, 5.266e-5),
    (52, 3.554e-5),
    (50, 9.38e-6),
    (28, 8.36e-6),
    (53, 3.5e-6),
    (25, 3.43e-6),
    (61, 1.58e-6),
    (21, 3.8e-7),
    (42, 2e-7),
    (16, 7e-8),
    (7, 3e-8),
    (22, 1e-8),
];

/// Models of telephones with their share of users (query 11).
pub(super) const MODELS: [(&str, f64); 10] = [
    ("iPad", 6.1842e-2),
    ("iPhone", 2.5953e-3),
    ("A500", 9.101e-4),
    ("N8-00", 3.156e-4),
    ("iPho", 1.872e-4),
    ("ONE TOUCH 6030A", 1.565e-4),
    ("GT-P7300B", 1.082e-4),
    ("3110000", 1.061e-4),
    ("GT-I9500", 9.06e-5),
    ("eagle75", 8.46e-5),
];
/// Makes of telephones of the first model with their shares of it (query 12), and those of all others in their order.
pub(super) const PHONES: [(i16, f64); 8] =
    [(1, 0.8539), (5, 0.0444), (6, 0.0272), (7, 0.026), (10, 0.0105), (32, 0.0087), (13, 0.0086), (26, 0.0207)];
/// The make of each model behind the first.
pub(super) const PHONES_OTHER: [i16; 9] = [6, 118, 9, 6, 3, 4, 9, 4, 12];

/// Widths of screens with shares that give the published mean of 1513.49 (query 3).
pub(super) const WIDTHS: [(i16, f64); 9] = [
    (1368, 0.272),
    (1638, 0.18),
    (1917, 0.16),
    (1087, 0.16),
    (1396, 0.09),
    (1594, 0.05),
    (1750, 0.04),
    (2038, 0.038),
    (1297, 0.01),
];

/// The first day, 2013-07-02, and how many there are (query 7).
pub(super) const DAYS: (i32, u64) = (15_888, 30);
