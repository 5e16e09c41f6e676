//! The queries of the benchmarks as SQL text: the 13 of SSB; the 22 of TPC-H with the parameters of its validation run;
//! the 99 of TPC-DS with default ones, as DuckDB's extension `tpcds` (MIT) has them; the 43 of
//! ClickBench and the 15 of H2O. None ends with a semicolon. `variations` has SSB's and TPC-H's with other literals.

mod variations;
pub use variations::{ssb_variations, tpch_variations};

/// The 13 queries of the Star Schema Benchmark, by name.
pub const SSB_QUERIES: [(&str, &str); 13] = [
    ("q1.1", include_str!("../queries/ssb/q1.1.sql")),
    ("q1.2", include_str!("../queries/ssb/q1.2.sql")),
    ("q1.3", include_str!("../queries/ssb/q1.3.sql")),
    ("q2.1", include_str!("../queries/ssb/q2.1.sql")),
    ("q2.2", include_str!("../queries/ssb/q2.2.sql")),
    ("q2.3", include_str!("../queries/ssb/q2.3.sql")),
    ("q3.1", include_str!("../queries/ssb/q3.1.sql")),
    ("q3.2", include_str!("../queries/ssb/q3.2.sql")),
    ("q3.3", include_str!("../queries/ssb/q3.3.sql")),
    ("q3.4", include_str!("../queries/ssb/q3.4.sql")),
    ("q4.1", include_str!("../queries/ssb/q4.1.sql")),
    ("q4.2", include_str!("../queries/ssb/q4.2.sql")),
    ("q4.3", include_str!("../queries/ssb/q4.3.sql")),
];

const TPCH_QUERIES: [&str; 22] = [
    include_str!("../queries/tpch/q01.sql"),
    include_str!("../queries/tpch/q02.sql"),
    include_str!("../queries/tpch/q03.sql"),
    include_str!("../queries/tpch/q04.sql"),
    include_str!("../queries/tpch/q05.sql"),
    include_str!("../queries/tpch/q06.sql"),
    include_str!("../queries/tpch/q07.sql"),
    include_str!("../queries/tpch/q08.sql"),
    include_str!("../queries/tpch/q09.sql"),
    include_str!("../queries/tpch/q10.sql"),
    include_str!("../queries/tpch/q11.sql"),
    include_str!("../queries/tpch/q12.sql"),
    include_str!("../queries/tpch/q13.sql"),
    include_str!("../queries/tpch/q14.sql"),
    include_str!("../queries/tpch/q15.sql"),
    include_str!("../queries/tpch/q16.sql"),
    include_str!("../queries/tpch/q17.sql"),
    include_str!("../queries/tpch/q18.sql"),
    include_str!("../queries/tpch/q19.sql"),
    include_str!("../queries/tpch/q20.sql"),
    include_str!("../queries/tpch/q21.sql"),
    include_str!("../queries/tpch/q22.sql"),
];

/// The 99 queries of TPC-DS by name, with the default substitution parameters.
pub const TPCDS_QUERIES: [(&str, &str); 99] = [
    ("q1", include_str!("../queries/tpcds/q01.sql")),
    ("q2", include_str!("../queries/tpcds/q02.sql")),
    ("q3", include_str!("../queries/tpcds/q03.sql")),
    ("q4", include_str!("../queries/tpcds/q04.sql")),
    ("q5", include_str!("../queries/tpcds/q05.sql")),
    ("q6", include_str!("../queries/tpcds/q06.sql")),
    ("q7", include_str!("../queries/tpcds/q07.sql")),
    ("q8", include_str!("../queries/tpcds/q08.sql")),
    ("q9", include_str!("../queries/tpcds/q09.sql")),
    ("q10", include_str!("../queries/tpcds/q10.sql")),
    ("q11", include_str!("../queries/tpcds/q11.sql")),
    ("q12", include_str!("../queries/tpcds/q12.sql")),
    ("q13", include_str!("../queries/tpcds/q13.sql")),
    ("q14", include_str!("../queries/tpcds/q14.sql")),
    ("q15", include_str!("../queries/tpcds/q15.sql")),
    ("q16", include_str!("../queries/tpcds/q16.sql")),
    ("q17", include_str!("../queries/tpcds/q17.sql")),
    ("q18", include_str!("../queries/tpcds/q18.sql")),
    ("q19", include_str!("../queries/tpcds/q19.sql")),
    ("q20", include_str!("../queries/tpcds/q20.sql")),
    ("q21", include_str!("../queries/tpcds/q21.sql")),
    ("q22", include_str!("../queries/tpcds/q22.sql")),
    ("q23", include_str!("../queries/tpcds/q23.sql")),
    ("q24", include_str!("../queries/tpcds/q24.sql")),
    ("q25", include_str!("../queries/tpcds/q25.sql")),
    ("q26", include_str!("../queries/tpcds/q26.sql")),
    ("q27", include_str!("../queries/tpcds/q27.sql")),
    ("q28", include_str!("../queries/tpcds/q28.sql")),
    ("q29", include_str!("../queries/tpcds/q29.sql")),
    ("q30", include_str!("../queries/tpcds/q30.sql")),
    ("q31", include_str!("../queries/tpcds/q31.sql")),
    ("q32", include_str!("../queries/tpcds/q32.sql")),
    ("q33", include_str!("../queries/tpcds/q33.sql")),
    ("q34", include_str!("../queries/tpcds/q34.sql")),
    ("q35", include_str!("../queries/tpcds/q35.sql")),
    ("q36", include_str!("../queries/tpcds/q36.sql")),
    ("q37", include_str!("../queries/tpcds/q37.sql")),
    ("q38", include_str!("../queries/tpcds/q38.sql")),
    ("q39", include_str!("../queries/tpcds/q39.sql")),
    ("q40", include_str!("../queries/tpcds/q40.sql")),
    ("q41", include_str!("../queries/tpcds/q41.sql")),
    ("q42", include_str!("../queries/tpcds/q42.sql")),
    ("q43", include_str!("../queries/tpcds/q43.sql")),
    ("q44", include_str!("../queries/tpcds/q44.sql")),
    ("q45", include_str!("../queries/tpcds/q45.sql")),
    ("q46", include_str!("../queries/tpcds/q46.sql")),
    ("q47", include_str!("../queries/tpcds/q47.sql")),
    ("q48", include_str!("../queries/tpcds/q48.sql")),
    ("q49", include_str!("../queries/tpcds/q49.sql")),
    ("q50", include_str!("../queries/tpcds/q50.sql")),
    ("q51", include_str!("../queries/tpcds/q51.sql")),
    ("q52", include_str!("../queries/tpcds/q52.sql")),
    ("q53", include_str!("../queries/tpcds/q53.sql")),
    ("q54", include_str!("../queries/tpcds/q54.sql")),
    ("q55", include_str!("../queries/tpcds/q55.sql")),
    ("q56", include_str!("../queries/tpcds/q56.sql")),
    ("q57", include_str!("../queries/tpcds/q57.sql")),
    ("q58", include_str!("../queries/tpcds/q58.sql")),
    ("q59", include_str!("../queries/tpcds/q59.sql")),
    ("q60", include_str!("../queries/tpcds/q60.sql")),
    ("q61", include_str!("../queries/tpcds/q61.sql")),
    ("q62", include_str!("../queries/tpcds/q62.sql")),
    ("q63", include_str!("../queries/tpcds/q63.sql")),
    ("q64", include_str!("../queries/tpcds/q64.sql")),
    ("q65", include_str!("../queries/tpcds/q65.sql")),
    ("q66", include_str!("../queries/tpcds/q66.sql")),
    ("q67", include_str!("../queries/tpcds/q67.sql")),
    ("q68", include_str!("../queries/tpcds/q68.sql")),
    ("q69", include_str!("../queries/tpcds/q69.sql")),
    ("q70", include_str!("../queries/tpcds/q70.sql")),
    ("q71", include_str!("../queries/tpcds/q71.sql")),
    ("q72", include_str!("../queries/tpcds/q72.sql")),
    ("q73", include_str!("../queries/tpcds/q73.sql")),
    ("q74", include_str!("../queries/tpcds/q74.sql")),
    ("q75", include_str!("../queries/tpcds/q75.sql")),
    ("q76", include_str!("../queries/tpcds/q76.sql")),
    ("q77", include_str!("../queries/tpcds/q77.sql")),
    ("q78", include_str!("../queries/tpcds/q78.sql")),
    ("q79", include_str!("../queries/tpcds/q79.sql")),
    ("q80", include_str!("../queries/tpcds/q80.sql")),
    ("q81", include_str!("../queries/tpcds/q81.sql")),
    ("q82", include_str!("../queries/tpcds/q82.sql")),
    ("q83", include_str!("../queries/tpcds/q83.sql")),
    ("q84", include_str!("../queries/tpcds/q84.sql")),
    ("q85", include_str!("../queries/tpcds/q85.sql")),
    ("q86", include_str!("../queries/tpcds/q86.sql")),
    ("q87", include_str!("../queries/tpcds/q87.sql")),
    ("q88", include_str!("../queries/tpcds/q88.sql")),
    ("q89", include_str!("../queries/tpcds/q89.sql")),
    ("q90", include_str!("../queries/tpcds/q90.sql")),
    ("q91", include_str!("../queries/tpcds/q91.sql")),
    ("q92", include_str!("../queries/tpcds/q92.sql")),
    ("q93", include_str!("../queries/tpcds/q93.sql")),
    ("q94", include_str!("../queries/tpcds/q94.sql")),
    ("q95", include_str!("../queries/tpcds/q95.sql")),
    ("q96", include_str!("../queries/tpcds/q96.sql")),
    ("q97", include_str!("../queries/tpcds/q97.sql")),
    ("q98", include_str!("../queries/tpcds/q98.sql")),
    ("q99", include_str!("../queries/tpcds/q99.sql")),
];

/// The 43 queries of ClickBench by name, counted from 1. Names of columns stand in quotes, since they have capitals. An
/// `ORDER BY` that leaves rows behind a `LIMIT` to chance has further keys, and query 18, without one, its groups, so
/// that the rows are the same in any engine.
pub const CLICKBENCH_QUERIES: [(&str, &str); 43] = [
    ("q1", include_str!("../queries/clickbench/q01.sql")),
    ("q2", include_str!("../queries/clickbench/q02.sql")),
    ("q3", include_str!("../queries/clickbench/q03.sql")),
    ("q4", include_str!("../queries/clickbench/q04.sql")),
    ("q5", include_str!("../queries/clickbench/q05.sql")),
    ("q6", include_str!("../queries/clickbench/q06.sql")),
    ("q7", include_str!("../queries/clickbench/q07.sql")),
    ("q8", include_str!("../queries/clickbench/q08.sql")),
    ("q9", include_str!("../queries/clickbench/q09.sql")),
    ("q10", include_str!("../queries/clickbench/q10.sql")),
    ("q11", include_str!("../queries/clickbench/q11.sql")),
    ("q12", include_str!("../queries/clickbench/q12.sql")),
    ("q13", include_str!("../queries/clickbench/q13.sql")),
    ("q14", include_str!("../queries/clickbench/q14.sql")),
    ("q15", include_str!("../queries/clickbench/q15.sql")),
    ("q16", include_str!("../queries/clickbench/q16.sql")),
    ("q17", include_str!("../queries/clickbench/q17.sql")),
    ("q18", include_str!("../queries/clickbench/q18.sql")),
    ("q19", include_str!("../queries/clickbench/q19.sql")),
    ("q20", include_str!("../queries/clickbench/q20.sql")),
    ("q21", include_str!("../queries/clickbench/q21.sql")),
    ("q22", include_str!("../queries/clickbench/q22.sql")),
    ("q23", include_str!("../queries/clickbench/q23.sql")),
    ("q24", include_str!("../queries/clickbench/q24.sql")),
    ("q25", include_str!("../queries/clickbench/q25.sql")),
    ("q26", include_str!("../queries/clickbench/q26.sql")),
    ("q27", include_str!("../queries/clickbench/q27.sql")),
    ("q28", include_str!("../queries/clickbench/q28.sql")),
    ("q29", include_str!("../queries/clickbench/q29.sql")),
    ("q30", include_str!("../queries/clickbench/q30.sql")),
    ("q31", include_str!("../queries/clickbench/q31.sql")),
    ("q32", include_str!("../queries/clickbench/q32.sql")),
    ("q33", include_str!("../queries/clickbench/q33.sql")),
    ("q34", include_str!("../queries/clickbench/q34.sql")),
    ("q35", include_str!("../queries/clickbench/q35.sql")),
    ("q36", include_str!("../queries/clickbench/q36.sql")),
    ("q37", include_str!("../queries/clickbench/q37.sql")),
    ("q38", include_str!("../queries/clickbench/q38.sql")),
    ("q39", include_str!("../queries/clickbench/q39.sql")),
    ("q40", include_str!("../queries/clickbench/q40.sql")),
    ("q41", include_str!("../queries/clickbench/q41.sql")),
    ("q42", include_str!("../queries/clickbench/q42.sql")),
    ("q43", include_str!("../queries/clickbench/q43.sql")),
];

/// The 15 questions of H2O's db-benchmark by name: `g1` to `g10` of its task `groupby`, `j1` to `j5` of `join`. Those
/// whose answers have as many rows as their tables, `g10` and all joins, are asked for the sums by which db-benchmark
/// checks its answers.
pub const H2O_QUERIES: [(&str, &str); 15] = [
    ("g1", include_str!("../queries/h2o/g01.sql")),
    ("g2", include_str!("../queries/h2o/g02.sql")),
    ("g3", include_str!("../queries/h2o/g03.sql")),
    ("g4", include_str!("../queries/h2o/g04.sql")),
    ("g5", include_str!("../queries/h2o/g05.sql")),
    ("g6", include_str!("../queries/h2o/g06.sql")),
    ("g7", include_str!("../queries/h2o/g07.sql")),
    ("g8", include_str!("../queries/h2o/g08.sql")),
    ("g9", include_str!("../queries/h2o/g09.sql")),
    ("g10", include_str!("../queries/h2o/g10.sql")),
    ("j1", include_str!("../queries/h2o/j01.sql")),
    ("j2", include_str!("../queries/h2o/j02.sql")),
    ("j3", include_str!("../queries/h2o/j03.sql")),
    ("j4", include_str!("../queries/h2o/j04.sql")),
    ("j5", include_str!("../queries/h2o/j05.sql")),
];

/// The placeholder of the fraction in query 11.
const TPCH_FRACTION: &str = ":fraction";

/// A query of the Star Schema Benchmark by its name, such as `q2.1`; `None` if there is none of that name.
pub fn ssb_query(name: &str) -> Option<&'static str> {
    SSB_QUERIES.iter().find(|query| query.0 == name).map(|query| query.1)
}

/// TPC-H query `number`, from 1 to 22, over tables of that scale factor; `None` beyond. The scale is in query 11, whose
/// fraction is 0.0001 over the scale factor.
pub fn tpch_query(number: usize, sf: f64) -> Option<String> {
    let text = TPCH_QUERIES.get(number.checked_sub(1)?)?;
    // The quotient nearest to the decimal one prints as that does.
    Some(text.replace(TPCH_FRACTION, &(1.0 / (1e4 * sf)).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_found_by_name_and_number() {
        assert_eq!(ssb_query("q2.1"), Some(SSB_QUERIES[3].1));
        assert_eq!(ssb_query("q5.1"), None);
        assert!(tpch_query(15, 1.0).is_some_and(|query| query.starts_with("with ")));
        assert_eq!((tpch_query(0, 1.0), tpch_query(23, 1.0)), (None, None));
    }

    #[test]
    fn the_fraction_of_query_11_goes_with_the_scale() {
        for (sf, fraction) in [(1.0, "0.0001"), (10.0, "0.00001"), (0.01, "0.01")] {
            let query = tpch_query(11, sf).unwrap();
            assert!(query.contains(&format!("* {fraction}\n")), "{query}");
        }
        assert!((1..=22).all(|number| !tpch_query(number, 1.0).unwrap().contains(TPCH_FRACTION)));
    }

    #[test]
    fn no_query_ends_with_a_semicolon() {
        let named = SSB_QUERIES.iter().chain(&TPCDS_QUERIES).chain(&CLICKBENCH_QUERIES).chain(&H2O_QUERIES);
        for query in named.map(|query| query.1).chain(TPCH_QUERIES) {
            assert!(!query.trim_end().ends_with(';') && query.trim_end().len() > 20, "{query}");
        }
    }
}
