//! What a pipeline leaves as the rows of another: the columns that a scan reads of a group table, or of first rows, and
//! the values that they stand for.
//!
//! A scanned group table has a place for each row: its first column is the packed key plus one (zero where there is no
//! group), the others are the cells. Keys of several words have a column each behind the first, which tells only
//! whether there is a group. Values of groups and aggregates are computed from those, where a row asks for
//! them.

use crate::error::{EngineError, Result};
use crate::facts::{Facts, Range, analyse};
use crate::ir::{AggregateCall, AggregateKind, BinaryOp, Expr, Literal, Overflow, Ty};
use crate::plan::cells::{CellOp, Output, Read, United};
use crate::plan::keys::{KeyPart, Null};
use crate::plan::order::Planned;

/// The column of a group table that holds its keys.
const ENTRY: usize = 0;

/// Whether a step of a scan of groups asks only whether there is a group.
pub(crate) fn is_of_entry(planned: &Planned) -> bool {
    let (mut reads, mut others) = (false, false);
    planned.item.registers(&mut |register| match register {
        ENTRY => reads = true,
        _ => others = true,
    });
    reads && !others
}

/// A value of a group: a part of its key or an aggregate.
#[derive(Debug, Clone)]
pub(crate) struct GroupValue {
    /// What is known of it.
    pub(crate) facts: Facts,
    pub(crate) read: GroupRead,
    /// Columns before the cells.
    pub(crate) first_cell: usize,
}

/// What a value of a group is computed from.
#[derive(Debug, Clone)]
pub(crate) enum GroupRead {
    /// A part of a key; `short` tells whether strides and numbers of places are all less than 2^32, and may divide in
    /// 32 bits. A scan of 7,168 places, 280 of them groups, takes 13.0 µs so and 14.4 otherwise (one H200, 2026-11-28).
    Key { part: KeyPart, short: bool },
    /// Cells of an aggregate.
    Aggregate(Output),
    /// A word of a stored row ([`crate::plan::row_layout`]), or two, and the bit of a word that tells whether it is
    /// valid.
    Stored { valid: (usize, u32), word: usize, wide: bool },
}

/// What is known of the values of aggregates over at most `rows` rows with these registers.
pub(crate) fn aggregate_facts(
    aggregates: &[(&AggregateCall, Option<&United>)],
    registers: &[Option<Facts>],
    (rows, overflow): (u64, Overflow),
) -> Result<Vec<Facts>> {
    let facts = |(call, united): &(&AggregateCall, Option<&United>)| {
        if let Some(united) = united {
            return Ok(united.facts.clone());
        }
        let argument = call.argument.iter().collect::<Vec<_>>();
        let argument = analyse(&argument, registers, overflow)?.0.pop();
        let ty = Ty::of(&call.data_type).unwrap_or(Ty::I64);
        let value = argument.unwrap_or_else(|| Facts::new(ty, false, None));
        Ok(match call.kind {
            AggregateKind::Count => Facts::new(ty, false, Some((0, rows.into()))),
            AggregateKind::Sum if !ty.is_float() => Facts::new(ty, true, sum_range(value.bounds(), rows, ty)),
            AggregateKind::Sum | AggregateKind::ExactSum => Facts::new(ty, true, None),
            AggregateKind::Min | AggregateKind::Max => Facts { ty, nullable: true, is_null: false, ..value },
        })
    };
    aggregates.iter().map(facts).collect()
}

/// Bounds of sums of 1 to `rows` values; none where they leave the type, which then is an error or wraps.
pub(crate) fn sum_range(values: Range, rows: u64, ty: Ty) -> Range {
    let (low, high) = values?;
    let rows = i128::from(rows.max(1));
    let bounds =
        (if low < 0 { low.checked_mul(rows)? } else { low }, if high > 0 { high.checked_mul(rows)? } else { high });
    let (least, most) = ty.bounds()?;
    (bounds.0 >= least && bounds.1 <= most).then_some(bounds)
}

/// The filter that leaves the places at which there is a group.
pub(crate) fn is_group() -> Expr {
    let none = Expr::Literal(Literal::Int(0), Ty::U64);
    Expr::binary(BinaryOp::Ne, Expr::Reg(ENTRY), none)
}

impl GroupValue {
    /// A part of a key of `domain` ones, behind so many columns.
    pub(crate) fn of_key(facts: Facts, part: KeyPart, first_cell: usize, domain: u64) -> GroupValue {
        // One part of a domain of 2^32 may have as many places.
        GroupValue { facts, read: GroupRead::Key { part, short: domain < 1 << 32 }, first_cell }
    }

    /// Whether computing it can raise an error: a sum that may leave its type.
    pub(crate) fn is_fallible(&self) -> bool {
        let is_wide = matches!(&self.read, GroupRead::Aggregate(output) if matches!(output.read, Read::Wide { .. }));
        is_wide && self.facts.ty != Ty::I128
    }

    /// Calls `visit` for each column of the group table that it is computed from.
    pub(crate) fn columns(&self, visit: &mut impl FnMut(usize)) {
        match &self.read {
            GroupRead::Key { part, .. } => {
                std::iter::once(part.word).chain(part.high).for_each(|word| visit(self.word(word)));
                if let Null::Apart { word, .. } = part.null {
                    visit(self.word(word));
                }
            }
            GroupRead::Stored { valid, word, wide } => {
                visit(*word);
                if *wide {
                    visit(word + 1);
                }
                if self.facts.nullable {
                    visit(valid.0);
                }
            }
            GroupRead::Aggregate(output) => {
                output.read.cells().into_iter().for_each(|(_, cell)| visit(self.first_cell + cell));
                output.count.iter().for_each(|count| visit(self.first_cell + count));
            }
        }
    }

    /// The column of a word of the key.
    pub(crate) fn word(&self, word: usize) -> usize {
        if self.first_cell == 1 { ENTRY } else { 1 + word }
    }
}

impl United {
    /// What a call unites of groups whose values have the registers from `first` on; none if it takes values of rows.
    ///
    /// # Errors
    /// Malformed if its argument is no aggregate of scanned groups.
    pub(crate) fn of(call: &AggregateCall, values: &[GroupValue], first: usize) -> Result<Option<United>> {
        if !call.unites {
            return Ok(None);
        }
        let malformed = || EngineError::Malformed("accumulators are united of what is no aggregate".into());
        let Some(Expr::Reg(register)) = &call.argument else { return Err(malformed()) };
        let value = register.checked_sub(first).and_then(|value| values.get(value)).ok_or_else(malformed)?;
        let GroupRead::Aggregate(output) = &value.read else { return Err(malformed()) };
        let mut cells = output.read.cells();
        let read = output.read.of_cells(&(0..cells.len()).collect::<Vec<_>>());
        let count = output.count.map(|count| {
            cells.push((CellOp::Add, count));
            cells.len() - 1
        });
        cells.iter_mut().for_each(|(_, cell)| *cell += value.first_cell);
        let (data_type, dictionary) = (call.data_type.clone(), output.dictionary.clone());
        Ok(Some(United { facts: value.facts.clone(), cells, output: Output { read, data_type, count, dictionary } }))
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType;

    use super::*;
    use crate::ir::AggregateKind;
    use crate::plan::cells::{Accumulators, SumBounds};

    #[test]
    fn accumulators_are_united_cell_by_cell() {
        let call = |kind, argument| {
            let data_type = DataType::Int64;
            AggregateCall { kind, argument, filter: None, data_type, unites: false }
        };
        let calls = [call(AggregateKind::Count, None), call(AggregateKind::Min, Some(Expr::Reg(0)))];
        let registers = vec![Some(Facts::new(Ty::I64, true, Some((0, 99))))];
        let bounds = SumBounds { rows: 1 << 20, unmatched: None, whole_sums: false, overflow: Overflow::Raise };
        let rows: Vec<_> = calls.iter().map(|call| (call, None)).collect();
        let known = Accumulators::of(&rows, &registers, true, bounds).unwrap();
        let value = |output: &Output| GroupValue {
            facts: Facts::new(Ty::I64, output.count.is_some(), Some((0, 9))),
            read: GroupRead::Aggregate(output.clone()),
            first_cell: 1,
        };
        let values: Vec<GroupValue> = known.outputs.iter().map(value).collect();
        let unites = |at: usize| AggregateCall { argument: Some(Expr::Reg(5 + at)), unites: true, ..calls[at].clone() };
        let (count, least) = (unites(0), unites(1));
        let [of_count, of_least] = [&count, &least].map(|call| United::of(call, &values, 5).unwrap().unwrap());
        assert_eq!(of_least.cells.iter().map(|(op, _)| *op).collect::<Vec<_>>(), [CellOp::Max, CellOp::Add]);
        assert_eq!(of_least.facts.range, Some((0, 9)));
        let bounds = SumBounds { rows: 1 << 40, unmatched: None, whole_sums: false, overflow: Overflow::Raise };
        let aggregates = [(&count, Some(&of_count)), (&least, Some(&of_least))];
        let united = Accumulators::of(&aggregates, &[], false, bounds).unwrap();
        let scanned = |output: &Output| -> Vec<usize> {
            let cells = output.read.cells().into_iter().map(|(_, cell)| cell).chain(output.count);
            cells.filter_map(|cell| united.cells[cell].of_scanned()).collect()
        };
        // Each takes the columns of the cells that it was read of before.
        for (own, of) in united.outputs.iter().zip(&known.outputs) {
            let before = of.read.cells().into_iter().map(|(_, cell)| 1 + cell).chain(of.count.map(|cell| 1 + cell));
            assert_eq!(scanned(own), before.collect::<Vec<_>>());
        }
        let rows = AggregateCall { argument: Some(Expr::Reg(0)), ..count.clone() };
        assert!(United::of(&rows, &values, 5).is_err(), "a column is no aggregate");
    }
}
