//! The queries of both benchmarks as SQL text: the 13 of SSB, and the 22 of TPC-H with the parameters of its
//! validation run. None ends with a semicolon.

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

/// A query of the Star Schema Benchmark by its name, such as `q2.1`; `None` if there is none of that name.
pub fn ssb_query(name: &str) -> Option<&'static str> {
    SSB_QUERIES.iter().find(|query| query.0 == name).map(|query| query.1)
}

/// TPC-H query `number`, from 1 to 22; `None` beyond. Query 11 has the fraction of scale factor 1 (0.0001, which the
/// standard divides by the scale factor).
pub fn tpch_query(number: usize) -> Option<&'static str> {
    TPCH_QUERIES.get(number.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_found_by_name_and_number() {
        assert_eq!(ssb_query("q2.1"), Some(SSB_QUERIES[3].1));
        assert_eq!(ssb_query("q5.1"), None);
        assert!(tpch_query(15).is_some_and(|query| query.starts_with("with ")));
        assert_eq!((tpch_query(0), tpch_query(23)), (None, None));
    }

    #[test]
    fn no_query_ends_with_a_semicolon() {
        for query in SSB_QUERIES.iter().map(|query| query.1).chain(TPCH_QUERIES) {
            assert!(!query.trim_end().ends_with(';') && query.trim_end().len() > 100, "{query}");
        }
    }
}
