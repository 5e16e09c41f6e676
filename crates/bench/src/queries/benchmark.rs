//! The benchmarks as data.

use warpcube_datagen::{SSB_QUERIES, ssb_variations, tpch_query, tpch_variations};

use crate::suite::Failure;

/// Which generator makes a benchmark's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generator {
    /// The Star Schema Benchmark's.
    Ssb,
    /// TPC-H's.
    Tpch,
}

impl Generator {
    /// The name of its tables' folder.
    pub(super) fn name(self) -> &'static str {
        match self {
            Generator::Ssb => "ssb",
            Generator::Tpch => "tpch",
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

/// The benchmark of that name, for tables of that scale.
pub(super) fn find(name: &str, sf: f64) -> Result<Benchmark, Failure> {
    match name {
        "ssb" => Ok(over_ssb("ssb", &SSB_QUERIES, false)),
        "topk" => Ok(over_ssb("topk", &TOPK_QUERIES, true)),
        "tpch" => {
            let case = |number| {
                let variations = tpch_variations(number, sf, VARIATIONS_MAX);
                Some(Query { name: format!("q{number}"), sql: tpch_query(number, sf)?, variations })
            };
            let queries = (1..=TPCH_QUERY_COUNT).filter_map(case).collect();
            Ok(Benchmark {
                name: "tpch",
                generator: Generator::Tpch,
                largest: "lineitem",
                shows_placement: true,
                queries,
            })
        }
        other => Err(Failure::Usage(format!("there is no benchmark '{other}'"))),
    }
}

/// A benchmark over the tables of the Star Schema Benchmark.
fn over_ssb(name: &'static str, queries: &[(&str, &str)], shows_placement: bool) -> Benchmark {
    let case = |(name, sql): &(&str, &str)| Query {
        name: name.to_string(),
        sql: sql.to_string(),
        variations: ssb_variations(name, VARIATIONS_MAX),
    };
    let queries = queries.iter().map(case).collect();
    Benchmark { name, generator: Generator::Ssb, largest: "lineorder", shows_placement, queries }
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

    #[test]
    fn suites_have_all_their_queries() {
        assert_eq!(find("ssb", 1.0).unwrap().queries.len(), 13);
        assert_eq!(find("tpch", 1.0).unwrap().queries.len(), 22);
        assert_eq!(find("topk", 1.0).unwrap().queries.len(), TOPK_QUERIES.len());
        assert_eq!(find("tpch", 1.0).unwrap().only(&["q21".into()]).unwrap().queries[0].name, "q21");
        let varied = |name: &str| find(name, 1.0).unwrap().queries.iter().map(|case| case.variations.len()).min();
        assert_eq!([varied("ssb"), varied("tpch"), varied("topk")], [Some(7), Some(4), Some(0)]);
        let unknown = find("ssb", 1.0).unwrap().only(&["q9".into()]).unwrap_err().to_string();
        assert!(unknown.starts_with("--queries q9: ssb has q1.1, "), "{unknown}");
    }

    #[test]
    fn query_11_of_tpch_is_that_of_the_scale() {
        let query = |sf| find("tpch", sf).unwrap().queries[10].sql.clone();
        assert!(query(1.0).contains("* 0.0001\n") && query(10.0).contains("* 0.00001\n"), "{}", query(10.0));
    }
}
