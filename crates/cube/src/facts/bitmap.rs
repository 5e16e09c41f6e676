//! A bitmap of filled cells.

/// One bit a cell; a set bit marks a filled cell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bitmap {
    words: Vec<u64>,
    length: usize,
}

impl Bitmap {
    /// A bitmap of `length` bits from 64-bit words, bit *i* in word *i* / 64; bits beyond the length are cleared.
    ///
    /// Returns nothing if the number of words does not fit the length.
    pub fn from_words(mut words: Vec<u64>, length: usize) -> Option<Bitmap> {
        if words.len() != length.div_ceil(64) {
            return None;
        }
        if let Some(last) = words.last_mut().filter(|_| length % 64 != 0) {
            *last &= (1 << (length % 64)) - 1;
        }
        Some(Bitmap { words, length })
    }

    /// The 64-bit words.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Number of bits.
    pub fn len(&self) -> usize {
        self.length
    }

    /// True if the bitmap has no bits.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Bit `index`.
    pub fn get(&self, index: usize) -> bool {
        self.words[index / 64] >> (index % 64) & 1 == 1
    }

    /// Number of set bits.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }
}

impl FromIterator<bool> for Bitmap {
    fn from_iter<I: IntoIterator<Item = bool>>(bits: I) -> Bitmap {
        let mut bitmap = Bitmap::default();
        for bit in bits {
            if bitmap.length.is_multiple_of(64) {
                bitmap.words.push(0);
            }
            if let Some(word) = bitmap.words.last_mut() {
                *word |= u64::from(bit) << (bitmap.length % 64);
            }
            bitmap.length += 1;
        }
        bitmap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_kept_at_the_edges_of_words() {
        for length in [0, 1, 63, 64, 65, 128, 130] {
            let bitmap: Bitmap = (0..length).map(|index| index % 3 == 0).collect();
            assert_eq!(bitmap.len(), length);
            assert!((0..length).all(|index| bitmap.get(index) == (index % 3 == 0)));
            assert_eq!(bitmap.count(), length.div_ceil(3));
            assert_eq!(Bitmap::from_words(bitmap.words().to_vec(), length), Some(bitmap));
        }
    }

    #[test]
    fn words_are_checked_against_the_length() {
        assert_eq!(Bitmap::from_words(vec![0], 65), None);
        assert_eq!(Bitmap::from_words(vec![u64::MAX], 3).unwrap().count(), 3);
    }
}
