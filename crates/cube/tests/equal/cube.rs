//! Random cubes with queries, and their facts on a device.

use std::collections::HashSet;
use std::str::FromStr;
use std::sync::Arc;

use proptest::prelude::*;
use warpcube_column::Residency;
use warpcube_cube::answer::Cube;
use warpcube_cube::device::{DeviceAggregation, DeviceAlgorithm, FactsSource, ResidentFacts};
use warpcube_cube::facts::{self, FactMeasure, Facts, InputColumn, InputValues, KeyLayout, Loader};
use warpcube_cube::model::{
    Balance, CubeModel, Dimension, DimensionBuilder, ElementKind, Measure, Rule, Span, ValueType,
};
use warpcube_gpu::{Device, EmulatorOptions, LaneOrder};

/// A measure of drawn cubes.
#[derive(Debug, Clone, Copy)]
pub struct DrawnMeasure {
    pub name: &'static str,
    rule: (Rule, facts::Rule),
    /// The value of a drawn number: a decimal, or a double.
    value: DrawnValue,
    /// True if the time balance of a case is its.
    is_stock: bool,
}

#[derive(Debug, Clone, Copy)]
enum DrawnValue {
    Decimal(fn(i64) -> i64),
    Double(fn(i64) -> f64),
}

const fn measure(name: &'static str, rule: (Rule, facts::Rule), value: DrawnValue) -> DrawnMeasure {
    DrawnMeasure { name, rule, value, is_stock: false }
}

const SUM: (Rule, facts::Rule) = (Rule::Sum, facts::Rule::Sum);
const AVG: (Rule, facts::Rule) = (Rule::Avg, facts::Rule::Avg);
const MIN: (Rule, facts::Rule) = (Rule::Min, facts::Rule::Min);
const MAX: (Rule, facts::Rule) = (Rule::Max, facts::Rule::Max);
const PLAIN: DrawnValue = DrawnValue::Decimal(|drawn| drawn);
/// Doubles without end in binary, some of them 10^13 times as large as others.
const DOUBLE: DrawnValue =
    DrawnValue::Double(|drawn| drawn as f64 * if drawn % 5 == 0 { 1e10 / 7.0 } else { 1e-3 / 3.0 });

/// Measures of every cube: sums of decimals.
pub const SUMS: [DrawnMeasure; 2] =
    [measure("Amount", SUM, PLAIN), DrawnMeasure { is_stock: true, ..measure("Stock", SUM, PLAIN) }];

/// Measures of all rules and types.
pub const ALL: [DrawnMeasure; 13] = [
    SUMS[0],
    SUMS[1],
    // Bounds of their sums pass 64 bits.
    measure("Large", SUM, DrawnValue::Decimal(|drawn| drawn << 45)),
    measure("Count", (Rule::Count, facts::Rule::Count), PLAIN),
    measure("Mean", AVG, PLAIN),
    measure("LargeMean", AVG, DrawnValue::Decimal(|drawn| drawn << 48)),
    measure("Least", MIN, PLAIN),
    measure("Greatest", MAX, DrawnValue::Decimal(|drawn| drawn << 53)),
    measure("Double", SUM, DOUBLE),
    DrawnMeasure { is_stock: true, ..measure("DoubleStock", SUM, DOUBLE) },
    measure("DoubleMean", AVG, DOUBLE),
    measure("LeastDouble", MIN, DOUBLE),
    measure("GreatestDouble", MAX, DOUBLE),
];

/// Sums of doubles with cents, and of such that have no end in binary.
pub const DOUBLES: [DrawnMeasure; 2] = [
    measure("Money", SUM, DrawnValue::Double(|drawn| drawn as f64 / 100.0)),
    DrawnMeasure {
        is_stock: true,
        ..measure("Thirds", SUM, DrawnValue::Double(|drawn| (drawn * drawn) as f64 / -3e3))
    },
];

impl DrawnMeasure {
    fn value_type(&self) -> ValueType {
        match self.value {
            DrawnValue::Decimal(_) => ValueType::Decimal { scale: 1 },
            DrawnValue::Double(_) => ValueType::Double,
        }
    }

    fn of_facts(&self) -> FactMeasure {
        let value = match self.value {
            DrawnValue::Decimal(_) => facts::ValueType::Decimal { scale: 1 },
            DrawnValue::Double(_) => facts::ValueType::Double,
        };
        FactMeasure::new(self.name, self.rule.1, value)
    }
}

/// One dimension: base elements, then consolidated ones, whose children come before them.
#[derive(Debug, Clone)]
pub struct DrawnDimension {
    pub bases: u32,
    /// Children of each consolidated element with their weights; numbers are remainders. Several elements may share a
    /// child, and one may reach it on several paths, or have none.
    pub consolidated: Vec<Vec<(usize, f64)>>,
    /// Elements that the query asks for, as remainders.
    pub targets: Vec<usize>,
}

/// A cube and a query.
#[derive(Debug, Clone)]
pub struct Case {
    pub dimensions: Vec<DrawnDimension>,
    pub measures: &'static [DrawnMeasure],
    /// Coordinates as remainders, and numbers from which measures have their values in turn.
    pub cells: Vec<(Vec<u32>, [Option<i64>; 2])>,
    /// A time balance of stocks over the first dimension.
    pub balance: Option<Span>,
    /// Bits of each coordinate beyond those that it needs: 17 make keys of four dimensions two words wide.
    pub spare_bits: u32,
    pub order: LaneOrder,
}

impl DrawnDimension {
    fn name(&self, at: usize, element: usize) -> String {
        format!("D{at}E{}", element % (self.bases as usize + self.consolidated.len()))
    }

    fn dimension(&self, at: usize) -> Dimension {
        let mut builder = DimensionBuilder::new(&format!("D{at}")).unwrap();
        let bases = self.bases as usize;
        let kind = |element| if element < bases { ElementKind::Base } else { ElementKind::Consolidated };
        let all = 0..bases + self.consolidated.len();
        let ids: Vec<_> = all.map(|element| builder.add(&self.name(at, element), kind(element)).unwrap()).collect();
        for (number, children) in self.consolidated.iter().enumerate() {
            let (parent, mut taken) = (bases + number, HashSet::new());
            for (child, weight) in children.iter().filter(|child| taken.insert(child.0 % parent)) {
                builder.link(ids[parent], ids[child % parent], *weight).unwrap();
            }
        }
        builder.finish().unwrap()
    }
}

impl Case {
    pub fn cube(&self) -> Cube {
        let dimensions = self.dimensions.iter().enumerate().map(|(at, drawn)| drawn.dimension(at)).collect();
        let over = self.balance.map(|span| Balance { dimension: "D0".to_string(), span });
        let measures = self.measures.iter().map(|measure| Measure {
            name: measure.name.to_string(),
            rule: measure.rule.0,
            value: measure.value_type(),
            format: None,
            over: over.clone().filter(|_| measure.is_stock),
        });
        let model = CubeModel::new("drawn", dimensions, measures.collect()).unwrap();
        Cube { model, facts: Arc::new(self.facts()), texts: Default::default() }
    }

    pub fn facts(&self) -> Facts {
        let bases: Vec<u32> = self.dimensions.iter().map(|drawn| drawn.bases).collect();
        let bits: Vec<u32> =
            KeyLayout::for_sizes(&bases).unwrap().bits().iter().map(|bits| bits + self.spare_bits).collect();
        let measures = self.measures.iter().map(DrawnMeasure::of_facts).collect();
        let mut loader = Loader::new(KeyLayout::new(&bits).unwrap(), measures);
        let column = |at: usize| self.cells.iter().map(|cell| cell.0[at] % bases[at]).collect::<Vec<u32>>();
        let columns: Vec<Vec<u32>> = (0..bases.len()).map(column).collect();
        let columns: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
        // Empty values are numbers that would show in a sum.
        let numbers = |turn: usize| self.cells.iter().map(move |cell| cell.1[turn % 2].unwrap_or(997));
        let filled = [0, 1].map(|turn| self.cells.iter().map(|cell| cell.1[turn].is_some()).collect::<Vec<bool>>());
        let values: Vec<(Vec<i64>, Vec<f64>)> = (self.measures.iter().enumerate())
            .map(|(turn, measure)| match measure.value {
                DrawnValue::Decimal(value) => (numbers(turn).map(value).collect(), Vec::new()),
                DrawnValue::Double(value) => (Vec::new(), numbers(turn).map(|number| value(number) + 0.0).collect()),
            })
            .collect();
        let input = self.measures.iter().zip(&values).enumerate().map(|(turn, (measure, (decimals, doubles)))| {
            let values = match measure.value {
                DrawnValue::Decimal(_) => InputValues::Decimals(decimals),
                DrawnValue::Double(_) => InputValues::Doubles(doubles),
            };
            InputColumn { values, filled: Some(&filled[turn % 2]) }
        });
        let input: Vec<InputColumn<'_>> = input.collect();
        loader.append(&columns, &input).unwrap();
        loader.finish(64).unwrap()
    }

    /// The elements of each dimension by some measures.
    pub fn query(&self, measures: &[DrawnMeasure]) -> String {
        let set = |(at, drawn): (usize, &DrawnDimension)| {
            let mut taken = HashSet::new();
            let names = drawn.targets.iter().map(|element| drawn.name(at, *element));
            names.filter(|name| taken.insert(name.clone())).collect::<Vec<_>>().join(", ")
        };
        let sets: Vec<String> = self.dimensions.iter().enumerate().map(set).collect();
        let names: Vec<&str> = measures.iter().map(|measure| measure.name).collect();
        format!("rows {} cols {}", sets.join(" * "), names.join(", "))
    }
}

/// True if tests run on the first GPU: if `WARPCUBE_TEST_DEVICE` is `cuda`.
pub fn is_on_cuda() -> bool {
    std::env::var("WARPCUBE_TEST_DEVICE").is_ok_and(|device| device == "cuda")
}

/// The number in an environment variable, or another one where it is not set.
pub fn number_of<N: FromStr>(variable: &str, otherwise: N) -> N {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}: {text} is no number")),
        Err(_) => otherwise,
    }
}

/// Facts on the emulated device, or on the first GPU.
pub fn on_device(facts: &Arc<Facts>, order: LaneOrder) -> DeviceAggregation {
    let device = match is_on_cuda() {
        true => Device::cuda(0, Some(1 << 28)).unwrap(),
        false => Device::emulated(EmulatorOptions { order, ..EmulatorOptions::default() }, 1 << 28).unwrap(),
    };
    let source = FactsSource::new(facts.clone(), "drawn", "1");
    DeviceAggregation::new(Arc::new(ResidentFacts::new(Arc::new(Residency::new(device)), source)))
}

/// All algorithms that the device runs, the emulated one none whose kernels launch kernels.
pub fn device_algorithms(hash_functions: &[u32]) -> Vec<DeviceAlgorithm> {
    let launches = |algorithm: &DeviceAlgorithm| match algorithm {
        DeviceAlgorithm::Source(variant) => variant.expansion.launches() && !is_on_cuda(),
        _ => false,
    };
    DeviceAlgorithm::all_variants(hash_functions).into_iter().filter(|algorithm| !launches(algorithm)).collect()
}

/// Whole weights, 0 among them.
pub fn whole() -> impl Strategy<Value = f64> + Clone {
    prop_oneof![3 => Just(1.0), 1 => Just(-1.0), 1 => Just(0.0), 1 => Just(-0.0), 2 => (-9..=9_i32).prop_map(f64::from)]
}

fn dimension(weight: impl Strategy<Value = f64> + Clone) -> impl Strategy<Value = DrawnDimension> {
    let children = prop::collection::vec((0..100_usize, weight), 0..7);
    let consolidated = prop::collection::vec(children, 0..6);
    let targets = prop_oneof![
        1 => prop::collection::vec(0..100_usize, 1..=1),
        3 => prop::collection::vec(0..100_usize, 1..6),
        1 => Just((0..20).collect::<Vec<usize>>()),
    ];
    (1..12_u32, consolidated, targets).prop_map(|(bases, consolidated, targets)| DrawnDimension {
        bases,
        consolidated,
        targets,
    })
}

/// Cubes of 1 to 6 dimensions under a kind of weights, with some measures, whose stocks have one of some balances.
pub fn cases(
    weight: impl Strategy<Value = f64> + Clone + 'static,
    measures: &'static [DrawnMeasure],
    spans: &'static [Span],
) -> impl Strategy<Value = Case> {
    let value = || prop::option::weighted(0.9, prop_oneof![4 => -1000..1000_i64, 1 => Just(0)]);
    let span = prop::sample::select(spans);
    let orders = vec![LaneOrder::Forward, LaneOrder::Reversed, LaneOrder::Seeded(3)];
    (prop::collection::vec(dimension(weight), 1..=6), prop::option::of(span), prop::sample::select(orders))
        .prop_flat_map(move |(dimensions, balance, order)| {
            let cell = (prop::collection::vec(any::<u32>(), dimensions.len()), [value(), value()]);
            let spare_bits = prop_oneof![2 => Just(0_u32), 1 => Just(17_u32)];
            (prop::collection::vec(cell, 0..500), spare_bits).prop_map(move |(cells, spare_bits)| Case {
                dimensions: dimensions.clone(),
                measures,
                cells,
                balance,
                spare_bits,
                order,
            })
        })
}
