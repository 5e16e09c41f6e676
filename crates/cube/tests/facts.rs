//! Loading: folding by rule, empty values, refusals, stored parts.

use std::collections::BTreeMap;

use proptest::prelude::*;
use warpcube_cube::facts::{
    Bitmap, FactColumn, FactMeasure, Facts, FactsError, InputColumn, InputValues, KeyLayout, Keys, Loader, Rule,
    ValueType, Values,
};

const DECIMAL: ValueType = ValueType::Decimal { scale: 2 };

fn loader(bits: &[u32], measures: &[(Rule, ValueType)]) -> Loader {
    let measure = |&(rule, value_type): &(Rule, ValueType)| FactMeasure::new(&rule.to_string(), rule, value_type);
    Loader::new(KeyLayout::new(bits).unwrap(), measures.iter().map(measure).collect())
}

fn decimals<'a>(values: &'a [i64], filled: Option<&'a [bool]>) -> InputColumn<'a> {
    InputColumn { values: InputValues::Decimals(values), filled }
}

fn doubles(values: &[f64]) -> InputColumn<'_> {
    InputColumn { values: InputValues::Doubles(values), filled: None }
}

fn column(facts: &Facts, number: usize) -> Vec<Option<i64>> {
    let FactColumn { values: Values::Decimals(values), .. } = &facts.base().columns()[number] else {
        panic!("decimals")
    };
    (0..facts.len()).map(|cell| facts.base().columns()[number].is_filled(cell).then_some(values[cell])).collect()
}

#[test]
fn doubles_of_both_signs_leave_what_they_cancelled() {
    let rule = |rule: Rule| FactMeasure::new("m", rule, ValueType::Double);
    let load = |of: Rule, rows: &[(u32, f64)]| {
        let mut loader = Loader::new(KeyLayout::new(&[4]).unwrap(), vec![rule(of)]);
        rows.iter().for_each(|(cell, value)| loader.append(&[&[*cell]], &[doubles(&[*value])]).unwrap());
        loader.finish(4).unwrap()
    };
    let rows: Vec<(u32, f64)> = (0..10).map(|_| (0, 0.1)).chain([(0, -1.0), (1, -2.0), (2, 3.0), (2, 4.0)]).collect();
    for of in [Rule::Sum, Rule::Avg] {
        let facts = load(of, &rows);
        let cancelled = facts.base().cancelled(0).unwrap();
        assert!((cancelled[0] - 2.0).abs() < 1e-12 && cancelled[1..] == [0.0, 0.0], "{of}: {cancelled:?}");
        // Facts that are folded again, alone or with rows of one sign, keep it.
        let mut again = Loader::new(facts.layout().clone(), vec![rule(of)]);
        again.append_facts(&facts).unwrap();
        again.append(&[&[0]], &[doubles(&[5.0])]).unwrap();
        let again = again.finish(4).unwrap();
        assert!((again.base().cancelled(0).unwrap()[0] - 2.0).abs() < 1e-12, "{of}: {:?}", again.base().cancelled(0));
        assert_eq!(facts.selected(facts.layout(), &[1, 2]).base().cancelled(0), None);
        assert_eq!(facts.selected(facts.layout(), &[0]).base().cancelled(0), Some(&cancelled[..1]));
    }
    assert_eq!(load(Rule::Max, &rows).base().cancelled(0), None);
    assert_eq!(load(Rule::Sum, &rows[11..]).base().cancelled(0), None, "no cell has rows of both signs");
}

#[test]
fn sums_of_an_average_may_pass_its_type() {
    let load = |measure: FactMeasure, rows: &[(u32, InputValues<'_>)]| {
        let mut loader = Loader::new(KeyLayout::new(&[4]).unwrap(), vec![measure]);
        for (coordinate, values) in rows {
            loader.append(&[&[*coordinate]], &[InputColumn { values: *values, filled: None }]).unwrap();
        }
        loader.finish(4).unwrap()
    };
    let six = 6_000_000_000_000_000_000;
    let decimals = FactMeasure::new("m", Rule::Avg, ValueType::Decimal { scale: 0 });
    let value = |value: &'static [i64]| InputValues::Decimals(value);
    let rows = [(0, value(&[6_000_000_000_000_000_000])), (0, value(&[6_000_000_000_000_000_000])), (1, value(&[1]))];
    let facts = load(decimals.clone(), &rows);
    assert_eq!(facts.base().carries(0), Some(&[1, 0][..]));
    assert_eq!(facts.base().columns()[0].counts, Some(vec![2, 1]));
    // Facts that are folded again keep what passes the type, and lose it where it no longer does.
    let mut again = Loader::new(facts.layout().clone(), vec![decimals.clone()]);
    again.append_facts(&facts).unwrap();
    assert_eq!(again.finish(4).unwrap(), facts);
    let mut more = Loader::new(facts.layout().clone(), vec![decimals.clone()]);
    more.append_facts(&facts).unwrap();
    more.append(&[&[0]], &[InputColumn { values: InputValues::Decimals(&[-six]), filled: None }]).unwrap();
    let more = more.finish(4).unwrap();
    assert_eq!((more.base().carries(0), &more.base().columns()[0].values), (None, &Values::Decimals(vec![six, 1])));
    assert_eq!(facts.selected(facts.layout(), &[1]).base().carries(0), None);
    assert_eq!(facts.selected(facts.layout(), &[0]).base().carries(0), Some(&[1][..]));
    let doubles = FactMeasure::new("m", Rule::Avg, ValueType::Double);
    let value = |value: &'static [f64]| InputValues::Doubles(value);
    let facts = load(doubles, &[(0, value(&[1.5e308])), (0, value(&[1.5e308])), (1, value(&[-1.0]))]);
    assert!(facts.base().carries(0).is_some_and(|carries| carries[0] != 0 && carries[1] == 0));
    // A sum that is asked for as such is refused.
    let mut sums = Loader::new(facts.layout().clone(), vec![FactMeasure::new("m", Rule::Sum, ValueType::Double)]);
    sums.append(&[&[0, 0]], &[InputColumn { values: InputValues::Doubles(&[1.5e308, 1.5e308]), filled: None }])
        .unwrap();
    assert!(matches!(sums.finish(4), Err(FactsError::Overflow { .. })));
}

#[test]
fn rows_of_one_key_fold_by_rule() {
    let rules = [Rule::Sum, Rule::Count, Rule::Avg, Rule::Min, Rule::Max].map(|rule| (rule, DECIMAL));
    let mut loader = loader(&[3, 4], &rules);
    let filled = [true, true, false, true, false, false];
    let values = [5, -7, i64::MAX, 9, i64::MAX, 1];
    let inputs = [decimals(&values, Some(&filled)); 5];
    loader.append(&[&[1, 1, 1, 0, 7, 1], &[2, 2, 2, 15, 0, 2]], &inputs).unwrap();
    assert_eq!(loader.len(), 6);
    let facts = loader.finish(1).unwrap();
    // The cell (7, 0) has no value and is dropped.
    assert_eq!((0..facts.len()).map(|cell| facts.cell(cell)).collect::<Vec<_>>(), [[0, 15], [1, 2]]);
    assert_eq!(column(&facts, 0), [Some(9), Some(-2)]);
    assert_eq!(column(&facts, 1), [Some(1), Some(2)]);
    assert_eq!(column(&facts, 2), [Some(9), Some(-2)]);
    assert_eq!(facts.base().columns()[2].counts, Some(vec![1, 2]));
    assert_eq!(column(&facts, 3), [Some(9), Some(-7)]);
    assert_eq!(column(&facts, 4), [Some(9), Some(5)]);
    assert_eq!(facts.base().row_counts(), Some(&[1, 4][..]));
    assert_eq!(facts.find(&[1, 2]), Some(1));
    assert_eq!([facts.find(&[1, 3]), facts.find(&[8, 0]), facts.find(&[1])], [None; 3]);
    assert_eq!(facts.base().pages().len(), 2);
    assert_eq!(facts.base().pages().bounds(1), [(1, 1), (2, 2)]);
}

#[test]
fn empty_is_not_zero() {
    let mut loader = loader(&[2], &[(Rule::Sum, DECIMAL), (Rule::Count, DECIMAL)]);
    let without = [false, true, false];
    let rows = InputColumn { values: InputValues::Rows, filled: None };
    loader.append(&[&[0, 1, 2]], &[decimals(&[0, 0, 0], Some(&without)), rows]).unwrap();
    let facts = loader.finish(8).unwrap();
    assert_eq!(column(&facts, 0), [None, Some(0), None]);
    assert_eq!(column(&facts, 1), [Some(1); 3]);
    assert_eq!(facts.base().row_counts(), None);
}

#[test]
fn a_bad_append_keeps_no_row() {
    let mut loader = loader(&[2, 3], &[(Rule::Sum, ValueType::Double), (Rule::Sum, DECIMAL)]);
    let ok = |rows: usize| ([vec![1_u32; rows], vec![7; rows]], vec![1.5; rows], vec![1_i64; rows]);
    let (cells, reals, units) = ok(3);
    let cells = [&cells[0][..], &cells[1][..]];
    let good = [doubles(&reals), decimals(&units, None)];
    let refused = |loader: &mut Loader, cells: &[&[u32]], inputs: &[InputColumn<'_>]| {
        loader.append(cells, inputs).unwrap_err().to_string()
    };
    assert_eq!(
        refused(&mut loader, &[&[1, 1, 1], &[1, 8, 1]], &good),
        "row 1: coordinate 8 of dimension 1 does not fit into 3 bits"
    );
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = refused(&mut loader, &cells, &[doubles(&[0.0, value, 0.0]), good[1]]);
        assert_eq!(error, format!("row 1: measure SUM is {value}; a cell holds finite numbers"));
    }
    let error = refused(&mut loader, &cells, &[good[1], good[1]]);
    assert_eq!(error, "measure SUM expects double, the column holds decimals");
    let rows = InputColumn { values: InputValues::Rows, filled: None };
    let error = refused(&mut loader, &cells, &[good[0], rows]);
    assert_eq!(error, "measure SUM expects decimal(2), the column holds no values");
    let error = refused(&mut loader, &cells[..1], &good);
    assert_eq!(error, "2 columns of dimensions are expected, 1 were given");
    let error = refused(&mut loader, &cells, &good[..1]);
    assert_eq!(error, "2 columns of measures are expected, 1 were given");
    let error = refused(&mut loader, &[cells[0], &[1]], &good);
    assert_eq!(error, "column 1 of dimensions has 1 rows, the first column of dimensions has 3");
    let error = refused(&mut loader, &cells, &[good[0], decimals(&units, Some(&[true]))]);
    assert_eq!(error, "column 1 of measures has 1 rows, the first column of dimensions has 3");
    assert!(loader.is_empty());
    loader.append(&cells, &good).unwrap();
    assert_eq!(loader.finish(4).unwrap().len(), 1);
}

#[test]
fn sums_beyond_64_bits_name_the_first_cell() {
    let mut loader = loader(&[4, 1], &[(Rule::Sum, DECIMAL)]);
    let most = i64::MAX;
    let values = [most, most, 1, 2, -1, most, 3];
    loader.append(&[&[9, 9, 5, 5, 5, 5, 0], &[0, 0, 1, 1, 1, 1, 0]], &[decimals(&values, None)]).unwrap();
    let error = loader.finish(4).unwrap_err();
    let sum = (i128::from(most) + 2).to_string();
    assert_eq!(error, FactsError::Overflow { cell: vec![5, 1], measure: "SUM".to_string(), sum, limit: "64 bits" });
}

#[test]
fn sums_of_doubles_overflow_by_name() {
    let mut loader = loader(&[1], &[(Rule::Sum, ValueType::Double)]);
    loader.append(&[&[1, 1]], &[doubles(&[f64::MAX, f64::MAX])]).unwrap();
    let error = loader.finish(4).unwrap_err().to_string();
    assert_eq!(error, "cell [1]: measure SUM adds up to 3.59539e308, which is beyond the largest double");
}

#[test]
fn negative_zero_is_zero() {
    let mut loader = loader(&[2], &[(Rule::Min, ValueType::Double), (Rule::Sum, ValueType::Double)]);
    loader.append(&[&[0, 1, 1]], &[doubles(&[-0.0; 3]), doubles(&[-0.0; 3])]).unwrap();
    let facts = loader.finish(4).unwrap();
    for column in facts.base().columns() {
        let Values::Doubles(values) = &column.values else { panic!("doubles") };
        assert!(values.iter().all(|value| value.to_bits() == 0));
    }
}

#[test]
fn stored_parts_are_checked() {
    let layout = KeyLayout::new(&[2, 2]).unwrap();
    let column = |length: usize| FactColumn {
        measure: FactMeasure::new("amount", Rule::Sum, DECIMAL),
        values: Values::Decimals(vec![1; length]),
        filled: None,
        counts: None,
    };
    let damage = |keys: Keys, column: FactColumn, rows: Option<Vec<u64>>| match Facts::from_parts(
        layout.clone(),
        keys,
        vec![column],
        rows,
        4,
    ) {
        Err(FactsError::Damaged { reason }) => reason,
        other => panic!("{other:?}"),
    };
    let keys = || Keys::Narrow(vec![1, 5, 15]);
    assert!(Facts::from_parts(layout.clone(), keys(), vec![column(3)], Some(vec![1, 2, 3]), 4).is_ok());
    let unsorted = damage(Keys::Narrow(vec![1, 5, 5]), column(3), None);
    assert_eq!(unsorted, "the key of cell 2 does not exceed the one before it");
    assert_eq!(damage(Keys::Narrow(vec![1, 5, 16]), column(3), None), "the last key has more than 4 bits");
    assert_eq!(damage(Keys::Wide(vec![1]), column(1), None), "keys are not of the width that 4 bits take");
    assert_eq!(damage(keys(), column(2), None), "measure amount: its columns do not have 3 cells");
    let zero = Some(vec![1, 0, 1]);
    assert_eq!(damage(keys(), column(3), zero), "row counts are not one positive number for each of 3 cells");
    let counts = FactColumn { counts: Some(vec![1; 3]), ..column(3) };
    assert_eq!(damage(keys(), counts, None), "measure amount: row counts belong to AVG, the rule is SUM");
    let empty = FactColumn { filled: Some([true, false, true].into_iter().collect::<Bitmap>()), ..column(3) };
    assert_eq!(damage(keys(), empty, None), "cell [1, 1] has no value");
    let reals = FactColumn { values: Values::Doubles(vec![0.0; 3]), ..column(3) };
    assert_eq!(damage(keys(), reals, None), "measure amount: decimal(2) are stored as doubles");
    let measure = FactMeasure::new("rate", Rule::Sum, ValueType::Double);
    let nan = FactColumn { measure, values: Values::Doubles(vec![0.0, f64::NAN, 1.0]), filled: None, counts: None };
    assert_eq!(damage(keys(), nan, None), "measure rate: cell 1 holds NaN");
}

#[test]
fn facts_of_another_cube_are_not_added() {
    let facts = loader(&[4], &[(Rule::Sum, DECIMAL)]).finish(4).unwrap();
    let others = [loader(&[5], &[(Rule::Sum, DECIMAL)]), loader(&[4], &[(Rule::Min, DECIMAL)]), loader(&[4], &[])];
    for mut other in others {
        assert!(matches!(other.append_facts(&facts), Err(FactsError::OtherCube { .. })));
    }
}

type Rows = Vec<(u32, Option<i64>)>;

fn fill(loader: &mut Loader, rows: &Rows) {
    let cells: Vec<u32> = rows.iter().map(|row| row.0).collect();
    let values: Vec<i64> = rows.iter().map(|row| row.1.unwrap_or(-1)).collect();
    let filled: Vec<bool> = rows.iter().map(|row| row.1.is_some()).collect();
    let all_filled = filled.iter().all(|&filled| filled);
    let input = decimals(&values, (!all_filled).then_some(&filled));
    loader.append(&[&vec![0; rows.len()], &vec![1; rows.len()], &cells], &[input; 3]).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Rows loaded at once, in parts, or as facts of parts are the same facts, and those of a map.
    #[test]
    fn folding_in_parts_is_folding_at_once(
        parts in prop::collection::vec(prop::collection::vec((0..20_u32, prop::option::of(-99..99_i64)), 0..40), 1..4),
        high in prop_oneof![Just(1_u32), Just(32)],
    ) {
        let rules = [Rule::Sum, Rule::Count, Rule::Avg].map(|rule| (rule, DECIMAL));
        let new = || loader(&[high, high, 8], &rules);
        let (mut at_once, mut in_parts, mut of_facts) = (new(), new(), new());
        fill(&mut at_once, &parts.concat());
        for part in &parts {
            fill(&mut in_parts, part);
            let mut own = new();
            fill(&mut own, part);
            of_facts.append_facts(&own.finish(3).unwrap()).unwrap();
        }
        let facts = at_once.finish(5).unwrap();
        prop_assert_eq!(&in_parts.finish(5).unwrap(), &facts);
        let of_facts = of_facts.finish(5).unwrap();
        prop_assert_eq!(of_facts.base().keys(), facts.base().keys());
        prop_assert_eq!(of_facts.base().columns(), facts.base().columns());

        let mut expected: BTreeMap<u32, (i64, i64)> = BTreeMap::new();
        for (cell, value) in parts.concat() {
            if let Some(value) = value {
                let held = expected.entry(cell).or_default();
                *held = (held.0 + value, held.1 + 1);
            }
        }
        let cells: Vec<u32> = (0..facts.len()).map(|cell| facts.cell(cell)[2]).collect();
        prop_assert_eq!(&cells, &expected.keys().copied().collect::<Vec<_>>());
        prop_assert_eq!(column(&facts, 0), expected.values().map(|value| Some(value.0)).collect::<Vec<_>>());
        prop_assert_eq!(column(&facts, 1), expected.values().map(|value| Some(value.1)).collect::<Vec<_>>());
        for page in 0..facts.base().pages().len() {
            let coordinates = facts.base().pages().cells(page).map(|cell| facts.cell(cell)[2]);
            let bounds = (coordinates.clone().min().unwrap(), coordinates.max().unwrap());
            prop_assert_eq!(facts.base().pages().bounds(page)[2], bounds);
        }
    }
}
