//! A small seeded generator (SplitMix64): the same seed gives the same case on every machine.

/// The state of the generator.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator for a seed; neighbouring seeds give unrelated numbers.
    pub fn new(seed: u64) -> Random {
        let mut random = Random(seed ^ 0x5EED_5EED_5EED_5EED);
        random.next();
        random
    }

    /// 64 random bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not zero.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Whether something that happens `percent` of the time happens.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    /// A number between two bounds, both included.
    pub fn between(&mut self, low: i128, high: i128) -> i128 {
        let bits = (u128::from(self.next()) << 64) | u128::from(self.next());
        match (high.wrapping_sub(low) as u128).checked_add(1) {
            Some(span) => low.wrapping_add((bits % span) as i128),
            None => bits as i128,
        }
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }
}
