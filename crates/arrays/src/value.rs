//! Values of cells: 64-bit integers (decimals of a stated scale) and doubles.

use std::fmt::Debug;
use std::ops::AddAssign;

/// A value of a cell. An empty cell has no value; it is not zero.
pub trait Value: Copy + Default + PartialOrd + Debug + Send + Sync + 'static {
    /// Type in which values are added up. A sum of fewer than 2^64 integers never overflows it.
    type Sum: Copy + Default + AddAssign + Debug + Send + Sync;
    /// No value is below it.
    const LEAST: Self;
    /// No value is above it.
    const LARGEST: Self;

    /// The value as a sum of one.
    fn widen(self) -> Self::Sum;

    /// The sum as a value; absent if it exceeds the type's range.
    fn narrow(sum: Self::Sum) -> Option<Self>;

    /// The nearest double.
    fn double(self) -> f64;
}

impl Value for i64 {
    type Sum = i128;
    const LEAST: Self = Self::MIN;
    const LARGEST: Self = Self::MAX;

    #[inline]
    fn widen(self) -> i128 {
        i128::from(self)
    }

    #[inline]
    fn narrow(sum: i128) -> Option<Self> {
        Self::try_from(sum).ok()
    }

    #[inline]
    fn double(self) -> f64 {
        self as f64
    }
}

impl Value for f64 {
    type Sum = Self;
    const LEAST: Self = Self::NEG_INFINITY;
    const LARGEST: Self = Self::INFINITY;

    #[inline]
    fn widen(self) -> Self {
        self
    }

    #[inline]
    fn narrow(sum: Self) -> Option<Self> {
        Some(sum)
    }

    #[inline]
    fn double(self) -> f64 {
        self
    }
}
