//! Every algorithm gives what the oracle gives, on any number of threads and in any order of rows.

use bigdecimal::BigDecimal;
use proptest::prelude::*;
use warpcube_cube::aggregate::{Algorithm, CellValue, Cells, Progress, Request, Tuning, aggregate};
use warpcube_cube::facts::{Facts, Rule, ValueType};

use crate::oracle::{Exact, Expected, exact, expected};
use crate::random::{Case, any_weight, cases, measures, whole_weight};

/// Sizes that make small cubes take every path: chunks of a few cells; arrays, hash tables, or both.
const TUNINGS: [Tuning; 3] = [
    Tuning { chunk_cells: 5, dense_places: 1 << 22 },
    Tuning { chunk_cells: 5, dense_places: 0 },
    Tuning { chunk_cells: 1 << 16, dense_places: 20 },
];

fn all_measures() -> Vec<usize> {
    (0..measures().len()).collect()
}

fn run(case: &Case, facts: &Facts, algorithm: Option<Algorithm>, tuning: Tuning) -> Cells {
    let request = Request { algorithm, tuning, ..Request::default() };
    aggregate(facts, &case.area(), &all_measures(), &request, &Progress::new()).unwrap()
}

/// All bits of a result.
fn bits(cells: &Cells) -> Vec<(u64, Vec<Option<u64>>)> {
    let value = |value| match value {
        CellValue::Decimal { units, .. } => units as u64,
        CellValue::Double(double) => f64::to_bits(double),
    };
    let row = |cell| cells.columns().iter().map(|column| column.value(cell).map(value)).collect();
    cells.ranks().iter().enumerate().map(|(cell, &rank)| (rank, row(cell))).collect()
}

/// Compares a value with the exact one as the contract says.
fn check(number: usize, value: CellValue, exact_value: &Exact, whole: bool) -> Result<(), TestCaseError> {
    let measure = &measures()[number];
    let Exact { value: wanted, magnitude } = exact_value;
    let (found, tolerance) = match value {
        CellValue::Decimal { units, .. } => {
            let is_exact = whole || measure.rule != Rule::Sum;
            (BigDecimal::from(units), BigDecimal::from(u8::from(!is_exact)))
        }
        CellValue::Double(double) if measure.rule == Rule::Sum || measure.rule == Rule::Avg => {
            (exact(double), magnitude * exact(1e-12))
        }
        CellValue::Double(double) => (exact(double), BigDecimal::from(0)),
    };
    prop_assert!((&found - wanted).abs() <= tolerance, "{}: {found} is not {wanted}", measure.name);
    Ok(())
}

/// What the oracle expects of every measure.
struct Wanted {
    measures: Vec<Expected>,
    /// True if the measure's weights are whole.
    whole: Vec<bool>,
}

impl Wanted {
    fn of(case: &Case) -> Wanted {
        let area = case.area();
        let whole = |&number: &usize| area.maps_of(number).iter().all(|map| map.is_whole());
        Wanted {
            measures: all_measures().into_iter().map(|number| expected(case, &area, number)).collect(),
            whole: all_measures().iter().map(whole).collect(),
        }
    }

    /// True if no decimal comes near the end of 64 bits.
    fn fits(&self) -> bool {
        let most = BigDecimal::from(i64::MAX);
        let decimals =
            self.measures.iter().zip(measures()).filter(|(_, measure)| measure.value_type != ValueType::Double);
        decimals.flat_map(|(expected, _)| expected.values()).all(|exact| exact.magnitude < most)
    }

    fn check(&self, cells: &Cells) -> Result<(), TestCaseError> {
        for (number, column) in cells.columns().iter().enumerate() {
            let expected = &self.measures[number];
            let filled = (0..cells.len()).filter(|&cell| column.value(cell).is_some()).count();
            prop_assert_eq!(filled, expected.len(), "filled targets of {}", &column.name);
            for (target, exact_value) in expected {
                let value = cells.find(target).and_then(|cell| column.value(cell));
                prop_assert!(value.is_some(), "{} is empty at {target:?}", column.name);
                check(number, value.unwrap(), exact_value, self.whole[number])?;
            }
        }
        Ok(())
    }

    /// The bits of all measures whose sums are exact.
    fn exact_bits(&self, cells: &Cells) -> Vec<(u64, Vec<Option<u64>>)> {
        let is_exact = |number: &usize| {
            let measure = &measures()[*number];
            let is_sum = measure.rule == Rule::Sum || measure.rule == Rule::Avg;
            !is_sum || measure.value_type != ValueType::Double && (self.whole[*number] || measure.rule == Rule::Avg)
        };
        let kept: Vec<usize> = all_measures().into_iter().filter(is_exact).collect();
        let row = |row: Vec<Option<u64>>| kept.iter().map(|&number| row[number]).collect();
        bits(cells).into_iter().map(|(rank, values)| (rank, row(values))).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn algorithms_are_exact_under_whole_weights(case in cases(whole_weight())) {
        let wanted = Wanted::of(&case);
        prop_assume!(wanted.fits());
        let facts = case.facts();
        let reference = run(&case, &facts, Some(Algorithm::Source), TUNINGS[0]);
        wanted.check(&reference)?;
        for algorithm in Algorithm::ALL.map(Some).into_iter().chain([None]) {
            for tuning in TUNINGS {
                let cells = run(&case, &facts, algorithm, tuning);
                wanted.check(&cells)?;
                prop_assert_eq!(wanted.exact_bits(&cells), wanted.exact_bits(&reference), "{:?}", algorithm);
            }
        }
    }

    #[test]
    fn algorithms_stay_within_a_digit_under_any_weights(case in cases(any_weight())) {
        let wanted = Wanted::of(&case);
        prop_assume!(wanted.fits());
        let facts = case.facts();
        for algorithm in Algorithm::ALL {
            for tuning in TUNINGS {
                wanted.check(&run(&case, &facts, Some(algorithm), tuning))?;
            }
        }
    }

    #[test]
    fn bits_do_not_depend_on_threads_or_the_order_of_rows(
        (case, shuffled) in cases(any_weight()).prop_flat_map(|case| {
            let rows = Just(case.rows.clone()).prop_shuffle();
            (Just(case), rows)
        })
    ) {
        prop_assume!(Wanted::of(&case).fits());
        let facts = case.facts();
        prop_assert_eq!(&case.load(&shuffled), &facts);
        for algorithm in Algorithm::ALL {
            let one_thread = in_pool(1, || bits(&run(&case, &facts, Some(algorithm), TUNINGS[0])));
            let four_threads = in_pool(4, || bits(&run(&case, &facts, Some(algorithm), TUNINGS[0])));
            prop_assert_eq!(one_thread, four_threads, "{}", algorithm);
        }
    }
}

fn in_pool<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

#[test]
fn equal_plans_differ_by_zero_and_not_by_nothing() {
    let variance = vec![(0, 1.0), (1, -1.0)];
    let row =
        |version, month, units| crate::random::Row { cell: vec![version, month], decimal: Some(units), double: None };
    let case = Case {
        sizes: vec![2, 3],
        spare_bits: 0,
        rows: vec![row(0, 0, 100), row(1, 0, 100), row(0, 1, 7)],
        targets: vec![vec![variance], vec![vec![(0, 1.0)], vec![(1, 1.0)], vec![(2, 1.0)]]],
        balance: None,
        page_cells: 2,
    };
    let facts = case.facts();
    for algorithm in Algorithm::ALL {
        let cells = run(&case, &facts, Some(algorithm), Tuning::default());
        let sum = |month| cells.find(&[0, month]).and_then(|cell| cells.columns()[0].value(cell));
        assert_eq!(sum(0), Some(CellValue::Decimal { units: 0, scale: 2 }), "{algorithm}");
        assert_eq!(sum(1), Some(CellValue::Decimal { units: 7, scale: 2 }), "{algorithm}");
        assert_eq!(sum(2), None, "{algorithm}");
        assert_eq!(cells.report().filled_targets, 2);
        assert_eq!(cells.report().decision.algorithm, algorithm.into());
    }
}

/// 100 revenue less 60 cost does not average 20: weights do not enter AVG, and a diamond counts once.
#[test]
fn averages_and_counts_ignore_weights_and_paths() {
    let row = |account, units| crate::random::Row { cell: vec![account], decimal: Some(units), double: None };
    let case = Case {
        sizes: vec![2],
        spare_bits: 0,
        rows: vec![row(0, 10_000), row(1, 6_000)],
        targets: vec![vec![vec![(0, 1.0), (1, -1.0)], vec![(0, 1.0), (0, 1.0)], vec![(1, 1.0), (1, -1.0)]]],
        balance: None,
        page_cells: 4,
    };
    for algorithm in Algorithm::ALL {
        let cells = run(&case, &case.facts(), Some(algorithm), Tuning::default());
        let value = |target, measure: usize| cells.columns()[measure].value(cells.find(&[target]).unwrap()).unwrap();
        let decimal = |units, scale| CellValue::Decimal { units, scale };
        assert_eq!([value(0, 0), value(1, 0), value(2, 0)], [decimal(4_000, 2), decimal(20_000, 2), decimal(0, 2)]);
        assert_eq!([value(0, 1), value(1, 1), value(2, 1)], [decimal(2, 0), decimal(1, 0), decimal(1, 0)]);
        assert_eq!([value(0, 2), value(2, 2)], [CellValue::Double(80.0), CellValue::Double(60.0)]);
        assert_eq!([value(0, 3), value(0, 4)], [decimal(6_000, 2), decimal(10_000, 2)]);
    }
}
