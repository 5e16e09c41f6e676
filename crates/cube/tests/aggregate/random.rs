//! Random cubes and areas for property tests.

use proptest::prelude::*;
use warpcube_cube::aggregate::{Area, TargetMap};
use warpcube_cube::facts::{FactMeasure, Facts, InputColumn, InputValues, KeyLayout, Loader, Rule, ValueType};
use warpcube_cube::model::Span;

/// A source row: coordinates, and a decimal and a double that may be NULL.
#[derive(Debug, Clone)]
pub struct Row {
    pub cell: Vec<u32>,
    pub decimal: Option<i64>,
    pub double: Option<f64>,
}

/// A random cube with an area.
#[derive(Debug, Clone)]
pub struct Case {
    pub sizes: Vec<u32>,
    /// Bits above those that sizes take.
    pub spare_bits: u32,
    pub rows: Vec<Row>,
    /// Of each dimension, entries of each target; entries may repeat a base element.
    pub targets: Vec<Vec<Vec<(u32, f64)>>>,
    /// A time balance of the last measure over one dimension.
    pub balance: Option<(usize, Span)>,
    pub page_cells: usize,
}

/// Number of the SUM with a time balance.
pub const BALANCED: usize = 9;

/// One measure of each rule and type, and a SUM that may have a time balance.
pub fn measures() -> Vec<FactMeasure> {
    let decimal = ValueType::Decimal { scale: 2 };
    let rules = [Rule::Sum, Rule::Count, Rule::Avg, Rule::Min, Rule::Max];
    let mut measures: Vec<FactMeasure> =
        rules.iter().map(|&rule| FactMeasure::new(&format!("{rule} of decimals"), rule, decimal)).collect();
    let of_doubles = [Rule::Sum, Rule::Avg, Rule::Min, Rule::Max];
    let double = |&rule: &Rule| FactMeasure::new(&format!("{rule} of doubles"), rule, ValueType::Double);
    measures.extend(of_doubles.iter().map(double));
    measures.push(FactMeasure::new("balanced", Rule::Sum, decimal));
    measures
}

impl Case {
    pub fn facts(&self) -> Facts {
        self.load(&self.rows)
    }

    /// Facts of rows in a given order.
    pub fn load(&self, rows: &[Row]) -> Facts {
        let narrow = KeyLayout::for_sizes(&self.sizes).unwrap();
        let mut bits = narrow.bits().to_vec();
        bits[0] = (bits[0] + self.spare_bits).min(32);
        let last = bits.len() - 1;
        bits[last] = (bits[last] + self.spare_bits).min(32);
        let mut loader = Loader::new(KeyLayout::new(&bits).unwrap(), measures());
        for part in rows.chunks(7) {
            append(&mut loader, part, self.sizes.len());
        }
        loader.finish(self.page_cells).unwrap()
    }

    pub fn maps(&self) -> Vec<TargetMap> {
        let map = |(&size, targets): (&u32, &Vec<_>)| TargetMap::from_targets(size, targets).unwrap();
        self.sizes.iter().zip(&self.targets).map(map).collect()
    }

    pub fn area(&self) -> Area {
        let maps = self.maps();
        match self.balance {
            None => Area::new(maps),
            Some((dimension, balance)) => {
                let own = balanced(&maps[dimension], balance, &self.positions(dimension));
                Area::new(maps).with_measure_map(BALANCED, dimension, own).unwrap()
            }
        }
    }

    /// Positions against the order of base elements.
    pub fn positions(&self, dimension: usize) -> Vec<u32> {
        (0..self.sizes[dimension]).rev().collect()
    }
}

/// A map with other weights and members than the one it is made of, as that of a time balance.
pub fn balanced(map: &TargetMap, span: Span, positions: &[u32]) -> TargetMap {
    let lists = map.lists().into_iter().map(|list| {
        let place = |entry: &(u32, f64)| (positions[entry.0 as usize], entry.0);
        let members = list.len() as f64;
        match span {
            Span::First => list.into_iter().min_by_key(place).into_iter().collect(),
            Span::Last => list.into_iter().max_by_key(place).into_iter().collect(),
            Span::Average => list.into_iter().map(|(base, weight)| (base, weight / members)).collect(),
        }
    });
    TargetMap::from_targets(map.bases(), &lists.collect::<Vec<Vec<_>>>()).unwrap()
}

fn append(loader: &mut Loader, rows: &[Row], dimensions: usize) {
    let columns: Vec<Vec<u32>> =
        (0..dimensions).map(|dimension| rows.iter().map(|row| row.cell[dimension]).collect()).collect();
    let columns: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
    let decimals: Vec<i64> = rows.iter().map(|row| row.decimal.unwrap_or(i64::MAX)).collect();
    let doubles: Vec<f64> = rows.iter().map(|row| row.double.unwrap_or(f64::NAN)).collect();
    let with_decimal: Vec<bool> = rows.iter().map(|row| row.decimal.is_some()).collect();
    let with_double: Vec<bool> = rows.iter().map(|row| row.double.is_some()).collect();
    let filled = |filled: &'_ [bool]| (!filled.iter().all(|&filled| filled)).then(|| filled.to_vec());
    let (with_decimal, with_double) = (filled(&with_decimal), filled(&with_double));
    let inputs: Vec<InputColumn<'_>> = measures()
        .iter()
        .map(|measure| match (measure.rule, measure.value_type) {
            (Rule::Count, _) => InputColumn { values: InputValues::Rows, filled: with_decimal.as_deref() },
            (_, ValueType::Double) => {
                InputColumn { values: InputValues::Doubles(&doubles), filled: with_double.as_deref() }
            }
            _ => InputColumn { values: InputValues::Decimals(&decimals), filled: with_decimal.as_deref() },
        })
        .collect();
    loader.append(&columns, &inputs).unwrap();
}

/// Whole weights, zero among them; entries that repeat a base element may cancel.
pub fn whole_weight() -> impl Strategy<Value = f64> + Clone {
    prop_oneof![4 => Just(1.0), 2 => Just(-1.0), 1 => Just(0.0), 1 => (-12..=12_i32).prop_map(f64::from).boxed()]
}

/// Any weights.
pub fn any_weight() -> impl Strategy<Value = f64> + Clone {
    prop_oneof![3 => whole_weight(), 2 => -2.0..2.0_f64, 1 => Just(0.1), 1 => -1e9..1e9_f64]
}

/// Cubes of 1 to 6 dimensions under a kind of weights.
pub fn cases<W: Strategy<Value = f64> + Clone + 'static>(weight: W) -> impl Strategy<Value = Case> {
    prop::collection::vec(1..=9_u32, 1..=6).prop_flat_map(move |sizes| {
        let cell: Vec<_> = sizes.iter().map(|&size| 0..size).collect();
        let decimal = prop_oneof![6 => -1_000_000..1_000_000_i64, 1 => Just(0), 1 => -(1_i64 << 52)..1 << 52];
        let double = prop_oneof![4 => -1e6..1e6_f64, 1 => Just(0.1), 1 => Just(-0.0), 1 => -1e18..1e18_f64];
        let row = (cell, prop::option::weighted(0.9, decimal), prop::option::weighted(0.8, double))
            .prop_map(|(cell, decimal, double)| Row { cell, decimal, double });
        let weight = weight.clone();
        let targets: Vec<_> = sizes
            .iter()
            .map(|&size| {
                let entry = (0..size, weight.clone());
                prop::collection::vec(prop::collection::vec(entry, 0..=size as usize + 2), 1..=4)
            })
            .collect();
        let balance = (0..sizes.len(), prop::sample::select(vec![Span::First, Span::Last, Span::Average]));
        let rows = prop::collection::vec(row, 0..60);
        let bits = prop_oneof![3 => Just(0_u32), 1 => Just(30_u32)];
        (Just(sizes), bits, rows, targets, prop::option::of(balance), 1..=9_usize).prop_map(
            |(sizes, spare_bits, rows, targets, balance, page_cells)| Case {
                sizes,
                spare_bits,
                rows,
                targets,
                balance,
                page_cells,
            },
        )
    })
}
