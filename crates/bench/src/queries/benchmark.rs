//! The benchmarks as data.

use warpcube_datagen::{
    CLICKBENCH_QUERIES, H2O_QUERIES, SSB_QUERIES, Size, TPCDS_QUERIES, ssb_variations, tpch_query, tpch_variations,
};

use super::windows;
use crate::suite::Failure;

/// Which generator makes a benchmark's tables, and how large.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Generator {
    /// The Star Schema Benchmark's, at a scale factor.
    Ssb(f64),
    /// TPC-H's.
    Tpch(f64),
    /// TPC-DS's.
    Tpcds(f64),
    /// ClickBench's, of so many rows.
    Clickbench(u64),
    /// That of H2O's db-benchmark.
    H2o(u64),
    /// The tables for windows, of so many rows.
    Windows(u64),
}

impl Generator {
    /// The name of its tables' folder.
    pub(super) fn name(self) -> &'static str {
        match self {
            Generator::Ssb(_) => "ssb",
            Generator::Tpch(_) => "tpch",
            Generator::Tpcds(_) => "tpcds",
            Generator::Clickbench(_) => "clickbench",
            Generator::H2o(_) => "h2o",
            Generator::Windows(_) => "windows",
        }
    }

    /// How large the tables are.
    pub(super) fn size(self) -> Size {
        match self {
            Generator::Ssb(sf) | Generator::Tpch(sf) | Generator::Tpcds(sf) => Size::Scale(sf),
            Generator::Clickbench(rows) | Generator::H2o(rows) | Generator::Windows(rows) => Size::Rows(rows),
        }
    }
}

/// A query of a benchmark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Query {
    /// Its name, such as `q1.1`.
    pub(super) name: String,
    /// Its text.
    pub(super) sql: String,
    /// Texts of its shape with other literals.
    pub(super) variations: Vec<String>,
}

/// A benchmark.
#[derive(Debug, Clone)]
pub struct Benchmark {
    /// Its name in results.
    pub(super) name: &'static str,
    /// The generator of its tables.
    pub(super) generator: Generator,
    /// Its largest table.
    pub(super) largest: &'static str,
    /// Whether to print where each part ran and why.
    pub(super) shows_placement: bool,
    /// Its queries.
    pub(super) queries: Vec<Query>,
}

const TPCH_QUERY_COUNT: usize = 22;
/// Texts with other literals of each query, if its literals have that many values.
const VARIATIONS_MAX: usize = 7;

/// First rows of SSB's largest table. Keys of an order are unique where columns beside them are read, so that the rows
/// are the same on any device.
const TOPK_QUERIES: [(&str, &str); 8] = [
    ("key-10", "SELECT lo_revenue FROM lineorder ORDER BY lo_revenue DESC LIMIT 10"),
    ("key-1000", "SELECT lo_revenue FROM lineorder ORDER BY lo_revenue DESC LIMIT 1000"),
    ("key-100000", "SELECT lo_revenue FROM lineorder ORDER BY lo_revenue DESC LIMIT 100000"),
    (
        "rows-100",
        "SELECT lo_orderkey, lo_linenumber, lo_custkey, lo_revenue FROM lineorder \
         ORDER BY lo_revenue DESC, lo_orderkey, lo_linenumber LIMIT 100",
    ),
    (
        "filtered-100",
        "SELECT lo_orderkey, lo_linenumber, lo_revenue FROM lineorder WHERE lo_quantity < 6 AND lo_discount > 0 \
         ORDER BY lo_revenue DESC, lo_orderkey, lo_linenumber LIMIT 100",
    ),
    (
        "expression-100",
        "SELECT lo_orderkey, lo_linenumber, lo_revenue - lo_supplycost AS profit FROM lineorder \
         ORDER BY lo_revenue - lo_supplycost, lo_orderkey, lo_linenumber LIMIT 100",
    ),
    (
        "string-100",
        "SELECT lo_shipmode, lo_revenue, lo_orderkey, lo_linenumber FROM lineorder \
         ORDER BY lo_shipmode DESC, lo_revenue, lo_orderkey, lo_linenumber LIMIT 100",
    ),
    (
        "offset-100",
        "SELECT lo_orderkey, lo_linenumber, lo_revenue FROM lineorder \
         ORDER BY lo_revenue DESC, lo_orderkey, lo_linenumber LIMIT 100 OFFSET 10000",
    ),
];

/// The benchmark of that name, for tables of that size.
pub(super) fn find(name: &str, size: Size) -> Result<Benchmark, Failure> {
    let fixed = |name, generator, largest, queries: &[(&str, &str)]| {
        let queries = queries.iter().map(|query| varied(query, |_| Vec::new())).collect();
        Ok(Benchmark { name, generator, largest, shows_placement: true, queries })
    };
    match (name, size) {
        ("ssb", Size::Scale(sf)) => Ok(over_ssb("ssb", sf, &SSB_QUERIES, false)),
        ("topk", Size::Scale(sf)) => Ok(over_ssb("topk", sf, &TOPK_QUERIES, true)),
        ("tpch", Size::Scale(sf)) => {
            let case = |number| {
                let variations = tpch_variations(number, sf, VARIATIONS_MAX);
                Some(Query { name: format!("q{number}"), sql: tpch_query(number, sf)?, variations })
            };
            let queries = (1..=TPCH_QUERY_COUNT).filter_map(case).collect();
            let (generator, largest) = (Generator::Tpch(sf), "lineitem");
            Ok(Benchmark { name: "tpch", generator, largest, shows_placement: true, queries })
        }
        ("tpcds", Size::Scale(sf)) => fixed("tpcds", Generator::Tpcds(sf), "store_sales", &TPCDS_QUERIES),
        ("clickbench", Size::Rows(rows)) => {
            fixed("clickbench", Generator::Clickbench(rows), "hits", &CLICKBENCH_QUERIES)
        }
        ("h2o", Size::Rows(rows)) => fixed("h2o", Generator::H2o(rows), "g1", &H2O_QUERIES),
        ("windows", Size::Rows(rows)) => {
            let queries = windows::queries().into_iter();
            let queries = queries.map(|(name, sql)| Query { name, sql, variations: Vec::new() }).collect();
            let (name, generator) = ("windows", Generator::Windows(rows));
            Ok(Benchmark { name, generator, largest: "w", shows_placement: true, queries })
        }
        (other, _) => Err(Failure::Usage(format!("there is no benchmark '{other}' {size}"))),
    }
}

/// A query with other texts of its shape, by its name.
fn varied((name, sql): &(&str, &str), variations: impl FnOnce(&str) -> Vec<String>) -> Query {
    Query { name: name.to_string(), sql: sql.to_string(), variations: variations(name) }
}

/// A benchmark over the tables of the Star Schema Benchmark.
fn over_ssb(name: &'static str, sf: f64, queries: &[(&str, &str)], shows_placement: bool) -> Benchmark {
    let case = |query| varied(query, |name| ssb_variations(name, VARIATIONS_MAX));
    let queries = queries.iter().map(case).collect();
    Benchmark { name, generator: Generator::Ssb(sf), largest: "lineorder", shows_placement, queries }
}

impl Benchmark {
    /// The benchmark with only the queries of these names, all if there are none.
    pub(super) fn only(mut self, names: &[String]) -> Result<Benchmark, Failure> {
        if names.is_empty() {
            return Ok(self);
        }
        let known: Vec<String> = self.queries.iter().map(|case| case.name.clone()).collect();
        if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
            let known = known.join(", ");
            return Err(Failure::Usage(format!("--queries {unknown}: {} has {known}", self.name)));
        }
        self.queries.retain(|case| names.contains(&case.name));
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: Size = Size::Scale(1.0);

    #[test]
    fn suites_have_all_their_queries() {
        let rows = Size::Rows(1_000);
        let scaled = ["ssb", "tpch", "topk", "tpcds"].map(|name| (name, SCALE));
        let sized = ["clickbench", "h2o", "windows"].map(|name| (name, rows));
        let found: Vec<Benchmark> =
            scaled.into_iter().chain(sized).map(|(name, size)| find(name, size).unwrap()).collect();
        let counts: Vec<usize> = found.iter().map(|suite| suite.queries.len()).collect();
        assert_eq!(counts, [13, 22, TOPK_QUERIES.len(), 99, 43, 15, 20]);
        let varied = found.iter().map(|suite| suite.queries.iter().map(|case| case.variations.len()).min());
        assert_eq!(varied.flatten().collect::<Vec<_>>(), [7, 4, 0, 0, 0, 0, 0]);
        assert!(found.iter().all(|suite| [SCALE, rows].contains(&suite.generator.size())));
        assert_eq!(find("tpch", SCALE).unwrap().only(&["q21".into()]).unwrap().queries[0].name, "q21");
        let unknown = find("ssb", SCALE).unwrap().only(&["q9".into()]).unwrap_err().to_string();
        assert!(unknown.starts_with("--queries q9: ssb has q1.1, "), "{unknown}");
    }

    #[test]
    fn query_11_of_tpch_is_that_of_the_scale() {
        let query = |sf| find("tpch", Size::Scale(sf)).unwrap().queries[10].sql.clone();
        assert!(query(1.0).contains("* 0.0001\n") && query(10.0).contains("* 0.00001\n"), "{}", query(10.0));
    }
}
