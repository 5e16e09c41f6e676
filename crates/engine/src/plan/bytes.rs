//! String columns without a dictionary: what of a fragment asks for codes, and the rest as tests of strings.
//!
//! A fragment is lowered before its columns are loaded. Functions of a string register name what they need
//! ([`DictionaryFunction::over_bytes`](crate::ir::DictionaryFunction::over_bytes)); binding puts it in their place
//! where the column lies on the device as bytes. Besides, only whether such a string is NULL is known, and where it
//! lies in its column: that is what joins carry to the result, whose strings are read at the end.

use std::sync::Arc;

use arrow::datatypes::DataType;
use warpcube_column::{ColumnSource, TableRequest};

use crate::error::{Result, unsupported};
use crate::facts::Facts;
use crate::ir::{AggregateKind, BinaryOp, Expr, Fragment, Literal, Pipeline, Sink, Source, Step, Ty, UnaryOp};
use crate::plan::dependencies::determined_keys;
use crate::text_match::TextMatch;

impl Fragment {
    /// The request for the columns of a table, by its position in the fragment.
    pub fn request(&self, table: usize, source: Arc<dyn ColumnSource>) -> TableRequest {
        let columns = self.tables[table].columns.clone();
        let mut coded: Vec<usize> = Vec::new();
        // Positions of payload or rows whose codes a later pipeline asks for, by the pipeline that leaves them.
        let mut asked: Vec<Vec<usize>> = vec![Vec::new(); self.pipelines.len()];
        for (index, pipeline) in self.pipelines.iter().enumerate().rev() {
            let own = self.width(pipeline.source);
            let mut registers = Vec::new();
            // Whether tables have one row for a key is found as they are built: strings beside others need codes then.
            let determined = determined_keys(self, index, &|_| true);
            asks_codes(pipeline, own, (&asked[index], &determined), &mut |register| registers.push(register));
            let mut first = own;
            for step in &pipeline.steps {
                let Step::Probe(probe) = step else { continue };
                // Binding tells that there is no such pipeline.
                let Some(build) = self.pipelines.get(probe.build) else { break };
                let width = build.sink.payload_width();
                if probe.has_payload() {
                    let of_build = registers.iter().filter(|register| (first..first + width).contains(register));
                    asked[probe.build].extend(of_build.map(|register| register - first));
                }
                first += probe.width(width);
            }
            match pipeline.source {
                Source::Table(number) if number == table => {
                    coded.extend(registers.iter().filter_map(|register| columns.get(*register)));
                }
                Source::Table(_) => {}
                Source::Output(of) => asked[of].extend(registers.iter().filter(|register| **register < own)),
            }
        }
        coded.sort_unstable();
        coded.dedup();
        TableRequest { source, columns, coded }
    }

    /// Number of registers of a source.
    pub(crate) fn width(&self, source: Source) -> usize {
        match source {
            Source::Table(table) => self.tables.get(table).map_or(0, |table| table.columns.len()),
            Source::Output(of) => match self.pipelines.get(of).map(|pipeline| &pipeline.sink) {
                Some(Sink::Aggregate { groups, aggregates }) => groups.len() + aggregates.len(),
                Some(Sink::Rows { columns, .. }) => columns.len(),
                Some(Sink::TopK(top)) => top.outputs.len() + top.windows.len(),
                _ => 0,
            },
        }
    }
}

impl Sink {
    /// Number of registers that a probe of the table, or of the groups, adds.
    pub(crate) fn payload_width(&self) -> usize {
        match self {
            Sink::Build { payload, .. } => payload.len(),
            Sink::Aggregate { aggregates, .. } => aggregates.len(),
            _ => 0,
        }
    }
}

/// Calls `visit` for every register whose codes a pipeline asks for if it is a string. Its source has so many registers
/// of its own; the codes of the payload or of the rows at the positions `asked` are asked for later, and the parts of a
/// group key at the positions `determined` need none.
fn asks_codes(
    pipeline: &Pipeline,
    own: usize,
    (asked, determined): (&[usize], &[usize]),
    visit: &mut impl FnMut(usize),
) {
    for step in &pipeline.steps {
        match step {
            Step::Filter(expr) => codes_of(expr, own, visit),
            Step::Probe(probe) => probe.each(&mut |expr| codes_of(expr, own, visit)),
            Step::Limit { .. } => {}
        }
    }
    let is_reg = |expr: &&Expr| matches!(expr, Expr::Reg(_));
    let mut given = |columns: &[(Expr, DataType)], read: &[usize]| {
        let columns = columns.iter().map(|(expr, _)| expr).enumerate();
        let coded = columns.filter(|(at, expr)| asked.contains(at) || read.contains(at) || !is_reg(expr));
        coded.for_each(|(_, expr)| codes_of(expr, own, visit));
    };
    match &pipeline.sink {
        Sink::Build { keys, payload } => {
            keys.iter().for_each(|expr| codes_of(expr, own, visit));
            let values = payload.iter().enumerate().filter(|(at, expr)| asked.contains(at) || !is_reg(expr));
            values.for_each(|(_, expr)| codes_of(expr, own, visit));
        }
        Sink::Aggregate { groups, aggregates } => {
            let is_compared = |at: &usize| !determined.contains(at) || asked.contains(at);
            let compared = groups.iter().enumerate().filter(|(at, _)| is_compared(at));
            compared.for_each(|(_, (expr, _))| codes_of(expr, own, visit));
            for call in aggregates {
                let argument = call.argument.iter().filter(|expr| call.kind != AggregateKind::Count || !is_reg(expr));
                argument.chain(&call.filter).for_each(|expr| codes_of(expr, own, visit));
            }
        }
        Sink::TopK(top) => {
            // Windows compare and give values by their codes.
            let mut read = Vec::new();
            top.windows.iter().for_each(|call| call.function.outputs(&mut |output| read.push(output)));
            given(&top.outputs, &read);
            top.keys.iter().for_each(|key| codes_of(&key.expr, own, visit));
        }
        Sink::Rows { columns, .. } => given(columns, &[]),
    }
}

/// Calls `visit` for every register whose codes an expression asks for if it is a string; the source has so many
/// registers of its own, whose bytes can be tested.
fn codes_of(expr: &Expr, own: usize, visit: &mut impl FnMut(usize)) {
    match expr {
        Expr::Lookup(register, function, _) if *register < own && function.over_bytes().is_some() => {}
        Expr::Unary(UnaryOp::IsNull | UnaryOp::IsNotNull, inner) if matches!(**inner, Expr::Reg(_)) => {}
        Expr::Match(_, _) | Expr::Place(_) => {}
        other if against_text(other).is_some_and(|(register, _, _)| register < own) => {}
        Expr::Reg(register) | Expr::Lookup(register, _, _) => visit(*register),
        other => other.each(&mut |inner| codes_of(inner, own, visit)),
    }
}

/// A comparison of a register with a constant string, NULL, or the value of a subquery, the register on its left.
fn against_text(expr: &Expr) -> Option<(usize, BinaryOp, &Expr)> {
    let Expr::Binary(op, left, right) = expr else { return None };
    let is_constant = |expr: &Expr| {
        let has_no_value = |value: &Literal| matches!(value, Literal::Null | Literal::Argument(_));
        matches!(expr, Expr::Text(_)) || matches!(expr, Expr::Literal(value, Ty::U32) if has_no_value(value))
    };
    let (register, op, constant) = match (left.as_ref(), right.as_ref()) {
        (Expr::Reg(register), constant) if is_constant(constant) => (register, *op, constant),
        (constant, Expr::Reg(register)) if is_constant(constant) => (register, op.mirrored(), constant),
        _ => return None,
    };
    op.is_comparison().then_some((*register, op, constant))
}

/// A comparison with a constant as a test; NULL if the constant is.
fn compared(register: usize, op: BinaryOp, constant: &Expr) -> Expr {
    let Expr::Text(text) = constant else { return Expr::Literal(Literal::Null, Ty::Bool) };
    let test = match op {
        BinaryOp::Eq | BinaryOp::Ne => TextMatch::In(vec![text.clone()]),
        op => TextMatch::Order(op, text.clone()),
    };
    let test = Expr::Match(register, Arc::new(test));
    if op == BinaryOp::Ne { Expr::Unary(UnaryOp::Not, Box::new(test)) } else { test }
}

/// The pipeline with tests in the place of functions of its columns that are bytes, with counts of their NULLs, and
/// with places in the place of strings that are given back or on; so are the parts of a group key at the positions
/// `determined`.
pub(crate) fn over_bytes(pipeline: &Pipeline, registers: &[Option<Facts>], determined: &[usize]) -> Result<Pipeline> {
    let facts = |register: usize| registers.get(register).and_then(Option::as_ref);
    let is_bytes = |register: &usize| facts(*register).is_some_and(|facts| facts.is_bytes);
    let is_text = |expr: &Expr| match expr {
        Expr::Reg(register) => facts(*register).filter(|facts| facts.texts.is_some()).map(|_| *register),
        _ => None,
    };
    let mut pipeline = pipeline.clone();
    let mut refused = None;
    pipeline.change(&mut |expr| {
        if let Some((register, op, constant)) = against_text(expr).filter(|(register, _, _)| is_bytes(register)) {
            *expr = compared(register, op, constant);
        }
        let Expr::Lookup(register, function, _) = expr else { return };
        let register = *register;
        if !is_bytes(&register) {
            return;
        }
        match function.over_bytes() {
            Some(mut tests) => {
                tests.change(&mut |test| {
                    if let Expr::Reg(own) | Expr::Match(own, _) = test {
                        *own = register;
                    }
                });
                *expr = tests;
            }
            None => refused = Some(function.describe()),
        }
    });
    if let Some(function) = refused {
        return unsupported(format!("the function '{function}' of a column without a dictionary"));
    }
    let to_place = |expr: &mut Expr| {
        if let Some(register) = is_text(expr) {
            *expr = Expr::Place(register);
        }
    };
    match &mut pipeline.sink {
        Sink::Aggregate { groups, aggregates } => {
            determined.iter().for_each(|at| to_place(&mut groups[*at].0));
            let counts = aggregates.iter_mut().filter(|call| call.kind == AggregateKind::Count);
            for argument in counts.filter_map(|call| call.argument.as_mut()) {
                if is_text(argument).is_some() {
                    let is_there = Expr::Unary(UnaryOp::IsNotNull, Box::new(argument.clone()));
                    let one = Expr::Literal(Literal::Int(1), Ty::Bool);
                    *argument = Expr::Case(vec![(is_there, one)], Box::new(Expr::Literal(Literal::Null, Ty::Bool)));
                }
            }
        }
        Sink::Build { payload, .. } => payload.iter_mut().for_each(to_place),
        Sink::TopK(top) => top.outputs.iter_mut().for_each(|(expr, _)| to_place(expr)),
        Sink::Rows { columns, .. } => columns.iter_mut().for_each(|(expr, _)| to_place(expr)),
    }
    Ok(pipeline)
}
