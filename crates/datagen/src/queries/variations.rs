//! The queries with other literals: texts of the same shape that no session has seen.
//!
//! TPC-H's are the substitution parameters of its specification (clause 2.4, revision 3), drawn from the ranges given
//! there. SSB has none: its literals are drawn so that each predicate keeps its selectivity (another year, region,
//! nation, brand). Draws depend on the query alone, so that the same texts come in every run.

mod ssb;
mod tpch;

use super::{SSB_QUERIES, ssb_query, tpch_query};
use crate::random::Stream;
use crate::ssb::dists::{NATIONS, REGIONS};

/// Where the streams of the queries begin; each query adds its number.
const SEED: u64 = 1_804_289_383;
/// Draws that are skipped, so that streams of neighbouring seeds have parted.
const SKIPPED: u64 = 100;
/// Draws for each text that is asked for, before a query's range counts as exhausted.
const DRAWS_PER_TEXT: usize = 50;

/// A part of a query's text, which occurs there, with what stands in its place.
type Substitution = (&'static str, String);

/// Up to `count` texts of the SSB query of that name with other literals, all different; none for an unknown name.
pub fn ssb_variations(name: &str, count: usize) -> Vec<String> {
    let number = SSB_QUERIES.iter().position(|query| query.0 == name);
    let Some((number, text)) = number.zip(ssb_query(name)) else { return Vec::new() };
    let mut draw = Draw::new(number);
    distinct(text, count, || ssb::draw(name, &mut draw))
}

/// Up to `count` texts of TPC-H query `number` with other substitution parameters, all different, over tables of that
/// scale factor. Query 18 has four.
pub fn tpch_variations(number: usize, sf: f64, count: usize) -> Vec<String> {
    let Some(text) = tpch_query(number, sf) else { return Vec::new() };
    let mut draw = Draw::new(SSB_QUERIES.len() + number);
    distinct(&text, count, || tpch::draw(number, &mut draw))
}

/// Texts with the substitutions that `draw` gives, without those that are the first text or one before.
fn distinct(text: &str, count: usize, mut draw: impl FnMut() -> Vec<Substitution>) -> Vec<String> {
    let mut texts = vec![text.to_string()];
    for _ in 0..count * DRAWS_PER_TEXT {
        if texts.len() > count {
            break;
        }
        let next = substituted(text, &draw());
        if !texts.contains(&next) {
            texts.push(next);
        }
    }
    texts.split_off(1)
}

/// The text with every substitution made, in one pass: inserted text is not substituted again.
fn substituted(text: &str, substitutions: &[Substitution]) -> String {
    let (mut made, mut rest) = (String::with_capacity(text.len()), text);
    let first = |rest: &str| {
        let places = substitutions.iter().filter_map(|(old, new)| Some((rest.find(old)?, *old, new.clone())));
        places.min_by_key(|(at, ..)| *at)
    };
    while let Some((at, old, new)) = first(rest) {
        made.push_str(&rest[..at]);
        made.push_str(&new);
        rest = &rest[at + old.len()..];
    }
    made + rest
}

/// Parameters as the queries write them.
struct Draw(Stream);

impl Draw {
    fn new(number: usize) -> Draw {
        Draw(Stream::at(SEED + number as u64, SKIPPED))
    }

    fn number(&mut self, low: i64, high: i64) -> i64 {
        self.0.draw(low, high)
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.0.index(of.len())]
    }

    /// `count` different ones, in random order.
    fn some<T: Copy>(&mut self, of: &[T], count: usize) -> Vec<T> {
        let mut left = of.to_vec();
        (0..count).map(|_| left.swap_remove(self.0.index(left.len()))).collect()
    }

    fn region(&mut self) -> String {
        format!("'{}'", self.one(&REGIONS))
    }

    fn nation(&mut self) -> String {
        format!("'{}'", self.one(&NATIONS).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with every quoted text, and every run of digits, as one sign.
    fn shape(text: &str) -> String {
        let outside = text.split('\'').step_by(2).collect::<Vec<_>>().join("?");
        let parts: Vec<&str> = outside.split(|c: char| c.is_ascii_digit()).collect();
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("#")
    }

    fn check(name: &str, text: &str, count: usize, texts: &[String], substitutions: &[Substitution]) {
        assert!(!substitutions.is_empty(), "{name} has no literals");
        for (old, _) in substitutions {
            assert!(text.contains(old), "{name}: {old} is not in {text}");
        }
        assert_eq!(texts.len(), count, "{name}: {texts:#?}");
        for (at, varied) in texts.iter().enumerate() {
            assert_eq!(shape(varied), shape(text), "{name}");
            assert!(varied != text && !texts[..at].contains(varied), "{name}: {varied} was there before");
        }
    }

    #[test]
    fn every_query_has_texts_of_its_shape_and_all_differ() {
        for (number, (name, text)) in SSB_QUERIES.iter().enumerate() {
            check(name, text, 9, &ssb_variations(name, 9), &ssb::draw(name, &mut Draw::new(number)));
        }
        for number in 1..=22 {
            let (text, texts) = (tpch_query(number, 10.0).unwrap(), tpch_variations(number, 10.0, 9));
            let count = if number == 18 { 4 } else { 9 };
            check(&format!("q{number}"), &text, count, &texts, &tpch::draw(number, &mut Draw::new(number)));
        }
        assert!(ssb_variations("q5.1", 1).is_empty() && tpch_variations(23, 1.0, 1).is_empty());
    }

    #[test]
    fn what_was_put_in_is_not_replaced_again() {
        let swapped = [("'FRANCE'", "'GERMANY'".to_string()), ("'GERMANY'", "'FRANCE'".to_string())];
        assert_eq!(substituted("a 'FRANCE' b 'GERMANY' c", &swapped), "a 'GERMANY' b 'FRANCE' c");
    }

    #[test]
    fn parameters_stay_in_their_ranges() {
        let mut draw = Draw::new(0);
        for _ in 0..1000 {
            let month = draw.month_day(2, 24);
            assert!(("1993-02-01"..="1995-01-01").contains(&month.as_str()), "{month}");
            let cities = draw.cities("c");
            let names: Vec<&str> = cities.split('\'').skip(1).step_by(2).collect();
            assert!(names.iter().all(|name| name.len() == 10) && names[0][..9] == names[1][..9], "{cities}");
            assert_ne!(names[0], names[1]);
        }
        for text in tpch_variations(19, 1.0, 9) {
            let from = |at: usize| text.split("l_quantity >= ").nth(at).unwrap().split(' ').next().unwrap();
            let quantities: Vec<i64> = (1..=3).map(|at| from(at).parse().unwrap()).collect();
            let bounds = [1..=10, 10..=20, 20..=30];
            assert!(bounds.iter().zip(&quantities).all(|(bounds, quantity)| bounds.contains(quantity)), "{text}");
        }
    }
}
