//! The random streams of the TPC generators: Park and Miller's "minimal standard" generator (CACM, October 1988),
//! one stream a column. A stream can be moved ahead by any number of draws in logarithmic time, which is what lets
//! a table be generated from any row.

/// The modulus, the Mersenne prime 2^31 - 1.
const MODULUS: u64 = (1 << 31) - 1;
/// The multiplier, a primitive root of the modulus.
const MULTIPLIER: u64 = 16807;

/// One column's stream of random numbers.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    value: u64,
}

impl Stream {
    /// A stream that starts at `seed` and has then made `draws` draws.
    pub(crate) fn at(seed: u64, draws: u64) -> Self {
        let mut stream = Self { value: seed };
        stream.skip(power(draws));
        stream
    }

    /// Moves ahead by as many draws as `factor` stands for (see [`power`]).
    #[inline]
    pub(crate) fn skip(&mut self, factor: u64) {
        self.value = times(self.value, factor);
    }

    /// Draws an integer in `low..=high`. The arithmetic is that of the C generator, in doubles: their rounding is
    /// part of the data.
    #[inline]
    pub(crate) fn draw(&mut self, low: i64, high: i64) -> i64 {
        self.value = times(self.value, MULTIPLIER);
        let range = (high - low + 1) as f64;
        low + (self.value as f64 / MODULUS as f64 * range) as i64
    }

    /// Draws an index in `0..count`: a member of a distribution in which all members weigh the same.
    #[inline]
    pub(crate) fn index(&mut self, count: usize) -> usize {
        self.draw(0, count as i64 - 1) as usize
    }
}

/// The factor that moves a stream ahead by `draws` draws: the multiplier to that power.
pub(crate) const fn power(draws: u64) -> u64 {
    let (mut factor, mut square, mut left) = (1, MULTIPLIER, draws);
    while left > 0 {
        if left & 1 == 1 {
            factor = times(factor, square);
        }
        square = times(square, square);
        left >>= 1;
    }
    factor
}

/// `a * b` modulo 2^31 - 1, for factors below it. 2^31 is 1 in this field, so the product's upper half adds to its
/// lower half; the sum is below twice the modulus, and one subtraction brings it into range.
#[inline]
const fn times(a: u64, b: u64) -> u64 {
    let product = a * b;
    let folded = (product & MODULUS) + (product >> 31);
    if folded >= MODULUS { folded - MODULUS } else { folded }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_check_value() {
        // Park and Miller: from seed 1, the 10,000th value is 1043618065.
        assert_eq!(Stream::at(1, 10_000).value, 1_043_618_065);
    }

    #[test]
    fn skipping_equals_drawing() {
        for draws in [0, 1, 2, 7, 92, 1000] {
            let mut drawn = Stream::at(1_500_869_201, 0);
            (0..draws).for_each(|_| _ = drawn.draw(0, 9));
            assert_eq!(drawn.value, Stream::at(1_500_869_201, draws).value, "{draws} draws");
        }
    }

    #[test]
    fn draws_stay_within_their_bounds() {
        let mut stream = Stream::at(1, 0);
        let (mut low, mut high) = (i64::MAX, i64::MIN);
        for _ in 0..10_000 {
            let value = stream.draw(-3, 3);
            (low, high) = (low.min(value), high.max(value));
        }
        assert_eq!((low, high), (-3, 3));
    }
}
