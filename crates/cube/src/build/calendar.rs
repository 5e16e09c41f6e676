//! Names of a calendar: months and weekdays, numbered halves, quarters, months, periods, weeks and days, alone or with
//! a year, and fiscal years.

use hashbrown::{HashMap, HashSet};

use crate::model::folded;

/// Names of each month, folded.
const MONTHS: [&[&str]; 12] = [
    &["jan", "january", "januar"],
    &["feb", "february", "februar"],
    &["mar", "march", "mär", "mrz", "märz"],
    &["apr", "april"],
    &["may", "mai"],
    &["jun", "june", "juni"],
    &["jul", "july", "juli"],
    &["aug", "august"],
    &["sep", "sept", "september"],
    &["oct", "october", "okt", "oktober"],
    &["nov", "november"],
    &["dec", "december", "dez", "dezember"],
];
/// Names of each weekday, folded.
const WEEKDAYS: [&[&str]; 7] = [
    &["mon", "monday", "mo", "montag"],
    &["tue", "tues", "tuesday", "di", "dienstag"],
    &["wed", "wednesday", "mi", "mittwoch"],
    &["thu", "thur", "thurs", "thursday", "do", "donnerstag"],
    &["fri", "friday", "fr", "freitag"],
    &["sat", "saturday", "sa", "samstag"],
    &["sun", "sunday", "so", "sonntag"],
];
/// Words beside numbers, folded, and the largest number of each.
const UNITS: [(&[&str], u32); 6] = [
    (&["h", "half", "halbjahr"], 2),
    (&["q", "qtr", "quarter", "quartal"], 4),
    (&["m", "month", "monat"], 12),
    (&["p", "period", "periode"], 16),
    (&["w", "wk", "week", "cw", "kw", "woche"], 53),
    (&["d", "day", "tag"], 366),
];
/// Words in front of fiscal years.
const YEARS: [&str; 2] = ["fy", "gj"];
/// Characters between the parts of a name.
const SEPARATORS: &[char] = &[' ', '-', '/', '_', '.', '\''];

/// Ranks of texts.
pub(super) type Ranks = HashMap<String, u32>;

/// What a name is one of. Names of different kinds have no order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Month,
    Weekday,
    Year,
    /// A number beside a word of [`UNITS`].
    Unit(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part<'a> {
    Word(&'a str),
    /// A number, and its digits.
    Number(u32, usize),
}

/// The places of names in a calendar that has all of them.
pub(super) fn ranks(texts: &HashSet<String>) -> Option<Ranks> {
    let mut kinds = texts.iter().map(|text| Some((text, place(&folded(text))?)));
    let mut places = Vec::with_capacity(texts.len());
    let (first, (kind, place)) = kinds.next()??;
    places.push((place, first));
    for next in kinds {
        let (text, (other, place)) = next?;
        if other != kind || place.0.is_some() != places[0].0.0.is_some() {
            return None;
        }
        places.push((place, text));
    }
    places.sort_unstable();
    let mut ranks: Ranks = HashMap::with_capacity(places.len());
    let mut rank = 0;
    for (at, (place, text)) in places.iter().enumerate() {
        // Names of one month have one rank.
        rank += u32::from(at > 0 && places[at - 1].0 != *place);
        ranks.insert((*text).clone(), rank);
    }
    Some(ranks)
}

/// What a folded name is, its year, and its place in the year.
fn place(name: &str) -> Option<(Kind, (Option<u32>, u32))> {
    let mut parts = parts(name)?;
    let year = take_year(&mut parts);
    let (kind, number) = match parts.as_slice() {
        [] => (Kind::Year, 0),
        [Part::Word(word)] => named(word)?,
        [Part::Word(word), Part::Number(number, 1..=3)] | [Part::Number(number, 1..=3), Part::Word(word)] => {
            let unit = UNITS.iter().position(|(words, most)| words.contains(word) && number <= most)?;
            (Kind::Unit(unit), *number)
        }
        _ => return None,
    };
    Some((kind, (year, number)))
}

/// The month or weekday of a name.
fn named(word: &str) -> Option<(Kind, u32)> {
    let place = |names: &[&[&str]]| names.iter().position(|names| names.contains(&word)).map(|place| place as u32);
    let month = place(&MONTHS).map(|month| (Kind::Month, month));
    month.or_else(|| Some((Kind::Weekday, place(&WEEKDAYS)?)))
}

/// Words and numbers of a name; nothing for one with other characters.
fn parts(name: &str) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let mut rest = name.trim();
    while let Some(first) = rest.chars().next() {
        let is_digit = first.is_ascii_digit();
        let is_part = |next: char| if is_digit { next.is_ascii_digit() } else { next.is_alphabetic() };
        let end = rest.find(|next| !is_part(next)).unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end);
        match part {
            "" => rest = rest.strip_prefix(SEPARATORS)?,
            digits if is_digit => parts.push(Part::Number(digits.parse().ok()?, digits.len())),
            word => parts.push(Part::Word(word)),
        }
        rest = if end > 0 { behind } else { rest };
    }
    Some(parts)
}

/// Takes the year out of the parts of a name: a number of four digits, one of two or four behind the word of fiscal
/// years, or one of two digits behind all else.
fn take_year(parts: &mut Vec<Part<'_>>) -> Option<u32> {
    let is_year_word = |part: &Part<'_>| matches!(part, Part::Word(word) if YEARS.contains(word));
    if let Some(at) = parts.iter().position(is_year_word) {
        let Some(Part::Number(year, 2 | 4)) = parts.get(at + 1).copied() else { return None };
        parts.drain(at..at + 2);
        return Some(year);
    }
    if let Some(at) = parts.iter().position(|part| matches!(part, Part::Number(_, 4))) {
        let Part::Number(year, _) = parts.remove(at) else { return None };
        return Some(year);
    }
    let is_behind_all = match parts.as_slice() {
        [Part::Word(word), Part::Number(_, 2)] => named(word).is_some(),
        [_, _, Part::Number(_, 2)] => true,
        _ => false,
    };
    match parts.pop_if(|_| is_behind_all) {
        Some(Part::Number(year, _)) => Some(year),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_kind_have_places() {
        for (names, expected) in [
            ("Feb,jan,DEC", Some("jan Feb DEC")),
            ("December,Oct,Sept", Some("Sept Oct December")),
            ("Dez,Mär,Mai,Mrz", Some("Mrz Mär Mai Dez")),
            ("Jan 2026,Dec-2025,2025/Feb", Some("2025/Feb Dec-2025 Jan 2026")),
            ("Jan-26,Feb-25", Some("Feb-25 Jan-26")),
            ("So,Mo,Mi", Some("Mo Mi So")),
            ("Q2,Q1,q4", Some("Q1 Q2 q4")),
            ("Q1 2026,Q4 2025", Some("Q4 2025 Q1 2026")),
            ("2026Q1,2025Q4", Some("2025Q4 2026Q1")),
            ("1. Quartal,2. Quartal", Some("1. Quartal 2. Quartal")),
            ("P04,P12,P01", Some("P01 P04 P12")),
            ("FY26 P1,FY25 P12", Some("FY25 P12 FY26 P1")),
            ("FY26,FY25", Some("FY25 FY26")),
            ("M10,M2,M01", Some("M01 M2 M10")),
            ("2025-W53,2025-W02,2026-W01", Some("2025-W02 2025-W53 2026-W01")),
            ("KW 3,KW 20", Some("KW 3 KW 20")),
            ("H2,H1", Some("H1 H2")),
            ("Jan,Feb,Adj", None),
            ("Jan,Feb 2025", None),
            ("Q1,Q5", None),
            ("Q1,M1", None),
            ("P100,P20", None),
            ("Q,Q1", None),
            ("Q1+,Q2+", None),
            ("A1,A2", None),
        ] {
            let texts: HashSet<String> = names.split(',').map(str::to_owned).collect();
            let found = ranks(&texts).map(|ranks| {
                let mut names: Vec<_> = ranks.into_iter().map(|(name, rank)| (rank, name)).collect();
                names.sort_unstable();
                names.into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(" ")
            });
            assert_eq!(found.as_deref(), expected, "{names}");
        }
    }
}
