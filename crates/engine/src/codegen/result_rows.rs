//! Rows as a result, in kernel source: each row that comes to the end takes the next place and leaves its columns
//! there. The order of rows is that in which warps come to them. First rows and groups are laid out as
//! [`crate::plan::row_layout`] has it.

use arrow::datatypes::DataType;

use crate::codegen::expr::Value;
use crate::codegen::keys::Packed;
use crate::codegen::memory::{BoundRows, HEAD_WORDS};
use crate::codegen::params::Argument;
use crate::codegen::rows::RowWriter;
use crate::error::Result;
use crate::ir::{Expr, Ty};
use crate::plan::keys::KeyPack;
use crate::plan::row_layout::RowLayout;
use crate::plan::rows::bits_of;

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
        let full = rows.no_room();
        let output = rows.with_emitter(|emitter| emitter.params.add("uint64_t*", Argument::Region(self.memory)));
        let capacity = rows.with_emitter(|emitter| emitter.params.add("uint64_t", Argument::U64(self.capacity)));
        rows.line(&format!("const uint64_t place = wc_fetch_add({output}, (uint64_t)1);"));
        match (self.grows, self.has_limit) {
            (false, _) => rows.line(&format!("if (place >= {capacity}) return;")),
            (true, false) => rows.line(&format!("if (place >= {capacity}) {full}")),
            (true, true) => {
                let enough = Argument::U64(self.is_enough.into());
                let enough = rows.with_emitter(|emitter| emitter.params.add("uint64_t", enough));
                rows.line(&format!("if (place >= {capacity}) {{ if ({enough}) return; {full} }}"));
            }
        }
        for (index, word) in packed.words.iter().enumerate() {
            rows.line(&format!("{output}[{HEAD_WORDS} + place * {} + {index}] = {word};", self.pack.words));
        }
        Ok(())
    }
}

/// Statements that store a row at `out`, a column after the other.
pub(super) struct StoredRow<'a> {
    layout: &'a RowLayout,
    /// C expression of the distance of words, if they do not lie side by side.
    stride: Option<String>,
    /// Columns stored so far.
    columns: usize,
    /// Terms of each word of validity.
    valid: Vec<Vec<String>>,
}

impl StoredRow<'_> {
    pub(super) fn of(layout: &RowLayout, stride: Option<String>) -> StoredRow<'_> {
        StoredRow { layout, stride, columns: 0, valid: vec![Vec::new(); layout.valid_words()] }
    }

    /// A word of the row.
    fn word(&self, word: usize) -> String {
        match &self.stride {
            None => format!("out[{word}]"),
            Some(stride) => format!("out[{word} * {stride}]"),
        }
    }

    /// Stores the next column.
    pub(super) fn value(&mut self, value: &Value) -> Vec<String> {
        let code = match value.ty {
            Ty::F32 => format!("__float_as_uint({})", value.code),
            Ty::F64 => format!("__double_as_longlong({})", value.code),
            _ => value.code.clone(),
        };
        let (position, column) = (self.columns, &self.layout.columns[self.columns]);
        let word = self.layout.valid_words() + column.word;
        let mut lines = vec![format!("{} = (uint64_t){code};", self.word(word))];
        if column.wide {
            lines.push(format!("{} = (uint64_t)({code} >> 64);", self.word(word + 1)));
        }
        if column.nullable {
            self.valid[position / 64].push(format!("(uint64_t)({}) << {}", value.valid_code(), position % 64));
        }
        self.columns += 1;
        lines
    }

    /// Stores which columns are not NULL.
    pub(super) fn validity(self) -> Vec<String> {
        let words = self.valid.iter().enumerate().filter(|(_, bits)| !bits.is_empty());
        words.map(|(word, bits)| format!("{} = {};", self.word(word), bits.join(" | "))).collect()
    }
}
