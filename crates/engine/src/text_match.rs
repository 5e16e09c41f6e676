//! Tests of strings against constants: LIKE, lists, order. Kernels do them over bytes (`kernels/text_match.cuh`), this
//! file in plain Rust.
//!
//! A test is a table of pieces in device memory. A piece is a run of bytes; 255, which UTF-8 does not have, stands for
//! any character.
//!
//! ```text
//! 0    pieces  u32, their number P
//! 4    ends    u32: bit 0 if the first piece is the start of a string, bit 1 if the last one is the end
//! 8    piece   [P] × 5 × u32: its first byte in the table; its bytes; the first four as a word; the mask of those up
//!              to the first that may be any; its characters if one of them may be any, else 0
//! then bytes   those of the pieces, then zeros, which kernels load and do not use
//! ```

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, StringArray};

use crate::ir::BinaryOp;

/// A byte of a piece that stands for any character.
const ANY: u8 = 255;
/// Words before the pieces, and of a piece.
const HEAD_WORDS: usize = 2;
const PIECE_WORDS: usize = 5;
/// Zeros behind the pieces.
const PADDING: usize = 16;
/// Share of strings that a test of a kind is expected to hold for, where nothing is known of them.
const LIKE_SHARE: f64 = 0.1;
const ORDER_SHARE: f64 = 0.33;
/// The same of equality with one constant: a column of bytes has many distinct strings.
const EQUAL_SHARE: f64 = 1e-3;

/// A test of a string that is not NULL; of NULL the outcome is NULL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextMatch {
    /// Whether the string is one of these.
    In(Vec<Arc<str>>),
    /// Whether the string is before or behind a constant, in the order of bytes; one of `Lt`, `Le`, `Gt` and `Ge`.
    Order(BinaryOp, Arc<str>),
    /// LIKE.
    Like(LikePattern),
}

/// A pattern of LIKE: `%` stands for any characters, `_` for one, a backslash takes the next character as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LikePattern {
    /// The pattern as SQL has it.
    text: Arc<str>,
    /// What stands between `%`, without what is empty.
    pieces: Vec<Vec<u8>>,
    is_start: bool,
    is_end: bool,
}

impl LikePattern {
    /// The pattern of LIKE.
    pub fn new(pattern: &str) -> LikePattern {
        let mut parts: Vec<Vec<u8>> = vec![Vec::new()];
        let mut chars = pattern.chars();
        while let Some(char) = chars.next() {
            let part = parts.last_mut().expect("there is one");
            let literal = match char {
                '%' => {
                    parts.push(Vec::new());
                    continue;
                }
                '_' => {
                    part.push(ANY);
                    continue;
                }
                // One at the end stands for itself.
                '\\' => chars.next().unwrap_or('\\'),
                other => other,
            };
            part.extend_from_slice(literal.encode_utf8(&mut [0; 4]).as_bytes());
        }
        let is_whole = parts.len() == 1;
        let is_piece = |part: Option<&Vec<u8>>| is_whole || part.is_some_and(|part| !part.is_empty());
        let (is_start, is_end) = (is_piece(parts.first()), is_piece(parts.last()));
        parts.retain(|part| is_whole || !part.is_empty());
        LikePattern { text: pattern.into(), pieces: parts, is_start, is_end }
    }

    /// The pattern of the strings that begin with, end with or contain `text`, by whether something may stand before or
    /// behind it.
    pub fn around(text: &str, before: bool, behind: bool) -> LikePattern {
        LikePattern::quoted(String::from(if before { "%" } else { "" }), text, behind)
    }

    /// The pattern of the strings that have `text` behind so many characters, by whether something may stand behind it.
    pub fn after(chars: usize, text: &str, behind: bool) -> LikePattern {
        LikePattern::quoted("_".repeat(chars), text, behind)
    }

    /// What strings that match begin with, where nothing but their beginning, or all of them, is asked for.
    fn beginning(&self) -> Option<&[u8]> {
        let [piece] = self.pieces.as_slice() else { return None };
        (self.is_start && !piece.contains(&ANY)).then_some(piece)
    }

    fn quoted(mut pattern: String, text: &str, behind: bool) -> LikePattern {
        for char in text.chars() {
            if matches!(char, '%' | '_' | '\\') {
                pattern.push('\\');
            }
            pattern.push(char);
        }
        pattern.push_str(if behind { "%" } else { "" });
        LikePattern::new(&pattern)
    }

    /// Whether a string matches: the first piece at the start and the last one at the end, if they stand there, and the
    /// others between, each at its first place.
    fn matches(&self, text: &[u8]) -> bool {
        let (mut pieces, mut at, mut limit) = (&self.pieces[..], 0, text.len());
        if self.is_start {
            let Some(end) = match_piece(&pieces[0], text, 0, limit) else { return false };
            if pieces.len() == 1 && self.is_end {
                return end == limit;
            }
            (at, pieces) = (end, &pieces[1..]);
        }
        if self.is_end {
            let (last, others) = pieces.split_last().expect("the last piece is another than the first");
            let start = (at..=limit).rev().find(|start| match_piece(last, text, *start, limit) == Some(limit));
            let Some(start) = start else { return false };
            (limit, pieces) = (start, others);
        }
        pieces.iter().all(|piece| {
            let end = (at..=limit).find_map(|start| match_piece(piece, text, start, limit));
            at = end.unwrap_or(at);
            end.is_some()
        })
    }
}

impl TextMatch {
    /// The positions among sorted strings for which it holds, if those are neighbours whatever its constants are: of
    /// equality with one, of order, of beginnings.
    pub(crate) fn run(&self, strings: &StringArray) -> Option<Range<usize>> {
        let all = 0..strings.len();
        let below = |text: &str| partition_point(all.clone(), |at| strings.value(at) < text);
        let up_to = |text: &str| partition_point(all.clone(), |at| strings.value(at) <= text);
        Some(match self {
            TextMatch::In(texts) => {
                let [text] = texts.as_slice() else { return None };
                below(text)..up_to(text)
            }
            TextMatch::Order(BinaryOp::Lt, text) => 0..below(text),
            TextMatch::Order(BinaryOp::Le, text) => 0..up_to(text),
            TextMatch::Order(BinaryOp::Gt, text) => up_to(text)..all.end,
            TextMatch::Order(_, text) => below(text)..all.end,
            TextMatch::Like(pattern) => {
                let beginning = pattern.beginning()?;
                let first = partition_point(all.clone(), |at| strings.value(at).as_bytes() < beginning);
                first..partition_point(first..all.end, |at| pattern.matches(strings.value(at).as_bytes()))
            }
        })
    }

    /// The test in kernel source.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            TextMatch::In(_) => "WC_IN",
            TextMatch::Like(_) => "WC_LIKE",
            TextMatch::Order(BinaryOp::Lt, _) => "WC_LT",
            TextMatch::Order(BinaryOp::Le, _) => "WC_LE",
            TextMatch::Order(BinaryOp::Gt, _) => "WC_GT",
            TextMatch::Order(_, _) => "WC_GE",
        }
    }

    /// Estimated share of strings for which it holds.
    pub(crate) fn share(&self) -> f64 {
        match self {
            TextMatch::In(texts) => (EQUAL_SHARE * texts.len() as f64).min(1.0),
            TextMatch::Order(_, _) => ORDER_SHARE,
            TextMatch::Like(pattern) if pattern.pieces.is_empty() => 1.0,
            TextMatch::Like(_) => LIKE_SHARE,
        }
    }

    /// Whether it holds for a string.
    pub fn holds(&self, text: &str) -> bool {
        match self {
            TextMatch::In(texts) => texts.iter().any(|known| known.as_ref() == text),
            TextMatch::Like(pattern) => pattern.matches(text.as_bytes()),
            TextMatch::Order(BinaryOp::Lt, constant) => text < constant.as_ref(),
            TextMatch::Order(BinaryOp::Le, constant) => text <= constant.as_ref(),
            TextMatch::Order(BinaryOp::Gt, constant) => text > constant.as_ref(),
            TextMatch::Order(_, constant) => text >= constant.as_ref(),
        }
    }

    /// The table in device memory.
    pub(crate) fn table(&self) -> Vec<u8> {
        match self {
            TextMatch::In(texts) => table(&texts.iter().map(|text| text.as_bytes()).collect::<Vec<_>>(), 3),
            TextMatch::Order(_, text) => table(&[text.as_bytes()], 3),
            TextMatch::Like(pattern) => {
                let pieces: Vec<&[u8]> = pattern.pieces.iter().map(Vec::as_slice).collect();
                table(&pieces, u32::from(pattern.is_start) | u32::from(pattern.is_end) << 1)
            }
        }
    }

    /// The test of a string by the name `name`, as SQL has it.
    pub(crate) fn words(&self, name: &str) -> String {
        let quoted = |text: &Arc<str>| format!("'{}'", text.replace('\'', "''"));
        match self {
            TextMatch::In(texts) if texts.len() == 1 => format!("{name} = {}", quoted(&texts[0])),
            TextMatch::In(texts) => format!("{name} IN ({})", texts.iter().map(quoted).collect::<Vec<_>>().join(", ")),
            TextMatch::Like(pattern) => format!("{name} LIKE {}", quoted(&pattern.text)),
            TextMatch::Order(op, text) => {
                let sign = match op {
                    BinaryOp::Lt => "<",
                    BinaryOp::Le => "<=",
                    BinaryOp::Gt => ">",
                    _ => ">=",
                };
                format!("{name} {sign} {}", quoted(text))
            }
        }
    }
}

fn table(pieces: &[&[u8]], ends: u32) -> Vec<u8> {
    let mut words = vec![pieces.len() as u32, ends];
    let mut first = size_of::<u32>() * (HEAD_WORDS + PIECE_WORDS * pieces.len());
    for piece in pieces {
        let fixed = piece.iter().take(4).take_while(|byte| **byte != ANY).count();
        let mut head = [0; 4];
        head[..fixed].copy_from_slice(&piece[..fixed]);
        let mask = ((1u64 << (8 * fixed)) - 1) as u32;
        let chars = if piece.contains(&ANY) { piece.iter().filter(|byte| !continues(**byte)).count() } else { 0 };
        words.extend([first as u32, piece.len() as u32, u32::from_le_bytes(head), mask, chars as u32]);
        first += piece.len();
    }
    let mut bytes: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
    pieces.iter().for_each(|piece| bytes.extend_from_slice(piece));
    bytes.resize(bytes.len() + PADDING, 0);
    bytes
}

/// Whether a byte continues a character.
fn continues(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Where the match of a piece ends that begins at a character at `at` and goes no further than `limit`.
fn match_piece(piece: &[u8], text: &[u8], mut at: usize, limit: usize) -> Option<usize> {
    if text.get(at).is_some_and(|byte| continues(*byte)) {
        return None;
    }
    for wanted in piece {
        let found = *text[..limit].get(at)?;
        if *wanted == ANY {
            at += 1;
            at += text[at..].iter().take_while(|byte| continues(**byte)).count();
        } else if *wanted == found {
            at += 1;
        } else {
            return None;
        }
    }
    (at <= limit).then_some(at)
}

/// The first position of a range for which a condition does not hold, which holds for all before and none behind.
fn partition_point(mut range: Range<usize>, holds: impl Fn(usize) -> bool) -> usize {
    while !range.is_empty() {
        let middle = range.start + range.len() / 2;
        if holds(middle) {
            range.start = middle + 1;
        } else {
            range.end = middle;
        }
    }
    range.start
}

#[cfg(test)]
mod tests {
    use arrow::array::{BooleanArray, Scalar, StringArray};
    use arrow::compute::kernels::comparison::like;

    use super::*;

    /// All strings of up to `length` of these characters.
    fn strings(chars: &[char], length: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut from = 0;
        for _ in 0..length {
            let until = all.len();
            for at in from..until {
                all.extend(chars.iter().map(|char| format!("{}{char}", all[at])).collect::<Vec<_>>());
            }
            from = until;
        }
        all
    }

    #[test]
    fn patterns_match_what_arrow_says() {
        let texts = strings(&['a', 'b', 'ä', '%'], 4);
        let array = StringArray::from(texts.clone());
        for pattern in strings(&['a', 'ä', '%', '_', '\\'], 4) {
            let expected: BooleanArray = like(&array, &Scalar::new(StringArray::from(vec![pattern.clone()]))).unwrap();
            let own = TextMatch::Like(LikePattern::new(&pattern));
            for (text, expected) in texts.iter().zip(expected.iter()) {
                assert_eq!(Some(own.holds(text)), expected, "'{text}' LIKE '{pattern}'");
            }
        }
    }

    #[test]
    fn texts_in_patterns_are_taken_as_they_are() {
        for (before, behind) in [(false, false), (false, true), (true, false), (true, true)] {
            let own = TextMatch::Like(LikePattern::around("a_%\\b", before, behind));
            assert!(own.holds("a_%\\b") && !own.holds("axy\\b"));
            assert_eq!((own.holds("_a_%\\b"), own.holds("a_%\\b_")), (before, behind));
        }
        let after = |behind| TextMatch::Like(LikePattern::after(2, "%", behind));
        assert!(after(false).holds("äb%") && !after(false).holds("ab%c") && after(true).holds("ab%c"));
    }

    #[test]
    fn tables_hold_heads_of_pieces() {
        let words = |test: TextMatch| -> Vec<u32> {
            let table = test.table();
            table.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
        };
        let like = words(TextMatch::Like(LikePattern::new("ab%c_d%")));
        assert_eq!(like[..7], [2, 1, 48, 2, 0x6261, 0xffff, 0]);
        assert_eq!(like[7..12], [50, 3, 0x63, 0xff, 3]);
        let one = words(TextMatch::In(vec!["abcde".into()]));
        assert_eq!(one[..7], [1, 3, 28, 5, 0x6463_6261, 0xffff_ffff, 0]);
        assert_eq!(words(TextMatch::Like(LikePattern::new("%%")))[..2], [0, 0]);
        assert_eq!(words(TextMatch::Like(LikePattern::new("")))[..4], [1, 3, 28, 0]);
    }

    #[test]
    fn tests_in_words() {
        let words = |test: TextMatch| test.words("c");
        assert_eq!(words(TextMatch::In(vec!["it's".into()])), "c = 'it''s'");
        assert_eq!(words(TextMatch::In(vec!["a".into(), "b".into()])), "c IN ('a', 'b')");
        assert_eq!(words(TextMatch::Order(BinaryOp::Le, "a".into())), "c <= 'a'");
        assert_eq!(words(TextMatch::Like(LikePattern::new("%x_"))), "c LIKE '%x_'");
    }
}
