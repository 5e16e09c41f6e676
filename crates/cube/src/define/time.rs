//! Elements of time: names of years, quarters, months and days, and the year that a month belongs to.
//!
//! A fiscal year has the name of the calendar year in which it ends: with years from April, March 2026 lies in FY26.

use std::fmt;
use std::str::FromStr;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A month of the year, January first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MonthName(u8);

/// The months that years begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FiscalYear {
    /// 1 to 12; calendar years begin with 1.
    start: u8,
}

/// A unit of time that is a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimeLevel {
    /// A year, fiscal if it does not begin in January.
    Year,
    /// Six months.
    Half,
    /// Three months.
    Quarter,
    /// A month.
    Month,
    /// A day.
    Day,
}

/// Levels of a dimension of time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeLevels {
    levels: Vec<TimeLevel>,
    fiscal: FiscalYear,
}

impl TimeLevel {
    /// The level of this name.
    pub fn named(name: &str) -> Option<TimeLevel> {
        const LEVELS: [(&str, TimeLevel); 5] = [
            ("year", TimeLevel::Year),
            ("half", TimeLevel::Half),
            ("quarter", TimeLevel::Quarter),
            ("month", TimeLevel::Month),
            ("day", TimeLevel::Day),
        ];
        LEVELS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, level)| *level)
    }
}

impl MonthName {
    /// The number of the month, 1 to 12.
    pub fn number(self) -> u8 {
        self.0
    }
}

impl fmt::Display for MonthName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&MONTHS[usize::from(self.0) - 1][..3])
    }
}

impl FromStr for MonthName {
    type Err = String;

    fn from_str(text: &str) -> Result<MonthName, String> {
        let is_meant = |month: &str| text.eq_ignore_ascii_case(month) || text.eq_ignore_ascii_case(&month[..3]);
        match MONTHS.iter().position(|month| is_meant(month)) {
            Some(at) => Ok(MonthName(at as u8 + 1)),
            None => Err(format!("no month {text:?}: a month's English name or its first three letters")),
        }
    }
}

impl FiscalYear {
    /// Years that begin with a month; calendar years without one.
    pub fn beginning(start: Option<MonthName>) -> FiscalYear {
        FiscalYear { start: start.map_or(1, MonthName::number) }
    }

    /// The year of a month, by the calendar year in which it ends, and the number of the month in it, from 0.
    fn of(self, year: i32, month: u8) -> (i32, u8) {
        let place = (month + 12 - self.start) % 12;
        let year = if self.start > 1 && month >= self.start { year + 1 } else { year };
        (year, place)
    }

    fn year_name(self, year: i32) -> String {
        if self.start == 1 { year.to_string() } else { format!("FY{:02}", year.rem_euclid(100)) }
    }
}

impl TimeLevels {
    /// Levels by their names, from the outermost to the base.
    ///
    /// # Errors
    /// A name that is no unit of time, and units that do not become finer.
    pub fn new(names: &[String], fiscal: FiscalYear) -> Result<TimeLevels, String> {
        let levels = names
            .iter()
            .map(|name| {
                TimeLevel::named(name)
                    .ok_or_else(|| format!("no unit of time {name:?}: year, half, quarter, month and day are levels"))
            })
            .collect::<Result<Vec<_>, String>>()?;
        match levels.windows(2).position(|pair| pair[0] >= pair[1]) {
            Some(at) => Err(format!("level {:?} stands below {:?}, and is not finer", names[at + 1], names[at])),
            None => Ok(TimeLevels { levels, fiscal }),
        }
    }

    /// True if a level is of days.
    pub fn has_days(&self) -> bool {
        self.levels.contains(&TimeLevel::Day)
    }

    /// The year of a month, by the calendar year in which it ends.
    pub fn year_of(&self, year: i32, month: u8) -> i32 {
        self.fiscal.of(year, month).0
    }

    /// The greatest distance of two years whose names differ: names of fiscal years have two digits.
    pub fn years_max(&self) -> i32 {
        let names_years = self.levels.iter().any(|level| *level <= TimeLevel::Quarter);
        if names_years && self.fiscal.start > 1 { 99 } else { i32::MAX }
    }

    /// The names of a date's elements, one a level. `month` is 1 to 12, `day` 1 to 31.
    pub fn names(&self, year: i32, month: u8, day: u8) -> Vec<String> {
        let (of_year, place) = self.fiscal.of(year, month);
        let year_name = self.fiscal.year_name(of_year);
        let name = |level: &TimeLevel| match level {
            TimeLevel::Year => year_name.clone(),
            TimeLevel::Half => format!("{year_name}-H{}", place / 6 + 1),
            TimeLevel::Quarter => format!("{year_name}-Q{}", place / 3 + 1),
            TimeLevel::Month => format!("{year:04}-{month:02}"),
            TimeLevel::Day => format!("{year:04}-{month:02}-{day:02}"),
        };
        self.levels.iter().map(name).collect()
    }
}
