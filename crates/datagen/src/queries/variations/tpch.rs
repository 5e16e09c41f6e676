//! The substitution parameters of TPC-H's queries (clause 2.4 of the specification, revision 3).

use super::{Draw, Substitution};
use crate::ssb::dists::{COLORS, CONTAINERS, NATIONS, REGIONS, SEGMENTS, SHIP_MODES, TYPES};

/// Words between which query 13 of TPC-H looks.
const COMMENT_WORDS: ([&str; 4], [&str; 4]) =
    (["special", "pending", "unusual", "express"], ["packages", "requests", "accounts", "deposits"]);

impl Draw {
    /// `Brand#12`: maker and brand of TPC-H.
    fn brand(&mut self) -> String {
        format!("'Brand#{}{}'", self.number(1, 5), self.number(1, 5))
    }

    /// The first day of a year from 1993 to 1997.
    fn year_day(&mut self) -> String {
        format!("{}-01-01", self.number(1993, 1997))
    }

    /// The first day of one of `months` months, the first of them being that month of 1993.
    pub(super) fn month_day(&mut self, first: i64, months: i64) -> String {
        let month = first - 1 + self.number(0, months - 1);
        format!("{}-{:02}-01", 1993 + month / 12, month % 12 + 1)
    }
}

/// The parameters of the query of that number, drawn anew.
pub(super) fn draw(number: usize, draw: &mut Draw) -> Vec<Substitution> {
    match number {
        1 => vec![("'90'", format!("'{}'", draw.number(60, 120)))],
        2 => vec![
            ("p_size = 15", format!("p_size = {}", draw.number(1, 50))),
            ("%BRASS", format!("%{}", draw.one(TYPES.2))),
            ("'EUROPE'", draw.region()),
        ],
        3 => vec![
            ("'BUILDING'", format!("'{}'", draw.one(&SEGMENTS))),
            ("1995-03-15", format!("1995-03-{:02}", draw.number(1, 31))),
        ],
        4 => vec![("1993-07-01", draw.month_day(1, 58))],
        5 => vec![("'ASIA'", draw.region()), ("1994-01-01", draw.year_day())],
        6 => {
            let discount = draw.number(2, 9);
            let bounds = format!("between 0.{:02} and 0.{:02}", discount - 1, discount + 1);
            vec![
                ("1994-01-01", draw.year_day()),
                ("between 0.05 and 0.07", bounds),
                ("l_quantity < 24", format!("l_quantity < {}", draw.number(24, 25))),
            ]
        }
        7 => {
            let nations = draw.some(&NATIONS, 2);
            vec![("'FRANCE'", format!("'{}'", nations[0].0)), ("'GERMANY'", format!("'{}'", nations[1].0))]
        }
        8 => {
            let (nation, region) = draw.one(&NATIONS);
            let kind = format!("'{} {} {}'", draw.one(TYPES.0), draw.one(TYPES.1), draw.one(TYPES.2));
            vec![
                ("'BRAZIL'", format!("'{nation}'")),
                ("'AMERICA'", format!("'{}'", REGIONS[region])),
                ("'ECONOMY ANODIZED STEEL'", kind),
            ]
        }
        9 => vec![("green", draw.one(&COLORS).to_string())],
        10 => vec![("1993-10-01", draw.month_day(2, 24))],
        11 => vec![("'GERMANY'", draw.nation())],
        _ => last(number, draw),
    }
}

/// As [`draw`], of the queries from 12 on.
fn last(number: usize, draw: &mut Draw) -> Vec<Substitution> {
    match number {
        12 => {
            let modes = draw.some(&SHIP_MODES, 2);
            vec![("'MAIL', 'SHIP'", format!("'{}', '{}'", modes[0], modes[1])), ("1994-01-01", draw.year_day())]
        }
        13 => {
            let (first, second) = (draw.one(&COMMENT_WORDS.0), draw.one(&COMMENT_WORDS.1));
            vec![("%special%requests%", format!("%{first}%{second}%"))]
        }
        14 => vec![("1995-09-01", draw.month_day(1, 60))],
        15 => vec![("1996-01-01", draw.month_day(1, 58))],
        16 => {
            let all: Vec<i64> = (1..=50).collect();
            let sizes: Vec<String> = draw.some(&all, 8).iter().map(i64::to_string).collect();
            vec![
                ("'Brand#45'", draw.brand()),
                ("MEDIUM POLISHED", format!("{} {}", draw.one(TYPES.0), draw.one(TYPES.1))),
                ("49, 14, 23, 45, 19, 3, 36, 9", sizes.join(", ")),
            ]
        }
        17 => {
            let container = format!("'{} {}'", draw.one(CONTAINERS.0), draw.one(CONTAINERS.1));
            vec![("'Brand#23'", draw.brand()), ("'MED BOX'", container)]
        }
        18 => vec![("> 300", format!("> {}", draw.number(312, 315)))],
        19 => {
            let mut quantity = |old, low, high| {
                let from = draw.number(low, high);
                (old, format!("l_quantity >= {from} and l_quantity <= {from} + 10"))
            };
            let mut substitutions = vec![
                quantity("l_quantity >= 1 and l_quantity <= 1 + 10", 1, 10),
                quantity("l_quantity >= 10 and l_quantity <= 10 + 10", 10, 20),
                quantity("l_quantity >= 20 and l_quantity <= 20 + 10", 20, 30),
            ];
            substitutions.extend(["'Brand#12'", "'Brand#23'", "'Brand#34'"].map(|old| (old, draw.brand())));
            substitutions
        }
        20 => vec![
            ("'forest%'", format!("'{}%'", draw.one(&COLORS))),
            ("1994-01-01", draw.year_day()),
            ("'CANADA'", draw.nation()),
        ],
        21 => vec![("'SAUDI ARABIA'", draw.nation())],
        22 => {
            // The first two digits of a phone number tell its nation.
            let all: Vec<i64> = (10..35).collect();
            let codes: Vec<String> = draw.some(&all, 7).iter().map(|code| format!("'{code}'")).collect();
            vec![("'13', '31', '23', '29', '30', '18', '17'", codes.join(", "))]
        }
        _ => Vec::new(),
    }
}
