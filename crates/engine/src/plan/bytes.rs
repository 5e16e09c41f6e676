//! String columns without a dictionary: what of a fragment asks for codes, and the rest as tests of strings.
//!
//! A fragment is lowered before its columns are loaded. Functions of a string register name what they need
//! ([`DictionaryFunction::over_bytes`](crate::ir::DictionaryFunction::over_bytes)); binding puts it in their place
//! where the column lies on the device as bytes. Besides, only whether such a string is NULL is known.

use std::sync::Arc;

use warpcube_column::{ColumnSource, TableRequest};

use crate::error::{Result, unsupported};
use crate::facts::Facts;
use crate::ir::{AggregateKind, BinaryOp, Expr, Fragment, Literal, Pipeline, Sink, Source, Step, Ty, UnaryOp};
use crate::text_match::TextMatch;

impl Fragment {
    /// The request for the columns of a table, by its position in the fragment.
    pub fn request(&self, table: usize, source: Arc<dyn ColumnSource>) -> TableRequest {
        let columns = self.tables[table].columns.clone();
        let mut coded = Vec::new();
        for pipeline in self.pipelines.iter().filter(|pipeline| pipeline.source == Source::Table(table)) {
            asks_codes(pipeline, &mut |register| coded.extend(columns.get(register)));
        }
        coded.sort_unstable();
        coded.dedup();
        TableRequest { source, columns, coded }
    }
}

/// Calls `visit` for every register whose codes a pipeline asks for if it is a string.
fn asks_codes(pipeline: &Pipeline, visit: &mut impl FnMut(usize)) {
    for step in &pipeline.steps {
        match step {
            Step::Filter(expr) => codes_of(expr, visit),
            Step::Probe(probe) => probe.keys.iter().for_each(|key| codes_of(key, visit)),
        }
    }
    match &pipeline.sink {
        Sink::Build { keys, payload: values } | Sink::Extremes { keys, values } => {
            keys.iter().chain(values).for_each(|expr| codes_of(expr, visit));
        }
        Sink::Aggregate { groups, aggregates } => {
            groups.iter().for_each(|(expr, _)| codes_of(expr, visit));
            for call in aggregates {
                let is_count = call.kind == AggregateKind::Count;
                let argument = call.argument.iter().filter(|expr| !(is_count && matches!(expr, Expr::Reg(_))));
                argument.chain(&call.filter).for_each(|expr| codes_of(expr, visit));
            }
        }
        Sink::TopK(top) => {
            top.keys.iter().for_each(|key| codes_of(&key.expr, visit));
            top.outputs.iter().for_each(|(expr, _)| codes_of(expr, visit));
        }
        Sink::Rows(columns) => columns.iter().for_each(|(expr, _)| codes_of(expr, visit)),
    }
}

/// Calls `visit` for every register whose codes an expression asks for if it is a string.
fn codes_of(expr: &Expr, visit: &mut impl FnMut(usize)) {
    match expr {
        Expr::Lookup(_, function, _) if function.over_bytes().is_some() => {}
        Expr::Unary(UnaryOp::IsNull | UnaryOp::IsNotNull, inner) if matches!(**inner, Expr::Reg(_)) => {}
        Expr::Match(_, _) => {}
        other if against_text(other).is_some() => {}
        Expr::Reg(register) | Expr::Lookup(register, _, _) => visit(*register),
        other => other.each(&mut |inner| codes_of(inner, visit)),
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

/// The pipeline with tests in the place of functions of its columns that are bytes, and with counts of their NULLs.
pub(crate) fn over_bytes(pipeline: &Pipeline, columns: &[Facts]) -> Result<Pipeline> {
    let is_bytes = |register: &usize| columns.get(*register).is_some_and(|facts| facts.is_bytes);
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
    if let Sink::Aggregate { aggregates, .. } = &mut pipeline.sink {
        let counts = aggregates.iter_mut().filter(|call| call.kind == AggregateKind::Count);
        for argument in counts.filter_map(|call| call.argument.as_mut()) {
            if matches!(argument, Expr::Reg(register) if is_bytes(register)) {
                let is_there = Expr::Unary(UnaryOp::IsNotNull, Box::new(argument.clone()));
                let (one, null) = (Expr::Literal(Literal::Int(1), Ty::Bool), Expr::Literal(Literal::Null, Ty::Bool));
                *argument = Expr::Case(vec![(is_there, one)], Box::new(null));
            }
        }
    }
    Ok(pipeline)
}
