//! Statements that are nested deep: long chains run, deeper ones are refused, and none ends the program.

use std::time::Instant;

use crate::harness::Place;

fn run(sql: &str) -> (i32, String, String) {
    let place = Place::new();
    let file = place.write("deep.sql", sql);
    let ran = place.run(&["--device", "cpu", "--format", "csv", "-f", &file.display().to_string()]);
    (ran.code, ran.out, ran.err)
}

#[test]
fn long_chains_run() {
    let ands = (0..2_500).map(|n| format!("x <> {}", n + 10)).collect::<Vec<_>>().join(" AND ");
    let (code, out, err) = run(&format!("SELECT count(*) AS n FROM (VALUES (1), (2)) t(x) WHERE {ands}"));
    assert_eq!((code, out.as_str()), (0, "n\n2\n"), "{err}");
    let ors = (0..1_000).map(|n| format!("x + {n} = {}", n + 1)).collect::<Vec<_>>().join(" OR ");
    let (code, out, err) = run(&format!("SELECT count(*) AS n FROM (VALUES (1), (2)) t(x) WHERE {ors}"));
    assert_eq!((code, out.as_str()), (0, "n\n1\n"), "{err}");
    let ors = (0..2_000).map(|n| format!("x = {n} OR y > {n}")).collect::<Vec<_>>().join(" OR ");
    let (code, out, err) = run(&format!("SELECT count(*) AS n FROM (VALUES (1, 0), (-2, 0)) t(x, y) WHERE {ors}"));
    assert_eq!((code, out.as_str()), (0, "n\n1\n"), "{err}");
    let sum = vec!["x"; 1_600].join(" + ");
    let (code, out, err) = run(&format!("SELECT {sum} AS n FROM (VALUES (1)) t(x)"));
    assert_eq!((code, out.as_str()), (0, "n\n1600\n"), "{err}");
}

/// A chain over one column is a list, and one over several stays balanced.
#[test]
fn long_chains_of_or_are_planned_in_linear_time() {
    let ors = |count: usize| (0..count).map(|n| format!("x = {n}")).collect::<Vec<_>>().join(" OR ");
    let seconds = |count: usize| {
        let sql = format!(
            "SET warpcube.depth_limit = 10000; SELECT count(*) AS n FROM (VALUES (1), (-2)) t(x) WHERE {}",
            ors(count)
        );
        let clock = Instant::now();
        let (code, out, err) = run(&sql);
        assert_eq!((code, out.as_str()), (0, "n\n1\n"), "{err}");
        clock.elapsed().as_secs_f64()
    };
    let (few, many) = (seconds(5_000), seconds(40_000));
    assert!(many < few * 24.0, "{few} s, {many} s");
}

#[test]
fn long_lists_of_queries_run() {
    let unions = vec!["SELECT 1 AS x"; 570].join(" UNION ALL ");
    let (code, out, err) = run(&format!("SELECT sum(x) AS n FROM ({unions})"));
    assert_eq!((code, out.as_str()), (0, "n\n570\n"), "{err}");
    let tables = (1..730).map(|n| format!("t{n} AS (SELECT x + 1 AS x FROM t{})", n - 1)).collect::<Vec<_>>();
    let (code, out, err) = run(&format!("WITH t0 AS (SELECT 0 AS x), {} SELECT x FROM t729", tables.join(", ")));
    assert_eq!((code, out.as_str()), (0, "x\n729\n"), "{err}");
}

#[test]
fn what_is_deeper_is_refused() {
    for deep in [
        format!("SELECT {}", vec!["1"; 100_000].join(" + ")),
        format!("SELECT {} +", vec!["1"; 100_000].join(" + ")),
        vec!["SELECT 1"; 20_000].join(" UNION "),
        format!("SELECT true{}", " IS TRUE".repeat(1_000_000)),
        format!("SELECT 1{}", " IN (SELECT 1)".repeat(100_000)),
    ] {
        let (code, _, err) = run(&deep);
        assert_eq!(code, 1, "{err}");
        let is_told = err.contains("SQL-015 nested") && err.contains("warpcube.depth_limit") || err.contains("SQL-001");
        assert!(is_told, "{}", err.chars().take(300).collect::<String>());
    }
}
