//! The shape of a statement's text: its tokens, with holes in place of constants that conditions compare with.
//!
//! A hole is a constant that WHERE or HAVING compares something with: `x < 5`, `-1.5 = x`, `x BETWEEN 'a' AND 'b'`,
//! `x IN (1, 2)`, `x LIKE 'a%'`, `x >= DATE '1994-01-01' + INTERVAL '1' YEAR`, `x > TIMESTAMP '1994-01-01 12:00:00'`.
//! In the text of the shape a parameter stands there, `$1` for the first; a parameter is as much an operand of its own
//! as a constant is, so both texts have the same syntax tree. What the parameters are compared with is looked at in the
//! plan ([`super::shapes`]).
//!
//! A comparison that a text has twice keeps its constants: the optimiser takes what branches of an OR have in common
//! out of them, and parameters are never equal.
//!
//! Texts that are no queries, and texts with parameters, have no shape. All other constants are part of the shape:
//! those of arithmetic, arguments of functions, NULL, limits, all that a select list holds, since it names columns, and
//! HAVING of subqueries within conditions, of which the optimiser asks what they give for no row.

use std::collections::HashMap;
use std::ops::Range;

use arrow::compute::kernels::cast_utils::{Parser, string_to_timestamp_nanos};
use arrow::datatypes::{Date32Type, IntervalMonthDayNano};
use datafusion::common::ScalarValue;

use crate::lexer::{Kind, Token, tokens};

/// Longest text that has a shape, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// Most holes of a shape.
const HOLES_MAX: usize = 256;
/// Characters that operators consist of; a sign before a number is none.
const OPERATOR_CHARACTERS: &str = "=<>!@#~|&";
/// Words that may follow a constant that is an operand of its own.
const FOLLOWERS: [&str; 9] = ["and", "or", "group", "order", "having", "limit", "union", "except", "intersect"];
/// Words behind which a condition begins.
const BEGINNINGS: [&str; 5] = ["where", "having", "and", "or", "not"];

/// A constant in a hole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Constant {
    /// Digits with at most one point among them, and a sign if it is negative.
    Number(String),
    /// What is between single quotes.
    Text(String),
    /// A date, in days since 1970-01-01.
    Date(i32),
    /// A time without a zone, in nanoseconds since 1970-01-01.
    Time(i64),
    /// The pattern of LIKE or ILIKE.
    Pattern(String),
}

/// The shape of a text, with what is in its holes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Holed {
    /// The text with parameters in the holes.
    pub(crate) text: String,
    /// The constants, in the order of the parameters.
    pub(crate) constants: Vec<Constant>,
    /// Their places in the statement's text.
    places: Vec<Range<usize>>,
}

impl Holed {
    /// The shape of a text with these holes, if these are not too many or none.
    fn of(sql: &str, holes: impl IntoIterator<Item = (Constant, Range<usize>)>) -> Option<Holed> {
        let (constants, places): (Vec<_>, Vec<_>) = holes.into_iter().unzip();
        let (mut text, mut copied) = (String::with_capacity(sql.len()), 0);
        for (number, place) in places.iter().enumerate() {
            text.push_str(&sql[copied..place.start]);
            // Blanks keep the parameter apart from a word that the constant touches.
            text.push_str(&format!(" ${} ", number + 1));
            copied = place.end;
        }
        text.push_str(&sql[copied..]);
        (1..=HOLES_MAX).contains(&constants.len()).then_some(Holed { text, constants, places })
    }

    /// The shape of the same text with those holes alone that are `kept`, if there are any.
    pub(crate) fn narrowed(self, sql: &str, kept: &[bool]) -> Option<Holed> {
        let holes = self.constants.into_iter().zip(self.places).zip(kept);
        Holed::of(sql, holes.filter(|(_, kept)| **kept).map(|(hole, _)| hole))
    }
}

/// Part of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clause {
    Select,
    /// WHERE or HAVING.
    Condition,
    Other,
}

/// What is between two parentheses.
#[derive(Debug, Clone, Copy)]
struct Level {
    clause: Clause,
    /// Whether there may be holes.
    open: bool,
    /// Whether it is a subquery within a condition, or within such a one.
    nested: bool,
}

/// The shape of a text, if it has one.
pub(crate) fn holed(sql: &str) -> Option<Holed> {
    if sql.len() > TEXT_BYTES_MAX {
        return None;
    }
    let (tokens, _) = tokens(sql);
    let mut reader = Reader { sql, tokens: &tokens, holes: Vec::new(), comparisons: Vec::new() };
    if !matches!(reader.word(0).as_deref(), Some("select" | "with")) {
        return None;
    }
    let mut levels = vec![Level { clause: Clause::Other, open: true, nested: false }];
    let mut at = 0;
    while at < tokens.len() {
        let level = levels.last_mut()?;
        let (in_condition, is_open) = (level.clause == Clause::Condition, level.open);
        if in_condition
            && is_open
            && let Some(behind) = reader.comparison(at).or_else(|| reader.mirrored(at))
        {
            reader.close_comparison(at, behind);
            at = behind;
            continue;
        }
        let slice = reader.slice(at);
        match tokens[at].kind {
            Kind::Symbol('(') => {
                let clause = if in_condition { Clause::Condition } else { Clause::Other };
                let (open, nested) = (is_open && level.clause != Clause::Select, level.nested);
                levels.push(Level { clause, open, nested });
            }
            Kind::Symbol(')') => drop(levels.pop()),
            Kind::Symbol('$' | '?' | '@' | ':') => return None,
            Kind::Text if !slice.starts_with('\'') => return None,
            Kind::Word => match slice.to_ascii_lowercase().as_str() {
                "select" => (level.clause, level.nested) = (Clause::Select, level.nested || in_condition),
                "where" => level.clause = Clause::Condition,
                "having" if !level.nested => level.clause = Clause::Condition,
                "from" | "group" | "order" | "having" | "limit" | "offset" | "fetch" | "union" | "except"
                | "intersect" | "window" | "qualify" | "on" => level.clause = Clause::Other,
                _ => {}
            },
            _ => {}
        }
        at += 1;
    }
    Holed::of(sql, reader.distinct())
}

/// The days from 1970-01-01 to a date that is written with ten characters.
pub(crate) fn days(text: &str) -> Option<i32> {
    let is_plain = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    Date32Type::parse(text).filter(|_| is_plain)
}

/// The nanoseconds from 1970-01-01 to a time that is written `1994-01-01 12:00:00.5`, or to the start of a day.
pub(crate) fn nanoseconds(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(' ').unwrap_or((text, "00:00:00"));
    let is_plain = time.is_ascii() && time.len() >= 8 && {
        let (clock, fraction) = time.split_at(8);
        let is_clock = |(at, byte): (usize, u8)| if at % 3 == 2 { byte == b':' } else { byte.is_ascii_digit() };
        let digits = fraction.strip_prefix('.').unwrap_or("0");
        let is_fraction = fraction.is_empty() || fraction.starts_with('.');
        let are_digits = (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
        clock.bytes().enumerate().all(is_clock) && is_fraction && are_digits
    };
    days(date).filter(|_| is_plain)?;
    string_to_timestamp_nanos(text).ok()
}

/// Reads tokens, and finds holes.
struct Reader<'a> {
    sql: &'a str,
    tokens: &'a [Token],
    holes: Vec<(Constant, Range<usize>)>,
    /// The comparisons with holes: their text without blanks, and how many holes there are behind each.
    comparisons: Vec<(String, usize)>,
}

impl Reader<'_> {
    /// Notes the comparison whose holes came last: from the last token of the operand before `at` to `behind`.
    fn close_comparison(&mut self, at: usize, behind: usize) {
        let words: Vec<&str> = (at.saturating_sub(1)..behind).map(|at| self.slice(at)).collect();
        self.comparisons.push((words.join(" "), self.holes.len()));
    }

    /// The holes of comparisons that the text has once.
    fn distinct(self) -> Vec<(Constant, Range<usize>)> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        self.comparisons.iter().for_each(|(text, _)| *counts.entry(text).or_default() += 1);
        let mut left = self.comparisons.iter().peekable();
        let mut is_kept = |number: usize| {
            while left.next_if(|(_, end)| *end <= number).is_some() {}
            left.peek().is_none_or(|(text, _)| counts[text.as_str()] == 1)
        };
        let kept: Vec<bool> = (0..self.holes.len()).map(&mut is_kept).collect();
        self.holes.into_iter().zip(kept).filter_map(|(hole, kept)| kept.then_some(hole)).collect()
    }

    fn slice(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| &self.sql[token.range.clone()])
    }

    fn word(&self, at: usize) -> Option<String> {
        let is_word = self.tokens.get(at).is_some_and(|token| token.kind == Kind::Word);
        is_word.then(|| self.slice(at).to_ascii_lowercase())
    }

    fn is_symbol(&self, at: usize, symbol: char) -> bool {
        self.tokens.get(at).is_some_and(|token| token.kind == Kind::Symbol(symbol))
    }

    /// Whether nothing lies between two tokens.
    fn touch(&self, at: usize) -> bool {
        let ends = self.tokens.get(at).zip(self.tokens.get(at + 1));
        ends.is_some_and(|(one, other)| one.range.end == other.range.start)
    }

    /// The comparison whose operator is at `at`, if constants are its operands: holes take their places. Gives the
    /// position of what follows.
    fn comparison(&mut self, at: usize) -> Option<usize> {
        let mut found = Vec::new();
        let behind = match self.word(at).as_deref() {
            Some("between") => {
                let and = self.constant(at + 1, &mut found)?;
                self.word(and).filter(|word| word == "and")?;
                self.constant(and + 1, &mut found)?
            }
            Some("in") if self.is_symbol(at + 1, '(') => {
                let mut behind = self.item(at + 2, &mut found)?;
                while self.is_symbol(behind, ',') {
                    behind = self.item(behind + 1, &mut found)?;
                }
                self.is_symbol(behind, ')').then_some(behind + 1)?
            }
            Some("like" | "ilike") => {
                let behind = self.constant(at + 1, &mut found)?;
                let (Constant::Text(pattern), range) = found.pop()? else { return None };
                found.push((Constant::Pattern(pattern), range));
                behind
            }
            Some(_) => return None,
            None => {
                let operand = self.operator(at)?;
                self.constant(operand, &mut found)?
            }
        };
        let ends = behind >= self.tokens.len()
            || self.is_symbol(behind, ')')
            || self.is_symbol(behind, ';')
            || self.word(behind).is_some_and(|word| FOLLOWERS.contains(&word.as_str()));
        if !ends {
            return None;
        }
        self.holes.extend(found);
        Some(behind)
    }

    /// A constant at `at` with which a condition begins, if a comparison follows: a hole takes its place. Gives the
    /// position of the operator.
    fn mirrored(&mut self, at: usize) -> Option<usize> {
        let before = at.checked_sub(1)?;
        let begins =
            self.is_symbol(before, '(') || self.word(before).is_some_and(|word| BEGINNINGS.contains(&word.as_str()));
        if !begins {
            return None;
        }
        let mut found = Vec::new();
        let behind = self.constant(at, &mut found)?;
        self.operator(behind)?;
        self.holes.extend(found);
        Some(behind)
    }

    /// An item of a list: a constant, or NULL, which stays. Gives the position of what follows.
    fn item(&self, at: usize, found: &mut Vec<(Constant, Range<usize>)>) -> Option<usize> {
        match self.word(at).as_deref() {
            Some("null") => Some(at + 1),
            _ => self.constant(at, found),
        }
    }

    /// The position behind an operator that compares.
    fn operator(&self, at: usize) -> Option<usize> {
        let is_part = |at: usize| {
            let kind = self.tokens.get(at).map(|token| token.kind);
            matches!(kind, Some(Kind::Symbol(symbol)) if OPERATOR_CHARACTERS.contains(symbol))
        };
        // Other operators end in what compares, too: `->`.
        let is_behind_other = at > 0
            && self.touch(at - 1)
            && (is_part(at - 1) || self.is_symbol(at - 1, '-') || self.is_symbol(at - 1, '+'));
        if is_behind_other {
            return None;
        }
        let mut end = at;
        while is_part(end) && (end == at || self.touch(end - 1)) {
            end += 1;
        }
        let first = self.tokens.get(at)?.range.start;
        let text = if end > at { &self.sql[first..self.tokens[end - 1].range.end] } else { "" };
        matches!(text, "=" | "<" | ">" | "<=" | ">=" | "<>" | "!=").then_some(end)
    }

    /// The constant at `at` goes to `found` with its place in the text. Gives the position of what follows.
    fn constant(&self, at: usize, found: &mut Vec<(Constant, Range<usize>)>) -> Option<usize> {
        let start = self.tokens.get(at)?.range.start;
        let (constant, behind) = if let Some(text) = self.quoted(at) {
            (Constant::Text(text), at + 1)
        } else if self.word(at).as_deref() == Some("date") {
            self.date(at + 1)?
        } else if self.word(at).as_deref() == Some("timestamp") {
            (Constant::Time(nanoseconds(&self.quoted(at + 1)?)?), at + 2)
        } else {
            let is_negative = self.is_symbol(at, '-');
            let first = at + usize::from(is_negative);
            let is_digits = |at: usize| {
                let slice = self.slice(at);
                !slice.is_empty() && slice.bytes().all(|byte| byte.is_ascii_digit())
            };
            if !is_digits(first) {
                return None;
            }
            let has_point = self.is_symbol(first + 1, '.') && self.touch(first);
            let last = if has_point { first + 2 } else { first };
            if has_point && !(self.touch(first + 1) && is_digits(last)) {
                return None;
            }
            let digits = &self.sql[self.tokens[first].range.start..self.tokens[last].range.end];
            (Constant::Number(format!("{}{digits}", if is_negative { "-" } else { "" })), last + 1)
        };
        found.push((constant, start..self.tokens[behind - 1].range.end));
        Some(behind)
    }

    /// The date at `at`, behind the word: `'1994-01-01'`, with years, months and days added or taken away,
    /// `+ INTERVAL '1' YEAR`. Gives the position of what follows, too.
    fn date(&self, at: usize) -> Option<(Constant, usize)> {
        let mut date = ScalarValue::Date32(Some(days(&self.quoted(at)?)?));
        let mut behind = at + 1;
        while self.word(behind + 1).as_deref() == Some("interval") {
            let count: i32 = self.quoted(behind + 2)?.parse::<u16>().ok()?.into();
            let (months, days) = match self.word(behind + 3)?.as_str() {
                "day" => (0, count),
                "month" => (count, 0),
                "year" => (12 * count, 0),
                _ => return None,
            };
            let interval = ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(months, days, 0)));
            let moved = match self.tokens[behind].kind {
                Kind::Symbol('+') => date.add(interval),
                Kind::Symbol('-') => date.sub(interval),
                _ => return None,
            };
            date = moved.ok()?;
            behind += 4;
        }
        let ScalarValue::Date32(Some(days)) = date else { return None };
        Some((Constant::Date(days), behind))
    }

    /// What is between the single quotes of a token that has them.
    fn quoted(&self, at: usize) -> Option<String> {
        let token = self.tokens.get(at).filter(|token| token.kind == Kind::Text && token.closed)?;
        let text = &self.sql[token.range.clone()];
        let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
        Some(inner.replace("''", "'"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of the shape, with the constants behind it.
    fn shape(sql: &str) -> String {
        let Some(holed) = holed(sql) else { return "none".into() };
        written(&holed)
    }

    fn written(Holed { text, constants, .. }: &Holed) -> String {
        let words: Vec<&str> = text.split_whitespace().collect();
        let constants = constants.iter().map(|constant| match constant {
            Constant::Number(text) => text.clone(),
            Constant::Text(text) => format!("'{text}'"),
            Constant::Date(days) => format!("date {days}"),
            Constant::Time(nanoseconds) => format!("time {nanoseconds}"),
            Constant::Pattern(text) => format!("like '{text}'"),
        });
        format!("{} | {}", words.join(" "), constants.collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn constants_that_are_compared_are_holes() {
        let cases = [
            ("select a from t where b = 5", "select a from t where b = $1 | 5"),
            ("SELECT a FROM t WHERE b<>-1.50;", "SELECT a FROM t WHERE b<> $1 ; | -1.50"),
            (
                "select 1 from t where a='x''y'and b>=DATE '1994-01-01'",
                "select 1 from t where a= $1 and b>= $2 | 'x'y', date 8766",
            ),
            (
                "select a from t where b between 1 and 3 or c in ('x', 'y')",
                "select a from t where b between $1 and $2 or c in ( $3 , $4 ) | 1, 3, 'x', 'y'",
            ),
            (
                "select a from t where b not like '%x%' group by 1 limit 3",
                "select a from t where b not like $1 group by 1 limit 3 | like '%x%'",
            ),
            (
                "select a from (select a from t where (b = 1 or b = 2)) where a < 7",
                "select a from (select a from t where (b = $1 or b = $2 )) where a < $3 | 1, 2, 7",
            ),
            (
                "with w as (select a from t where b = 1) select a from w",
                "with w as (select a from t where b = $1 ) select a from w | 1",
            ),
            (
                "select a from t where b >= date '1994-01-31' and b < date '1994-01-31' + interval '1' month",
                "select a from t where b >= $1 and b < $2 | date 8796, date 8824",
            ),
            (
                "select a from t where b<=date '1996-02-29'-interval '1' year+interval '70' day",
                "select a from t where b<= $1 | date 9259",
            ),
            ("select a from t where b = 5 having sum(a) > 3", "select a from t where b = $1 having sum(a) > $2 | 5, 3"),
            (
                "select a from t where b = 5 and a > (select max(a) from t where d in (4, null)) - 1",
                "select a from t where b = $1 and a > (select max(a) from t where d in ( $2 , null)) - 1 | 5, 4",
            ),
            (
                "select a from t where exists (select 1 from u where x = a having count(*) = 0) and not -3<a",
                "select a from t where exists (select 1 from u where x = a having count(*) = 0) and not $1 <a | -3",
            ),
            (
                "select a from t where (5 + 1 < b or 5 < b) and c + 2 > d and f('x') and b ilike 'a%'",
                "select a from t where (5 + 1 < b or $1 < b) and c + 2 > d and f('x') and b ilike $2 | 5, like 'a%'",
            ),
            (
                "select a from t where b > 5 and c in ('x', 'y') or b>9 and c in ('x','y')",
                "select a from t where b > $1 and c in ('x', 'y') or b> $2 and c in ('x','y') | 5, 9",
            ),
            (
                "select a from t where b > timestamp '1970-01-01 00:00:01.5' and c < timestamp '1970-01-02'",
                "select a from t where b > $1 and c < $2 | time 1500000000, time 86400000000000",
            ),
        ];
        for (sql, expected) in cases {
            assert_eq!(shape(sql), expected, "{sql}");
        }
    }

    #[test]
    fn holes_may_be_filled_again() {
        let sql = "select a from t where b = 5 and c%2=1 and d < 'x' or e > 7";
        let narrowed = |kept: &[bool]| holed(sql).unwrap().narrowed(sql, kept);
        let some = narrowed(&[true, false, false, true]).unwrap();
        assert_eq!(written(&some), "select a from t where b = $1 and c%2=1 and d < 'x' or e > $2 | 5, 7");
        assert_eq!(narrowed(&[false; 4]), None);
    }

    #[test]
    fn what_is_no_operand_of_its_own_has_no_hole() {
        for sql in [
            "select a from t where b = 5 + 1",
            "select a from t where b = 1e5",
            "select a from t where b = 'x' || 'y'",
            "select a from t where b = 5::int",
            "select a from t where b = E'x'",
            "select a from t where b = $1",
            "select a from t where b = 5 and c = $1",
            "select a from t where b = timestamp '1994-01-01T00:00:00'",
            "select a from t where b = timestamp '1994-01-01 00:00:00+02:00'",
            "select a from t where b = timestamp '1994-01-01 00:00:00.'",
            "select a from t where b = timestamp '1994-01-01 24:00:00'",
            "select a from t where c + 5 is null or x - 3 < y",
            "select a from t where b >= date '1994-1-01'",
            "select a from t where b >= date '1994-02-30'",
            "select a from t where b < date '1994-01-01' + interval '1' hour",
            "select a from t where b < date '1994-01-01' + interval '1 day'",
            "select a from t where b < date '1994-01-01' + interval '1' year + c",
            "select a from t where b < date '1994-01-01' * interval '1' year",
            "select (select max(a) from t where b = 5) from t",
            "select a from t where b -> 5",
            "select a from t where b like 'x' escape '!'",
            "select a from t where b = interval '1' day",
            "select a = 5 from t",
            "explain select a from t where b = 5",
            "execute p(5)",
            "select a from t where b = 'x",
        ] {
            assert_eq!(shape(sql), "none", "{sql}");
        }
    }
}
