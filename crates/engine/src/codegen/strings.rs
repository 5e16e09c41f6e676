//! Codes of several dictionaries in one expression: compared, chosen among, and looked up as join keys.
//!
//! A code means nothing beside codes of another column, so one side goes through a table made when the fragment is
//! bound ([`crate::dictionaries`]). Entries are read for valid values only.

use std::sync::Arc;

use warpcube_column::Dictionary;

use crate::codegen::expr::{Emitter, Value};
use crate::codegen::params::Argument;
use crate::dictionaries::{codes, merged, places};
use crate::error::{Result, unsupported};
use crate::ir::{BinaryOp, Ty};
use crate::table::BuiltTable;

impl Emitter<'_> {
    /// What two strings are compared by: images in the order of the strings.
    pub(crate) fn images(&mut self, op: BinaryOp, left: &Value, right: &Value) -> Result<(String, String)> {
        let (Some(one), Some(other)) = (&left.dictionary, &right.dictionary) else {
            return match is_null(left) || is_null(right) {
                true => Ok(("0u".into(), "0u".into())),
                false => unsupported(format!("the comparison {op:?} of a string and something else")),
            };
        };
        if Arc::ptr_eq(one, other) {
            return Ok((left.code.clone(), right.code.clone()));
        }
        // The table is made for the side with fewer strings.
        let own = |value: &Value| format!("2u * {} + 1u", value.code);
        Ok(match one.len() <= other.len() {
            true => (self.translated(left, one, &places(one, other)), own(right)),
            false => (own(left), self.translated(right, other, &places(other, one))),
        })
    }

    /// Strings of any dictionaries as codes of one they share.
    pub(crate) fn share_dictionary(&mut self, values: &mut [Value]) -> Arc<Dictionary> {
        let shared = merged(&values.iter().filter_map(|value| value.dictionary.as_ref()).collect::<Vec<_>>());
        for value in values {
            let Some(own) = value.dictionary.clone().filter(|own| !Arc::ptr_eq(own, &shared)) else { continue };
            value.code = self.translated(value, &own, &codes(&own, &shared));
            value.range = Some((0, shared.len().max(1) as i128 - 1));
            value.dictionary = Some(shared.clone());
        }
        shared
    }

    /// Probe keys as codes of the table's strings; a string that the table has not becomes a code past all of them.
    pub(crate) fn codes_of(&mut self, table: &BuiltTable, mut keys: Vec<Value>) -> Result<Vec<Value>> {
        for (key, strings) in keys.iter_mut().zip(&table.strings) {
            match (key.dictionary.clone(), strings) {
                (None, None) => {}
                (Some(own), Some(strings)) if Arc::ptr_eq(&own, strings) => {}
                (Some(own), Some(strings)) => {
                    key.code = self.translated(key, &own, &codes(&own, strings));
                    key.range = None;
                }
                _ if is_null(key) => {}
                _ => return unsupported("a join of strings with something else"),
            }
        }
        Ok(keys)
    }

    /// The entry of a table for a value's code.
    fn translated(&mut self, value: &Value, own: &Dictionary, table: &[u32]) -> String {
        debug_assert_eq!(own.len(), table.len());
        let entry = match table {
            [] => "0u".to_string(),
            [only] => {
                let entry = self.params.add("int64_t", Argument::I64((*only).into()));
                format!("(uint32_t){entry}")
            }
            _ => {
                let zone = self.arena.constant(bytemuck::cast_slice(table));
                let pointer = self.params.add("const uint32_t*", Argument::Zone(zone));
                match &value.valid {
                    Some(valid) => format!("{valid} ? wc_load_cached({pointer} + {}) : 0u", value.code),
                    None => format!("wc_load_cached({pointer} + {})", value.code),
                }
            }
        };
        let name = self.name();
        self.out.push_str(&format!("const uint32_t {name} = {entry};\n"));
        name
    }
}

/// Whether this is the constant NULL.
pub(crate) fn is_null(value: &Value) -> bool {
    value.ty == Ty::U32 && value.valid.as_deref() == Some("false")
}
