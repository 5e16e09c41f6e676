//! Units of the calendar by the names that PostgreSQL and DuckDB have for them.

/// Each unit with its other names.
const UNITS: [(&str, &[&str]); 20] = [
    ("nanosecond", &["nanoseconds", "ns", "nsec", "nsecs"]),
    ("microsecond", &["microseconds", "us", "usec", "usecs", "usecond", "useconds"]),
    ("millisecond", &["milliseconds", "ms", "msec", "msecs", "msecond", "mseconds"]),
    ("second", &["seconds", "s", "sec", "secs"]),
    ("minute", &["minutes", "m", "min", "mins"]),
    ("hour", &["hours", "h", "hr", "hrs"]),
    ("day", &["days", "d", "dayofmonth"]),
    ("week", &["weeks", "w", "weekofyear"]),
    ("month", &["months", "mon", "mons"]),
    ("quarter", &["quarters", "qtr"]),
    ("year", &["years", "y", "yr", "yrs"]),
    ("decade", &["decades", "dec", "decs"]),
    ("century", &["centuries", "c", "cent", "cents"]),
    ("millennium", &["millennia", "millenniums", "mil", "mils"]),
    ("dow", &["dayofweek", "weekday"]),
    ("doy", &["dayofyear"]),
    ("isodow", &[]),
    ("isoyear", &[]),
    ("yearweek", &[]),
    ("epoch", &[]),
];

/// The unit of a name in any case; none if there is none.
pub(crate) fn unit_of(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let is_it = |(unit, others): &&(&'static str, &[&str])| *unit == name || others.contains(&name.as_str());
    UNITS.iter().find(is_it).map(|(unit, _)| *unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_is_of_one_unit() {
        let mut names: Vec<&str> =
            UNITS.iter().flat_map(|(unit, others)| others.iter().chain([unit])).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert_eq!(
            [unit_of("Centuries"), unit_of("MON"), unit_of("fortnight")],
            [Some("century"), Some("month"), None]
        );
    }
}
