//! First rows by an order, `ORDER BY … LIMIT … OFFSET`, and all of them, by every algorithm, over keys that mislead.
//!
//! Statements by columns, under plain comparisons, have to run on the device, unless their keys or their number of rows
//! are beyond what the algorithm takes; of computed keys some may be left to the CPU.

use std::collections::BTreeMap;
use std::ops::Range;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Decimal128Type};
use warpcube_engine::TopKAlgorithm;
use warpcube_gpu::DeviceInfo;
use warpcube_gpu::prims::Element;
use warpcube_gpu::prims::topk::{BitonicLevel, TopKSpec};

use super::bench::{Bench, Verdict};
use super::data::{Column, Table, Tables};
use super::query::{Generator, Query, is_text};
use super::random::Random;
use super::{QUERIES_PER_CASE, kind_of, seeds, shrunk, variable};

/// `ORDER BY … LIMIT … OFFSET`. Unless the last key is unique, the keys alone are selected: which of rows with equal
/// keys come is open, but not what their keys are.
#[derive(Debug, Clone)]
pub struct FirstRows {
    /// What is selected where the last key is unique; otherwise nothing.
    pub columns: Vec<String>,
    /// Keys, each with its direction and the place of NULL.
    pub keys: Vec<(String, String)>,
    /// LIMIT; all rows if none is given.
    pub limit: Option<usize>,
    /// OFFSET.
    pub offset: usize,
}

impl FirstRows {
    /// What is selected.
    pub fn outputs(&self) -> Vec<String> {
        if !self.columns.is_empty() {
            return self.columns.clone();
        }
        self.keys.iter().enumerate().map(|(index, (key, _))| format!("{key} AS k{index}")).collect()
    }

    /// The order, LIMIT and OFFSET.
    pub fn order(&self) -> String {
        let keys: Vec<String> = self.keys.iter().map(|(key, way)| format!("{key} {way}")).collect();
        let limit = self.limit.map_or_else(String::new, |limit| format!(" LIMIT {limit} OFFSET {}", self.offset));
        format!(" ORDER BY {}{limit}", keys.join(", "))
    }
}

/// Seeds of the test run.
const SEEDS: Range<u64> = 0..32;
/// One seed of so many has computed keys.
const COMPUTED_EVERY: u64 = 4;
/// Bits of the widest rank and of the widest tail.
const BITS_MAX: u32 = 128;

/// A statement with its algorithm; none is chosen by cost.
struct Drawn {
    query: Query,
    algorithm: Option<TopKAlgorithm>,
    is_plain: bool,
}

impl Drawn {
    fn new(seed: u64, tables: &Tables, info: &DeviceInfo) -> Drawn {
        let mut random = Random::new(seed ^ 0xF157 << 40);
        let is_plain = seed % COMPUTED_EVERY != 3;
        let query = Generator::new(&mut random, tables).first_rows(is_plain);
        let mut drawn = Drawn { query, algorithm: None, is_plain };
        if random.chance(30) {
            return drawn;
        }
        // Mostly an algorithm that takes the statement; now and then one that may refuse it.
        let levels = BitonicLevel::ALL.map(TopKAlgorithm::Bitonic);
        let named: Vec<TopKAlgorithm> = TopKAlgorithm::ALL.into_iter().chain(levels).collect();
        for _ in 0..8 {
            drawn.algorithm = Some(*random.pick(&named));
            if drawn.has_to_be_placed(tables, info) || random.chance(10) {
                break;
            }
        }
        drawn
    }

    fn algorithm_name(&self) -> String {
        self.algorithm.map_or("auto".into(), |algorithm| algorithm.to_string())
    }

    /// True if the device has to run it: bounds of bits are those of types, not of values.
    fn has_to_be_placed(&self, tables: &Tables, info: &DeviceInfo) -> bool {
        let Some(first) = self.query.first.as_ref().filter(|_| self.is_plain) else { return false };
        let table = &tables.tables[0];
        let sql = self.query.sql();
        let mut names = sql.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        if names.any(|name| is_refused(table, name)) {
            return false;
        }
        let of = |name: &str| table.columns.iter().find(|column| column.name == name).and_then(bits);
        let Some(keys) = first.keys.iter().map(|(key, _)| of(key)).collect::<Option<Vec<u32>>>() else { return false };
        let rows = usize::BITS - table.rows.num_rows().leading_zeros();
        let all: u32 = keys.iter().sum::<u32>() + rows.max(1);
        match (self.algorithm, first.limit) {
            (None | Some(TopKAlgorithm::Threshold), _) | (_, None) => {
                all <= BITS_MAX || tail(&keys) + rows.max(1) <= BITS_MAX
            }
            (Some(algorithm), Some(limit)) => {
                let k = (limit + first.offset) as u64;
                let spec = |element| TopKSpec { rows: Element::U32, ..TopKSpec::new(element, k, algorithm) };
                all <= BITS_MAX
                    && [Element::U64, Element::U128].iter().all(|element| spec(*element).check(info).is_ok())
            }
        }
    }
}

/// True if this is a column of decimals beyond 64 bits, which no device column holds.
fn is_refused(table: &Table, name: &str) -> bool {
    let Some(column) = table.rows.column_by_name(name) else { return false };
    let decimals = column.as_primitive_opt::<Decimal128Type>();
    decimals.is_some_and(|decimals| decimals.iter().flatten().any(|value| i64::try_from(value).is_err()))
}

/// Most bits that places of a column take; none if a column of the type may be refused.
fn bits(column: &Column) -> Option<u32> {
    Some(match &column.data_type {
        DataType::Boolean => 2,
        DataType::Int8 | DataType::UInt8 => 9,
        DataType::Int16 | DataType::UInt16 => 17,
        DataType::Float32 => 32,
        DataType::Int32 | DataType::UInt32 | DataType::Date32 => 33,
        DataType::Float64 => 64,
        DataType::Int64 | DataType::UInt64 | DataType::Timestamp(_, _) => 65,
        DataType::Decimal128(precision, _) if *precision <= 18 => 65,
        data_type if is_text(data_type) => 33,
        _ => return None,
    })
}

/// Bits of the keys that do not fit into a rank.
fn tail(keys: &[u32]) -> u32 {
    let mut ranked = 0;
    let leading = keys.iter().take_while(|bits| {
        ranked += **bits;
        ranked <= BITS_MAX
    });
    keys.iter().skip(leading.count()).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_first_rows() {
    let rows = variable("WARPCUBE_FUZZ_ROWS").map_or(3000, |text| text.parse().expect("a number of rows"));
    let device = variable("WARPCUBE_FUZZ_DEVICE").unwrap_or_else(|| "emulated".into());
    let mut bench = Bench::new(&device);
    let info = bench.device().info().clone();
    let (mut wanted, mut placed, mut raised, mut run, mut sorts) = (0, 0, 0, 0, 0);
    let (mut refused, mut failures) = (BTreeMap::<String, usize>::new(), Vec::new());
    let seeds = seeds(SEEDS);
    for case in seeds.start / QUERIES_PER_CASE..seeds.end.div_ceil(QUERIES_PER_CASE) {
        let tables = Tables::misleading(&mut Random::new(case ^ 0xF157 << 40), rows);
        bench.load(&tables).await;
        let of_case = seeds.start.max(case * QUERIES_PER_CASE)..seeds.end.min((case + 1) * QUERIES_PER_CASE);
        bench
            .rehearse(of_case.clone().flat_map(|seed| {
                let drawn = Drawn::new(seed, &tables, &info);
                [format!("SET warpcube.topk = '{}'", drawn.algorithm_name()), drawn.query.sql()]
            }))
            .await;
        for seed in of_case {
            let drawn = Drawn::new(seed, &tables, &info);
            let (name, sql) = (drawn.algorithm_name(), drawn.query.sql());
            bench.set("warpcube.topk", &name);
            let has_to_be_placed = drawn.has_to_be_placed(&tables, &info);
            (run, wanted) = (run + 1, wanted + usize::from(has_to_be_placed));
            match bench.check(&sql).await {
                Verdict::Same => {
                    placed += usize::from(has_to_be_placed);
                    sorts +=
                        usize::from(has_to_be_placed && drawn.query.first.is_some_and(|rows| rows.limit.is_none()));
                }
                Verdict::Raised | Verdict::Answered if !drawn.is_plain => raised += 1,
                Verdict::Refused(reason) if !has_to_be_placed => *refused.entry(kind_of(&reason)).or_default() += 1,
                Verdict::Differs(difference) => {
                    eprintln!("first rows {seed} by {name}: {difference}\n{sql}");
                    let about = format!("by {name}, {difference}");
                    failures
                        .push(shrunk(&mut bench, &tables, drawn.query, &format!("first-rows-{seed}"), &about).await);
                    bench.load(&tables).await;
                }
                other => failures.push(format!("seed {seed}, by {name}: {other:?}\n{sql}")),
            }
        }
    }
    eprintln!(
        "{run} first rows: {placed} of {wanted} placed that had to be, {sorts} of them sorts, {raised} raised, \
         refused: {refused:#?}"
    );
    assert!(failures.is_empty(), "{} failures\n{}", failures.len(), failures.join("\n\n"));
    assert_eq!(placed, wanted);
    assert!(run < SEEDS.end as usize || wanted * 5 >= run * 2, "{wanted} of {run} have to be placed");
    assert!(run < SEEDS.end as usize || sorts * 20 >= run, "{sorts} of {run} are sorts on the device");
}
