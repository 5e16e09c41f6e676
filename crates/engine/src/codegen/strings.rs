//! Codes of several dictionaries in one expression: compared, chosen among, and looked up as join keys. Tests of
//! strings without codes.
//!
//! A code means nothing beside codes of another column, so one side goes through a table made when the fragment is
//! bound ([`crate::dictionaries`]). Entries are read for valid values only.

use std::sync::Arc;

use warpcube_column::{CHUNK_ROWS, Dictionary};

use crate::codegen::expr::{Emitter, Value, c_type_of};
use crate::codegen::params::Argument;
use crate::dictionaries::{codes, places};
use crate::error::{Result, unsupported};
use crate::facts::{Facts, is_null_string, place, tested};
use crate::plan::table::TablePlan;
use crate::text_match::TextMatch;

impl Emitter<'_> {
    /// The place of a string without a code: that of the row for a scanned column, else what the register holds.
    pub(super) fn place(&mut self, register: usize) -> Result<Value> {
        let input = self.register(register)?;
        let facts = place(register, &input)?;
        let own = format!("(uint64_t)chunk << {} | row", CHUNK_ROWS.trailing_zeros());
        let code = if input.is_bytes { &own } else { &input.code };
        Ok(self.value(facts, code, input.valid.clone()))
    }

    /// The outcome of a test of a string without a code. All rows of a step are tested in front of the loop over its
    /// slots, by all lanes together.
    pub(super) fn text_match(&mut self, register: usize, test: &TextMatch) -> Result<Value> {
        let input = self.register(register)?;
        let facts = tested(register, &input)?;
        let region = self.arena.constant(&test.table());
        let table = self.params.add("const uint32_t*", Argument::Region(region));
        let (kind, strings) = (test.kind(), &input.code);
        let code = match self.step_slots {
            Some(slots) => {
                let name = self.name();
                let bits = format!("wc_match_step<{kind}, {slots}>({strings}, {table}, base, lane, alive)");
                self.of_step.push_str(&format!("            const uint32_t {name} = {bits};\n"));
                format!("(bool)({name} >> k & 1u)")
            }
            None => format!("wc_match<{kind}>({strings}, {table})"),
        };
        Ok(self.value(facts, &code, input.valid))
    }

    /// What two strings are compared by: images in the order of the strings.
    pub(super) fn images(&mut self, left: &Value, right: &Value) -> (String, String) {
        let (Some(one), Some(other)) = (&left.dictionary, &right.dictionary) else {
            // One is the constant NULL.
            return ("0u".into(), "0u".into());
        };
        if Arc::ptr_eq(one, other) {
            return (left.code.clone(), right.code.clone());
        }
        // The table is made for the side with fewer strings.
        let own = |value: &Value| format!("2u * {} + 1u", value.code);
        match one.len() <= other.len() {
            true => (self.translated(left, one, &places(one, other)), own(right)),
            false => (own(left), self.translated(right, other, &places(other, one))),
        }
    }

    /// Strings as codes of a dictionary that has those of all.
    pub(super) fn share_dictionary(&mut self, shared: &Arc<Dictionary>, values: &mut [Value]) {
        for value in values {
            let Some(own) = value.dictionary.clone().filter(|own| !Arc::ptr_eq(own, shared)) else { continue };
            value.code = self.translated(value, &own, &codes(&own, shared));
        }
    }

    /// A value of a branch of a union as one of the facts that hold for all branches.
    pub(super) fn shared(&mut self, value: Value, facts: &Facts) -> Value {
        let mut values = [value];
        if let Some(strings) = &facts.dictionary {
            self.share_dictionary(strings, &mut values);
        }
        let [value] = values;
        let valid = match facts.dictionary.is_some() && value.dictionary.is_none() {
            true => Some("false".into()),
            false => facts.nullable.then(|| value.valid.clone().unwrap_or_else(|| "true".into())),
        };
        let code = self.define(c_type_of(facts), &value.code);
        Value::new(facts.clone(), code, valid)
    }

    /// Probe keys as codes of the table's strings; a string that the table has not becomes a code past all of them.
    pub(crate) fn codes_of(&mut self, table: &TablePlan, mut keys: Vec<Value>) -> Result<Vec<Value>> {
        for (key, strings) in keys.iter_mut().zip(&table.strings) {
            match (key.dictionary.clone(), strings) {
                (None, None) => {}
                (Some(own), Some(strings)) if Arc::ptr_eq(&own, strings) => {}
                (Some(own), Some(strings)) => {
                    let code = self.translated(key, &own, &codes(&own, strings));
                    *key = Value::new(Facts { range: None, ..(**key).clone() }, code, key.valid.clone());
                }
                _ if is_null_string(key) => {}
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
                let region = self.arena.constant(bytemuck::cast_slice(table));
                let pointer = self.params.add("const uint32_t*", Argument::Region(region));
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
