//! Derived columns in the place of a string column: a function of its strings, if nothing else is asked of them.
//!
//! A string column past the dictionary limit has no codes. A function of it that gives strings, as `substr(s, 1, 2)`,
//! may have few results, which have codes: it then serves as the column.

use std::sync::Arc;

use crate::ir::{DictionaryFunction, Expr, Fragment, Pipeline, Sink, Source, Step};

impl Fragment {
    /// The functions whose results can be in the place of a table's column, at this position, in any order; none if
    /// strings of the column itself are asked for, or if its bytes will do.
    pub fn derivable(&self, table: usize, position: usize) -> Vec<Arc<dyn DictionaryFunction>> {
        let mut functions: Vec<Arc<dyn DictionaryFunction>> = Vec::new();
        let (mut asks_codes, mut reads) = (false, 0);
        let registers = self.registers_of(table, position);
        for (pipeline, registers) in self.pipelines.iter().zip(&registers) {
            // The walk over all expressions of a pipeline changes them.
            pipeline.clone().change(&mut |expr| match expr {
                Expr::Lookup(register, function, _) if registers.contains(register) => {
                    asks_codes |= function.over_bytes().is_none();
                    functions.push(function.clone());
                }
                Expr::Reg(register) => reads += usize::from(registers.contains(register)),
                _ => {}
            });
            reads -= carried(pipeline, registers).count();
        }
        let Some(first) = functions.first().filter(|_| reads == 0 && asks_codes) else { return Vec::new() };
        let mut derivable = vec![first.clone()];
        derivable.extend(first.steps().map(|[step, _]| step));
        derivable.retain(|derived| functions.iter().all(|function| Use::of(function, derived.as_ref()).is_some()));
        derivable
    }

    /// The fragment with the table's column `number`, the results of a function of the column at this position, in
    /// place of that.
    pub fn with_derived(
        &self,
        table: usize,
        position: usize,
        derived: &dyn DictionaryFunction,
        number: usize,
    ) -> Fragment {
        let mut fragment = self.clone();
        fragment.tables[table].columns[position] = number;
        let registers = self.registers_of(table, position);
        for (pipeline, registers) in fragment.pipelines.iter_mut().zip(&registers) {
            pipeline.change(&mut |expr| {
                let Expr::Lookup(register, function, ty) = &*expr else { return };
                match Use::of(function, derived).filter(|_| registers.contains(register)) {
                    Some(Use::Itself) => *expr = Expr::Reg(*register),
                    Some(Use::Then(rest)) => *expr = Expr::Lookup(*register, rest, *ty),
                    None => {}
                }
            });
        }
        fragment
    }

    /// The registers of each pipeline that hold a table's column: its own, and those that joins carry it to.
    fn registers_of(&self, table: usize, position: usize) -> Vec<Vec<usize>> {
        let mut registers: Vec<Vec<usize>> = Vec::with_capacity(self.pipelines.len());
        for pipeline in &self.pipelines {
            let mut held = Vec::new();
            held.extend((pipeline.source == Source::Table(table)).then_some(position));
            let mut first = self.width(pipeline.source);
            for step in &pipeline.steps {
                let Step::Probe(probe) = step else { continue };
                // Builds come before their probes.
                let Some((build, of_build)) = self.pipelines.get(probe.build).zip(registers.get(probe.build)) else {
                    break;
                };
                if probe.has_payload() {
                    held.extend(carried(build, of_build).map(|at| first + at));
                }
                first += probe.width(build.sink.payload_width());
            }
            registers.push(held);
        }
        registers
    }
}

/// The positions of the payload of a build that are these registers as they are.
fn carried(pipeline: &Pipeline, registers: &[usize]) -> impl Iterator<Item = usize> {
    let payload = match &pipeline.sink {
        Sink::Build { payload, .. } => payload.as_slice(),
        _ => &[],
    };
    let is_carried = |expr: &Expr| matches!(expr, Expr::Reg(register) if registers.contains(register));
    payload.iter().enumerate().filter(move |(_, expr)| is_carried(expr)).map(|(at, _)| at)
}

/// What a function is of a derived column.
enum Use {
    /// It is the column.
    Itself,
    /// It is this function of the column.
    Then(Arc<dyn DictionaryFunction>),
}

impl Use {
    fn of(function: &Arc<dyn DictionaryFunction>, derived: &dyn DictionaryFunction) -> Option<Use> {
        if function.is_same(derived) {
            return Some(Use::Itself);
        }
        let [step, rest] = function.steps()?;
        step.is_same(derived).then_some(Use::Then(rest))
    }
}
