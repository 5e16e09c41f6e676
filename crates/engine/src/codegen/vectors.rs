//! Registers as values of a slot of whole vectors.

use crate::codegen::expr::{Value, vector_value};
use crate::codegen::pipeline::KernelWriter;
use crate::plan::order::Planned;

impl KernelWriter<'_> {
    /// Register values of the vectors, in slot `k`.
    pub(super) fn vector_registers(&self) -> Vec<Option<Value>> {
        let registers = self.input.columns.iter().enumerate().map(|(column, template)| {
            if template.is_bytes {
                let valid = template.nullable.then(|| format!("(tn{column} >> k & 1u)"));
                return Some(Value::new(template.facts.clone(), format!("c{column}"), valid));
            }
            self.plan.split.loaded.contains(&column).then(|| {
                let code = vector_value(template, &self.readers[column].value("d"));
                Value::new(template.facts.clone(), code, template.nullable.then(|| format!("(dn{column} >> k & 1u)")))
            })
        });
        registers.collect()
    }

    /// The columns of strings without codes among those that steps read, if they have NULLs.
    pub(super) fn text_columns(&self, steps: &[Planned]) -> Vec<usize> {
        let mut read = Vec::new();
        let is_of_texts =
            |column: &usize| self.input.columns.get(*column).is_some_and(|facts| facts.is_bytes && facts.nullable);
        for planned in steps {
            planned.item.registers(&mut |register| read.extend(Some(register).filter(is_of_texts)));
        }
        read.sort_unstable();
        read.dedup();
        read
    }
}
