//! Random fragments over random tables: seeded, so that every run has the same ones and the compiler's cache knows
//! them.
//!
//! Each seed gives one program and its tables, run in three lane orders.

pub mod generator;
mod staged;

use warpcube_column::EncodingChoice;
use warpcube_engine::{BindingCache, BindingOrigin, Engine, EngineError, Expr, Fragment, Literal, Step, Ty};
use warpcube_gpu::LaneOrder;

use crate::support::*;
use generator::Generator;

/// Programs of this test; each is compiled once for the emulated device.
const SEEDS: u64 = 24;

#[test]
fn random_fragments_equal_the_interpreter() {
    // One has too little room for whatever is guessed; the last one scans a chunk a launch.
    let small = engine(LaneOrder::Seeded(5)).with_tuning("group_slots=2,expected_keys=1".parse().unwrap());
    let engines = [LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(11)].map(engine);
    let engines = engines.into_iter().chain([small, cut(LaneOrder::Forward)]).collect::<Vec<_>>();
    let (mut compared, mut refused, mut raised, mut took_over, mut launches) = (0, Vec::new(), 0, 0, 0);
    let cases: Vec<(u64, Vec<MemoryTable>, Fragment)> = (0..SEEDS)
        .map(|seed| {
            let mut generator = Generator::new(seed);
            let tables = generator.tables(900 + seed as usize * 37);
            (seed, tables, generator.fragment())
        })
        .collect();
    engines[0].device().rehearse(Some("fragment"), || {
        for (seed, tables, fragment) in &cases {
            let tables: Vec<&MemoryTable> = tables.iter().collect();
            load_all(&engines[0], *seed, fragment, &tables);
            drop(run(&engines[0], fragment, &tables));
        }
    });
    for (seed, tables, fragment) in &cases {
        let (seed, tables) = (*seed, tables.iter().collect::<Vec<_>>());
        for engine in &engines {
            match attempt(engine, seed, fragment, &tables) {
                Ok(true) => compared += 1,
                Ok(false) => raised += 1,
                Err(reason) => refused.push(format!("{seed}: {reason}")),
            }
        }
        if let Ok((_, report)) = run(&engines[engines.len() - 1], fragment, &tables) {
            launches += usize::from(report.launch_groups.iter().any(|group| group.launches > 1));
        }
        // Other constants, on what was bound for these.
        let cache = BindingCache::default();
        if attempt(&engines[0], seed, fragment, &tables).is_ok() {
            compare_again(&engines[0], fragment, &cache, &tables);
            let report = compare_again(&engines[0], &moved(fragment), &cache.for_other_constants(), &tables);
            took_over += usize::from(report.origin == BindingOrigin::TakenOver);
        }
    }
    assert!(took_over * 4 > SEEDS as usize, "{took_over} of {SEEDS} took over what was bound");
    assert!(launches * 2 > SEEDS as usize, "{launches} of {SEEDS} had scans of several launches");
    let all = SEEDS as usize * engines.len();
    assert!(refused.len() * 5 < all, "too many refused: {refused:#?}");
    assert!(compared * 2 > all, "{compared} of {all} compared, {raised} raised");
}

/// The fragment with other constants in its filters.
fn moved(fragment: &Fragment) -> Fragment {
    fn constants(expr: &mut Expr) {
        match expr {
            Expr::Literal(Literal::Int(number), ty) if *ty != Ty::Bool => *number += if *number > 0 { -1 } else { 1 },
            Expr::Literal(Literal::Float(number), _) => *number += 0.5,
            Expr::Unary(_, inner) => constants(inner),
            Expr::Binary(_, left, right) => {
                constants(left);
                constants(right);
            }
            _ => {}
        }
    }
    let mut fragment = fragment.clone();
    for step in fragment.pipelines.iter_mut().flat_map(|pipeline| &mut pipeline.steps) {
        if let Step::Filter(expr) = step {
            constants(expr);
        }
    }
    fragment
}

/// Whether rows came back and were compared; an error says why the fragment was refused.
fn attempt(engine: &Engine, seed: u64, fragment: &Fragment, tables: &[&MemoryTable]) -> Result<bool, String> {
    load_all(engine, seed, fragment, tables);
    // Programs of one encoding are left to the tests of encodings to be compiled for GPUs.
    let check = if EncodingChoice::ALL.get(seed as usize).is_some() { compare_on } else { check_on };
    match run(engine, fragment, tables) {
        Err(EngineError::Unsupported(reason)) => Err(reason),
        _ => Ok(check(engine, fragment, tables).program().is_some()),
    }
}

/// Brings all columns to the device.
fn load_all(engine: &Engine, seed: u64, fragment: &Fragment, tables: &[&MemoryTable]) {
    for (number, table) in tables.iter().enumerate() {
        let columns = fragment.tables[number].columns.len();
        let choices: Vec<EncodingChoice> = (0..columns).map(|column| choice(seed, number * columns + column)).collect();
        load(engine, table, &choices);
    }
}

/// The first programs read one encoding each, the others mixed ones.
fn choice(seed: u64, column: usize) -> EncodingChoice {
    let all = EncodingChoice::ALL;
    all.get(seed as usize).copied().unwrap_or_else(|| all[mixed(column, seed) as usize % all.len()])
}
