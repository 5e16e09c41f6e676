//! Key tuples packed into few integers.
//!
//! With bounds on every part, a tuple (k₀, …, kₙ) becomes Σ (kᵢ − lowᵢ) · strideᵢ, a bijection onto [0, domain). A part
//! that may be NULL has one more place, 0. Where the domain fits 63 bits one word holds a key: small domains index
//! arrays directly, larger ones are hashed. Otherwise parts are spread over as many words of 64 bits as they need,
//! which are hashed together. A float is its bits, both zeros being one value; a decimal wider than 64 bits is its
//! bits, in two words.

use crate::facts::Facts;
use crate::ir::Ty;

/// Number of values of a word.
const WORD: u128 = 1 << 64;

/// Where a part keeps whether it is NULL.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Null {
    /// It never is.
    Never,
    /// Place 0.
    First,
    /// A place of its own: a full word leaves none.
    Apart { word: usize, stride: u64 },
}

/// One part of a packed key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeyPart {
    /// Smallest valid value.
    pub(crate) low: i128,
    /// Number of places, that of NULL included if it is the first.
    pub(crate) places: u128,
    /// Where it is kept that the part is NULL.
    pub(crate) null: Null,
    /// Word that holds the part, or its lower 64 bits.
    pub(crate) word: usize,
    /// Word of its upper 64 bits, where it is a value of 128.
    pub(crate) high: Option<usize>,
    /// Distance of neighbouring values in the word.
    pub(crate) stride: u64,
}

/// How a tuple is packed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeyPack {
    /// The parts in order.
    pub(crate) parts: Vec<KeyPart>,
    /// Words of a key.
    pub(crate) words: usize,
    /// Number of packed keys; all ones where those do not fit 63 bits.
    pub(crate) domain: u64,
}

impl KeyPack {
    /// Whether every tuple of these values is a key.
    pub(crate) fn has_all(&self, values: &[Facts]) -> bool {
        let has = |(part, value): (&KeyPart, &Facts)| {
            let last = part.places.checked_sub(1).and_then(|more| part.low.checked_add_unsigned(more));
            let is_plain = part.null == Null::Never && part.high.is_none() && !value.ty.is_float();
            let is_within = |(low, high)| part.low <= low && last.is_some_and(|last| high <= last);
            is_plain && !value.nullable && value.dictionary.is_none() && value.bounds().is_some_and(is_within)
        };
        self.parts.len() == values.len() && self.parts.iter().zip(values).all(has)
    }
}

/// The values of a part.
#[derive(Debug, Clone, Copy)]
struct Span {
    /// The smallest one.
    low: i128,
    /// How many there are; of a word of a value of 128 bits.
    values: u128,
    nullable: bool,
    /// Whether a value has 128 bits.
    is_wide: bool,
}

impl Span {
    fn of(value: &Facts, nullable: bool) -> Span {
        let nullable = nullable && value.nullable;
        let (low, high) = match (value.ty, value.bounds()) {
            (Ty::F32, _) => (0, u32::MAX.into()),
            (Ty::F64, _) => (0, u64::MAX.into()),
            _ if value.is_wide() => return Span { low: 0, values: WORD, nullable, is_wide: true },
            // A column with no valid value has no bounds of its own; one place is enough for it.
            (_, Some((low, high))) if low <= high => (low, high),
            _ => (0, 0),
        };
        Span { low, values: (high - low) as u128 + 1, nullable, is_wide: false }
    }
}

impl KeyPack {
    /// A packing of group keys with these bounds; NULL has a place of its own.
    pub(crate) fn of_groups(values: &[Facts]) -> KeyPack {
        KeyPack::new(values, true)
    }

    /// A packing of join keys with these bounds; NULL has no place.
    pub(crate) fn of_join(values: &[Facts]) -> KeyPack {
        KeyPack::new(values, false)
    }

    fn new(values: &[Facts], nullable: bool) -> KeyPack {
        let spans: Vec<Span> = values.iter().map(|value| Span::of(value, nullable)).collect();
        KeyPack::in_one_word(&spans).unwrap_or_else(|| KeyPack::in_words(&spans))
    }

    fn in_one_word(spans: &[Span]) -> Option<KeyPack> {
        let mut domain: u128 = 1;
        let mut parts = Vec::with_capacity(spans.len());
        for Span { low, values, nullable, is_wide } in spans.iter().rev() {
            let places = values + u128::from(*nullable);
            let null = if *nullable { Null::First } else { Null::Never };
            parts.push(KeyPart { low: *low, places, null, word: 0, high: None, stride: domain as u64 });
            domain = domain.checked_mul(places).filter(|domain| !is_wide && *domain < 1 << 63)?;
        }
        parts.reverse();
        Some(KeyPack { parts, words: 1, domain: domain as u64 })
    }

    fn in_words(spans: &[Span]) -> KeyPack {
        let (mut word, mut used) = (0usize, 1u128);
        let mut place = |places: u128| {
            if used.checked_mul(places).is_none_or(|used| used > WORD) {
                (word, used) = (word + 1, 1);
            }
            // The stride of a part with one place does not matter; it may be past the word.
            let stride = u64::try_from(used).unwrap_or(1);
            used *= places;
            (word, stride)
        };
        let mut parts = Vec::with_capacity(spans.len());
        for Span { low, values, nullable, is_wide } in spans {
            let apart = *nullable && *values == WORD;
            let places = values + u128::from(*nullable && !apart);
            let (word, stride) = place(places);
            let high = is_wide.then(|| place(WORD).0);
            let null = match *nullable {
                false => Null::Never,
                true if apart => {
                    let (word, stride) = place(2);
                    Null::Apart { word, stride }
                }
                true => Null::First,
            };
            parts.push(KeyPart { low: *low, places, null, word, high, stride });
        }
        KeyPack { parts, words: word + 1, domain: u64::MAX }
    }

    /// The smallest value of the only part, where a key is that part less this value.
    pub(crate) fn only_low(&self) -> Option<i128> {
        match self.parts.as_slice() {
            [KeyPart { low, null: Null::Never, word: 0, high: None, stride: 1, .. }] => Some(*low),
            _ => None,
        }
    }

    /// Whether keys need all bits of their words, so that none is left to mark an empty slot.
    pub(crate) fn is_wide(&self) -> bool {
        self.domain == u64::MAX
    }

    /// Reads one part of packed keys.
    pub(crate) fn reader(&self, part: usize) -> PartReader {
        let KeyPart { low, places, null, word, high, stride } = self.parts[part];
        // The place of NULL is below that of the lowest value.
        let low = low - i128::from(null == Null::First);
        PartReader { low, null, word, high, stride: Divisor::new(stride.into()), places: Divisor::new(places) }
    }
}

/// Reads one part of packed keys, each given by its words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartReader {
    low: i128,
    null: Null,
    word: usize,
    high: Option<usize>,
    stride: Divisor,
    places: Divisor,
}

impl PartReader {
    fn place(&self, word: impl Fn(usize) -> u64) -> u64 {
        self.places.remainder(self.stride.quotient(word(self.word)))
    }

    /// Whether the part is NULL in any key.
    pub(crate) fn is_nullable(&self) -> bool {
        self.null != Null::Never
    }

    /// Whether the part is NULL in a key.
    pub(crate) fn is_null(&self, word: impl Fn(usize) -> u64) -> bool {
        match self.null {
            Null::Never => false,
            Null::First => self.place(word) == 0,
            Null::Apart { word: at, stride } => word(at) / stride % 2 == 1,
        }
    }

    /// The part's value in a key, where it is not NULL; a float is its bits.
    pub(crate) fn value(&self, word: impl Fn(usize) -> u64) -> i128 {
        match self.high {
            None => self.low + i128::from(self.place(word)),
            Some(high) => i128::from(word(high) as i64) << 64 | i128::from(word(self.word)),
        }
    }
}

/// Divides words by one number up to 2⁶⁴, by two multiplications: Lemire, Kaser and Kurz, "Faster Remainder by Direct
/// Computation", 2019, with 128 bits of fraction.
#[derive(Debug, Clone, Copy)]
struct Divisor {
    divisor: u128,
    /// 2¹²⁸ ÷ divisor, rounded up; zero for one.
    inverse: u128,
}

impl Divisor {
    fn new(divisor: u128) -> Divisor {
        Divisor { divisor, inverse: (u128::MAX / divisor).wrapping_add(1) }
    }

    fn quotient(&self, word: u64) -> u64 {
        if self.divisor == 1 {
            return word;
        }
        let times = |part: u128| part * u128::from(word);
        ((times(self.inverse >> 64) + (times(self.inverse % WORD) >> 64)) >> 64) as u64
    }

    fn remainder(&self, word: u64) -> u64 {
        word.wrapping_sub(self.quotient(word).wrapping_mul(self.divisor as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(range: (i128, i128), nullable: bool) -> Facts {
        Facts::new(Ty::I64, nullable, Some(range))
    }

    /// The part's value in a packed key; `None` is NULL.
    fn read(pack: &KeyPack, packed: &[u64], part: usize) -> Option<i128> {
        let (reader, word) = (pack.reader(part), |at: usize| packed[at]);
        (!reader.is_null(word)).then(|| reader.value(word))
    }

    #[test]
    fn words_are_divided_by_any_number() {
        let near = |number: u128| [number.saturating_sub(1), number, number + 1];
        let numbers: Vec<u128> =
            (0..=64).flat_map(|bits| near(1 << bits)).chain([10, 150, 1_000_003, 3 << 61]).collect();
        for divisor in numbers.iter().copied().filter(|number| (1..=WORD).contains(number)) {
            let divided = Divisor::new(divisor);
            let multiples = [1, 2, 1000].map(|times| u128::from(u64::MAX) / divisor / times * divisor);
            for word in numbers.iter().copied().chain(multiples.into_iter().flat_map(near)).filter(|word| *word < WORD)
            {
                let found = (divided.quotient(word as u64).into(), divided.remainder(word as u64).into());
                assert_eq!(found, (word / divisor, word % divisor), "{word} by {divisor}");
            }
        }
    }

    #[test]
    fn packing_is_a_bijection() {
        let pack = KeyPack::of_groups(&[value((-1, 1), true), value((10, 12), false)]);
        assert_eq!((pack.domain, pack.words), (12, 1));
        let tuples: Vec<_> = (0..12).map(|packed| (read(&pack, &[packed], 0), read(&pack, &[packed], 1))).collect();
        assert_eq!(tuples[0], (None, Some(10)));
        assert_eq!(tuples[11], (Some(1), Some(12)));
        let distinct: std::collections::HashSet<_> = tuples.iter().collect();
        assert_eq!(distinct.len(), 12);
    }

    #[test]
    fn a_domain_past_63_bits_takes_more_words() {
        let half = value((0, (1 << 32) - 1), false);
        let pack = KeyPack::of_join(&[half.clone(), half.clone(), half.clone()]);
        assert_eq!(pack.words, 2);
        let packed = [(7 << 32) + 5, 3];
        assert_eq!([0, 1, 2].map(|part| read(&pack, &packed, part)), [Some(5), Some(7), Some(3)]);
        let all = value((i64::MIN.into(), i64::MAX.into()), false);
        let pack = KeyPack::of_groups(std::slice::from_ref(&all));
        assert_eq!((pack.words, pack.is_wide(), read(&pack, &[u64::MAX], 0)), (1, true, Some(i64::MAX.into())));
        let full = value((i64::MIN.into(), i64::MAX.into()), true);
        let one = value((4, 4), false);
        let pack = KeyPack::of_groups(&[full.clone(), one, full, half]);
        // A full word, its flag with one more place and the flag of the next full word.
        assert_eq!(pack.words, 4);
        assert_eq!(read(&pack, &[0, 0, 0, 0], 0), Some(i64::MIN.into()));
        assert_eq!(read(&pack, &[u64::MAX, 0, 0, 0], 0), Some(i64::MAX.into()));
        assert_eq!((read(&pack, &[0, 1, 0, 0], 0), read(&pack, &[0, 1, 0, 0], 1)), (None, Some(4)));
    }

    #[test]
    fn a_value_of_128_bits_takes_two_words() {
        let wide = |nullable| Facts { ty: Ty::I128, ..value((-(1 << 70), 1 << 70), nullable) };
        let pack = KeyPack::of_join(&[wide(true)]);
        assert_eq!((pack.words, pack.is_wide(), pack.only_low()), (2, true, None));
        let small = value((0, 9), false);
        let pack = KeyPack::of_groups(&[small, wide(true)]);
        // The small part, the value's words, and whether it is NULL.
        assert_eq!(pack.words, 4);
        for number in [0, -1, 1 << 70, -(1 << 70), (3 << 64) + 5] {
            let packed = [7, number as u64, (number >> 64) as u64, 0];
            assert_eq!([0, 1].map(|part| read(&pack, &packed, part)), [Some(7), Some(number)]);
        }
        assert_eq!(read(&pack, &[7, 0, 0, 1], 1), None);
    }
}
