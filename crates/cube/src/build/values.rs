//! Values of a measure from a column: numbers as doubles, or as whole numbers of the measure's last digit.
//!
//! Whole numbers and decimals become decimals exactly or are refused. Doubles are rounded to the scale, half away from
//! zero, as SQL casts them, and so are texts, by their digits.

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Decimal128Type, Decimal256Type, Float16Type, Float64Type, Int64Type, i256,
};

use super::keys::value_text;
use super::numbers::{Reader, Unread, remedy};
use super::typed::texts;
use crate::define::NumberStyle;
use crate::facts::{InputColumn, InputValues, Rule, ValueType};
use crate::view::decimal_text;

/// Floating-point numbers of 16 bits.
type Half = <Float16Type as ArrowPrimitiveType>::Native;

/// 2⁶³, the least double beyond 64 bits.
const TOO_LARGE: f64 = 9_223_372_036_854_775_808.0;
/// 10¹⁵: doubles tell all units from each other below it.
const UNITS_TOLD: f64 = 1e15;
/// Digits of the widest decimal of 128 bits.
const DECIMAL_DIGITS: u8 = 38;

/// A value that does not fit its measure: its row in the batch, and a predicate with what to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Misfit {
    pub(super) row: usize,
    pub(super) problem: String,
}

/// Why a value is no whole number of 64 bits.
enum Unfit {
    Digits,
    Size,
}

/// The values of one measure in a batch.
pub(super) struct MeasureValues {
    rule: Rule,
    value_type: ValueType,
    /// How numbers of texts are written.
    style: NumberStyle,
    decimals: Vec<i64>,
    doubles: Vec<f64>,
    /// Rows with a value; without entries if all have one.
    filled: Vec<bool>,
    /// Rows whose value is NaN or infinite.
    pub(super) not_finite: Vec<usize>,
    /// Doubles and texts of all batches with more digits than the scale has, and doubles with more than doubles hold.
    pub(super) rounded: u64,
}

/// Checks that values of a type are numbers.
pub(super) fn check_values(data_type: &DataType) -> Result<(), String> {
    let is_number = match data_type {
        DataType::Dictionary(_, values) => values.is_numeric(),
        other => other.is_numeric() || other.is_null(),
    };
    if is_number { Ok(()) } else { Err("values are numbers: cast it in a query".to_owned()) }
}

impl MeasureValues {
    pub(super) fn new(rule: Rule, value_type: ValueType, style: NumberStyle) -> MeasureValues {
        let (decimals, doubles, filled) = (Vec::new(), Vec::new(), Vec::new());
        MeasureValues { rule, value_type, style, decimals, doubles, filled, not_finite: Vec::new(), rounded: 0 }
    }

    /// Reads a column; `None` for a COUNT of rows.
    pub(super) fn read(&mut self, column: Option<&ArrayRef>) -> Result<(), Misfit> {
        self.decimals.clear();
        self.doubles.clear();
        self.filled.clear();
        self.not_finite.clear();
        let Some(column) = column else { return Ok(()) };
        if let Some(nulls) = column.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
            self.filled.extend(nulls.iter());
        }
        match (self.rule, self.value_type) {
            (Rule::Count, _) => {
                self.note_blanks(column);
                Ok(())
            }
            _ if let Some(texts) = texts(column) => self.read_texts(&texts),
            (_, ValueType::Double) => self.read_doubles(column),
            (_, ValueType::Decimal { scale }) => self.read_decimals(column, scale),
        }
    }

    /// True if a row has no value.
    pub(super) fn is_empty_at(&self, row: usize) -> bool {
        self.filled.get(row).is_some_and(|filled| !filled)
    }

    /// True if all rows have a value.
    pub(super) fn has_no_empty(&self) -> bool {
        self.filled.is_empty()
    }

    /// Keeps the rows that are marked.
    pub(super) fn keep(&mut self, kept: &[bool]) {
        retain(&mut self.decimals, kept);
        retain(&mut self.doubles, kept);
        retain(&mut self.filled, kept);
    }

    /// The values as the loader takes them.
    pub(super) fn input(&self) -> InputColumn<'_> {
        let values = match (self.rule, self.value_type) {
            (Rule::Count, _) => InputValues::Rows,
            (_, ValueType::Double) => InputValues::Doubles(&self.doubles),
            (_, ValueType::Decimal { .. }) => InputValues::Decimals(&self.decimals),
        };
        InputColumn { values, filled: (!self.filled.is_empty()).then_some(&self.filled) }
    }

    fn read_doubles(&mut self, column: &ArrayRef) -> Result<(), Misfit> {
        let cast = cast_to(column, &DataType::Float64)?;
        let array = cast.as_primitive::<Float64Type>();
        self.doubles.extend_from_slice(array.values());
        for (row, value) in self.doubles.iter().enumerate() {
            if !value.is_finite() && array.is_valid(row) {
                self.not_finite.push(row);
            }
        }
        Ok(())
    }

    /// Notes texts of blanks, which are no values.
    fn note_blanks(&mut self, column: &ArrayRef) {
        let Some(texts) = texts(column) else { return };
        for (row, text) in texts.as_string::<i32>().iter().enumerate() {
            if text.is_some_and(|text| text.trim().is_empty()) {
                self.filled.resize(column.len(), true);
                self.filled[row] = false;
            }
        }
    }

    /// Reads numbers of texts; a text of blanks is no value.
    fn read_texts(&mut self, column: &ArrayRef) -> Result<(), Misfit> {
        self.note_blanks(column);
        let mut reader = Reader::new(self.style);
        for (row, text) in column.as_string::<i32>().iter().enumerate() {
            let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
                self.push_none();
                continue;
            };
            let unread = match self.value_type {
                ValueType::Double => match reader.double(text) {
                    Some(value) => {
                        self.doubles.push(value);
                        (!value.is_finite()).then_some(Unread::NotFinite)
                    }
                    None => Some(Unread::Word),
                },
                ValueType::Decimal { scale } => match reader.decimal(text, i32::from(scale)) {
                    Ok((units, is_rounded)) => {
                        self.rounded += u64::from(is_rounded);
                        match i64::try_from(units) {
                            Ok(units) => {
                                self.decimals.push(units);
                                None
                            }
                            Err(_) => Some(Unread::Size),
                        }
                    }
                    Err(unread) => {
                        if unread == Unread::NotFinite {
                            self.push_none();
                        }
                        Some(unread)
                    }
                },
            };
            match (unread, self.value_type) {
                (None, _) => {}
                (Some(Unread::NotFinite), _) => self.not_finite.push(row),
                (Some(Unread::Size), ValueType::Decimal { scale }) => {
                    return Err(misfit(row, &Unfit::Size, i32::from(scale)));
                }
                (Some(_), _) => {
                    return Err(Misfit { row, problem: format!("is no number; {}", remedy(text, self.style)) });
                }
            }
        }
        Ok(())
    }

    /// Adds the value of a row without one.
    fn push_none(&mut self) {
        match self.value_type {
            ValueType::Double => self.doubles.push(0.0),
            ValueType::Decimal { .. } => self.decimals.push(0),
        }
    }

    fn read_decimals(&mut self, column: &ArrayRef, scale: u8) -> Result<(), Misfit> {
        let values = match column.data_type() {
            DataType::Dictionary(_, values) => values.as_ref(),
            other => other,
        };
        let scale = i32::from(scale);
        let out = &mut self.decimals;
        match values {
            // The number next to a decimal of the scale, in its own width, is that decimal.
            DataType::Float16 => {
                self.read_rounded(column, scale, |one, other| Half::from_f64(one) == Half::from_f64(other))
            }
            DataType::Float32 => self.read_rounded(column, scale, |one, other| one as f32 == other as f32),
            DataType::Float64 => self.read_rounded(column, scale, |one, other| one == other),
            DataType::Decimal256(_, from) => {
                let array = cast_to(column, values)?;
                let array = array.as_primitive::<Decimal256Type>();
                each(array, out, |value| scaled_256(value, i32::from(*from), scale))
                    .map_err(|(row, unfit)| misfit(row, &unfit, scale))
            }
            DataType::Decimal32(_, from) | DataType::Decimal64(_, from) | DataType::Decimal128(_, from) => {
                let from = i32::from(*from);
                let array = match column.data_type() {
                    DataType::Decimal128(_, _) => column.clone(),
                    _ => cast_to(column, &DataType::Decimal128(DECIMAL_DIGITS, from as i8))?,
                };
                let array = array.as_primitive::<Decimal128Type>();
                let read = match from == scale {
                    true => each(array, out, |value| i64::try_from(value).map_err(|_| Unfit::Size)),
                    false => each(array, out, |value| scaled(value, from, scale)),
                };
                read.map_err(|(row, unfit)| misfit(row, &unfit, scale))
            }
            DataType::UInt64 => {
                let array = cast_to(column, &DataType::Decimal128(DECIMAL_DIGITS, 0))?;
                each(array.as_primitive::<Decimal128Type>(), out, |value| scaled(value, 0, scale))
                    .map_err(|(row, unfit)| misfit(row, &unfit, scale))
            }
            DataType::Null => {
                out.resize(column.len(), 0);
                Ok(())
            }
            _ => {
                let array = cast_to(column, &DataType::Int64)?;
                let factor = 10_i64.pow(scale as u32);
                each(array.as_primitive::<Int64Type>(), out, |value| value.checked_mul(factor).ok_or(Unfit::Size))
                    .map_err(|(row, unfit)| misfit(row, &unfit, scale))
            }
        }
    }

    /// Rounds numbers to the scale, and counts those that `is_same` finds changed by it.
    fn read_rounded(
        &mut self,
        column: &ArrayRef,
        scale: i32,
        is_same: impl Fn(f64, f64) -> bool,
    ) -> Result<(), Misfit> {
        let array = cast_to(column, &DataType::Float64)?;
        let array = array.as_primitive::<Float64Type>();
        let factor = 10_f64.powi(scale);
        for (row, value) in array.values().iter().enumerate() {
            let units = (value * factor).round();
            self.decimals.push(units as i64);
            if units.abs() < TOO_LARGE || array.is_null(row) {
                let is_told = units.abs() < UNITS_TOLD && is_same(units / factor, *value);
                self.rounded += u64::from(array.is_valid(row) && !is_told);
                continue;
            }
            match value.is_finite() {
                true => return Err(misfit(row, &Unfit::Size, scale)),
                false => self.not_finite.push(row),
            }
        }
        Ok(())
    }
}

/// Converts the values that are not NULL; NULL becomes 0.
fn each<T: ArrowPrimitiveType>(
    array: &PrimitiveArray<T>,
    out: &mut Vec<i64>,
    convert: impl Fn(T::Native) -> Result<i64, Unfit>,
) -> Result<(), (usize, Unfit)> {
    for (row, &value) in array.values().iter().enumerate() {
        match convert(value) {
            Ok(units) => out.push(units),
            Err(_) if array.is_null(row) => out.push(0),
            Err(unfit) => return Err((row, unfit)),
        }
    }
    Ok(())
}

/// `value` / 10^`from` in units of 10^-`to`.
fn scaled(value: i128, from: i32, to: i32) -> Result<i64, Unfit> {
    if value == 0 {
        return Ok(0);
    }
    let power = |digits: i32| 10_i128.checked_pow(digits.unsigned_abs());
    let units = match to - from {
        more @ 0.. => power(more).and_then(|factor| value.checked_mul(factor)).ok_or(Unfit::Size)?,
        less => match power(less) {
            Some(factor) if value % factor == 0 => value / factor,
            _ => return Err(Unfit::Digits),
        },
    };
    i64::try_from(units).map_err(|_| Unfit::Size)
}

/// As [`scaled`], of 256 bits.
fn scaled_256(value: i256, from: i32, to: i32) -> Result<i64, Unfit> {
    if value == i256::ZERO {
        return Ok(0);
    }
    let power = |digits: i32| i256::from_i128(10).checked_pow(digits.unsigned_abs());
    let units = match to - from {
        more @ 0.. => power(more).and_then(|factor| value.checked_mul(factor)).ok_or(Unfit::Size)?,
        less => match power(less) {
            Some(factor) if value.checked_rem(factor) == Some(i256::ZERO) => {
                value.checked_div(factor).ok_or(Unfit::Size)?
            }
            _ => return Err(Unfit::Digits),
        },
    };
    units.to_i128().and_then(|units| i64::try_from(units).ok()).ok_or(Unfit::Size)
}

fn misfit(row: usize, unfit: &Unfit, scale: i32) -> Misfit {
    let problem = match unfit {
        Unfit::Digits => format!(
            "has more than {scale} digits after the point; write type: decimal(n) with more digits for the measure, or \
             round it in a query"
        ),
        Unfit::Size => {
            let most = decimal_text(i64::MAX.into(), scale as u8);
            format!("is beyond {most}, the largest decimal({scale}); write a type of fewer digits, or double")
        }
    };
    Misfit { row, problem }
}

/// Casts numbers to a type that holds them; the first value that does not fit is refused.
fn cast_to(column: &ArrayRef, wanted: &DataType) -> Result<ArrayRef, Misfit> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(column, wanted, &options).map_err(|error| {
        let fits = |row: &usize| cast_with_options(&column.slice(*row, 1), wanted, &options).is_ok();
        let row = (0..column.len()).find(|row| !fits(row)).unwrap_or_default();
        Misfit { row, problem: format!("is no {wanted}: {error}") }
    })
}

/// The first value of a column of texts that is no number, with its row, for the error of its type.
pub(super) fn first_word(column: &ArrayRef) -> Option<(usize, String)> {
    let mut texts = (0..column.len()).filter_map(|row| Some((row, value_text(column, row)?)));
    texts.find(|(_, text)| text.trim().parse::<f64>().is_err())
}

/// Unmarks rows whose texts are NaN or infinite, and blank ones if the measure is asked for.
pub(super) fn unmark_texts(texts: &ArrayRef, style: NumberStyle, is_asked: bool, wanted: &mut [bool]) {
    let mut reader = Reader::new(style);
    for (wanted, text) in wanted.iter_mut().zip(texts.as_string::<i32>()) {
        *wanted &= text.and_then(|text| reader.double(text)).is_none_or(f64::is_finite);
    }
    if is_asked {
        unmark_blanks(texts, wanted);
    }
}

/// Unmarks rows whose texts are blank.
pub(super) fn unmark_blanks(texts: &ArrayRef, wanted: &mut [bool]) {
    for (wanted, text) in wanted.iter_mut().zip(texts.as_string::<i32>()) {
        *wanted &= text.is_none_or(|text| !text.trim().is_empty());
    }
}

/// Keeps the entries that are marked; a list without entries stays so.
pub(super) fn retain<T: Copy>(values: &mut Vec<T>, kept: &[bool]) {
    let mut marks = kept.iter();
    values.retain(|_| marks.next().copied().unwrap_or(true));
}
