//! Text of numbers: each number has a word of its own, so that texts of different numbers differ.

use crate::draw::Draw;

/// Two letters each.
const SYLLABLES: [&str; 32] = [
    "ka", "ro", "mi", "te", "so", "lu", "ne", "vi", "da", "po", "zh", "ar", "el", "on", "iz", "ut", "be", "go", "fa",
    "hi", "ju", "ko", "la", "mo", "na", "os", "pe", "ri", "sa", "to", "ul", "ve",
];
/// The same number of Cyrillic ones, as most titles and phrases are Russian.
const CYRILLIC: [&str; 32] = [
    "ка", "ро", "ми", "те", "со", "лу", "не", "ви", "да", "по", "жи", "ар", "ел", "он", "из", "ут", "бе", "го", "фа",
    "хи", "ню", "ко", "ла", "мо", "на", "ос", "пе", "ри", "са", "то", "ул", "ве",
];

/// An alphabet of words.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words(&'static [&'static str; 32]);

/// Latin words, of addresses.
pub(super) const LATIN: Words = Words(&SYLLABLES);
/// Cyrillic words.
pub(super) const RUSSIAN: Words = Words(&CYRILLIC);

impl Words {
    /// Writes the word of a number: its digits in base 32.
    pub(super) fn word(self, mut number: u64, to: &mut String) {
        loop {
            to.push_str(self.0[(number % 32) as usize]);
            number /= 32;
            if number == 0 {
                return;
            }
        }
    }

    /// Writes words that the number chooses, each behind a separator, until `to` has `length` characters more.
    pub(super) fn fill(self, draw: Draw, number: u64, separator: char, length: u64, to: &mut String) {
        let (mut bits, mut turn, mut left) = (draw.bits(number), 0, length);
        while left > 3 {
            // A word of two to four syllables takes at most 20 bits for them and 2 for their number.
            let syllables = (2 + bits % 3).min(left / 2).max(1);
            bits /= 3;
            to.push(separator);
            for _ in 0..syllables {
                to.push_str(self.0[(bits % 32) as usize]);
                bits /= 32;
            }
            left = left.saturating_sub(1 + 2 * syllables);
            turn += 1;
            if turn % 2 == 0 {
                bits = draw.bits(number ^ (turn << 48));
            }
        }
    }
}
