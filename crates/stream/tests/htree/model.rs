//! Brute force: tuples in a list, scanned for each question.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use warpcube_stream::{Answers, Condition, Dimension, Measure, Order, Query, Rows, Schema, SubCube, Tuples};

/// Two measures of each kind that a value has, over two values.
pub const MEASURES: [Measure; 5] = [Measure::Sum(0), Measure::Count, Measure::Min(1), Measure::Max(0), Measure::Sum(1)];

/// Schemas of the tests: few values, so that paths are shared and tuples equal; keys of all bits.
pub const CARDINALITIES: [&[u64]; 3] = [&[5], &[3, 1 << 32, 4], &[4, 2, 3, 7, 2]];

/// A schema of some cardinalities, whose order is not that of tuples.
pub fn schema(cardinalities: &[u64]) -> Arc<Schema> {
    let dimension = |(at, of): (usize, &u64)| Dimension::new(format!("d{at}"), *of);
    let dimensions: Vec<Dimension> = cardinalities.iter().enumerate().map(dimension).collect();
    let order = match cardinalities.len() {
        3 => Order::Named(["d1", "d2", "d0"].map(String::from).to_vec()),
        _ => Order::Cardinality,
    };
    Arc::new(Schema::new(dimensions, 2, MEASURES.to_vec(), &order).unwrap())
}

/// A tuple: attributes and values.
pub type Tuple = (Vec<u32>, [i64; 2]);

/// A batch of some tuples.
pub fn batch(schema: &Schema, tuples: &[Tuple]) -> Tuples {
    let attribute = |at: usize| tuples.iter().map(|tuple| tuple.0[at]).collect();
    let value = |at: usize| tuples.iter().map(|tuple| tuple.1[at]).collect();
    let attributes = (0..schema.dimensions().len()).map(attribute).collect();
    Tuples::new(schema, attributes, (0..2).map(value).collect()).unwrap()
}

/// All tuples of a cube.
#[derive(Debug, Clone, Default)]
pub struct Model {
    pub tuples: Vec<Tuple>,
}

impl Model {
    pub fn insert(&mut self, tuples: &[Tuple]) {
        self.tuples.extend_from_slice(tuples);
    }

    pub fn remove(&mut self, conditions: &[Condition]) {
        self.tuples.retain(|tuple| !meets(tuple, conditions));
    }

    /// The cell of a query.
    pub fn cell(&self, conditions: &[Condition]) -> Option<Vec<i64>> {
        measured(self.tuples.iter().filter(|tuple| meets(tuple, conditions)))
    }

    pub fn check_answers(&self, queries: &[Query], answers: &Answers) {
        assert_eq!(answers.len(), queries.len());
        for (number, query) in queries.iter().enumerate() {
            assert_eq!(answers.get(number), self.cell(&query.conditions).as_deref(), "{query:?}");
        }
    }

    pub fn sub_cube(&self, asked: &SubCube) -> Rows {
        let mut groups: BTreeMap<Vec<u32>, Vec<&Tuple>> = BTreeMap::new();
        for tuple in self.tuples.iter().filter(|tuple| meets(tuple, &asked.conditions)) {
            groups.entry(asked.inquired.iter().map(|at| tuple.0[*at]).collect()).or_default().push(tuple);
        }
        let cells: Vec<Vec<i64>> = groups.values().map(|tuples| measured(tuples.iter().copied()).unwrap()).collect();
        let key = |at: usize| groups.keys().map(|key| key[at]).collect();
        let measure = |at: usize| cells.iter().map(|cell| cell[at]).collect();
        Rows {
            keys: (0..asked.inquired.len()).map(key).collect(),
            measures: (0..MEASURES.len()).map(measure).collect(),
        }
    }
}

fn meets(tuple: &Tuple, conditions: &[Condition]) -> bool {
    tuple.0.iter().zip(conditions).all(|(value, condition)| condition.holds(*value))
}

/// The measures of some tuples; none of no tuples.
fn measured<'a>(tuples: impl Iterator<Item = &'a Tuple>) -> Option<Vec<i64>> {
    let tuples: Vec<&Tuple> = tuples.collect();
    let value = |at: usize| tuples.iter().map(move |tuple| tuple.1[at]);
    let of_measure = |measure: &Measure| match measure {
        Measure::Sum(at) => value(*at).sum(),
        Measure::Count => tuples.len() as i64,
        Measure::Min(at) => value(*at).min().unwrap(),
        Measure::Max(at) => value(*at).max().unwrap(),
    };
    (!tuples.is_empty()).then(|| MEASURES.iter().map(of_measure).collect())
}

/// A change of a cube.
#[derive(Debug, Clone)]
pub enum Change {
    Insert(Vec<Tuple>),
    Remove(Vec<Condition>),
}

/// A value of a dimension: small ones, and the largest.
fn attribute(cardinality: u64) -> BoxedStrategy<u32> {
    let last = (cardinality - 1) as u32;
    prop_oneof![4 => 0..=last.min(6), 1 => Just(last)].boxed()
}

pub fn tuples(cardinalities: &'static [u64], most: usize) -> BoxedStrategy<Vec<Tuple>> {
    let attributes: Vec<BoxedStrategy<u32>> = cardinalities.iter().map(|of| attribute(*of)).collect();
    let value = || prop_oneof![3 => -50..50i64, 1 => -(1i64 << 52)..1 << 52];
    prop::collection::vec((attributes, [value(), value()]), 0..most).boxed()
}

fn condition(cardinality: u64) -> BoxedStrategy<Condition> {
    let value = || attribute(cardinality);
    prop_oneof![
        4 => Just(Condition::Any),
        3 => value().prop_map(Condition::Is),
        1 => (value(), value()).prop_map(|(low, high)| Condition::Between(low, high)),
        1 => prop::collection::vec(value(), 0..4).prop_map(Condition::In),
    ]
    .boxed()
}

pub fn conditions(cardinalities: &'static [u64]) -> BoxedStrategy<Vec<Condition>> {
    cardinalities.iter().map(|of| condition(*of)).collect::<Vec<_>>().boxed()
}

pub fn changes(cardinalities: &'static [u64]) -> BoxedStrategy<Vec<Change>> {
    let insert = tuples(cardinalities, 60).prop_map(Change::Insert);
    let remove = conditions(cardinalities).prop_map(Change::Remove);
    prop::collection::vec(prop_oneof![3 => insert, 1 => remove], 0..5).boxed()
}

/// Queries of all kinds, those on the popular path among them.
pub fn queries(cardinalities: &'static [u64]) -> BoxedStrategy<Vec<Query>> {
    let mixed = conditions(cardinalities);
    let path = schema(cardinalities).path().to_vec();
    let points: Vec<BoxedStrategy<u32>> = cardinalities.iter().map(|of| attribute(*of)).collect();
    let on_path = (points, 0..=cardinalities.len()).prop_map(move |(values, depth)| {
        let mut conditions = vec![Condition::Any; values.len()];
        path[..depth].iter().for_each(|at| conditions[*at] = Condition::Is(values[*at]));
        conditions
    });
    let one = prop_oneof![2 => mixed, 1 => on_path].prop_map(|conditions| Query { conditions });
    prop::collection::vec(one, 0..40).boxed()
}

pub fn sub_cubes(cardinalities: &'static [u64]) -> BoxedStrategy<SubCube> {
    let all: Vec<usize> = (0..cardinalities.len()).collect();
    let inquired = prop::sample::subsequence(all, 0..=cardinalities.len()).prop_shuffle();
    (conditions(cardinalities), inquired).prop_map(|(conditions, inquired)| SubCube { conditions, inquired }).boxed()
}

/// Tuples drawn from a seed, more than a tile of kernels has.
pub fn drawn(cardinalities: &[u64], count: usize, seed: u64) -> Vec<Tuple> {
    let mut state = seed;
    let mut next = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut one = || {
        let attributes = cardinalities.iter().map(|of| next((*of).min(50)) as u32).collect();
        (attributes, [next(1000) as i64 - 500, next(1 << 30) as i64])
    };
    (0..count).map(|_| one()).collect()
}
