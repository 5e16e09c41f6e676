//! Literals of the Star Schema Benchmark's queries.

use super::{Draw, Substitution};
use crate::ssb::dists::{MONTHS, NATIONS};

impl Draw {
    /// `MFGR#12`: maker and category of SSB, without quotes.
    fn category(&mut self) -> String {
        format!("MFGR#{}{}", self.number(1, 5), self.number(1, 5))
    }

    /// A full year of SSB's dates.
    fn year(&mut self) -> i64 {
        self.number(1992, 1997)
    }

    /// `lo_discount` in a range of three values.
    fn discounts(&mut self) -> String {
        let low = self.number(0, 8);
        format!("lo_discount between {low} and {}", low + 2)
    }

    /// `lo_quantity` in a range of ten values.
    fn quantities(&mut self) -> String {
        let low = self.number(1, 41);
        format!("lo_quantity between {low} and {}", low + 9)
    }

    /// Six of SSB's seven years.
    fn six_years(&mut self) -> String {
        let first = self.number(1992, 1993);
        format!("d_year >= {first} and d_year <= {}", first + 5)
    }

    /// Two years in a row.
    fn two_years(&mut self) -> String {
        let first = self.year();
        format!("d_year = {first} or d_year = {}", first + 1)
    }

    /// Two cities of one nation: the first nine characters of its name, and a digit.
    pub(super) fn cities(&mut self, column: &str) -> String {
        let nation = self.one(&NATIONS).0;
        let digits = self.some(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], 2);
        format!("{column} = '{nation:9.9}{}' or {column} = '{nation:9.9}{}'", digits[0], digits[1])
    }

    /// Two makers.
    fn makers(&mut self) -> String {
        let makers = self.some(&[1, 2, 3, 4, 5], 2);
        format!("p_mfgr = 'MFGR#{}' or p_mfgr = 'MFGR#{}'", makers[0], makers[1])
    }
}

/// The literals of the query of that name, drawn anew.
pub(super) fn draw(name: &str, draw: &mut Draw) -> Vec<Substitution> {
    let customers = |draw: &mut Draw, region| (region, format!("c_region = {}", draw.region()));
    let suppliers = |draw: &mut Draw, region| (region, format!("s_region = {}", draw.region()));
    let cities = |draw: &mut Draw| {
        [
            ("c_city = 'UNITED KI1' or c_city = 'UNITED KI5'", draw.cities("c_city")),
            ("s_city = 'UNITED KI1' or s_city = 'UNITED KI5'", draw.cities("s_city")),
        ]
    };
    let six_years = |draw: &mut Draw| ("d_year >= 1992 and d_year <= 1997", draw.six_years());
    let two_years = |draw: &mut Draw| ("d_year = 1997 or d_year = 1998", draw.two_years());
    let makers = |draw: &mut Draw| ("p_mfgr = 'MFGR#1' or p_mfgr = 'MFGR#2'", draw.makers());
    match name {
        "q1.1" => vec![
            ("d_year = 1993", format!("d_year = {}", draw.year())),
            ("lo_discount between 1 and 3", draw.discounts()),
            ("lo_quantity < 25", format!("lo_quantity < {}", draw.number(23, 27))),
        ],
        "q1.2" => vec![
            ("199401", format!("{}{:02}", draw.year(), draw.number(1, 12))),
            ("lo_discount between 4 and 6", draw.discounts()),
            ("lo_quantity between 26 and 35", draw.quantities()),
        ],
        "q1.3" => vec![
            ("d_weeknuminyear = 6", format!("d_weeknuminyear = {}", draw.number(1, 52))),
            ("d_year = 1994", format!("d_year = {}", draw.year())),
            ("lo_discount between 5 and 7", draw.discounts()),
            ("lo_quantity between 26 and 35", draw.quantities()),
        ],
        "q2.1" => vec![("MFGR#12", draw.category()), suppliers(draw, "s_region = 'AMERICA'")],
        "q2.2" => {
            // Eight brands, by the order of their names as of their numbers.
            let tens = format!("{}{}", draw.category(), draw.number(1, 3));
            let brands = format!("'{tens}1' and '{tens}8'");
            vec![("'MFGR#2221' and 'MFGR#2228'", brands), suppliers(draw, "s_region = 'ASIA'")]
        }
        "q2.3" => vec![
            ("MFGR#2239", format!("{}{}", draw.category(), draw.number(1, 40))),
            suppliers(draw, "s_region = 'EUROPE'"),
        ],
        "q3.1" => {
            vec![customers(draw, "c_region = 'ASIA'"), suppliers(draw, "s_region = 'ASIA'"), six_years(draw)]
        }
        "q3.2" => vec![
            ("c_nation = 'UNITED STATES'", format!("c_nation = {}", draw.nation())),
            ("s_nation = 'UNITED STATES'", format!("s_nation = {}", draw.nation())),
            six_years(draw),
        ],
        "q3.3" => [&cities(draw)[..], &[six_years(draw)]].concat(),
        "q3.4" => {
            let month = format!("{:.3}{}", draw.one(&MONTHS), draw.year());
            [&cities(draw)[..], &[("Dec1997", month)]].concat()
        }
        "q4.1" => vec![customers(draw, "c_region = 'AMERICA'"), suppliers(draw, "s_region = 'AMERICA'"), makers(draw)],
        "q4.2" => vec![
            customers(draw, "c_region = 'AMERICA'"),
            suppliers(draw, "s_region = 'AMERICA'"),
            two_years(draw),
            makers(draw),
        ],
        "q4.3" => vec![
            customers(draw, "c_region = 'AMERICA'"),
            ("'UNITED STATES'", draw.nation()),
            two_years(draw),
            ("MFGR#14", draw.category()),
        ],
        _ => Vec::new(),
    }
}
