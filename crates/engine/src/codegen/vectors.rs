//! What whole vectors are of use for: which steps ask for a column, and registers as values of a slot.

use crate::codegen::expr::{Value, vector_value};
use crate::codegen::pipeline::KernelWriter;
use crate::codegen::zones::is_asked_later;
use crate::plan::order::Planned;

impl KernelWriter<'_> {
    /// The dense steps that use a column, and those that are taken together with them, if nothing else uses it.
    pub(super) fn uses(&self, column: usize) -> Vec<usize> {
        let mut later = Vec::new();
        let mut read = |register| self.input.read_by(register, &mut |column| later.push(column));
        self.input.pipeline.sink.registers(&mut read);
        self.split.rows.iter().for_each(|planned| planned.item.registers(&mut read));
        if is_asked_later(&self.split.dense, column, &later) {
            return Vec::new();
        }
        let is_used = |planned: &Planned| {
            let mut found = false;
            planned.item.registers(&mut |register| found |= register == column);
            found
        };
        self.dense_runs().filter(|run| self.split.dense[run.clone()].iter().any(is_used)).flatten().collect()
    }

    /// Register values of the vectors, in slot `k`.
    pub(super) fn vector_registers(&self) -> Vec<Option<Value>> {
        let registers = self.input.columns.iter().enumerate().map(|(column, template)| {
            if template.is_bytes {
                let valid = template.nullable.then(|| format!("(tn{column} >> k & 1u)"));
                return Some(Value::new(template.clone(), format!("c{column}"), valid));
            }
            self.split.loaded.contains(&column).then(|| {
                let code = vector_value(template, &self.readers[column].value("d"));
                Value::new(template.clone(), code, template.nullable.then(|| format!("(dn{column} >> k & 1u)")))
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
