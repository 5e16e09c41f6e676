//! How many rows a scale factor means, by the rules of the reference generator, oddities included: scale factors
//! above 1 count as whole numbers, those below 1 shrink every table, and parts grow with the logarithm.

use crate::{DatagenError, check_scale};

/// Days from 1992-01-01 to 1998-12-31.
pub(super) const DAYS: u64 = 2557;

/// The table sizes at one scale factor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    /// The factor below 1, or 1.
    fraction: f64,
    /// The whole factor, at least 1.
    whole: u64,
}

impl Scale {
    pub(super) fn new(sf: f64) -> Result<Self, DatagenError> {
        check_scale(sf)?;
        Ok(Self { fraction: sf.min(1.0), whole: sf.max(1.0) as u64 })
    }

    /// The rows of a table with `base` rows at scale factor 1, before they are multiplied.
    fn base(self, base: u64) -> u64 {
        ((base as f64 * self.fraction) as u64).max(1)
    }

    pub(super) fn customers(self) -> u64 {
        self.base(30_000) * self.whole
    }

    pub(super) fn suppliers(self) -> u64 {
        self.base(2_000) * self.whole
    }

    pub(super) fn parts(self) -> u64 {
        let steps = (1.0 + (self.whole as f64).ln() / 2f64.ln()).floor();
        (self.base(200_000) as f64 * steps) as u64
    }

    /// The largest part key that orders refer to. The reference takes the natural logarithm here and the binary one
    /// for the number of parts: above scale factor 3 some parts are never ordered.
    pub(super) fn largest_ordered_part(self) -> u64 {
        let steps = (self.whole as f64).ln().floor() + 1.0;
        (self.base(200_000) as f64 * steps) as u64
    }

    pub(super) fn orders(self) -> u64 {
        self.base(1_500_000) * self.whole
    }

    /// How far the streams of orders have moved before the first order. The reference makes the date table first,
    /// and its code for that table equals that of the orders table in TPC-H, so each day moves every stream of
    /// orders by one. (Below scale factor 1 it shrinks the date table too; ours stays whole, see
    /// [`SsbTable::Date`](super::SsbTable::Date), but the streams follow the reference.)
    pub(super) fn days_before_orders(self) -> u64 {
        self.base(DAYS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_the_reference() {
        let sizes = |sf| {
            let scale = Scale::new(sf).expect("a sound scale");
            (scale.customers(), scale.suppliers(), scale.parts(), scale.orders(), scale.largest_ordered_part())
        };
        assert_eq!(sizes(1.0), (30_000, 2_000, 200_000, 1_500_000, 200_000));
        assert_eq!(sizes(20.0), (600_000, 40_000, 1_000_000, 30_000_000, 600_000));
        assert_eq!(sizes(8.0).2, 800_000);
        assert_eq!(sizes(0.01), (300, 20, 2_000, 15_000, 2_000));
        assert_eq!(sizes(1.9), sizes(1.0));
        assert_eq!(sizes(1e-9), (1, 1, 1, 1, 1));
    }
}
