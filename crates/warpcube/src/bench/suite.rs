//! The benchmarks as data.

use warpcube_datagen::{SSB_QUERIES, tpch_query};

use crate::error::{CliError, Result};

/// Which generator makes a suite's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Generator {
    /// The Star Schema Benchmark's.
    Ssb,
    /// TPC-H's.
    Tpch,
}

/// A query of a suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Case {
    /// Its name, such as `q1.1`.
    pub(super) name: String,
    /// Its text.
    pub(super) sql: String,
}

/// A benchmark.
#[derive(Debug, Clone)]
pub(super) struct Suite {
    /// Its name in results.
    pub(super) name: &'static str,
    /// Who makes its tables.
    pub(super) generator: Generator,
    /// Its largest table.
    pub(super) largest: &'static str,
    /// Whether to print where each part ran and why.
    pub(super) shows_placement: bool,
    /// Its queries.
    pub(super) cases: Vec<Case>,
}

const TPCH_QUERY_COUNT: usize = 22;

/// The suite of that name, for tables of that scale.
pub(super) fn find(name: &str, sf: f64) -> Result<Suite> {
    match name {
        "ssb" => {
            let case = |(name, sql): &(&str, &str)| Case { name: name.to_string(), sql: sql.to_string() };
            let cases = SSB_QUERIES.iter().map(case).collect();
            Ok(Suite { name: "ssb", generator: Generator::Ssb, largest: "lineorder", shows_placement: false, cases })
        }
        "tpch" => {
            let case = |number| Some(Case { name: format!("q{number}"), sql: tpch_query(number, sf)? });
            let cases = (1..=TPCH_QUERY_COUNT).filter_map(case).collect();
            Ok(Suite { name: "tpch", generator: Generator::Tpch, largest: "lineitem", shows_placement: true, cases })
        }
        other => Err(CliError::Usage(format!("there is no benchmark '{other}'"))),
    }
}

impl Suite {
    /// The suite with only the cases of these names, all if there are none.
    pub(super) fn only(mut self, names: &[String]) -> Result<Suite> {
        if names.is_empty() {
            return Ok(self);
        }
        let known: Vec<String> = self.cases.iter().map(|case| case.name.clone()).collect();
        if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
            let known = known.join(", ");
            return Err(CliError::Usage(format!("--queries {unknown}: {} has {known}", self.name)));
        }
        self.cases.retain(|case| names.contains(&case.name));
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_have_all_their_queries() {
        assert_eq!(find("ssb", 1.0).unwrap().cases.len(), 13);
        assert_eq!(find("tpch", 1.0).unwrap().cases.len(), 22);
        assert_eq!(find("tpch", 1.0).unwrap().only(&["q21".into()]).unwrap().cases[0].name, "q21");
        let unknown = find("ssb", 1.0).unwrap().only(&["q9".into()]).unwrap_err().to_string();
        assert!(unknown.starts_with("CLI-001 --queries q9: ssb has q1.1, "), "{unknown}");
    }

    #[test]
    fn query_11_of_tpch_is_that_of_the_scale() {
        let query = |sf| find("tpch", sf).unwrap().cases[10].sql.clone();
        assert!(query(1.0).contains("* 0.0001\n") && query(10.0).contains("* 0.00001\n"), "{}", query(10.0));
    }
}
