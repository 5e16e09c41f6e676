//! Texts: how alike two are, and what a pattern finds in them.

use std::collections::HashSet;

use arrow::array::ArrayRef;
use datafusion::error::Result;
use regex::Regex;

use super::{Arguments, Boolean, Double, Long, Own, Text, Texts, raised};

/// The functions.
pub(super) const ALL: &[Own] = &[
    Own::new("damerau_levenshtein", &[Text, Text], Long, |args| {
        args.integers(|row| {
            Ok(Some(strsim::damerau_levenshtein(args.text(0).value(row), args.text(1).value(row)) as i64))
        })
    }),
    Own::new("hamming", &[Text, Text], Long, |args| {
        args.integers(|row| {
            let distance = strsim::hamming(args.text(0).value(row), args.text(1).value(row));
            distance.map(|distance| Some(distance as i64)).map_err(|_| raised("hamming of texts of two lengths".into()))
        })
    }),
    Own::new("jaccard", &[Text, Text], Double, |args| {
        args.floats(|row| jaccard(args.text(0).value(row), args.text(1).value(row)).map(Some))
    }),
    Own::new("jaro_similarity", &[Text, Text], Double, |args| {
        args.floats(|row| Ok(Some(strsim::jaro(args.text(0).value(row), args.text(1).value(row)))))
    }),
    Own::new("jaro_winkler_similarity", &[Text, Text], Double, |args| {
        args.floats(|row| Ok(Some(strsim::jaro_winkler(args.text(0).value(row), args.text(1).value(row)))))
    }),
    Own::new("matches_glob", &[Text, Text], Boolean, |args| {
        args.booleans(|row| {
            let [text, pattern] = [0, 1].map(|place| args.text(place).value(row).chars().collect::<Vec<_>>());
            Ok(Some(matches_glob(&text, &pattern)))
        })
    }),
    Own::new("regexp_extract_all", &[Text, Text], Texts, |args| all_groups(args, |_| Ok(0))),
    Own::new("regexp_extract_all", &[Text, Text, Long], Texts, |args| {
        all_groups(args, |row| {
            let group = args.longs(2).value(row);
            usize::try_from(group).map_err(|_| raised(format!("{group} is no group of a pattern")))
        })
    }),
    Own::new("text_slice", &[Text, Long, Long], Text, |args| {
        args.texts(|row| Ok(Some(slice(args.text(0).value(row), args.longs(1).value(row), args.longs(2).value(row)))))
    }),
    Own::new("regexp_escape", &[Text], Text, |args| args.texts(|row| Ok(Some(escaped(args.text(0).value(row)))))),
    Own::new("string_split_regex", &[Text, Text], Texts, |args| {
        let mut patterns = Patterns::default();
        args.lists(|row| {
            let (text, pattern) = (args.text(0).value(row), args.text(1).value(row));
            if pattern.is_empty() {
                return Ok(Some(text.chars().map(String::from).collect()));
            }
            Ok(Some(patterns.compiled(pattern)?.split(text).map(String::from).collect()))
        })
    }),
];

/// Whether a text follows a pattern: `*` is any text, `?` a character, `[a-c]` one of some, `[!a]` one of all others,
/// and a backslash escapes.
fn matches_glob(text: &[char], pattern: &[char]) -> bool {
    let (mut at, mut wanted) = (0, 0);
    // Where the last `*` stands, and how far it reaches.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if pattern.get(wanted) == Some(&'*') {
            wanted += 1;
            star = Some((wanted, at));
            continue;
        }
        let behind = match text.get(at) {
            Some(character) => behind_one(*character, &pattern[wanted..]),
            None if wanted == pattern.len() => return true,
            None => return false,
        };
        match (behind, star) {
            (Some(length), _) => (at, wanted) = (at + 1, wanted + length),
            (None, Some((behind_star, reach))) => {
                star = Some((behind_star, reach + 1));
                (at, wanted) = (reach + 1, behind_star);
            }
            (None, None) => return false,
        }
    }
}

/// How long the part of a pattern is that a character follows; none if it follows none.
fn behind_one(character: char, pattern: &[char]) -> Option<usize> {
    match pattern {
        ['?', ..] => Some(1),
        ['\\', escaped, ..] => (*escaped == character).then_some(2),
        ['[', set @ ..] => {
            let is_other = set.first() == Some(&'!');
            let first = usize::from(is_other);
            // A bracket that is first in its set is one of it.
            let end = first + 1 + set.get(first + 1..)?.iter().position(|c| *c == ']')?;
            let mut members = &set[first..end];
            let mut is_in = false;
            while let [member, others @ ..] = members {
                members = match others {
                    ['-', last, behind @ ..] => {
                        is_in |= (*member..=*last).contains(&character);
                        behind
                    }
                    others => {
                        is_in |= *member == character;
                        others
                    }
                };
            }
            (is_in != is_other).then_some(end + 2)
        }
        [literal, ..] => (*literal == character).then_some(1),
        [] => None,
    }
}

/// The characters of a text from one place to another, which count from 1, or from the end below 0.
fn slice(text: &str, first: i64, last: i64) -> String {
    let count = text.chars().count() as i64;
    let place = |place: i64| if place < 0 { place.saturating_add(count + 1) } else { place };
    let (first, last) = (place(first).max(1), place(last).min(count));
    match usize::try_from(last.saturating_sub(first).saturating_add(1)) {
        Ok(taken) => text.chars().skip(first as usize - 1).take(taken).collect(),
        Err(_) => String::new(),
    }
}

/// The pattern of the last row, compiled.
#[derive(Default)]
struct Patterns(Option<(String, Regex)>);

impl Patterns {
    fn compiled(&mut self, pattern: &str) -> Result<&Regex> {
        let compiled = match self.0.take() {
            Some(last) if last.0 == pattern => last,
            _ => {
                let refused = |error: regex::Error| raised(format!("the pattern '{pattern}': {error}"));
                (pattern.to_string(), Regex::new(pattern).map_err(refused)?)
            }
        };
        Ok(&self.0.insert(compiled).1)
    }
}

/// A group of each match; of a group without one the empty text.
fn all_groups(args: &Arguments, group: impl Fn(usize) -> Result<usize>) -> Result<ArrayRef> {
    let mut patterns = Patterns::default();
    args.lists(|row| {
        let (pattern, group) = (args.text(1).value(row), group(row)?);
        let compiled = patterns.compiled(pattern)?;
        if group >= compiled.captures_len() {
            return Err(raised(format!("the pattern '{pattern}' has no group {group}")));
        }
        let of_match = |found: regex::Captures| found.get(group).map_or("", |found| found.as_str()).to_string();
        Ok(Some(compiled.captures_iter(args.text(0).value(row)).map(of_match).collect()))
    })
}

/// The text as a pattern of itself, as RE2 writes it: a backslash before what is neither a letter, a digit nor `_`.
fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() && !character.is_ascii_alphanumeric() && character != '_' {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

/// Characters that both texts have, of those that one has.
fn jaccard(one: &str, other: &str) -> Result<f64> {
    let [one, other] = [one, other].map(|text| text.chars().collect::<HashSet<char>>());
    if one.is_empty() || other.is_empty() {
        return Err(raised("jaccard of an empty text".into()));
    }
    let both = one.intersection(&other).count();
    Ok(both as f64 / (one.len() + other.len() - both) as f64)
}
