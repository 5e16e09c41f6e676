//! Which cells sums and extremes take, by what bounds their arguments.

use crate::error::{EngineError, Result, unsupported};
use crate::facts::{DECIMAL_MAX, Facts, analyse};
use crate::ir::{Expr, Overflow, Ty};
use crate::plan::cells::{Accumulators, CellOp, Part, Read, SumBounds, WIDE_ROWS_MAX};
use crate::plan::float_limbs::FloatLimbs;

/// Rows below which limbs of 32 bits do not overflow a cell.
const FIXED_ROWS_MAX: u64 = 1 << 30;

/// Most that the integers differ from zero which an argument has as doubles, if doubles hold all of them.
fn of_integers(argument: &Expr, registers: &[Option<Facts>], overflow: Overflow) -> Result<Option<u128>> {
    let Expr::Cast(inner, Ty::F64) = argument else { return Ok(None) };
    let value = analyse(&[inner.as_ref()], registers, overflow)?.0.remove(0);
    let most = value.bounds().map(|(low, high)| low.unsigned_abs().max(high.unsigned_abs()));
    Ok(most.filter(|most| !value.ty.is_float() && value.dictionary.is_none() && *most <= 1 << 53))
}

impl Accumulators {
    /// Most rows, fewer than `limit`: where joins may have more, the scan counts their matches up to half of it. None
    /// if there may be as many without.
    fn rows_below(&mut self, limit: u64, bounds: SumBounds) -> Option<u64> {
        if bounds.rows < limit {
            return Some(bounds.rows.max(1));
        }
        let matches = (limit / 2).checked_sub(bounds.unmatched?)?;
        self.matches_max = Some(self.matches_max.map_or(matches, |most| most.min(matches)));
        Some(limit / 2)
    }

    pub(super) fn sum(&mut self, call: usize, value: &Facts, bounds: SumBounds) -> Result<Read> {
        if value.dictionary.is_some() || value.ty == Ty::Bool {
            return unsupported("a sum of strings or truth values");
        }
        if value.ty.is_float() {
            return Ok(Read::Float(self.cell(CellOp::AddFloat, Part::Float, Some(call), None)));
        }
        let most = value.bounds().map(|(low, high)| low.unsigned_abs().max(high.unsigned_abs()));
        let stays_below = |most: Option<u128>, rows: u64, limit: u128| {
            most.and_then(|most| most.checked_mul(rows.max(1).into())).is_some_and(|sum| sum < limit)
        };
        let is_unsigned = value.ty.bounds().is_some_and(|(low, _)| low == 0);
        let fits = |rows: u64| stays_below(most, rows, if is_unsigned { 1 << 64 } else { 1 << 63 });
        let wraps = value.ty != Ty::I128 && bounds.overflow == Overflow::Wrap;
        if fits(bounds.rows) || wraps {
            return Ok(Read::Integer(self.cell(CellOp::Add, Part::Integer, Some(call), most)));
        }
        let Some(rows) = self.rows_below(WIDE_ROWS_MAX, bounds) else {
            return unsupported(format!("a sum past 64 bits over {} rows, 2³² or more", bounds.rows));
        };
        if fits(rows) {
            return Ok(Read::Integer(self.cell(CellOp::Add, Part::Integer, Some(call), most)));
        }
        // Upper parts are summed in 63 bits, lower ones (32 bits each) in 64.
        let high_fits = stays_below(most.map(|most| (most >> 32) + 1), rows, 1 << 63);
        if value.ty != Ty::I128 && !high_fits {
            return unsupported(format!("a sum of integers past 95 bits over {rows} rows"));
        }
        let is_checked = !high_fits && !stays_below(most, rows, 10u128.pow(38));
        if is_checked && bounds.overflow == Overflow::Wrap {
            return unsupported("a sum of decimals that may exceed 38 digits");
        }
        let most = is_checked.then(|| DECIMAL_MAX / i128::from(rows.max(1)));
        let mut cell = |part| self.cell(CellOp::Add, part, Some(call), None);
        let low = cell(Part::Low);
        let middle = (!high_fits).then(|| cell(Part::Middle));
        let signed = value.ty != Ty::I128 && !is_unsigned;
        let high = cell(if high_fits { Part::High { signed } } else { Part::Highest });
        Ok(Read::Wide { low, middle, high, most })
    }

    /// The integer whose nearest double is the sum, where doubles are integers that were cast.
    pub(super) fn sum_of_integers(
        &mut self,
        call: usize,
        argument: &Expr,
        registers: &[Option<Facts>],
        bounds: SumBounds,
    ) -> Result<Option<Read>> {
        let most = of_integers(argument, registers, bounds.overflow)?;
        let most = most.filter(|most| most.checked_mul(bounds.rows.max(1).into()).is_some_and(|sum| sum < 1 << 63));
        Ok(most.map(|most| Read::Nearest(self.cell(CellOp::Add, Part::Integer, Some(call), Some(most)))))
    }

    /// The limbs of a float: those of a window, or all of them, of which usually two or three change.
    pub(super) fn exact_sum(
        &mut self,
        call: usize,
        (argument, value): (&Expr, &Facts),
        registers: &[Option<Facts>],
        bounds: SumBounds,
    ) -> Result<Read> {
        if !value.ty.is_float() {
            return Err(EngineError::Malformed(format!("an exact sum of floats over {:?}", value.ty)));
        }
        if self.rows_below(FIXED_ROWS_MAX, bounds).is_none() {
            return unsupported(format!("an exact sum of floats over {} rows, 2³⁰ or more", bounds.rows));
        }
        let window = match bounds.whole_sums {
            true => FloatLimbs::WHOLE,
            false => FloatLimbs::guess(argument, &|register| registers.get(register)?.as_ref()),
        };
        let mut limb = |limb: usize| {
            let (op, part) = match bounds.whole_sums {
                true if limb == 0 => (CellOp::AddFixed, Part::Limbs),
                true => (CellOp::Limb, Part::Limb(limb)),
                false => (CellOp::Add, Part::Limb(limb)),
            };
            self.cell(op, part, Some(call), None)
        };
        let cell = limb(0);
        (1..window.limbs).for_each(|index| _ = limb(index));
        let infinite = self.cell(CellOp::Add, Part::Infinite, Some(call), None);
        Ok(Read::Fixed { cell, window, infinite })
    }

    pub(super) fn extreme(&mut self, call: usize, value: &Facts, turned: bool) -> Result<Read> {
        if value.ty == Ty::I128 && !value.is_narrow() {
            return unsupported("MIN or MAX of decimals wider than 64 bits");
        }
        let float = value.ty.is_float();
        let signed = float || matches!(value.ty, Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 | Ty::I128);
        let part = Part::Image { signed, turned, float };
        Ok(Read::Image { cell: self.cell(CellOp::Max, part, Some(call), None), signed, turned, float })
    }
}
