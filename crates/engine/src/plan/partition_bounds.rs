//! The first rows of each partition without a sort of all rows: a bound that those rows reach, for each partition.
//!
//! ```text
//! rows ─ largest value of each bucket of each partition ─ bounds ─ scan: rows at or above the bound of their partition
//! ```
//!
//! The *value* of a row is what its rank has below the keys of the partition. Rows of a partition fall into buckets by
//! a hash of their numbers, and a bucket keeps its largest value. The bound is a value that so many buckets reach as
//! rows are wanted: as many rows reach it, and no row below it is wanted. A few rows more pass (the coupons of k of B
//! buckets, B · (1/B + … + 1/(B−k+1)) rows), and the sort behind the scan has those alone. Of ranks with ties the bits
//! below the keys of the order are set, so that rows pass with all of their peers; of dense ranks buckets are chosen by
//! the value, so that their largest values differ.
//!
//! Source: the bound is the threshold of a top-k (crates/engine/src/plan/topk_form.rs), found without a sample.

use crate::error::{EngineError, Result};
use crate::ir::{FirstOfPartitions, WindowCall, WindowFunction};
use crate::plan::topk_rank::Ranks;

/// Most rows that are wanted of a partition: each is compared with as many buckets and more.
const ROWS_MAX: u64 = 32;
/// Rows of the scan for each that may pass, at least; below that a sort of all rows costs no more.
const ROWS_PER_CANDIDATE: u64 = 4;
/// Most bits of a partition's number.
const PARTITION_BITS_MAX: u32 = 28;

/// How rows get values, and partitions bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartitionBounds {
    /// Bits of a rank below the number of its partition; none where all rows are one.
    pub(crate) partition_shift: Option<u32>,
    /// Numbers of partitions.
    pub(crate) partitions: u64,
    /// Bits of a rank below its value.
    pub(crate) value_shift: u32,
    /// The bits of a value, and those of them that are set whatever the row.
    pub(crate) value_mask: u64,
    pub(crate) peers_mask: u64,
    /// Buckets of a partition, a power of two.
    pub(crate) buckets: u64,
    /// Whether buckets are chosen by the value.
    pub(crate) distinct: bool,
    /// Rows that are wanted of a partition.
    pub(crate) rows: u64,
}

/// The lowest `count` bits.
fn low_bits(count: u32) -> u64 {
    u64::MAX.checked_shr(64 - count.min(64)).unwrap_or(0)
}

impl PartitionBounds {
    /// Bounds for the first rows by a window, of so many rows by ranks with row numbers; none where they do not pay.
    ///
    /// # Errors
    /// Malformed if the window is not there or gives no numbers.
    pub(crate) fn new(
        FirstOfPartitions { window, rows: wanted }: FirstOfPartitions,
        windows: &[WindowCall],
        ranks: &Ranks,
        rows: u64,
    ) -> Result<Option<PartitionBounds>> {
        let malformed = || EngineError::Malformed(format!("first rows by window {window}"));
        let call = windows.get(window).ok_or_else(malformed)?;
        let below = |keys: usize| match keys.checked_sub(1) {
            None => Some(ranks.key_bits),
            Some(last) => ranks.parts.get(last).map(|part| part.shift),
        };
        let [partition, peers] = [call.partition, call.order.max(call.partition)].map(below);
        let (partition, peers) = (partition.ok_or_else(malformed)?, peers.ok_or_else(malformed)?);
        let (with_peers, distinct) = match call.function {
            WindowFunction::RowNumber => (false, false),
            WindowFunction::Rank => (true, false),
            WindowFunction::DenseRank => (true, true),
            _ => return Err(malformed()),
        };
        let partition_bits = ranks.key_bits - partition;
        let has_order = !with_peers || peers < partition;
        let is_wanted = (1..=ROWS_MAX).contains(&wanted);
        if ranks.tail_bits.is_some() || partition_bits > PARTITION_BITS_MAX || !has_order || !is_wanted {
            return Ok(None);
        }
        let shift = partition + ranks.row_bits;
        let value_shift = shift.saturating_sub(64);
        let bounds = PartitionBounds {
            partition_shift: (partition_bits > 0).then_some(shift),
            partitions: 1 << partition_bits,
            value_shift,
            value_mask: low_bits(shift),
            peers_mask: if with_peers { low_bits((peers + ranks.row_bits).saturating_sub(value_shift)) } else { 0 },
            buckets: if wanted == 1 { 1 } else { (wanted + 1).next_power_of_two() },
            distinct,
            rows: wanted,
        };
        Ok((bounds.candidates() * ROWS_PER_CANDIDATE <= rows).then_some(bounds))
    }

    /// Rows that are expected to pass, at most.
    pub(crate) fn candidates(&self) -> u64 {
        2 * (self.rows + 1) * self.partitions
    }

    /// Bytes of the largest values.
    pub(crate) fn cell_bytes(&self) -> usize {
        8 * (self.partitions * self.buckets) as usize
    }

    /// Bytes of the bounds.
    pub(crate) fn bytes(&self) -> usize {
        8 * self.partitions as usize
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType;

    use super::*;
    use crate::facts::Facts;
    use crate::ir::{Expr, OrderKey, Ty};

    fn ranks(order: &Facts, rows: u64) -> Ranks {
        let key = || OrderKey { expr: Expr::Reg(0), descending: true, nulls_first: false };
        let partition = Facts::new(Ty::I32, false, Some((0, 1023)));
        Ranks::new(&[key(), key()], &[partition, order.clone()], &[], rows).unwrap()
    }

    fn bounds(function: WindowFunction, wanted: u64, ranks: &Ranks, rows: u64) -> Option<PartitionBounds> {
        let call = WindowCall { function, partition: 1, order: 2, data_type: DataType::UInt64 };
        PartitionBounds::new(FirstOfPartitions { window: 0, rows: wanted }, &[call], ranks, rows).unwrap()
    }

    #[test]
    fn values_are_what_lies_below_the_partition() {
        let rows = 1 << 20;
        let narrow = ranks(&Facts::new(Ty::I32, false, Some((-128, 127))), rows);
        let found = bounds(WindowFunction::RowNumber, 3, &narrow, rows).unwrap();
        assert_eq!((found.partition_shift, found.value_shift, found.value_mask), (Some(29), 0, (1 << 29) - 1));
        assert_eq!((found.peers_mask, found.buckets, found.candidates()), (0, 4, 8 * 1024));
        let found = bounds(WindowFunction::Rank, 1, &narrow, rows).unwrap();
        assert_eq!((found.peers_mask, found.buckets, found.distinct), ((1 << 21) - 1, 1, false));
        // Of doubles the number of the row is no part of the value.
        let wide = ranks(&Facts::new(Ty::F64, false, None), rows);
        let found = bounds(WindowFunction::DenseRank, 2, &wide, rows).unwrap();
        assert_eq!((found.partition_shift, found.value_shift, found.value_mask), (Some(85), 21, u64::MAX));
        assert_eq!((found.peers_mask, found.buckets, found.distinct), (0, 4, true));
    }

    #[test]
    fn bounds_are_not_taken_where_most_rows_would_pass() {
        let of = |wanted, rows| {
            let ranks = ranks(&Facts::new(Ty::I32, false, Some((0, 9))), rows);
            bounds(WindowFunction::RowNumber, wanted, &ranks, rows).is_some()
        };
        assert!(of(1, 16 * 1024) && !of(1, 16 * 1024 - 1));
        assert!(of(32, 1 << 20) && !of(33, 1 << 20) && !of(0, 1 << 20));
        let ranks = ranks(&Facts::new(Ty::I32, false, Some((0, 9))), 1 << 20);
        let first = FirstOfPartitions { window: 0, rows: 1 };
        assert!(PartitionBounds::new(first, &[], &ranks, 1 << 20).is_err());
    }
}
