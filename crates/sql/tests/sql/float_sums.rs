//! `warpcube.float_sums = 'exact'`: sums and averages of floats have the same bits on the device and the CPU, whatever
//! the order of rows, and are the exact ones rounded.

use std::path::Path;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use bigdecimal::{BigDecimal, Signed, Zero};
use warpcube_engine::FloatSum;
use warpcube_sql::{Connection, DeviceChoice, Place};

use crate::fuzz::random::Random;
use crate::support::{cpu, emulated, lenient, rehearse, run};

/// Doubles of all kinds: any bits, few exponents, subnormals, and pairs that cancel.
fn doubles(random: &mut Random) -> Vec<f64> {
    let mut values = Vec::new();
    for _ in 0..random.below(40) {
        let value = match random.below(4) {
            0 => f64::from_bits(random.next()),
            1 => f64::from_bits(random.next() >> 12),
            2 => random.next() as i64 as f64 * 2f64.powi(random.below(200) as i32 - 150),
            _ => (random.next() % 1000) as f64 / 100.0,
        };
        values.extend(value.is_finite().then_some(value));
        if random.chance(50) {
            values.extend(values.first().map(|value| -value));
        }
    }
    values
}

fn exact(value: f64) -> BigDecimal {
    BigDecimal::try_from(value).expect("finite doubles are decimals")
}

#[test]
fn the_accumulator_rounds_the_exact_sum_to_nearest() {
    for seed in 0..300 {
        let values = doubles(&mut Random::new(seed));
        let mut sum = FloatSum::new();
        sum.extend(values.iter().copied());
        let found = sum.value();
        let expected: BigDecimal = values.iter().map(|value| exact(*value)).fold(BigDecimal::zero(), |sum, x| sum + x);
        if found.is_infinite() {
            let above = exact(f64::MAX) + exact(2f64.powi(970));
            assert!(expected.abs() >= above && expected.is_negative() == (found < 0.0), "{seed}: {found}");
            continue;
        }
        let distance = |value: f64| (exact(value) - &expected).abs();
        for other in [found.next_up(), found.next_down()].into_iter().filter(|other| other.is_finite()) {
            let (near, far) = (distance(found), distance(other));
            assert!(near < far || near == far && found.to_bits() & 1 == 0, "{seed}: {found:e}, {other:e}");
        }
    }
}

/// Writes rows whose sums cancel, once in an order of their own and once in another.
async fn files(folder: &Path) -> [String; 2] {
    let session = cpu();
    let rows = "CREATE TABLE t AS SELECT value AS id, value % 7 AS g, \
                CASE value % 4 WHEN 0 THEN 1e12 WHEN 1 THEN -1e12 WHEN 2 THEN CAST(value AS DOUBLE) / 3 \
                ELSE CAST(value * 7919 % 1000 AS DOUBLE) * 1e-9 END AS x, \
                CASE WHEN value % 11 = 5 THEN NULL ELSE CAST(value AS DOUBLE) * 0.1 - 900 END AS y, \
                arrow_cast(CAST(value AS DOUBLE) / 7, 'Float32') AS s, \
                CASE WHEN value % 3 = 0 THEN 1e300 WHEN value % 3 = 1 THEN -1e300 ELSE 1e-300 END AS wild \
                FROM generate_series(1, 6000)";
    session.collect(rows).await.unwrap();
    let mut paths = Vec::new();
    for (name, order) in [("own", "id"), ("other", "id * 7919 % 6007")] {
        let path = folder.join(format!("{name}.parquet")).display().to_string();
        let copy = format!("COPY (SELECT * FROM t ORDER BY {order}) TO '{path}' STORED AS PARQUET");
        session.collect(&copy).await.unwrap();
        paths.push(path);
    }
    paths.try_into().unwrap()
}

/// The rows as bits, and where the fragments ran but for sorts, which take exact sums on the CPU.
async fn bits(session: &Connection, sql: &str) -> (Vec<Vec<u64>>, Vec<Place>) {
    let (batches, summary) = run(session, sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    let column = |column: &ArrayRef| -> Vec<u64> {
        let values = cast(column, &DataType::Float64).unwrap();
        let values = values.as_primitive::<Float64Type>();
        (0..values.len()).map(|row| if values.is_null(row) { 1 } else { values.value(row).to_bits() }).collect()
    };
    let columns = |batch: &RecordBatch| batch.columns().iter().map(column).collect::<Vec<_>>();
    let fragments = summary.fragments.iter().filter(|fragment| !fragment.what.starts_with("sort over "));
    (batches.iter().flat_map(columns).collect(), fragments.map(|fragment| fragment.place).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn device_and_cpu_give_the_same_bits_in_any_order_of_rows() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path()).await;
    let (device, host) = (emulated(), cpu());
    for session in [&device, &host] {
        session.set("warpcube.float_sums", "exact").unwrap();
    }
    let select = "sum(x) AS a, avg(x) AS b, sum(y) FILTER (WHERE x > 0) AS c, sum(x * y) AS d, sum(s) AS e, \
                  avg(s) AS f, avg(g) AS h, sum(wild) AS i, sum(CASE WHEN y IS NULL THEN x ELSE y / 3 END) AS j, \
                  count(DISTINCT id) AS k";
    let queries = [
        format!("SELECT {select} FROM t"),
        format!("SELECT g, {select} FROM t GROUP BY g ORDER BY g"),
        "SELECT id % 3000 AS m, sum(x), avg(y) FROM t GROUP BY m ORDER BY m".into(),
        "SELECT sum(x), avg(x) FROM t WHERE g > 100".into(),
        "SELECT g, sum(DISTINCT x), sum(x), sum(DISTINCT y) FROM t GROUP BY g ORDER BY g".into(),
    ];
    let over_files = |query: &String| files.each_ref().map(|file| query.replace("FROM t", &format!("FROM '{file}'")));
    rehearse(&device, queries.iter().flat_map(over_files)).await;
    for query in queries {
        let [own, other] = over_files(&query);
        let (expected, _) = bits(&host, &own).await;
        assert!(!expected.is_empty());
        for (session, sql) in [(&host, &other), (&device, &own), (&device, &other)] {
            let (found, places) = bits(session, sql).await;
            assert_eq!(found, expected, "{sql}");
            assert!(places.iter().all(|place| *place == Place::Gpu), "{sql}: {places:?}");
        }
    }
    // Window functions add as aggregates do.
    let own = &files[0];
    let over = format!(
        "SELECT DISTINCT g, sum(x) OVER (PARTITION BY g) AS a, avg(x) OVER (PARTITION BY g) AS b \
                        FROM '{own}' ORDER BY g"
    );
    let grouped = format!("SELECT g, sum(x) AS a, avg(x) AS b FROM '{own}' GROUP BY g ORDER BY g");
    assert_eq!(bits(&host, &over).await.0, bits(&host, &grouped).await.0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_setting_holds_from_the_next_statement_on() {
    for session in [cpu(), emulated()] {
        session.collect("CREATE TABLE t AS VALUES (1e300, 1), (1e0, 1), (-1e300, 1)").await.unwrap();
        let sql = "SELECT sum(column1), avg(column1) FROM t GROUP BY column2";
        let fast = bits(&session, sql).await.0;
        for _ in 0..2 {
            session.collect("SET warpcube.float_sums = 'exact'").await.unwrap();
            let third = 1.0 / 3.0f64;
            assert_eq!(bits(&session, sql).await.0, vec![vec![1f64.to_bits()], vec![third.to_bits()]]);
            session.collect("RESET warpcube.float_sums").await.unwrap();
        }
        // The CPU adds these few rows in their order.
        if session.settings().database.device == DeviceChoice::Cpu {
            assert_eq!(fast[0], vec![0]);
            assert_eq!(bits(&session, sql).await.0, fast);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn special_values_follow_datafusion() {
    let sessions = [emulated(), cpu()];
    for session in &sessions {
        session.set("warpcube.float_sums", "exact").unwrap();
        let rows = "CREATE TABLE t AS SELECT column1 AS g, arrow_cast(column2, 'Float64') AS x FROM (VALUES \
                    (1, 'NaN'), (1, '1'), (2, 'inf'), (2, '-inf'), (3, 'inf'), (3, '-1e308'), (4, '-inf'), \
                    (5, '-0.0'), (5, '-0.0'), (6, NULL), (7, '1e308'), (7, '1e308'), (7, '-1e308'))";
        session.collect(rows).await.unwrap();
        let sql = "SELECT g, sum(x), avg(x) FROM t GROUP BY g ORDER BY g";
        let (batches, _) = run(session, sql).await.unwrap();
        let cells = crate::format::rows(&batches).into_iter().map(|row| row.join(" ")).collect::<Vec<_>>();
        assert_eq!(
            cells[..6],
            ["1 NaN NaN", "2 NaN NaN", "3 Infinity Infinity", "4 -Infinity -Infinity", "5 0 0", "6 NULL NULL"]
        );
        // Nothing overflows on the way.
        let (sums, _) = bits(session, "SELECT sum(x) FROM t WHERE g = 7").await;
        assert_eq!(sums, vec![vec![1e308f64.to_bits()]]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_exact_stays_on_the_cpu_with_the_reason() {
    let session = lenient();
    session.collect("CREATE TABLE t AS VALUES (1.5e0, 1), (2.5e0, 2)").await.unwrap();
    session.set("warpcube.float_sums", "exact").unwrap();
    let (_, summary) = run(&session, "SELECT stddev(column1) FROM t").await.unwrap();
    let [fragment] = summary.fragments.as_slice() else { panic!("{:?}", summary.fragments) };
    assert_eq!(fragment.place, Place::Cpu);
    assert!(fragment.reason.as_ref().is_some_and(|reason| reason.contains("float_sums")), "{fragment:?}");
    let error = session.collect("SET warpcube.float_sums = 'slow'").await.unwrap_err().to_string();
    assert!(error.contains("'fast' or 'exact'"), "{error}");
}
