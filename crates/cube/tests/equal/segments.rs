//! Facts in a base and deltas, with cells that later segments replaced or removed, give the cells of the same facts in
//! one segment: to the last bit by every algorithm whose sums are exact, and by a device always.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use proptest::prelude::*;
use warpcube_cube::aggregate::{Algorithm, Progress};
use warpcube_cube::answer::{AlgorithmName, Answer, AskOptions, Cube, CubeError, Relation, TableAnswer};
use warpcube_cube::device::DeviceAlgorithm;
use warpcube_cube::facts::{Facts, Rule, SegmentTuning, ValueType};
use warpcube_cube::model::Span;

use crate::algorithms::{cells, run};
use crate::bounds::check_cells;
use crate::cube::{ALL, Case, DOUBLES, DrawnMeasure, SUMS, cases, device_algorithms, on_device, whole};

/// Any number of segments, whatever is left of them.
const ANY: SegmentTuning = SegmentTuning { segments_max: 9, removed_percent_max: 100 };

/// Facts of former versions of a case, which lack cells, have others and other values, then those of the case itself:
/// each is a segment of what the version before it did not have.
fn segmented(case: &Case) -> Facts {
    let version = |stage: u32| {
        let mut version = case.clone();
        let mut drawn = 7 + stage;
        version.cells.retain_mut(|(cell, values)| {
            drawn = drawn.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            match drawn >> 24 & 7 {
                0 => return false,
                1 => cell[0] = cell[0].wrapping_add(1),
                2 => values.iter_mut().flatten().for_each(|value| *value = -*value / 2),
                _ => {}
            }
            true
        });
        version.facts()
    };
    let former = version(1).as_change_of(&version(0), &ANY);
    case.facts().as_change_of(&former, &ANY)
}

/// The cube of a case, and the same one in segments; nothing where one segment has all cells.
fn cubes(case: &Case) -> Option<[Cube; 2]> {
    let one = case.cube();
    let facts = segmented(case);
    assert_eq!(*facts.merged(), *one.facts);
    let several = Cube { facts: Arc::new(facts), ..one.clone() };
    (!several.facts.is_whole()).then_some([one, several])
}

fn outcome(result: Result<TableAnswer, CubeError>) -> Result<TableAnswer, String> {
    result.map_err(|error| error.to_string())
}

/// True if a measure's sums on the CPU may round on their way.
fn rounds(measure: &str, facts: &Facts) -> bool {
    let measure = facts.measures().iter().find(|one| one.name == measure).unwrap();
    measure.value_type == ValueType::Double && matches!(measure.rule, Rule::Sum | Rule::Avg)
}

/// Compares all algorithms of the CPU and some of the device; sums of doubles of the CPU to the bit if `is_exact`.
fn check(
    case: &Case,
    measures: &[DrawnMeasure],
    on_gpu: &[DeviceAlgorithm],
    is_exact: bool,
) -> Result<(), TestCaseError> {
    let Some([one, several]) = cubes(case) else { return Err(TestCaseError::reject("one segment")) };
    let query = case.query(measures);
    if matches!(cells(&one, &query, Some(AlgorithmName::Cpu(Algorithm::Source)), None), Err(CubeError::Aggregate(_))) {
        return Err(TestCaseError::reject("an area beyond the limit"));
    }
    for algorithm in Algorithm::ALL.map(AlgorithmName::Cpu) {
        let [expected, found] = [&one, &several].map(|cube| outcome(cells(cube, &query, Some(algorithm), None)));
        match (&expected, &found) {
            (Ok(expected), Ok(found)) if !is_exact => {
                check_cells(&one, expected, found, true, &algorithm.to_string())?;
                for (of, wanted) in found.cells.columns().iter().zip(expected.cells.columns()) {
                    if !rounds(&of.name, &one.facts) {
                        prop_assert_eq!(of, wanted, "{}: {}", algorithm, &query);
                    }
                }
            }
            (Ok(expected), Ok(found)) => {
                prop_assert_eq!(found.cells.ranks(), expected.cells.ranks(), "{}: {}", algorithm, &query);
                prop_assert_eq!(found.cells.columns(), expected.cells.columns(), "{}: {}", algorithm, &query);
            }
            (expected, found) => prop_assert_eq!(found.is_err(), expected.is_err(), "{}: {}", algorithm, &query),
        }
    }
    let devices = [&one, &several].map(|cube| on_device(&cube.facts, case.order));
    let both = |name: Option<AlgorithmName>| {
        let of = |(cube, device)| outcome(cells(cube, &query, name, Some(device)));
        [of((&one, &devices[0])), of((&several, &devices[1]))]
    };
    for name in on_gpu.iter().map(|algorithm| Some(AlgorithmName::Device(*algorithm))).chain([None]) {
        let told = name.map_or("chosen".to_string(), |name| name.to_string());
        match both(name) {
            [Ok(expected), Ok(found)] => {
                prop_assert_eq!(found.cells.ranks(), expected.cells.ranks(), "{}: {}", &told, &query);
                prop_assert_eq!(found.cells.columns(), expected.cells.columns(), "{}: {}", &told, &query);
                let (of, wanted) = (found.report(), expected.report());
                prop_assert_eq!(&of.arithmetic, &wanted.arithmetic, "{}", &told);
                prop_assert_eq!(&of.decision.place.device, &wanted.decision.place.device, "{}", &told);
            }
            [expected, found] => prop_assert_eq!(found.err(), expected.err(), "{}: {}", &told, &query),
        }
    }
    Ok(())
}

#[test]
fn all_algorithms_pass_over_segments() {
    run(32, cases(whole(), &SUMS, &[Span::First, Span::Last]), |case| {
        check(case, &SUMS, &device_algorithms(&[3]), true)
    });
}

#[test]
fn exact_sums_of_doubles_have_the_same_bits() {
    let mut on_gpu = device_algorithms(&[3]);
    on_gpu.truncate(4);
    on_gpu.push(DeviceAlgorithm::Contract);
    on_gpu.push(DeviceAlgorithm::Target);
    run(16, cases(whole(), &DOUBLES, &[Span::First, Span::Last]), |case| check(case, &DOUBLES, &on_gpu, true));
}

#[test]
fn all_rules_and_types_pass_over_segments() {
    run(24, cases(whole(), &ALL, &[Span::First, Span::Last]), |case| {
        for measures in [&ALL[..3], &ALL[3..8], &ALL[8..]] {
            check(case, measures, &[DeviceAlgorithm::Contract], false)?;
        }
        Ok(())
    });
}

/// Base cells and explanations.
#[test]
fn base_cells_are_those_of_one_segment() {
    let batches = |cube: &Cube, query: &str| -> Result<RecordBatch, CubeError> {
        match cube.ask(query, &AskOptions::default(), &Progress::new())? {
            Answer::Rows(rows) => {
                let batches = rows.batches(cube, 7).collect::<Result<Vec<_>, _>>()?;
                Ok(concat_batches(&rows.schema(cube)?, &batches).unwrap())
            }
            other => panic!("{query}: {other:?}"),
        }
    };
    let rows = |cube: &Cube, most: usize| -> Vec<String> {
        let relation = Relation::of(cube);
        let all: Vec<usize> = (0..relation.schema().fields().len()).collect();
        let batches = relation.batches(cube, &all, &[], most).unwrap();
        let batch = concat_batches(relation.schema(), &batches).unwrap();
        let table = arrow::util::pretty::pretty_format_batches(&[batch]).unwrap().to_string();
        let mut rows: Vec<String> = table.lines().map(str::to_owned).collect();
        rows.sort();
        rows
    };
    run(48, cases(whole(), &ALL, &[Span::First]), |case| {
        let Some([one, several]) = cubes(case) else { return Err(TestCaseError::reject("one segment")) };
        prop_assert_eq!(several.facts.len(), one.facts.len());
        prop_assert_eq!(rows(&several, usize::MAX), rows(&one, usize::MAX));
        prop_assert_eq!(rows(&several, 5).len(), rows(&one, 5).len());
        for place in 0..one.facts.len() {
            let cell = one.facts.cell(place);
            let found = several.facts.find(&cell).unwrap();
            prop_assert_eq!(several.facts.cell(found), cell);
        }
        for measure in [0, 4, 8] {
            let name = case.measures[measure].name;
            let at: Vec<String> = case.dimensions.iter().enumerate().map(|(at, _)| format!("D{at}:D{at}E0")).collect();
            let top: Vec<String> = one
                .model
                .dimensions()
                .iter()
                .map(|dimension| {
                    let last = *dimension.elements().last().unwrap();
                    format!("{}:{}", dimension.name(), dimension.element(last).name())
                })
                .collect();
            for query in [
                format!("facts at {}, Measures:{name}", top.join(", ")),
                format!("nearest 6 to {}, Measures:{name}", at.join(", ")),
                format!("nearest 1000 to {}, Measures:{name}", at.join(", ")),
            ] {
                let [expected, found] =
                    [&one, &several].map(|cube| batches(cube, &query).map_err(|error| error.to_string()));
                prop_assert_eq!(found, expected, "{}", query);
            }
            let query = format!("explain at {}, Measures:{name}", top.join(", "));
            let explained = |cube: &Cube| match cube.ask(&query, &AskOptions::default(), &Progress::new()) {
                Ok(Answer::Text(text)) => text,
                other => panic!("{query}: {other:?}"),
            };
            let (found, expected) = (explained(&several), explained(&one));
            let over = |text: &str| {
                text.lines().take_while(|line| !line.starts_with("Algorithm")).map(str::to_owned).collect()
            };
            let (of, wanted): (Vec<String>, Vec<String>) = (over(&found), over(&expected));
            prop_assert_eq!(of, wanted, "{}", &query);
            let told = format!("; a pass over {} segments)", several.facts.segments().len());
            prop_assert_eq!(found.contains(&told), several.facts.segments().len() > 1, "{}", found);
        }
        Ok(())
    });
}

#[test]
fn small_changes_are_segments_and_others_are_not() {
    let tuning = SegmentTuning { segments_max: 3, removed_percent_max: 20 };
    let case = Case {
        dimensions: vec![crate::cube::DrawnDimension { bases: 40, consolidated: Vec::new(), targets: vec![0] }],
        measures: &SUMS,
        cells: (0..30).map(|base| (vec![base], [Some(i64::from(base)), None])).collect(),
        balance: None,
        spare_bits: 0,
        order: warpcube_gpu::LaneOrder::Forward,
    };
    let with = |change: &dyn Fn(&mut Case)| {
        let mut changed = case.clone();
        change(&mut changed);
        changed.facts()
    };
    let (base, cell) = (case.facts(), |base: u32| (vec![base], [Some(1), None]));
    let segments = |facts: &Facts| {
        let of = |segment: &Arc<warpcube_cube::facts::Segment>| {
            (segment.len(), segment.live().map_or(0, |live| live.len() - live.count()))
        };
        facts.segments().iter().map(of).collect::<Vec<_>>()
    };
    // The same facts are the former ones.
    let same = case.facts().as_change_of(&base, &tuning);
    assert!(Arc::ptr_eq(&same.segments()[0], &base.segments()[0]));
    let one_more = with(&|case| case.cells.push(cell(35))).as_change_of(&base, &tuning);
    assert_eq!(segments(&one_more), [(30, 0), (1, 0)]);
    assert!(Arc::ptr_eq(&one_more.segments()[0], &base.segments()[0]));
    let other = with(&|case| {
        case.cells.push(cell(35));
        case.cells[3] = cell(3);
        case.cells.remove(9);
    });
    let changed = other.clone().as_change_of(&one_more, &tuning);
    assert_eq!(segments(&changed), [(30, 2), (1, 0), (1, 0)]);
    assert_eq!(*changed.merged(), other);
    // A fourth segment is one too many, and so are seven removed cells.
    let fourth = with(&|case| case.cells[4] = cell(4)).as_change_of(&changed, &tuning);
    assert_eq!(segments(&fourth), [(30, 0)]);
    let fewer = with(&|case| drop(case.cells.drain(..7)));
    assert_eq!(segments(&fewer.clone().as_change_of(&base, &tuning)), [(23, 0)]);
    let fewer = with(&|case| drop(case.cells.drain(..6)));
    assert_eq!(segments(&fewer.clone().as_change_of(&base, &tuning)), [(30, 6)]);
    assert_eq!(segments(&base.without(&[0, 1, 2, 3, 4, 5]).compacted(&tuning)), [(30, 6)]);
    assert_eq!(*base.without(&[0, 1, 2, 3, 4, 5]).merged(), fewer);
    let removed = base.without(&[1, 3]).without(&[0, 2, 4, 5, 6]);
    assert_eq!((removed.len(), removed.find(&[3]), removed.find(&[7])), (23, None, Some(7)));
    assert_eq!(segments(&removed.compacted(&tuning)), [(23, 0)]);
    // Other measures and wider keys.
    let wider = with(&|case| case.spare_bits = 3);
    assert_eq!(segments(&wider.as_change_of(&base, &tuning)), [(30, 0)]);
}
