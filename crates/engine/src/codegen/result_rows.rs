//! Rows as a result: each row that comes to the end takes the next place and leaves its columns there.
//!
//! Columns are packed as group keys are ([`crate::plan::keys`]), floats by their bits. The order of rows is that in
//! which warps come to them. The result has room for a guessed number of rows; where more come, the run is repeated
//! with more.

use std::sync::Arc;

use arrow::datatypes::DataType;
use warpcube_column::Dictionary;

use crate::arena::{Arena, Zone};
use crate::codegen::expr::Value;
use crate::codegen::input::PipelineInput;
use crate::codegen::keys::Packed;
use crate::codegen::params::Argument;
use crate::codegen::rows::RowWriter;
use crate::error::Result;
use crate::facts::{Facts, Texts, analyse};
use crate::ir::{Expr, Ty};
use crate::plan::keys::KeyPack;

/// Words before the rows: their number.
pub(crate) const HEAD_WORDS: usize = 1;

/// A result of rows, laid out.
#[derive(Debug, Clone)]
pub(crate) struct BoundRows {
    /// Packing of the columns.
    pub(crate) pack: KeyPack,
    /// Arrow types of the columns, and strings.
    pub(crate) columns: Vec<(DataType, Option<Arc<Dictionary>>)>,
    /// The column whose strings' places each of them is, if it is.
    pub(crate) texts: Vec<Option<Texts>>,
    /// The head, then words of rows.
    pub(crate) output: Zone,
    /// Most rows there is room for.
    pub(crate) capacity: u64,
    /// Whether so many rows are enough.
    pub(crate) is_enough: bool,
}

/// Lays out a result.
///
/// # Errors
/// Unsupported if a column is a decimal wider than 64 bits.
pub(super) fn plan(
    input: &PipelineInput,
    (columns, limit): (&[(Expr, DataType)], Option<u64>),
    registers: &[Option<Facts>],
    arena: &mut Arena,
) -> Result<BoundRows> {
    let exprs: Vec<&Expr> = columns.iter().map(|(expr, _)| expr).collect();
    let (values, _) = analyse(&exprs, registers, input.overflow)?;
    let pack = KeyPack::of_groups(&values.iter().map(bits_of).collect::<Vec<_>>())?;
    let guessed = input.group_slots.min(input.rows_out().max(1));
    let capacity = limit.map_or(guessed, |limit| limit.min(guessed));
    let output = arena.result(8 * HEAD_WORDS, 8 * (HEAD_WORDS + pack.words * capacity as usize));
    let texts = values.iter().map(|value| value.texts).collect();
    let columns = columns.iter().zip(values).map(|((_, data_type), value)| (data_type.clone(), value.dictionary));
    let (columns, is_enough) = (columns.collect(), limit == Some(capacity));
    Ok(BoundRows { pack, columns, texts, output, capacity, is_enough })
}

/// The facts of a value's bits if it is a float, which grouping would make one of two zeros.
pub(super) fn bits_of(facts: &Facts) -> Facts {
    match facts.ty {
        Ty::F32 => Facts::new(Ty::U32, facts.nullable, Ty::U32.bounds()),
        Ty::F64 => Facts::new(Ty::U64, facts.nullable, Ty::U64.bounds()),
        _ => facts.clone(),
    }
}

/// Writes the packed columns of a row.
pub(super) fn packed(rows: &mut RowWriter, pack: &KeyPack, columns: &[&Expr]) -> Result<Packed> {
    let values = columns.iter().map(|expr| rows.emit(expr)).collect::<Result<Vec<_>>>()?;
    let bits = |value: Value| {
        let code = match value.ty {
            Ty::F32 => format!("((uint32_t)__float_as_int({}))", value.code),
            Ty::F64 => format!("((uint64_t)__double_as_longlong({}))", value.code),
            _ => return value,
        };
        Value::new(bits_of(&value), code, value.valid)
    };
    let values: Vec<Value> = values.into_iter().map(bits).collect();
    Ok(rows.with_emitter(|emitter| pack.emit(emitter, &values)))
}

impl BoundRows {
    /// Writes what one row does.
    pub(super) fn row(&self, rows: &mut RowWriter, columns: &[(Expr, DataType)]) -> Result<()> {
        let packed = packed(rows, &self.pack, &columns.iter().map(|(expr, _)| expr).collect::<Vec<_>>())?;
        let flags = rows.flags();
        let output = rows.with_emitter(|emitter| emitter.params.add("uint64_t*", Argument::Zone(self.output)));
        let capacity = rows.with_emitter(|emitter| emitter.params.add("uint64_t", Argument::U64(self.capacity)));
        rows.line(&format!("const uint64_t place = wc_fetch_add({output}, (uint64_t)1);"));
        let full = match self.is_enough {
            true => "return;".to_string(),
            false => format!("{{ atomicOr({flags}, (uint32_t)WC_TABLE_FULL); return; }}"),
        };
        rows.line(&format!("if (place >= {capacity}) {full}"));
        for (index, word) in packed.words.iter().enumerate() {
            rows.line(&format!("{output}[{HEAD_WORDS} + place * {} + {index}] = {word};", self.pack.words));
        }
        Ok(())
    }
}
