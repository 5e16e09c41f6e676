//! Groups of rows, with the cells of [`crate::plan::cells`]: by key where keys are few, else by an index of keys.

use std::sync::Arc;

use rayon::iter::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};
use warpcube_column::VECTOR_ROWS as ROWS;

use super::evaluate::in_total_order;
use super::keys::{Index, Keys, hash, share_of, shares_of};
use super::program::{Program, overflow};
use super::rows::Words;
use super::values::{Data, Register, Selection, Value, with_slots};
use crate::error::{EngineError, Result};
use crate::float_sum::LIMB_BITS;
use crate::ir::Ty;
use crate::plan::cells::{CellOp, Part, Read};
use crate::plan::float_limbs::FloatLimbs;
use crate::plan::groups::{Grouping, GroupsPlan};

/// Most cells that lie by key: they stay in the cache of a core.
const DENSE_CELLS: u64 = 1 << 16;

/// An aggregate's argument and the rows that it takes.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) argument: Option<Program>,
    pub(super) filter: Option<Program>,
}

/// Where groups have their numbers.
#[derive(Debug)]
enum Numbers {
    /// The only one.
    Single,
    /// The key, with a flag where a row has come.
    Dense(Vec<u8>),
    Indexed(Index),
}

/// Groups of a thread, or of all.
#[derive(Debug)]
pub(super) struct Groups {
    plan: Arc<GroupsPlan>,
    numbers: Numbers,
    /// Cells of a group, side by side.
    cells: Vec<u64>,
    /// The numbers of the groups of a vector's rows.
    places: Box<[u32; ROWS]>,
    /// Whether a float had bits outside of the limbs of its exact sum.
    pub(super) lacks_limbs: bool,
    /// Rows that have come.
    rows_in: u64,
}

/// Whether a cell is one of an exact sum of floats.
fn is_of_limbs(part: &Part) -> bool {
    matches!(part, Part::Limbs | Part::Limb(_) | Part::Infinite)
}

impl Groups {
    pub(super) fn new(plan: &Arc<GroupsPlan>) -> Groups {
        let count = plan.cells.cells.len();
        let (numbers, groups) = match plan.grouping {
            Grouping::Single => (Numbers::Single, 1),
            _ if plan.pack.words == 1 && plan.pack.domain <= DENSE_CELLS / count.max(1) as u64 => {
                (Numbers::Dense(vec![0; plan.pack.domain as usize]), plan.pack.domain as usize)
            }
            _ => (Numbers::Indexed(Index::new(plan.pack.words)), 0),
        };
        Groups {
            plan: plan.clone(),
            numbers,
            cells: vec![0; groups * count],
            places: Box::new([0; ROWS]),
            lacks_limbs: false,
            rows_in: 0,
        }
    }

    /// Finds the groups of a vector's rows.
    pub(super) fn enter(&mut self, keys: &Keys, rows: &Selection) {
        match &mut self.numbers {
            Numbers::Single => {}
            Numbers::Dense(seen) => {
                let keys = &keys.words[0];
                rows.each(|row| {
                    self.places[row] = keys[row] as u32;
                    seen[keys[row] as usize] = 1;
                });
            }
            Numbers::Indexed(index) => {
                let mut key = vec![0; keys.words.len()];
                rows.each(|row| {
                    key.iter_mut().zip(&keys.words).for_each(|(word, words)| *word = words[row]);
                    self.places[row] = index.insert(&key, hash(&key)) as u32;
                });
                self.cells.resize(index.len() * self.plan.cells.cells.len(), 0);
            }
        }
    }

    /// Adds rows of a vector to the cells of their groups; registers of scanned cells begin at `first_register`.
    ///
    /// # Errors
    /// Evaluation errors of these rows.
    pub(super) fn add(
        &mut self,
        calls: &[Call],
        (registers, first_register): (&[Register], usize),
        rows: &Selection,
    ) -> Result<()> {
        let plan = self.plan.clone();
        self.rows_in += rows.len() as u64;
        let cells = &plan.cells.cells;
        for (at, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.call.is_none()) {
            if let Part::Cell(register) = cell.part {
                self.put(at, (cell.op, cell.part), Some((&registers[first_register + register].value(), false)), rows);
            } else {
                self.put(at, (cell.op, cell.part), None, rows);
            }
        }
        for (number, call) in calls.iter().enumerate() {
            let is_counted = cells.iter().any(|cell| cell.call == Some(number));
            if !is_counted && !call.argument.as_ref().is_some_and(|argument| argument.is_fallible) {
                continue;
            }
            let filtered = match &call.filter {
                None => None,
                Some(filter) => {
                    let truths = filter.evaluate(registers, rows)?;
                    Some(rows.filtered(|row| truths.bits(row) != 0 && truths.is_valid(row)))
                }
            };
            let taken = filtered.as_ref().unwrap_or(rows);
            let value = call.argument.as_ref().map(|argument| argument.evaluate(registers, taken)).transpose()?;
            let valid = match &value {
                Some(value) if value.valid.is_some() => Some(taken.filtered(|row| value.is_valid(row))),
                _ => None,
            };
            let taken = valid.as_ref().unwrap_or(taken);
            if let (Read::Wide { most: Some(most), .. }, Some(value)) = (plan.cells.outputs[number].read, &value) {
                let mut raises = false;
                with_slots!(value.of_wide(), at => taken.each(|row| raises |= at(row) > most || at(row) < -most));
                if raises {
                    return Err(overflow());
                }
            }
            if let (Read::Fixed { cell, window, infinite }, Some(value)) = (plan.cells.outputs[number].read, &value)
                && cells[cell].call == Some(number)
            {
                self.put_limbs((cell, infinite), window, value, taken);
            }
            let is_unsigned = call.argument.as_ref().is_some_and(|argument| argument.facts.ty == Ty::U64);
            let own = cells.iter().enumerate().filter(|(_, cell)| cell.call == Some(number));
            for (at, cell) in own.filter(|(_, cell)| !is_of_limbs(&cell.part)) {
                match cell.part {
                    Part::Cell(register) => self.put(
                        at,
                        (cell.op, cell.part),
                        Some((&registers[first_register + register].value(), false)),
                        taken,
                    ),
                    part => self.put(at, (cell.op, part), value.as_ref().map(|value| (value, is_unsigned)), taken),
                }
            }
        }
        Ok(())
    }

    /// Adds floats to the limbs of an exact sum ([`crate::FloatSum`]), and counts those that are not finite.
    fn put_limbs(
        &mut self,
        (first, infinite): (usize, usize),
        window: FloatLimbs,
        value: &Value<'_>,
        rows: &Selection,
    ) {
        let count = self.plan.cells.cells.len();
        let single = matches!(self.numbers, Numbers::Single);
        let (cells, places, lacks_limbs) = (&mut self.cells, &self.places, &mut self.lacks_limbs);
        let below = (LIMB_BITS * window.first) as u32;
        with_slots!(value.of_floats(), of => rows.each(|row| {
            let cells = &mut cells[if single { 0 } else { places[row] as usize * count }..][..count];
            let value = of(row);
            if !value.is_finite() {
                let (up, down) = (value.is_nan() || value > 0.0, value.is_nan() || value < 0.0);
                cells[infinite] = cells[infinite].wrapping_add(u64::from(up) + (u64::from(down) << 32));
                return;
            }
            let bits = value.to_bits();
            let (exponent, fraction) = ((bits >> 52 & 0x7ff) as u32, bits & ((1 << 52) - 1));
            let mantissa = if exponent == 0 { fraction } else { fraction | 1 << 52 };
            // Bits below the first limb of the window have to be zero.
            let position = exponent.max(1) - 1;
            let lost = below.saturating_sub(position);
            if mantissa != 0 && mantissa.trailing_zeros() < lost {
                *lacks_limbs = true;
                return;
            }
            let position = (position + lost - below) as usize;
            let shifted = u128::from(mantissa.checked_shr(lost).unwrap_or(0)) << (position % LIMB_BITS);
            for part in 0..3 {
                let limb = u64::from((shifted >> (part * LIMB_BITS)) as u32);
                let at = position / LIMB_BITS + part;
                if limb != 0 && at >= window.limbs {
                    *lacks_limbs = true;
                } else if limb != 0 {
                    let signed = if value.is_sign_negative() { limb.wrapping_neg() } else { limb };
                    cells[first + at] = cells[first + at].wrapping_add(signed);
                }
            }
        }));
    }

    /// Puts a part of values into a cell of the groups of rows.
    fn put(&mut self, at: usize, (op, part): (CellOp, Part), value: Option<(&Value<'_>, bool)>, rows: &Selection) {
        macro_rules! put {
            ($of:expr) => {
                match op {
                    CellOp::AddFloat => {
                        self.fold(at, rows, $of, |cell, value| (f64::from_bits(cell) + f64::from_bits(value)).to_bits())
                    }
                    CellOp::Max => self.fold(at, rows, $of, u64::max),
                    _ => self.fold(at, rows, $of, u64::wrapping_add),
                }
            };
        }
        let is_unsigned = value.is_some_and(|(_, is_unsigned)| is_unsigned);
        match value.map(|(value, _)| &value.data) {
            None => put!(|_: usize| 1),
            Some(Data::Integers(slots)) => with_slots!(slots, of => match part {
                Part::One => put!(|_: usize| 1),
                Part::Low => put!(|row: usize| u64::from(of(row) as u32)),
                Part::Middle => put!(|row: usize| u64::from((of(row) >> 32) as u32)),
                Part::Highest => put!(|row: usize| (of(row) >> 63) as u64),
                // Of integers of 64 bits without a sign the sign is a bit of the value.
                Part::High { signed: false } if is_unsigned => put!(|row: usize| of(row) as u64 >> 32),
                Part::High { .. } => put!(|row: usize| (of(row) >> 32) as u64),
                Part::Float => put!(|row: usize| (of(row) as f64).to_bits()),
                Part::Image { signed, turned, .. } => {
                    let flip = if signed { 1 << 63 } else { 0 };
                    put!(|row: usize| if turned { !(of(row) as u64 ^ flip) } else { of(row) as u64 ^ flip })
                }
                _ => put!(|row: usize| of(row) as u64),
            }),
            Some(Data::Wide(slots)) => with_slots!(slots, of => match part {
                Part::One => put!(|_: usize| 1),
                Part::Low => put!(|row: usize| u64::from(of(row) as u32)),
                Part::Middle => put!(|row: usize| u64::from((of(row) >> 32) as u32)),
                Part::High { .. } => put!(|row: usize| (of(row) >> 32) as u64),
                Part::Highest => put!(|row: usize| (of(row) >> 64) as u64),
                _ => put!(|row: usize| of(row) as u64),
            }),
            Some(Data::Floats(slots)) => with_slots!(slots, of => match part {
                Part::One => put!(|_: usize| 1),
                // Integers that doubles hold.
                Part::Integer => put!(|row: usize| of(row) as i64 as u64),
                Part::Image { turned, .. } => {
                    let image = |row: usize| in_total_order(of(row)) as u64 ^ 1 << 63;
                    put!(|row: usize| if turned { !image(row) } else { image(row) })
                }
                _ => put!(|row: usize| of(row).to_bits()),
            }),
        }
    }

    #[inline(always)]
    fn fold(&mut self, at: usize, rows: &Selection, of: impl Fn(usize) -> u64, join: impl Fn(u64, u64) -> u64) {
        let count = self.plan.cells.cells.len();
        if let Numbers::Single = self.numbers {
            let mut cell = self.cells[at];
            rows.each(|row| cell = join(cell, of(row)));
            self.cells[at] = cell;
            return;
        }
        let (cells, places) = (&mut self.cells, &self.places);
        rows.each(|row| {
            let cell = &mut cells[places[row] as usize * count + at];
            *cell = join(*cell, of(row));
        });
    }

    /// Adds the groups of another thread, which are numbered by key.
    fn merge(mut self, other: Groups) -> Groups {
        let count = self.plan.cells.cells.len();
        if let (Numbers::Dense(own), Numbers::Dense(seen)) = (&mut self.numbers, &other.numbers) {
            own.iter_mut().zip(seen).for_each(|(own, seen)| *own |= seen);
        }
        if count > 0 {
            let both = self.cells.chunks_exact_mut(count).zip(other.cells.chunks_exact(count));
            both.for_each(|(own, other)| join(&self.plan, own, other));
        }
        self
    }

    /// The groups of some threads that belong to a share of all, by their hashes.
    fn share(groups: &[Groups], hashes: &[Vec<u64>], (share, shares): (usize, usize)) -> Groups {
        let mut all = Groups::new(&groups[0].plan);
        let count = all.plan.cells.cells.len();
        let Numbers::Indexed(own) = &mut all.numbers else { return all };
        for (groups, hashes) in groups.iter().zip(hashes) {
            let Numbers::Indexed(index) = &groups.numbers else { continue };
            for (number, hash) in hashes.iter().enumerate().filter(|(_, hash)| share_of(**hash, shares) == share) {
                let place = own.insert(index.key(number), *hash);
                all.cells.resize(own.len() * count, 0);
                join(&all.plan, &mut all.cells[place * count..][..count], &groups.cells[number * count..][..count]);
            }
        }
        all
    }

    /// The groups of all threads, as rows of words: those of the key, then the cells.
    ///
    /// # Errors
    /// An overflow where more rows have come than cells hold the sums of.
    pub(super) fn finish(mut groups: Vec<Groups>) -> Result<Words> {
        let Some(first) = groups.first() else { return Err(EngineError::Malformed("groups of no thread".into())) };
        let most = first.plan.cells.matches_max;
        if most.is_some_and(|most| groups.iter().map(|groups| groups.rows_in).sum::<u64>() > most) {
            return Err(overflow());
        }
        let shared = match (&first.numbers, groups.len()) {
            (Numbers::Indexed(_), 2..) => {
                let hashes: Vec<Vec<u64>> = groups.par_iter().map(Groups::hashes).collect();
                let shares = shares_of(hashes.iter().map(Vec::len).sum());
                let share = |share| Groups::share(&groups, &hashes, (share, shares)).rows();
                (0..shares).into_par_iter().map(share).collect::<Vec<_>>()
            }
            _ => {
                let last = groups.pop();
                let all = groups.into_iter().fold(last, |all, other| all.map(|all| all.merge(other)));
                all.iter().map(Groups::rows).collect()
            }
        };
        let all = shared.into_iter().reduce(|mut all, mut other| {
            all.words.append(&mut other.words);
            all.count += other.count;
            all
        });
        all.ok_or_else(|| EngineError::Malformed("groups of no thread".into()))
    }

    /// Hashes of the keys by number.
    fn hashes(&self) -> Vec<u64> {
        match &self.numbers {
            Numbers::Indexed(index) => (0..index.len()).map(|number| hash(index.key(number))).collect(),
            Numbers::Single | Numbers::Dense(_) => Vec::new(),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        let keys = match &self.numbers {
            Numbers::Single => 0,
            Numbers::Dense(seen) => seen.len() as u64,
            Numbers::Indexed(index) => index.bytes(),
        };
        keys + 8 * self.cells.len() as u64
    }

    /// The groups as rows of words: those of the key, then the cells.
    fn rows(&self) -> Words {
        let (count, key_words) = (self.plan.cells.cells.len(), self.plan.pack.words);
        let mut rows = Words { words: Vec::new(), row_words: key_words + count, count: 0 };
        let mut push = |key: &[u64], number: usize| {
            rows.words.extend_from_slice(key);
            rows.words.extend_from_slice(&self.cells[number * count..][..count]);
            rows.count += 1;
        };
        match &self.numbers {
            Numbers::Single => push(&vec![0; key_words], 0),
            Numbers::Dense(seen) => {
                let numbers = seen.iter().enumerate().filter(|(_, seen)| **seen != 0);
                numbers.for_each(|(number, _)| push(&[number as u64], number));
            }
            Numbers::Indexed(index) => (0..index.len()).for_each(|number| push(index.key(number), number)),
        }
        rows
    }
}

/// Adds the cells of a group to those of the same group.
fn join(plan: &GroupsPlan, own: &mut [u64], other: &[u64]) {
    for ((own, other), cell) in own.iter_mut().zip(other).zip(&plan.cells.cells) {
        *own = match cell.op {
            CellOp::AddFloat => (f64::from_bits(*own) + f64::from_bits(*other)).to_bits(),
            CellOp::Max => (*own).max(*other),
            _ => own.wrapping_add(*other),
        };
    }
}
