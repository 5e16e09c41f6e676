//! The queries of the benchmark of windows: one window each, whose column is added up, so that few rows come back.

/// Partitions by name and column, each with the column whose values take 32 bits with it.
const PARTITIONS: [(&str, &str, &str); 2] = [("1k", "p1k", "o22"), ("1m", "p1m", "o12")];

/// `row_number`, a running sum and `lag` over partitions of both numbers: keys that pack in 32 bits, in 64, and rows
/// that lie in order; then the first three rows of each partition. Names and texts.
pub(super) fn queries() -> Vec<(String, String)> {
    let mut queries = Vec::new();
    for (name, partition, narrow) in PARTITIONS {
        for (kind, order, table) in [("32", narrow, "w"), ("64", "o40", "w"), ("sorted", narrow, "w_sorted")] {
            // Results do not depend on the order of rows that the keys do not tell apart.
            let lag = format!("lag({order})");
            // Keys of 40 bits are too many for a sum of 64 bits of all of them.
            let calls = [("row_number", "row_number()", "n"), ("sum", "sum(v)", "n"), ("lag", &lag, "n % 65536")];
            for (function, call, value) in calls {
                let window = format!("{call} OVER (PARTITION BY {partition} ORDER BY {order})");
                let sql = format!("SELECT sum({value}) AS n FROM (SELECT {window} AS n FROM {table}) AS numbered");
                queries.push((format!("{function}-{name}-{kind}"), sql));
            }
        }
        let window = format!("row_number() OVER (PARTITION BY {partition} ORDER BY o40 DESC)");
        let sql = format!(
            "SELECT count(*) AS n, sum(o40) AS s FROM (SELECT o40, {window} AS n FROM w) AS numbered WHERE n <= 3"
        );
        queries.push((format!("first3-{name}"), sql));
    }
    queries
}
