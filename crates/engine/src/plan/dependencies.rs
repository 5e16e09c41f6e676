//! Which parts of a group key, or keys of an order, are determined by others: functional dependencies among registers.
//!
//! A table with one row for a key gives all rows with that key the same payload, so a register of the payload is
//! determined by the key: in whatever pipeline, and through whatever tables both are handed on. A string that is
//! determined by another part of a group key need not be compared; where it has no code, the place of it in its column
//! stands for it. The keys of groups determine what is aggregated. Of an order, a key that those before it determine
//! tells no rows apart.
//!
//! A row that finds no match in a left join has a payload of NULL. It keeps a dependency where NULL of all registers
//! that determine another one makes that NULL too, which holds of tables, and not of groups.

use std::collections::BTreeSet;

use crate::ir::{Expr, Fragment, JoinKind, Pipeline, Probe, Sink, Source, Step};

/// Registers of a pipeline, and others whose values they determine.
#[derive(Debug, Clone)]
struct Dependency {
    of: Vec<usize>,
    determined: Vec<usize>,
    /// Whether NULL of all registers that determine them makes them NULL.
    keeps_null: bool,
}

/// The positions in the group key of a pipeline of those registers that the rest of the key determines, where the
/// tables of these probes have one row for a key.
pub(crate) fn determined_keys(fragment: &Fragment, pipeline: usize, is_unique: &dyn Fn(&Probe) -> bool) -> Vec<usize> {
    let Some(Sink::Aggregate { groups, .. }) = fragment.pipelines.get(pipeline).map(|pipeline| &pipeline.sink) else {
        return Vec::new();
    };
    // Pipelines of a union have one register each for the same part; keys that are probed are compared.
    if groups.len() < 2 || fragment.branches(pipeline).len() > 1 || fragment.is_probed(pipeline) {
        return Vec::new();
    }
    let known = known(fragment, pipeline, is_unique);
    let mut rest: BTreeSet<usize> = groups.iter().filter_map(|(expr, _)| register(expr)).collect();
    let mut found = Vec::new();
    for (position, (expr, _)) in groups.iter().enumerate() {
        let Some(register) = register(expr) else { continue };
        let mut others = rest.clone();
        others.remove(&register);
        if closure(&others, &known).contains(&register) {
            rest = others;
            found.push(position);
        }
    }
    found
}

/// The positions in the order of a pipeline of those registers that the keys before them determine, where the tables of
/// these probes have one row for a key. Floats determine nothing: zeros of both signs are equal and not the same.
/// Expressions stay, since they may raise an error. Orders of windows keep all keys: frames and peers ask for them.
pub(crate) fn determined_order(
    fragment: &Fragment,
    pipeline: usize,
    is_unique: &dyn Fn(&Probe) -> bool,
    is_float: &dyn Fn(usize) -> bool,
) -> Vec<usize> {
    let Some(Sink::TopK(top)) = fragment.pipelines.get(pipeline).map(|pipeline| &pipeline.sink) else {
        return Vec::new();
    };
    if top.keys.len() < 2 || !top.windows.is_empty() || top.first.is_some() {
        return Vec::new();
    }
    let known = known(fragment, pipeline, is_unique);
    let (mut before, mut found) = (BTreeSet::new(), Vec::new());
    for (position, key) in top.keys.iter().enumerate() {
        let Some(register) = register(&key.expr) else { continue };
        if closure(&before, &known).contains(&register) {
            found.push(position);
        } else if !is_float(register) {
            before.insert(register);
        }
    }
    found
}

/// What holds among the registers of a pipeline.
fn known(fragment: &Fragment, pipeline: usize, is_unique: &dyn Fn(&Probe) -> bool) -> Vec<Dependency> {
    let mut known: Vec<Vec<Dependency>> = Vec::with_capacity(pipeline + 1);
    for index in 0..=pipeline {
        known.push(dependencies(fragment, index, &known, is_unique));
    }
    known.pop().unwrap_or_default()
}

/// Whether all registers that an expression reads, of which there are some, are among these.
fn is_determined(expr: &Expr, registers: &BTreeSet<usize>) -> bool {
    let (mut some, mut all) = (false, true);
    expr.registers(&mut |register| (some, all) = (true, all && registers.contains(&register)));
    some && all
}

/// Positions of the expressions that some registers determine.
fn positions<'a>(exprs: impl Iterator<Item = &'a Expr>, registers: &BTreeSet<usize>) -> Vec<usize> {
    exprs.enumerate().filter(|(_, expr)| is_determined(expr, registers)).map(|(position, _)| position).collect()
}

fn register(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Reg(register) => Some(*register),
        _ => None,
    }
}

/// All registers that some determine, those included.
fn closure(registers: &BTreeSet<usize>, known: &[Dependency]) -> BTreeSet<usize> {
    let mut all = registers.clone();
    loop {
        let before = all.len();
        for dependency in known.iter().filter(|dependency| !dependency.of.is_empty()) {
            if dependency.of.iter().all(|register| all.contains(register)) {
                all.extend(&dependency.determined);
            }
        }
        if all.len() == before {
            return all;
        }
    }
}

/// What holds among the registers of a pipeline; `known` is what holds in those before it.
fn dependencies(
    fragment: &Fragment,
    index: usize,
    known: &[Vec<Dependency>],
    is_unique: &dyn Fn(&Probe) -> bool,
) -> Vec<Dependency> {
    let pipeline = &fragment.pipelines[index];
    let mut found = match pipeline.source {
        Source::Output(of) if fragment.branches(of).len() == 1 => match (fragment.pipelines.get(of), known.get(of)) {
            (Some(output), Some(known)) => of_output(output, known),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    let mut first = fragment.width(pipeline.source);
    for step in &pipeline.steps {
        let Step::Probe(probe) = step else { continue };
        // Binding refuses a probe of a pipeline that is not before this one.
        let (Some(build), Some(of_build)) = (fragment.pipelines.get(probe.build), known.get(probe.build)) else {
            break;
        };
        if let (Sink::Build { keys, payload }, JoinKind::Inner | JoinKind::Left) = (&build.sink, probe.kind) {
            through_probe((probe, is_unique(probe)), (keys, payload), of_build, first, &mut found);
        }
        first += probe.width(build.sink.payload_width());
    }
    found
}

/// What holds of the output of a pipeline, of which `known` holds.
fn of_output(output: &Pipeline, known: &[Dependency]) -> Vec<Dependency> {
    let (columns, width): (Vec<&Expr>, usize) = match &output.sink {
        Sink::Aggregate { groups, aggregates } => {
            (groups.iter().map(|(expr, _)| expr).collect(), groups.len() + aggregates.len())
        }
        Sink::Rows { columns, .. } => (columns.iter().map(|(expr, _)| expr).collect(), columns.len()),
        Sink::TopK(top) => (top.outputs.iter().map(|(expr, _)| expr).collect(), top.outputs.len()),
        Sink::Build { .. } => return Vec::new(),
    };
    let mut found = Vec::new();
    if matches!(output.sink, Sink::Aggregate { .. }) {
        let of = (0..columns.len()).collect();
        found.push(Dependency { of, determined: (columns.len()..width).collect(), keeps_null: false });
    }
    let position_of = |own: &usize| columns.iter().position(|expr| register(expr) == Some(*own));
    found.extend(known.iter().filter_map(|dependency| {
        let of = dependency.of.iter().map(position_of).collect::<Option<Vec<_>>>()?;
        let all = closure(&dependency.of.iter().copied().collect(), known);
        Some(Dependency { of, determined: positions(columns.iter().copied(), &all), keeps_null: false })
    }));
    found
}

/// Adds what holds of the payload of a probe, whose registers begin with `first`.
fn through_probe(
    (probe, is_unique): (&Probe, bool),
    (keys, payload): (&[Expr], &[Expr]),
    of_build: &[Dependency],
    first: usize,
    found: &mut Vec<Dependency>,
) {
    let position_of = |exprs: &[Expr], own: usize| exprs.iter().position(|expr| register(expr) == Some(own));
    let as_payload = |own: usize| position_of(payload, own).map(|position| first + position);
    // Of a match alone the key is what the table has.
    let as_key = |own: usize| {
        let position = position_of(keys, own).filter(|_| probe.kind == JoinKind::Inner)?;
        register(&probe.keys[position])
    };
    if is_unique {
        let determined: Vec<usize> = (first..first + payload.len()).collect();
        // Of rows with one key some may meet a residual, and others not.
        let always_meets = probe.kind == JoinKind::Inner || probe.residual.is_none();
        let here = probe.keys.iter().map(register).collect::<Option<Vec<usize>>>().filter(|_| always_meets);
        let there: Option<Vec<usize>> = keys.iter().map(|key| register(key).and_then(as_payload)).collect();
        let dependency = |of| Dependency { of, determined: determined.clone(), keeps_null: true };
        found.extend(here.into_iter().chain(there).map(dependency));
    }
    for dependency in of_build.iter().filter(|of| of.keeps_null || probe.kind == JoinKind::Inner) {
        let as_own = |own: &usize| as_payload(*own).or_else(|| as_key(*own));
        let of: Option<Vec<usize>> = dependency.of.iter().map(as_own).collect();
        let all: BTreeSet<usize> = dependency.of.iter().chain(&dependency.determined).copied().collect();
        let determined = positions(payload.iter(), &all).into_iter().map(|position| first + position).collect();
        found.extend(of.map(|of| Dependency { of, determined, keeps_null: dependency.keeps_null }));
    }
}
