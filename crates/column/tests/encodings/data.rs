//! Segments to encode: storages by distributions, with and without nulls.

use warpcube_column::Storage;
use warpcube_column::format::Plain;
use warpcube_gpu::{Device, EmulatorOptions, LaneOrder};

/// How the values of a segment are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    Constant,
    Sorted,
    Runs,
    Uniform,
    Normal,
    Zipf,
    FewDistinct,
    Extremes,
    MostlySmall,
    Decimals,
    NaNs,
}

/// All distributions.
pub const DISTRIBUTIONS: [Distribution; 11] = [
    Distribution::Constant,
    Distribution::Sorted,
    Distribution::Runs,
    Distribution::Uniform,
    Distribution::Normal,
    Distribution::Zipf,
    Distribution::FewDistinct,
    Distribution::Extremes,
    Distribution::MostlySmall,
    Distribution::Decimals,
    Distribution::NaNs,
];

/// Which rows are null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nulls {
    None,
    Some,
    All,
}

/// A plain segment that owns its values.
pub struct Segment {
    pub storage: Storage,
    pub values: Vec<u8>,
    pub validity: Option<Vec<u32>>,
    pub rows: usize,
}

impl Segment {
    /// Values by their bits, padded with zeros; null slots hold zero.
    pub fn new(storage: Storage, bits: &[u64], valid: Option<&[bool]>) -> Segment {
        let (rows, width) = (bits.len(), storage.width());
        let padded = rows.next_multiple_of(1024);
        let mut values = vec![0; padded * width];
        let is_valid = |row: usize| valid.is_none_or(|valid| valid[row]);
        for row in (0..rows).filter(|row| is_valid(*row)) {
            values[row * width..(row + 1) * width].copy_from_slice(&bits[row].to_le_bytes()[..width]);
        }
        let validity = valid.map(|valid| {
            let mut words = vec![0u32; padded / 32];
            valid.iter().enumerate().for_each(|(row, valid)| words[row / 32] |= u32::from(*valid) << (row % 32));
            words
        });
        Segment { storage, values, validity, rows }
    }

    /// A segment as drawn.
    pub fn draw(storage: Storage, distribution: Distribution, nulls: Nulls, rows: usize, seed: u64) -> Segment {
        let mut random = Random(seed);
        let bits = bits(storage, distribution, rows, &mut random);
        let valid: Option<Vec<bool>> = match nulls {
            Nulls::None => None,
            Nulls::Some => Some((0..rows).map(|_| !random.next().is_multiple_of(5)).collect()),
            Nulls::All => Some(vec![false; rows]),
        };
        Segment::new(storage, &bits, valid.as_deref())
    }

    pub fn plain(&self) -> Plain<'_> {
        Plain::new(self.storage, &self.values, self.validity.as_deref(), self.rows).unwrap()
    }

    pub fn is_valid(&self, row: usize) -> bool {
        self.validity.as_ref().is_none_or(|words| words[row / 32] >> (row % 32) & 1 == 1)
    }

    /// Bits of a row's value.
    pub fn bits(&self, row: usize) -> u64 {
        let width = self.storage.width();
        let mut bytes = [0; 8];
        bytes[..width].copy_from_slice(&self.values[row * width..(row + 1) * width]);
        u64::from_le_bytes(bytes)
    }
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Between 0 and 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn bits(storage: Storage, distribution: Distribution, rows: usize, random: &mut Random) -> Vec<u64> {
    let mut sorted = 0u64;
    let base = random.next();
    let mut value = move |row: usize| match distribution {
        Distribution::Constant => number(storage, base as i64 >> 20),
        Distribution::Sorted => {
            sorted += random.next() % 4;
            number(storage, sorted as i64)
        }
        Distribution::Runs => number(storage, (Random(base + row as u64 / 37).next() >> 50) as i64),
        Distribution::Uniform => random.next(),
        Distribution::Normal => {
            let sum: f64 = (0..12).map(|_| random.share()).sum();
            number(storage, (1e6 + (sum - 6.0) * 1e3) as i64)
        }
        Distribution::Zipf => number(storage, (1.0 / (1.0 - random.share())) as i64),
        Distribution::FewDistinct => Random(base + random.next() % 5).next(),
        Distribution::Extremes => extreme(storage, random.next()),
        Distribution::MostlySmall => {
            let wide = random.next().is_multiple_of(50);
            if wide { random.next() } else { number(storage, (random.next() % 100) as i64) }
        }
        Distribution::Decimals => decimal(storage, (random.next() % 100_000) as i64),
        Distribution::NaNs => nan(storage, random.next()),
    };
    let bits = (0..rows).map(&mut value);
    bits.map(|bits| if storage == Storage::Bool { bits & 1 } else { low(storage, bits) }).collect()
}

fn low(storage: Storage, bits: u64) -> u64 {
    if storage.width() == 8 { bits } else { bits & ((1 << (8 * storage.width())) - 1) }
}

fn number(storage: Storage, value: i64) -> u64 {
    match storage {
        Storage::F32 => u64::from((value as f32).to_bits()),
        Storage::F64 => (value as f64).to_bits(),
        _ => value as u64,
    }
}

fn decimal(storage: Storage, hundredths: i64) -> u64 {
    match storage {
        Storage::F32 => u64::from((hundredths as f32 / 100.0).to_bits()),
        Storage::F64 => (hundredths as f64 / 100.0).to_bits(),
        _ => hundredths as u64,
    }
}

fn extreme(storage: Storage, random: u64) -> u64 {
    let top = 1 << (8 * storage.width() - 1);
    let float = |value: f64| match storage {
        Storage::F32 => u64::from((value as f32).to_bits()),
        _ => value.to_bits(),
    };
    if storage.is_float() {
        let known = [f64::MAX, f64::MIN, 0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, 5e-324, 1e16, -1.5];
        return float(known[random as usize % known.len()]);
    }
    [top, top - 1, 0, u64::MAX, 1, top + 1][random as usize % 6]
}

/// NaNs of any payload and sign among numbers.
fn nan(storage: Storage, random: u64) -> u64 {
    match storage {
        Storage::F32 if random & 3 != 0 => 0x7f80_0000 | random >> 8 & 0x807f_ffff,
        Storage::F64 if random & 3 != 0 => 0x7ff0 << 48 | random & 0x800f_ffff_ffff_ffff,
        _ => decimal(storage, (random >> 2 & 0xffff) as i64),
    }
}

/// A device: the emulated one with lanes in this order, or the first GPU if `WARPCUBE_TEST_DEVICE` is `cuda`.
pub fn device(order: LaneOrder, budget: u64) -> Device {
    match std::env::var("WARPCUBE_TEST_DEVICE").as_deref() {
        Ok("cuda") => Device::cuda(0, Some(budget)).unwrap(),
        _ => Device::emulated(EmulatorOptions { order, ..EmulatorOptions::default() }, budget).unwrap(),
    }
}
