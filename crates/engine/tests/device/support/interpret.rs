//! Fragments run a row at a time in plain Rust: what the device must give.
//!
//! Semantics are those of `ir.rs`; nothing of the engine is used beside the IR and its accumulator of exact sums.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringArray};
use warpcube_engine::{
    BinaryOp, Expr, Fragment, JoinKind, Literal, Overflow, Pipeline, Sink, Source, Step, Ty, UnaryOp,
};

use super::calendar::{date_part, months_later};
use super::grouped::{Groups, State, finish, is_probed, is_united};
use super::scalar::{Scalar, quotient, rescaled, scalars, wrapped};
use super::source::MemoryTable;
use super::top_k::ranked;

/// A value with its type.
pub type Typed = (Ty, Option<Scalar>);

/// A row raised an error.
#[derive(Debug)]
pub struct Raised;

/// What a fragment gives.
#[derive(Debug)]
pub enum Outcome {
    /// Rows of groups and aggregates, by group.
    Rows(Vec<Vec<Option<Scalar>>>),
    /// An evaluation error; `certain` unless a step of any order could have dropped the row first.
    Raises { certain: bool },
    /// A table that is probed for payload has several rows for one key.
    Duplicates,
}

/// Payload of each row, by key.
type Table = HashMap<Vec<String>, Vec<Vec<Typed>>>;
/// What dictionary functions gave, by function and string.
type Results = HashMap<(String, Option<Arc<str>>), Option<Scalar>>;

/// Runs a fragment over its tables.
pub fn interpret(fragment: &Fragment, tables: &[&MemoryTable]) -> Outcome {
    let mut built: Vec<Table> = Vec::new();
    // Rows of the groups of each pipeline, and what their aggregates have seen.
    let (mut grouped, mut states) = (Vec::<Vec<Vec<Typed>>>::new(), Vec::<Vec<Vec<State>>>::new());
    let (mut raised, mut maybe) = (false, false);
    // Groups of the branches of a union so far.
    let mut united = Groups::new();
    for (index, pipeline) in fragment.pipelines.iter().enumerate() {
        let (mut table, mut groups) = (Table::new(), std::mem::take(&mut united));
        let needs_unique = fragment.pipelines.iter().flat_map(|later| &later.steps).any(
            |step| matches!(step, Step::Probe(probe) if probe.build == index && probe.unique && probe.has_payload()),
        ) && matches!(pipeline.sink, Sink::Build { .. });
        let scanned = match pipeline.source {
            Source::Table(_) => rows(fragment, pipeline, tables),
            Source::Output(of) => grouped[of].clone(),
        };
        let (mut number, limit) = (
            0,
            match pipeline.steps.last() {
                Some(Step::Limit { skip, rows }) => *skip..skip.saturating_add(*rows),
                _ => 0..u64::MAX,
            },
        );
        for (at, row) in scanned.into_iter().enumerate() {
            let seen = match pipeline.source {
                Source::Output(of) => states[of].get(at).map_or(&[][..], Vec::as_slice),
                Source::Table(_) => &[],
            };
            let seen = (row.len() - seen.len(), seen);
            for (registers, pending) in follow(pipeline, row, &built, fragment, tables) {
                let Some(registers) = registers else {
                    maybe |= pending;
                    continue;
                };
                if pending {
                    raised = true;
                    continue;
                }
                number += 1;
                if !limit.contains(&(number - 1)) {
                    continue;
                }
                match sink(pipeline, (&registers, seen), fragment.overflow, &mut table, &mut groups) {
                    Ok(true) if needs_unique => return Outcome::Duplicates,
                    Ok(_) => {}
                    Err(Raised) => raised = true,
                }
            }
        }
        built.push(table);
        grouped.push(Vec::new());
        states.push(groups.values().map(|(_, states)| states.clone()).collect());
        if fragment.branches(index).end > index + 1 {
            united = groups;
            continue;
        }
        if index + 1 == fragment.pipelines.len() && !raised && !maybe {
            let types = || group_types(fragment, tables, index);
            match finish(pipeline, groups, fragment.overflow).and_then(|rows| computed(fragment, types, rows)) {
                Ok(rows) => return Outcome::Rows(rows),
                Err(Raised) => raised = true,
            }
        } else if !matches!(pipeline.sink, Sink::Build { .. }) {
            let types = group_types(fragment, tables, index);
            let rule = if is_united(fragment, index) { Overflow::Wrap } else { fragment.overflow };
            match finish(pipeline, groups, rule) {
                Ok(rows) => {
                    let rows = match &pipeline.sink {
                        Sink::TopK(top) => ranked(rows, top),
                        _ => rows,
                    };
                    if let (Sink::Aggregate { groups, .. }, true) = (&pipeline.sink, is_probed(fragment, index)) {
                        built[index] = probed_groups(&rows, groups.len(), &types);
                    }
                    grouped[index] = rows.into_iter().map(|row| types.iter().copied().zip(row).collect()).collect();
                }
                Err(Raised) => raised = true,
            }
        }
    }
    Outcome::Raises { certain: raised }
}

/// The columns of a result of groups.
fn computed(
    fragment: &Fragment,
    types: impl FnOnce() -> Vec<Ty>,
    rows: Vec<Vec<Option<Scalar>>>,
) -> Result<Vec<Vec<Option<Scalar>>>, Raised> {
    if fragment.result.is_empty() {
        return Ok(rows);
    }
    let types = types();
    let row = |row: Vec<Option<Scalar>>| {
        let registers: Vec<Typed> = types.iter().copied().zip(row).collect();
        fragment.result.iter().map(|(expr, _)| Ok(evaluate(expr, &registers, fragment.overflow)?.1)).collect()
    };
    rows.into_iter().map(row).collect()
}

/// Groups as a table of their aggregates; those of a key that is NULL are not found.
fn probed_groups(rows: &[Vec<Option<Scalar>>], keys: usize, types: &[Ty]) -> Table {
    let entry = |row: &Vec<Option<Scalar>>| {
        let key = row[..keys].iter().map(|key| key.as_ref().map(Scalar::join_key)).collect::<Option<Vec<_>>>()?;
        Some((key, vec![types.iter().copied().zip(row.iter().cloned()).skip(keys).collect()]))
    };
    rows.iter().filter_map(entry).collect()
}

fn rows(fragment: &Fragment, pipeline: &Pipeline, tables: &[&MemoryTable]) -> Vec<Vec<Typed>> {
    let table = pipeline.source.table().expect("a table is scanned");
    let source = tables[table];
    let schema = warpcube_column::ColumnSource::schema(source);
    let wanted = &fragment.tables[table].columns;
    let types: Vec<Ty> = wanted.iter().map(|column| Ty::of(schema.field(*column).data_type()).unwrap()).collect();
    let columns: Vec<_> = wanted.iter().map(|column| source.column(*column)).collect();
    let row = |row: usize| types.iter().zip(&columns).map(|(ty, column)| (*ty, column[row].clone())).collect();
    (0..source.row_count()).map(row).collect()
}

/// Takes one row through the steps: for each of its matches its registers if it goes on, and whether a filter raised
/// on the way.
fn follow(
    pipeline: &Pipeline,
    row: Vec<Typed>,
    built: &[Table],
    fragment: &Fragment,
    tables: &[&MemoryTable],
) -> Vec<(Option<Vec<Typed>>, bool)> {
    let mut rows = vec![(Some(row), false)];
    for step in &pipeline.steps {
        let next = |(registers, pending): (Option<Vec<Typed>>, bool)| match registers {
            Some(registers) => take(step, registers, pending, built, (fragment, tables)),
            None => vec![(None, pending)],
        };
        rows = rows.into_iter().flat_map(next).collect();
    }
    rows
}

/// Takes one row through a step.
fn take(
    step: &Step,
    registers: Vec<Typed>,
    mut pending: bool,
    built: &[Table],
    (fragment, tables): (&Fragment, &[&MemoryTable]),
) -> Vec<(Option<Vec<Typed>>, bool)> {
    match step {
        Step::Limit { .. } => vec![(Some(registers), pending)],
        Step::Filter(expr) => match evaluate(expr, &registers, fragment.overflow) {
            Ok((_, Some(value))) if value.int() != 0 => vec![(Some(registers), pending)],
            Ok(_) => vec![(None, pending)],
            Err(Raised) => vec![(Some(registers), true)],
        },
        Step::Probe(probe) => {
            let mut keys = Vec::new();
            for key in &probe.keys {
                match evaluate(key, &registers, fragment.overflow) {
                    Ok((_, value)) => keys.push(value),
                    Err(Raised) => {
                        pending = true;
                        keys.push(None);
                    }
                }
            }
            let keys: Option<Vec<String>> = keys.iter().map(|key| key.as_ref().map(Scalar::join_key)).collect();
            let found = keys.and_then(|keys| built[probe.build].get(&keys)).map_or(&[][..], Vec::as_slice);
            let joined = |payload: Vec<Typed>| registers.iter().cloned().chain(payload).collect::<Vec<Typed>>();
            let meets = |row: &&Vec<Typed>| {
                let value =
                    probe.residual.as_ref().map(|expr| evaluate(expr, &joined(row.to_vec()), fragment.overflow));
                pending |= matches!(value, Some(Err(Raised)));
                value.is_none_or(|value| value.is_ok_and(|(_, value)| value.is_some_and(|value| value.int() != 0)))
            };
            let found: Vec<Vec<Typed>> = found.iter().filter(meets).cloned().collect();
            let with = |payload: Vec<Typed>| (Some(joined(payload)), pending);
            let types = if probe.has_payload() { payload_types(fragment, tables, probe.build) } else { Vec::new() };
            let is_found = Some(Scalar::Int((!found.is_empty()).into()));
            let nothing = types.into_iter().map(|ty| (ty, None));
            let nothing = nothing.chain((probe.kind == JoinKind::Mark).then_some((Ty::Bool, is_found)));
            match (probe.kind, found.as_slice()) {
                (JoinKind::Inner | JoinKind::Left, [_, ..]) => found.into_iter().map(with).collect(),
                (JoinKind::Semi, []) | (JoinKind::Anti, [_, ..]) => vec![(None, pending)],
                (JoinKind::Inner, []) if !pending => vec![(None, pending)],
                _ => vec![with(nothing.collect())],
            }
        }
    }
}

fn payload_types(fragment: &Fragment, tables: &[&MemoryTable], build: usize) -> Vec<Ty> {
    let types = register_types(fragment, tables, build);
    match &fragment.pipelines[build].sink {
        Sink::Build { payload, .. } => payload.iter().map(|expr| type_of(expr, &types)).collect(),
        Sink::Aggregate { aggregates, .. } => {
            aggregates.iter().map(|call| type_of(call.argument.as_ref().unwrap(), &types)).collect()
        }
        Sink::TopK(_) | Sink::Rows { .. } => panic!("{build} builds no table"),
    }
}

/// Types of the groups and aggregates of a pipeline, or of its rows.
fn group_types(fragment: &Fragment, tables: &[&MemoryTable], pipeline: usize) -> Vec<Ty> {
    let registers = register_types(fragment, tables, pipeline);
    let (keys, aggregates) = match &fragment.pipelines[pipeline].sink {
        Sink::Aggregate { groups, aggregates } => (groups, aggregates.as_slice()),
        Sink::Rows { columns, .. } => (columns, [].as_slice()),
        Sink::TopK(top) => (&top.outputs, [].as_slice()),
        Sink::Build { .. } => panic!("no groups"),
    };
    let keys = keys.iter().map(|(expr, _)| type_of(expr, &registers));
    let calls = aggregates.iter().map(|call| Ty::of(&call.data_type).unwrap());
    keys.chain(calls).chain(super::windows::types(&fragment.pipelines[pipeline].sink)).collect()
}

/// Types of all registers of a pipeline.
pub fn register_types(fragment: &Fragment, tables: &[&MemoryTable], pipeline: usize) -> Vec<Ty> {
    let pipeline = &fragment.pipelines[pipeline];
    let mut types: Vec<Ty> = match pipeline.source {
        Source::Table(table) => {
            let schema = warpcube_column::ColumnSource::schema(tables[table]);
            let columns = fragment.tables[table].columns.iter();
            columns.map(|column| Ty::of(schema.field(*column).data_type()).unwrap()).collect()
        }
        Source::Output(of) => group_types(fragment, tables, of),
    };
    for step in &pipeline.steps {
        let Step::Probe(probe) = step else { continue };
        if probe.has_payload() {
            types.extend(payload_types(fragment, tables, probe.build));
        }
        types.extend((probe.kind == JoinKind::Mark).then_some(Ty::Bool));
    }
    types
}

/// Type of an expression over registers of these types.
pub fn type_of(expr: &Expr, registers: &[Ty]) -> Ty {
    match expr {
        Expr::Reg(register) => registers[*register],
        Expr::Literal(_, ty) | Expr::Cast(_, ty) | Expr::Lookup(_, _, ty) => *ty,
        Expr::Unary(UnaryOp::Not | UnaryOp::IsNull | UnaryOp::IsNotNull | UnaryOp::IsTrue, _) => Ty::Bool,
        Expr::Match(_, _) | Expr::Among(_, _) => Ty::Bool,
        Expr::Place(_) => unreachable!("binding alone makes places"),
        Expr::Binary(op, _, _) if op.is_comparison() || matches!(op, BinaryOp::And | BinaryOp::Or) => Ty::Bool,
        Expr::Binary(_, left, _) => type_of(left, registers),
        Expr::Rescale(_, _) | Expr::Digits(_, _) | Expr::Quotient(_, _) => Ty::I128,
        Expr::DecimalToFloat(_, _) | Expr::Deviations(_) => Ty::F64,
        Expr::Case(_, otherwise) => type_of(otherwise, registers),
        Expr::DatePart(_, _) | Expr::AddMonths(_, _) => Ty::I32,
        Expr::InCalendar(inner, _) | Expr::Unary(_, inner) => type_of(inner, registers),
        Expr::Text(_) => Ty::U32,
    }
}

/// Enters a row into the sink; whether its key was in the table already.
fn sink(
    pipeline: &Pipeline,
    (registers, seen): (&[Typed], (usize, &[State])),
    rule: Overflow,
    table: &mut Table,
    groups: &mut Groups,
) -> Result<bool, Raised> {
    match &pipeline.sink {
        Sink::Build { keys, payload } => {
            let keys = keys.iter().map(|key| Ok(evaluate(key, registers, rule)?.1)).collect::<Result<Vec<_>, _>>()?;
            let Some(keys) = keys.iter().map(|key| key.as_ref().map(Scalar::join_key)).collect::<Option<Vec<_>>>()
            else {
                return Ok(false);
            };
            let payload = payload.iter().map(|expr| evaluate(expr, registers, rule)).collect::<Result<_, _>>()?;
            let rows = table.entry(keys).or_default();
            rows.push(payload);
            Ok(rows.len() > 1)
        }
        Sink::Rows { columns, .. } => {
            let values = columns.iter().map(|(expr, _)| Ok(evaluate(expr, registers, rule)?.1));
            let values = values.collect::<Result<Vec<_>, _>>()?;
            // Rows are kept apart by their number.
            groups.insert(vec![format!("{:012}", groups.len())], (values, Vec::new()));
            Ok(false)
        }
        // Keys, then what is given of the rows that come first.
        Sink::TopK(top) => {
            let exprs = top.keys.iter().map(|key| &key.expr).chain(top.outputs.iter().map(|(expr, _)| expr));
            let values = exprs.map(|expr| Ok(evaluate(expr, registers, rule)?.1)).collect::<Result<Vec<_>, _>>()?;
            groups.insert(vec![format!("{:012}", groups.len())], (values, Vec::new()));
            Ok(false)
        }
        Sink::Aggregate { groups: by, aggregates } => {
            let values =
                by.iter().map(|(expr, _)| Ok(evaluate(expr, registers, rule)?.1)).collect::<Result<Vec<_>, _>>()?;
            let mut arguments = Vec::new();
            for call in aggregates {
                let filter = call.filter.as_ref().map(|expr| evaluate(expr, registers, rule)).transpose()?;
                let takes = filter.is_none_or(|(_, value)| value.is_some_and(|value| value.int() != 0));
                // Rows that are left out raise nothing.
                let argument = call.argument.as_ref().filter(|_| takes && !call.unites);
                arguments.push((argument.map(|expr| evaluate(expr, registers, rule)).transpose()?, takes));
            }
            // Both zeros are one group.
            let zeros = |value| match value {
                Some(Scalar::Float(0.0)) => Some(Scalar::Float(0.0)),
                other => other,
            };
            let values: Vec<Option<Scalar>> = values.into_iter().map(zeros).collect();
            let key: Vec<String> = values.iter().map(|value| value.as_ref().map_or("-".into(), Scalar::key)).collect();
            let group = groups.entry(key).or_insert_with(|| (values, vec![State::default(); aggregates.len()]));
            for ((state, (argument, takes)), call) in group.1.iter_mut().zip(arguments).zip(aggregates) {
                match call.argument {
                    // The one group of no rows has seen nothing.
                    Some(Expr::Reg(register)) if call.unites => {
                        let of = register.checked_sub(seen.0).and_then(|at| seen.1.get(at));
                        of.into_iter().for_each(|of| state.unite(call, of));
                    }
                    _ if takes => state.take(call, argument),
                    _ => {}
                }
            }
            Ok(false)
        }
    }
}

pub(super) fn order(left: &Scalar, right: &Scalar) -> std::cmp::Ordering {
    match (left, right) {
        (Scalar::Int(left), Scalar::Int(right)) => left.cmp(right),
        // Both zeros are one, and so are NaNs, which are largest.
        (Scalar::Float(left), Scalar::Float(right)) => {
            let one = |value: f64| if value.is_nan() { f64::NAN.abs() } else { value + 0.0 };
            one(*left).total_cmp(&one(*right))
        }
        (left, right) => left.text().cmp(right.text()),
    }
}

/// The value of an expression for one row.
pub fn evaluate(expr: &Expr, registers: &[Typed], rule: Overflow) -> Result<Typed, Raised> {
    Ok(match expr {
        Expr::Reg(register) => registers[*register].clone(),
        Expr::Literal(Literal::Null, ty) => (*ty, None),
        Expr::Literal(Literal::Argument(position), _) => panic!("argument {position} was given no value"),
        Expr::Literal(Literal::Float(value), ty) => (*ty, Some(Scalar::Float(rounded(*ty, *value)))),
        Expr::Literal(Literal::Int(value), ty) if ty.is_float() => (*ty, Some(Scalar::Float(*value as f64))),
        Expr::Literal(Literal::Int(value), ty) => (*ty, Some(Scalar::Int(*value))),
        Expr::Unary(op, inner) => unary(*op, evaluate(inner, registers, rule)?, rule)?,
        Expr::Binary(BinaryOp::And, left, right) => logic(false, left, right, registers, rule)?,
        Expr::Binary(BinaryOp::Or, left, right) => logic(true, left, right, registers, rule)?,
        Expr::Binary(op, left, right) => {
            binary(*op, evaluate(left, registers, rule)?, evaluate(right, registers, rule)?, rule)?
        }
        Expr::Cast(inner, ty) => {
            (*ty, evaluate(inner, registers, rule)?.1.map(|value| convert(value, *ty)).transpose()?)
        }
        Expr::Rescale(inner, power) => {
            let value = evaluate(inner, registers, rule)?.1;
            (Ty::I128, value.map(|value| rescaled(value.int(), *power).ok_or(Raised)).transpose()?.map(Scalar::Int))
        }
        Expr::Digits(inner, most) => {
            let (ty, value) = evaluate(inner, registers, rule)?;
            let has_more = |value: &Scalar| value.int().unsigned_abs() >= 10u128.pow((*most).into());
            if value.as_ref().is_some_and(has_more) {
                return Err(Raised);
            }
            (ty, value)
        }
        Expr::DecimalToFloat(inner, scale) => {
            let value = evaluate(inner, registers, rule)?.1;
            let nearest = |units: i128| format!("{units}e-{scale}").parse().expect("a number with an exponent");
            (Ty::F64, value.map(|value| Scalar::Float(nearest(value.int()))))
        }
        Expr::Case(branches, otherwise) => {
            for (when, then) in branches {
                if evaluate(when, registers, rule)?.1.is_some_and(|value| value.int() != 0) {
                    return evaluate(then, registers, rule);
                }
            }
            evaluate(otherwise, registers, rule)?
        }
        Expr::DatePart(part, inner) => {
            let value = evaluate(inner, registers, rule)?.1;
            (Ty::I32, value.map(|value| Scalar::Int(date_part(*part, value.int()))))
        }
        Expr::AddMonths(inner, months) => {
            let value = evaluate(inner, registers, rule)?.1;
            (Ty::I32, value.map(|value| Scalar::Int(months_later(value.int(), (*months).into()))))
        }
        Expr::InCalendar(inner, _) => evaluate(inner, registers, rule)?,
        Expr::Among(inner, values) => {
            let (_, value) = evaluate(inner, registers, rule)?;
            let found = |value: &Scalar| values.iter().any(|constant| i128::from(*constant) == value.int());
            (Ty::Bool, value.map(|value| Scalar::Int(found(&value).into())))
        }
        Expr::Quotient(operands, power) => {
            let [dividend, divisor] = operands.each_ref().map(|inner| evaluate(inner, registers, rule));
            let pair = dividend?.1.zip(divisor?.1).map(|(one, other)| (one.int(), other.int()));
            (Ty::I128, pair.map(|pair| quotient(pair, *power).ok_or(Raised)).transpose()?)
        }
        Expr::Deviations(sums) => {
            let [sum, squares, count] = sums.as_ref();
            let part = |inner| Ok::<_, Raised>(evaluate(inner, registers, rule)?.1.map(|value| value.int()));
            let (sum, squares, count) = (part(sum)?, part(squares)?, part(count)?);
            let exact = sum.zip(squares).zip(count).map(|((sum, squares), count)| count * squares - sum * sum);
            (Ty::F64, exact.map(|exact| Scalar::Float(exact as f64)))
        }
        Expr::Text(text) => (Ty::U32, Some(Scalar::Text(text.clone()))),
        Expr::Place(_) => unreachable!("binding alone makes places"),
        Expr::Match(register, test) => {
            let text = registers[*register].1.as_ref();
            (Ty::Bool, text.map(|text| Scalar::Int(test.holds(text.text()).into())))
        }
        Expr::Lookup(register, function, ty) => {
            thread_local!(static KNOWN: RefCell<Results> = RefCell::default());
            let text = registers[*register].1.as_ref().map(|value| Arc::<str>::from(value.text()));
            let key = (function.describe(), text.clone());
            let value = KNOWN.with_borrow_mut(|known| {
                let apply = || {
                    let strings: ArrayRef = Arc::new(StringArray::from(vec![text.as_deref(), None]));
                    let results = function.apply(&strings).unwrap();
                    assert_eq!(results.len(), 2);
                    scalars(&results)[0].clone()
                };
                known.entry(key).or_insert_with(apply).clone()
            });
            (*ty, value)
        }
    })
}

fn rounded(ty: Ty, value: f64) -> f64 {
    if ty == Ty::F32 { f64::from(value as f32) } else { value }
}

fn truth(value: bool) -> Option<Scalar> {
    Some(Scalar::Int(value.into()))
}

fn unary(op: UnaryOp, (ty, value): Typed, rule: Overflow) -> Result<Typed, Raised> {
    let is_true = |value: &Scalar| value.int() != 0;
    Ok(match op {
        UnaryOp::Not => (Ty::Bool, value.map(|value| Scalar::Int((!is_true(&value)).into()))),
        UnaryOp::IsNull => (Ty::Bool, truth(value.is_none())),
        UnaryOp::IsNotNull => (Ty::Bool, truth(value.is_some())),
        UnaryOp::IsTrue => (Ty::Bool, truth(value.as_ref().is_some_and(is_true))),
        op if ty.is_float() => (ty, value.map(|value| Scalar::Float(rounded(ty, value.of_float(op))))),
        UnaryOp::Absolute => (ty, value.map(|value| within(ty, value.int().abs(), Overflow::Raise)).transpose()?),
        _ => (ty, value.map(|value| within(ty, -value.int(), rule)).transpose()?),
    })
}

/// AND (`deciding` false) or OR (`deciding` true); the right side only where the left one does not decide.
fn logic(deciding: bool, left: &Expr, right: &Expr, registers: &[Typed], rule: Overflow) -> Result<Typed, Raised> {
    let left = evaluate(left, registers, rule)?.1.map(|value| value.int() != 0);
    if left == Some(deciding) {
        return Ok((Ty::Bool, truth(deciding)));
    }
    let right = evaluate(right, registers, rule)?.1.map(|value| value.int() != 0);
    Ok((
        Ty::Bool,
        match (left, right) {
            (_, Some(right)) if right == deciding => truth(deciding),
            (Some(_), Some(_)) => truth(!deciding),
            _ => None,
        },
    ))
}

fn binary(op: BinaryOp, left: Typed, right: Typed, rule: Overflow) -> Result<Typed, Raised> {
    let ty = left.0;
    assert_eq!(ty, right.0, "operands of {op:?}");
    let result = if op.is_comparison() { Ty::Bool } else { ty };
    let (Some(left), Some(right)) = (left.1, right.1) else { return Ok((result, None)) };
    if op.is_comparison() {
        let unsigned = |value: Scalar| match value {
            // Zeros of both signs are equal.
            Scalar::Float(0.0) => Scalar::Float(0.0),
            value => value,
        };
        let order = order(&unsigned(left), &unsigned(right));
        let holds = match op {
            BinaryOp::Eq => order.is_eq(),
            BinaryOp::Ne => order.is_ne(),
            BinaryOp::Lt => order.is_lt(),
            BinaryOp::Le => order.is_le(),
            BinaryOp::Gt => order.is_gt(),
            _ => order.is_ge(),
        };
        return Ok((Ty::Bool, truth(holds)));
    }
    if ty.is_float() {
        let (left, right) = (left.float(), right.float());
        let value = match op {
            BinaryOp::Add => left + right,
            BinaryOp::Sub => left - right,
            BinaryOp::Mul => left * right,
            BinaryOp::Div => left / right,
            _ => left % right,
        };
        // One operation on singles computed in double precision and rounded once more is exact.
        return Ok((ty, Some(Scalar::Float(rounded(ty, value)))));
    }
    let (left, right) = (left.int(), right.int());
    if matches!(op, BinaryOp::Div | BinaryOp::Rem) {
        let (minimum, _) = ty.bounds().unwrap();
        if right == 0 || op == BinaryOp::Div && minimum < 0 && right == -1 && left == minimum {
            return Err(Raised);
        }
    }
    let value = match op {
        BinaryOp::Add => left.checked_add(right),
        BinaryOp::Sub => left.checked_sub(right),
        // The product of two unsigned numbers of 64 bits may leave 128 with a sign.
        BinaryOp::Mul if rule == Overflow::Wrap => Some(left.wrapping_mul(right)),
        BinaryOp::Mul => left.checked_mul(right),
        BinaryOp::Div => Some(left / right),
        _ => Some(left % right),
    };
    Ok((ty, Some(within(ty, value.ok_or(Raised)?, rule)?)))
}

/// An exact result as a value of a type, if the rule lets it be one.
pub(super) fn within(ty: Ty, value: i128, rule: Overflow) -> Result<Scalar, Raised> {
    match wrapped(ty, value) {
        _ if ty == Ty::I128 && rule == Overflow::Raise && value.unsigned_abs() >= 10u128.pow(38) => Err(Raised),
        wrapped if wrapped == value || rule == Overflow::Wrap => Ok(Scalar::Int(wrapped)),
        _ => Err(Raised),
    }
}

fn convert(value: Scalar, ty: Ty) -> Result<Scalar, Raised> {
    Ok(match (value, ty) {
        (Scalar::Float(value), Ty::Bool) => Scalar::Int((value != 0.0).into()),
        (Scalar::Int(value), Ty::Bool) => Scalar::Int((value != 0).into()),
        (Scalar::Float(value), Ty::F32 | Ty::F64) => Scalar::Float(rounded(ty, value)),
        (Scalar::Int(value), Ty::F32) => Scalar::Float((value as f32).into()),
        (Scalar::Int(value), Ty::F64) => Scalar::Float(value as f64),
        (Scalar::Float(value), _) => {
            let (low, high) = ty.bounds().unwrap();
            let whole = value.trunc();
            // i128 holds every whole double of the 64-bit types; NaN becomes 0 and is caught before.
            if whole.is_nan() || whole.abs() > 1e30 || !(low..=high).contains(&(whole as i128)) {
                return Err(Raised);
            }
            Scalar::Int(whole as i128)
        }
        (Scalar::Int(value), _) => {
            let (low, high) = ty.bounds().unwrap();
            if !(low..=high).contains(&value) {
                return Err(Raised);
            }
            Scalar::Int(value)
        }
        (text, _) => text,
    })
}
