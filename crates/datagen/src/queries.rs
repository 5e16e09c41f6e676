//! The queries of both benchmarks as SQL text: the 13 of SSB, and the 22 of TPC-H with the parameters of its
//! validation run. None ends with a semicolon. `variations` has them with other literals.

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
        for query in SSB_QUERIES.iter().map(|query| query.1).chain(TPCH_QUERIES) {
            assert!(!query.trim_end().ends_with(';') && query.trim_end().len() > 100, "{query}");
        }
    }
}
