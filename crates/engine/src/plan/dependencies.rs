//! Which parts of a group key are determined by the others: functional dependencies among registers.
//!
//! A table with one row for a key gives all rows with that key the same payload, so a register of the payload is
//! determined by the key: in whatever pipeline, and through whatever tables both are handed on. A string that is
//! determined by another part of a group key need not be compared; where it has no code, the place of it in its column
//! stands for it.
//!
//! Invariant: where all registers that determine another one are NULL, so is that one. A row that finds no match in a
//! left join, whose payload is NULL, keeps it.

use std::collections::BTreeSet;

use crate::ir::{Expr, Fragment, JoinKind, Probe, Sink, Step};

/// Registers of a pipeline, and others whose values they determine.
#[derive(Debug, Clone)]
struct Dependency {
    of: Vec<usize>,
    determined: Vec<usize>,
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
    let mut known: Vec<Vec<Dependency>> = Vec::with_capacity(pipeline + 1);
    for index in 0..=pipeline {
        known.push(dependencies(fragment, index, &known, is_unique));
    }
    let mut rest: BTreeSet<usize> = groups.iter().filter_map(|(expr, _)| register(expr)).collect();
    let mut found = Vec::new();
    for (position, (expr, _)) in groups.iter().enumerate() {
        let Some(register) = register(expr) else { continue };
        let mut others = rest.clone();
        others.remove(&register);
        if closure(&others, &known[pipeline]).contains(&register) {
            rest = others;
            found.push(position);
        }
    }
    found
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
    let (mut found, mut first) = (Vec::new(), fragment.width(pipeline.source));
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
        let here: Option<Vec<usize>> = probe.keys.iter().map(register).collect();
        let there: Option<Vec<usize>> = keys.iter().map(|key| register(key).and_then(as_payload)).collect();
        found.extend(here.into_iter().chain(there).map(|of| Dependency { of, determined: determined.clone() }));
    }
    for Dependency { of, determined } in of_build {
        let of: Option<Vec<usize>> = of.iter().map(|own| as_payload(*own).or_else(|| as_key(*own))).collect();
        let determined: Vec<usize> = determined.iter().filter_map(|own| as_payload(*own)).collect();
        found.extend(of.map(|of| Dependency { of, determined }));
    }
}
