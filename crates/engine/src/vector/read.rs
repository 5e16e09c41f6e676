//! What registers are read of: columns, entries of tables, values of groups.

use warpcube_column::{VECTOR_ROWS as ROWS, Values};

use super::origin::Origin;
use super::plan::{HostPipeline, HostStep};
use super::program::Program;
use super::rows::Words;
use super::scan::{Scanned, Worker, values};
use super::tables::NONE;
use super::values::{Own, Register, Selection, Value};
use crate::error::{EngineError, Result};
use crate::float_sum::FloatSum;
use crate::ir::{JoinKind, Ty};
use crate::plan::cells::Read;
use crate::plan::group_values::{GroupRead, GroupValue};
use crate::plan::keys::{KeyPart, Null};

impl Worker<'_> {
    /// Reads the registers of a program, and widens offsets.
    ///
    /// # Errors
    /// Sums of groups that have left their type.
    pub(super) fn load<'p>(&mut self, programs: impl IntoIterator<Item = &'p Program>) -> Result<()> {
        for register in programs.into_iter().flat_map(|program| &program.registers) {
            self.load_register(*register)?;
        }
        Ok(())
    }

    pub(super) fn load_register(&mut self, register: usize) -> Result<()> {
        self.read(register);
        self.registers[register].widen(&self.rows);
        match self.raises {
            true => Err(EngineError::Evaluation("an overflow")),
            false => Ok(()),
        }
    }

    /// Reads a register, if it was not read of this vector.
    pub(super) fn read(&mut self, register: usize) {
        if self.registers[register].values.is_some() {
            return;
        }
        let (chunk, vector) = (self.chunk, self.vector);
        match &self.pipeline.registers[register] {
            Origin::Column(column) => {
                let Scanned::Table { columns, .. } = self.scanned else { return };
                let register = &mut self.registers[register];
                register.values = Some(columns[*column].read(chunk, vector, &mut register.buffer));
                if let Some(words) = columns[*column].validity(chunk, vector) {
                    register.set_validity(words);
                }
            }
            Origin::Word { column, is_float } => {
                let Scanned::Rows { rows, key_words, is_wide } = self.scanned else { return };
                let (first, register) = (vector * ROWS, &mut self.registers[register]);
                let word = |row: usize| match (*column, *is_wide) {
                    (0, false) => rows.words[(first + row) * rows.row_words].wrapping_add(1),
                    (0, true) => 1,
                    (column, false) => rows.words[(first + row) * rows.row_words + key_words + column - 1],
                    (column, true) => rows.words[(first + row) * rows.row_words + column - 1],
                };
                match is_float {
                    true => self.rows.each(|row| register.buffer.floats[row] = f64::from_bits(word(row))),
                    false => self.rows.each(|row| register.buffer.integers[row] = word(row) as i64),
                }
                register.fill(if *is_float { Values::Floats } else { Values::Integers }, None);
            }
            Origin::Value(value) => self.read_value(register, value),
            Origin::Payload { step, column } => {
                let HostStep::Probe(probe) = &self.pipeline.steps[*step] else { return };
                let Some(table) = self.tables[probe.build].as_ref() else { return };
                let payload = &table.payload[*column];
                let may_lack = probe.kind == JoinKind::Left;
                payload.gather(&self.found[*step], &self.rows, &mut self.registers[register], may_lack);
            }
            Origin::Computed => {}
            Origin::Mark { step } => {
                let (found, target) = (&self.found[*step], &mut self.registers[register]);
                self.rows.each(|row| target.buffer.integers[row] = i64::from(found[row] != NONE));
                target.fill(Values::Integers, None);
            }
        }
    }

    /// Computes a value of a group.
    fn read_value(&mut self, register: usize, value: &GroupValue) {
        let Scanned::Rows { rows: groups, key_words, .. } = self.scanned else { return };
        let first = self.vector * ROWS;
        let words = |row: usize| &groups.words[(first + row) * groups.row_words..][..groups.row_words];
        let target = &mut self.registers[register];
        let (integers, floats) = (&mut target.buffer.integers, &mut target.buffer.floats);
        let mut valid = Own::new();
        let (is_float, is_unsigned) = (value.facts.ty.is_float(), value.facts.ty == Ty::U64);
        let mut wide = value.facts.is_wide().then(Own::new);
        let (least, most) = value.facts.ty.bounds().unwrap_or((i128::MIN, i128::MAX));
        let limits = least..=most;
        let mut raises = false;
        self.rows.each(|row| {
            let words = words(row);
            let (number, is_valid) = match &value.read {
                GroupRead::Key { part, .. } => key_value(part, words),
                GroupRead::Aggregate(output) => {
                    let cell = |cell: usize| words[key_words + cell];
                    let is_valid = output.count.is_none_or(|count| cell(count) != 0);
                    (read_cells(output.read, is_unsigned, cell), is_valid)
                }
                GroupRead::Stored { valid, word, wide } => {
                    let is_valid = !value.facts.nullable || words[valid.0] >> valid.1 & 1 != 0;
                    let number = match (wide, is_unsigned || is_float) {
                        (true, _) => i128::from(words[word + 1] as i64) << 64 | i128::from(words[*word]),
                        (false, true) => words[*word].into(),
                        (false, false) => (words[*word] as i64).into(),
                    };
                    (number, is_valid)
                }
            };
            valid[row] = u8::from(is_valid);
            raises |= is_valid && !is_float && !limits.contains(&number);
            integers[row] = number as i64;
            if let Some(wide) = &mut wide {
                wide[row] = number;
            }
            if is_float {
                floats[row] = match (&value.read, value.facts.ty) {
                    (GroupRead::Aggregate(output), _) if matches!(output.read, Read::Nearest(_)) => number as f64,
                    (GroupRead::Key { .. } | GroupRead::Stored { .. }, Ty::F32) => f32::from_bits(number as u32).into(),
                    (_, Ty::F32) => f64::from(f64::from_bits(number as u64) as f32),
                    _ => f64::from_bits(number as u64),
                };
            }
        });
        self.raises |= raises;
        let valid = value.facts.nullable.then_some(valid);
        match wide {
            Some(wide) => target.fill_wide(wide, valid),
            None => target.fill(if is_float { Values::Floats } else { Values::Integers }, valid),
        }
    }
}

/// A part of a packed key, and whether it is valid.
fn key_value(part: &KeyPart, words: &[u64]) -> (i128, bool) {
    let place = u128::from(words[part.word] / part.stride) % part.places;
    if let Some(high) = part.high {
        let is_valid = !matches!(part.null, Null::Apart { word, stride } if words[word] / stride % 2 != 0);
        return (i128::from(words[high] as i64) << 64 | i128::from(words[part.word]), is_valid);
    }
    match part.null {
        Null::First if place == 0 => (0, false),
        Null::First => (part.low + place as i128 - 1, true),
        Null::Never => (part.low + place as i128, true),
        Null::Apart { word, stride } => (part.low + place as i128, words[word] / stride % 2 == 0),
    }
}

/// The value of cells; a float is its bits.
fn read_cells(read: Read, is_unsigned: bool, cell: impl Fn(usize) -> u64) -> i128 {
    match read {
        Read::Integer(sum) if is_unsigned => cell(sum).into(),
        Read::Integer(sum) | Read::Nearest(sum) => (cell(sum) as i64).into(),
        Read::Float(sum) => cell(sum).into(),
        Read::Wide { low, middle: Some(middle), high, .. } => {
            let (low, middle) = (i128::from(cell(low)), i128::from(cell(middle)));
            (i128::from(cell(high) as i64) << 64) + (middle << 32) + low
        }
        Read::Wide { low, high, .. } => (i128::from(cell(high) as i64) << 32) + i128::from(cell(low)),
        Read::Image { cell: image, signed, turned, float } => {
            let image = if turned { !cell(image) } else { cell(image) };
            match (float, signed) {
                (true, _) => {
                    let bits = (image ^ 1 << 63) as i64;
                    ((bits ^ ((bits >> 63) as u64 >> 1) as i64) as u64).into()
                }
                (false, true) => ((image ^ 1 << 63) as i64).into(),
                (false, false) => image.into(),
            }
        }
        Read::Fixed { cell: first, window, infinite } => {
            let mut sum = FloatSum::new();
            sum.add_cells(window.first, (first..first + window.limbs).map(|limb| cell(limb) as i64), cell(infinite));
            sum.value().to_bits().into()
        }
    }
}

/// Values of groups, a vector of them at a time, for the expressions of a result.
///
/// # Errors
/// Evaluation errors of groups.
pub(super) fn over_groups(
    groups: &Words,
    key_words: usize,
    (programs, origins): (&[Program], &[Origin]),
    mut visit: impl FnMut(&[Value<'_>], &Selection),
) -> Result<()> {
    let scanned = Scanned::Rows { rows: groups, key_words, is_wide: false };
    let pipeline = HostPipeline::of_values(origins.to_vec());
    let mut worker = Worker::new(&pipeline, &scanned, &[]);
    for vector in 0..groups.count.div_ceil(ROWS) {
        worker.vector = vector;
        worker.registers.iter_mut().for_each(Register::clear);
        worker.rows.start_in_order(groups.count - vector * ROWS);
        worker.load(programs)?;
        visit(&values(programs, &worker.registers, &worker.rows)?, &worker.rows);
    }
    Ok(())
}
