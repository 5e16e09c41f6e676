//! The values of base cells that a component adds up, as elements of a monoid.

use std::ops::Range;

use super::monoid::Monoid;

/// Where the values of base cells come from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source<'a> {
    /// Decimals.
    Decimals(&'a [i64]),
    /// Doubles.
    Doubles(&'a [f64]),
    /// Row counts.
    Counts(&'a [u64]),
    /// The same number each.
    Each(i64),
}

impl Source<'_> {
    /// Appends the values of `range`.
    pub(super) fn read<M: Monoid>(self, range: Range<usize>, out: &mut Vec<M>) {
        match self {
            Source::Decimals(values) => out.extend(values[range].iter().map(|&value| M::of_decimal(value))),
            Source::Doubles(values) => out.extend(values[range].iter().map(|&value| M::of_double(value))),
            Source::Counts(values) => out.extend(values[range].iter().map(|&value| M::of_decimal(value as i64))),
            Source::Each(number) => out.extend(range.map(|_| M::of_decimal(number))),
        }
    }

    /// The value of one cell.
    pub(crate) fn value<M: Monoid>(self, cell: usize) -> M {
        match self {
            Source::Decimals(values) => M::of_decimal(values[cell]),
            Source::Doubles(values) => M::of_double(values[cell]),
            Source::Counts(values) => M::of_decimal(values[cell] as i64),
            Source::Each(number) => M::of_decimal(number),
        }
    }
}
