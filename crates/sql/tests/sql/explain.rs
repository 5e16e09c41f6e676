//! EXPLAIN and EXPLAIN ANALYZE: what runs where and why, predicted and measured; and the source that can be dumped.

use std::collections::BTreeMap;

use arrow::array::{AsArray, RecordBatch};
use warpcube_sql::{Connection, Database, DatabaseOptions};

use crate::support::{cpu, emulated, on_real_device, rows, run};

const JOINED: &str = "SELECT d.colour, sum(f.v) AS s FROM f JOIN d ON f.k = d.id WHERE f.v < 50 GROUP BY d.colour";

async fn with_tables(session: Connection) -> Connection {
    // What is read of plain columns is told by their types.
    session.set("warpcube.encoding", "plain").unwrap();
    let facts = "CREATE TABLE f AS SELECT value AS id, value % 10 AS k, value % 100 AS v, value * 0.5 AS x \
                 FROM generate_series(1, 3000)";
    session.collect(facts).await.unwrap();
    session
        .collect("CREATE TABLE d AS SELECT value AS id, value % 3 AS colour FROM generate_series(0, 9)")
        .await
        .unwrap();
    session
}

/// The rows of an EXPLAIN VERBOSE by their kind.
async fn explained(session: &Connection, sql: &str) -> BTreeMap<String, String> {
    let explain = if sql.starts_with("EXPLAIN ANALYZE") { "EXPLAIN ANALYZE" } else { "EXPLAIN" };
    kinds(session, &sql.replacen(explain, &format!("{explain} VERBOSE"), 1)).await
}

/// The rows of an EXPLAIN by their kind.
async fn kinds(session: &Connection, sql: &str) -> BTreeMap<String, String> {
    let (batches, _) = run(session, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let of = |batch: &RecordBatch| {
        let (kinds, texts) = (batch.column(0).as_string::<i32>(), batch.column(1).as_string::<i32>());
        kinds
            .iter()
            .zip(texts)
            .map(|(kind, text)| (kind.unwrap().to_string(), text.unwrap().to_string()))
            .collect::<Vec<_>>()
    };
    batches.iter().flat_map(of).collect()
}

/// The lines of the first fragment's tree, without what goes before its heading and behind it.
fn tree(device: &str) -> Vec<&str> {
    let lines = device.lines().skip_while(|line| !line.trim_start().starts_with("rows "));
    lines.take_while(|line| !line.starts_with("  predicted: ") && !line.starts_with("  plan of ")).collect()
}

fn assert_lines(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|found| found.trim() == *line), "'{line}' is not in:\n{text}");
    }
}

const FIRST: &str = "SELECT v + 1, x FROM f WHERE v < 50 ORDER BY v DESC, x LIMIT 4 OFFSET 2";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_says_how_first_rows_are_found() {
    if on_real_device() {
        return;
    }
    let session = with_tables(emulated()).await;
    let notes = explained(&session, &format!("EXPLAIN {FIRST}")).await;
    assert_eq!(notes["placement"], "GPU: top-k over f");
    assert!(notes["physical_plan"].contains("→ top-k(2 keys, 6 rows)"), "{notes:?}");
    let expected = [
        "  rows     bytes  operator",
        "    ≤6            first 6 rows by v DESC, x (threshold: the fastest of 3000 rows by ranks of any width)",
        "                  └─ filter v < 50",
        "  3000  ≤48.0 KB     └─ scan f, 2 columns to be loaded",
    ];
    assert_eq!(tree(&notes["device"]), expected);
    let ran = explained(&session, &format!("EXPLAIN ANALYZE {FIRST}")).await;
    let found = |text: &str, start: &str| text.lines().any(|line| line.trim().starts_with(start));
    let threshold = "threshold: 6 of 3000 rows by ranks of 33 bits, all rows are candidates, ";
    assert!(found(&ran["device"], &format!("top-k by {threshold}")), "{}", ran["device"]);
    run(&session, FIRST).await.unwrap();
    let notes = explained(&session, &format!("EXPLAIN {FIRST}")).await;
    let sized = format!("  first 6 rows by v DESC, x ({threshold}");
    assert!(tree(&notes["device"])[1].contains(&sized), "{}", notes["device"]);
    session.set("warpcube.topk", "radix_select").unwrap();
    let other = "EXPLAIN SELECT x FROM f ORDER BY k, x LIMIT 7";
    let notes = explained(&session, other).await;
    let told = "first 7 rows by k, x (radix_select: it was asked for)";
    assert!(tree(&notes["device"])[1].contains(told), "{}", notes["device"]);
    let ran = explained(&session, &format!("EXPLAIN ANALYZE {FIRST}")).await;
    let named = "top-k by radix_select: 6 of 3000 rows by ranks of 33 bits, the ranks of all rows are written first, ";
    assert!(found(&ran["device"], named) && ran["device"].contains("predicted: it was asked for"), "{}", ran["device"]);
    // More rows than the algorithm gives for any keys, whose widths are not known yet.
    run(&session, "SELECT x FROM f ORDER BY x, k LIMIT 3").await.unwrap();
    session.set("warpcube.topk", "heap_registers").unwrap();
    session.set("warpcube.placement", "auto").unwrap();
    for (limit, place) in [(64, "GPU"), (65, "CPU"), (6000, "GPU")] {
        let notes = explained(&session, &format!("EXPLAIN SELECT x FROM f ORDER BY x, k LIMIT {limit}")).await;
        assert!(notes["placement"].starts_with(place), "{limit}: {}", notes["placement"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_says_where_first_rows_are_found() {
    if on_real_device() {
        return;
    }
    let session = with_tables(emulated()).await;
    session.collect("CREATE TABLE l AS SELECT value AS i, [value] AS list FROM generate_series(1, 9)").await.unwrap();
    let placement = async |sql: &str| explained(&session, &format!("EXPLAIN {sql}")).await["placement"].clone();
    assert_eq!(
        placement("SELECT * FROM l ORDER BY i LIMIT 2").await,
        "CPU: top-k over l: column 'list' has type List(Int64)"
    );
    let many = placement("SELECT i FROM l ORDER BY i LIMIT 2000000").await;
    assert_eq!(many, "CPU: top-k over l: the first 2000000 rows of an order, where 1048576 are the most");
    assert_eq!(placement("SELECT f.v FROM f JOIN d ON f.k = d.id ORDER BY f.v LIMIT 2").await, "GPU: top-k over f ⋈ d");
    let groups = placement("SELECT v, count(*) FROM f GROUP BY v ORDER BY 2, 1").await;
    assert_eq!(groups, "GPU: sort over f");
    // What no root of the device is for is not considered.
    let none = "CPU: all of it: it has no part of a kind that the device runs";
    assert_eq!(placement("SELECT i FROM l WHERE i > 2").await, none);
    assert_eq!(placement("SELECT i FROM l ORDER BY i").await, "GPU: sort over l");
    assert_eq!(placement("SELECT * FROM l ORDER BY i").await, "CPU: sort over l: column 'list' has type List(Int64)");
    assert_eq!(placement("SELECT f.v FROM f JOIN d ON f.k = d.id ORDER BY f.v").await, "GPU: sort over f ⋈ d");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_counts_the_bytes_of_strings_without_a_dictionary() {
    if on_real_device() {
        return;
    }
    let session = with_tables(emulated()).await;
    session.set("warpcube.dictionary_limit", "10").unwrap();
    let strings = "CREATE TABLE s AS SELECT concat('comment number ', value) AS c FROM generate_series(1000, 8999)";
    session.collect(strings).await.unwrap();
    let sql = "SELECT count(*) FROM s WHERE c NOT LIKE '%number%77%' AND c <> 'x'";
    run(&session, sql).await.unwrap();
    let notes = explained(&session, &format!("EXPLAIN ANALYZE {sql}")).await;
    let lines = tree(&notes["device"]);
    let cells = |operator: &str| {
        let line = lines.iter().find(|line| line.contains(operator)).unwrap_or_else(|| panic!("{lines:?}"));
        line.split_whitespace().collect::<Vec<_>>()
    };
    // Of 8,000 rows 89.99 % pass the first filter, and of these 99.90 % the second.
    assert_eq!(cells("filter NOT c LIKE '%number%77%'")[0], "~7199");
    assert_eq!(cells("filter NOT c = 'x'")[0], "~7192");
    // Of each row an offset of 4 bytes and 19 bytes of text, and what segments end with.
    let [rows, read, unit, ..] = cells("scan s,")[..] else { panic!("{lines:?}") };
    let kilobytes: f64 = read.parse().unwrap();
    assert_eq!((rows, unit), ("8000", "KB"));
    assert!((180.0..200.0).contains(&kilobytes), "{read}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_shows_a_tree_of_operators_and_touches_no_data() {
    if on_real_device() {
        return;
    }
    let session = with_tables(emulated()).await;
    let notes = explained(&session, &format!("EXPLAIN {JOINED}")).await;
    assert!(notes["physical_plan"].contains("DeviceExec"), "{notes:?}");
    assert!(notes["logical_plan"].contains("Device: aggregate"), "{notes:?}");
    assert_eq!(notes["placement"], "GPU: aggregate over f ⋈ d");
    let expected = [
        "  rows       bytes  operator",
        "                    group by colour: sum(v)",
        "                    └─ inner join on k = id",
        "                       ├─ filter v < 50",
        "  3000    ≤48.0 KB     │  └─ scan f, 2 columns to be loaded",
        "                       └─ build table 0 of id with colour",
        "    10  ≤160 bytes        └─ scan d, 2 columns to be loaded",
    ];
    assert_eq!(tree(&notes["device"]), expected);
    assert_lines(
        &notes["device"],
        &[
            "fragment 0 on emulated device: aggregate over f ⋈ d",
            "predicted: 2 launches, 48.2 KB read, time unknown: the device does not tell its bandwidth; tables and \
             result: unknown until loaded; to load: 48.2 KB",
        ],
    );
    assert_eq!(
        run(&session, "SHOW DEVICE TABLES").await.unwrap().0.iter().map(RecordBatch::num_rows).sum::<usize>(),
        0
    );

    // The same after a run: sizes and shares are known, nothing is to be loaded.
    run(&session, JOINED).await.unwrap();
    let notes = explained(&session, &format!("EXPLAIN {JOINED}")).await;
    let known = &notes["device"];
    let expected = [
        ["rows", "operator"],
        ["", "group by colour: sum(v) ("],
        ["~1500", "└─ inner join on k = id"],
        ["~1500", "├─ filter v < 50"],
        ["3000", "│  └─ scan f, 2 columns on the device"],
        ["~10", "└─ build table 0 of id with colour (direct, 10 places)"],
        ["10", "└─ scan d, 2 columns on the device"],
    ];
    let lines = tree(known);
    assert_eq!(lines.len(), expected.len(), "{known}");
    for (line, [rows, operator]) in lines.iter().zip(expected) {
        assert!(line.trim_start().starts_with(rows) && line.contains(operator), "'{operator}' is not '{line}'");
    }
    assert!(known.contains(" ~160 bytes ") && known.ends_with("; to load: nothing"), "{known}");
    // What was decided about each pipeline, and why.
    let plans = [
        "\n  plan of table 0\n    0 steps on vectors, 0 by row in place: 100.000 % of the rows are left, ",
        "\n    table indexed by key, 10 places: ",
        "\n  plan of the result\n    1 steps on vectors, 0 by row in place: ",
        "\n    1 joins without a test: each key that may come has its row\n",
        "\n    groups ",
        " places: keys of ",
        " of shared memory, tables in it: 0: rows are worked on in place\n",
    ];
    for plan in plans {
        assert!(known.contains(plan), "no '{plan}' in {known}");
    }
    assert!(!known.contains("unknown until loaded"), "{known}");
    let analyzed = explained(&session, &format!("EXPLAIN ANALYZE {JOINED}")).await;
    let known = &analyzed["device"];
    assert!(known.contains("scan f, 2 columns on the device"), "{known}");
    assert!(known.contains("build table 0 of id with colour (direct, 10 places)"), "{known}");
    assert!(known.ends_with("loaded: nothing"), "{known}");
    // Beside the plan of a pipeline stands what its launch took.
    let measured = known.lines().find(|line| line.starts_with("  plan of the result, launch 1: ")).expect(known);
    assert!(measured.contains(" ms, ") && measured.ends_with(" registers"), "{measured}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn analyze_puts_what_was_measured_beside_it() {
    if on_real_device() {
        return;
    }
    let session = with_tables(emulated()).await;
    let sql = format!("EXPLAIN ANALYZE {JOINED}");
    let notes = explained(&session, &sql).await;
    assert_eq!(notes["placement"], "GPU: aggregate over f ⋈ d");
    let device = &notes["device"];
    assert!(device.contains("launch 0, of table 0: ") && device.contains("launch 1, of the result: "), "{device}");
    // Rows of the result and of scans are counted; time stands on what ends a launch. The first run tells sizes too.
    let cells = |operator: &str| {
        let line = tree(device).into_iter().find(|line| line.contains(operator)).expect(device);
        line.split(operator).next().unwrap().split_whitespace().map(String::from).collect::<Vec<_>>()
    };
    let root = cells("group by colour: sum(v) (");
    assert_eq!((root[0].as_str(), root.last().unwrap().as_str()), ("3", "ms"), "{device}");
    let built = cells("build table 0 of id with colour (direct, 10 places)");
    assert_eq!((built[0].as_str(), built.last().unwrap().as_str()), ("~10", "└─"), "{device}");
    assert!(built.iter().any(|cell| cell == "ms"), "{device}");
    assert_eq!(cells("scan d,")[..3], ["10", "160", "bytes"], "{device}");
    assert!(!cells("filter v < 50").iter().any(|cell| cell == "ms"), "{device}");
    assert!(device.contains(" KB read (predicted 48.2 KB)"), "{device}");
    assert!(device.contains("loaded: ") && device.contains(" GB/s a core"), "{device}");
    assert!(device.contains("transfers: ") && device.contains("launch to rows: "), "{device}");
    // DataFusion's own row has the operator's metrics.
    let plan = &notes["Plan with Metrics"];
    for metric in ["device_time=", "compile_time=", "load_time=", "loaded_bytes=", "uploaded_bytes="] {
        assert!(plan.contains(metric), "{metric} is not in {plan}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_that_are_scanned_and_tables_of_a_launch_stand_below() {
    if on_real_device() {
        return;
    }
    let session = with_tables(emulated()).await;
    let nested = "SELECT n, count(*) FROM (SELECT v, count(*) AS n FROM f GROUP BY v) GROUP BY n";
    let notes = explained(&session, &format!("EXPLAIN ANALYZE {nested}")).await;
    let operators: Vec<String> = tree(&notes["device"]).iter().map(|line| line.to_string()).collect();
    let depth = |start: &str| {
        let found = operators.iter().find_map(|line| line.find(start).map(|at| line[..at].chars().count()));
        found.unwrap_or_else(|| panic!("no '{start}' in {}", notes["device"]))
    };
    let chain = ["group by count(*): count(*)", "scan groups 0", "group by v: count(*) into groups 0", "scan f,"];
    let depths = chain.map(depth);
    assert!(depths.is_sorted_by(|above, below| above < below), "{}", notes["device"]);
    // Branches of a union stand side by side below their groups, which are named by the first.
    let united =
        "SELECT k, count(*) FROM (SELECT k FROM f UNION ALL SELECT f.v FROM f JOIN d ON f.k = d.id) GROUP BY k";
    let notes = explained(&session, &format!("EXPLAIN {united}")).await;
    for operator in ["  group by k: count(*)", " └─ union all", "    ├─ scan f, ", "    └─ inner join on k = id"]
    {
        assert!(notes["device"].contains(operator), "no '{operator}' in {}", notes["device"]);
    }
    // Two tables are built side by side: neither took longer than their launch.
    let two = "SELECT a.colour, count(*) FROM f JOIN d a ON f.k = a.id JOIN d b ON f.v = b.id GROUP BY a.colour";
    let notes = explained(&session, &format!("EXPLAIN ANALYZE {two}")).await;
    let bounded = tree(&notes["device"]).into_iter().filter(|line| line.contains(" ≤") && line.contains("build table"));
    assert_eq!(bounded.count(), 2, "{}", notes["device"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_come_in_runs_are_told() {
    if on_real_device() {
        return;
    }
    let session = emulated();
    let rows = "SELECT value AS v, value / 4 AS run, value % 9 AS s FROM generate_series(1, 4000)";
    let keys = "SELECT CAST(run * 1000000007 AS BIGINT) AS sorted, CAST(run * 7919 % 2003 AS BIGINT) AS k, v, s";
    run(&session, &format!("CREATE TABLE l AS {keys} FROM ({rows})")).await.unwrap();
    let device = async |sql: &str| explained(&session, &format!("EXPLAIN ANALYZE {sql}")).await["device"].clone();
    let having = |key| format!("SELECT count(*) FROM (SELECT {key} FROM l GROUP BY {key} HAVING sum(v) > 9000)");
    let list = device(&having("sorted")).await;
    assert!(list.contains("group by sorted: sum(v) into groups 0 (ordered, "), "{list}");
    let by_key = device(&having("k")).await;
    assert!(by_key.contains("(indexed by key, 2048 places, runs preaggregated)"), "{by_key}");
    let alone = "SELECT count(*) FROM l a WHERE NOT EXISTS (SELECT * FROM l b WHERE a.k = b.k AND a.s <> b.s)";
    let extremes = device(alone).await;
    assert!(extremes.contains("min(s), max(s) in table 0 (direct, 2003 places, runs preaggregated)"), "{extremes}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_on_the_cpu_have_their_reason() {
    let session = Database::open(DatabaseOptions::new().with("warpcube.device", "emulated")).unwrap().connect();
    let session = with_tables(session).await;
    let both = "SELECT (SELECT sum(v) FROM f) AS s, approx_distinct(x) AS m FROM f";
    for prefix in ["EXPLAIN", "EXPLAIN ANALYZE"] {
        let notes = explained(&session, &format!("{prefix} {both}")).await;
        let mut lines: Vec<&str> = notes["placement"].lines().collect();
        lines.sort_unstable();
        assert_eq!(lines.len(), 2, "{prefix}: {lines:?}");
        assert!(lines[0].starts_with("CPU: aggregate over f: "), "{prefix}: {lines:?}");
        assert!(lines[0].len() > "CPU: aggregate over f: ".len());
        assert_eq!(lines[1], "GPU: aggregate over f", "{prefix}");
    }
    // A join that is refused as a whole, over groups that are not.
    let part =
        "SELECT n, one FROM (SELECT k, count(*) AS n FROM f GROUP BY k) JOIN (VALUES (1), (2)) AS some(one) ON k = one";
    let notes = explained(&session, &format!("EXPLAIN {part}")).await;
    let lines: Vec<&str> = notes["placement"].lines().collect();
    assert_eq!(lines, ["GPU: aggregate over f", "CPU: rows over f: its input has a Values"]);
    // Windows whose keys begin one sort share it; another order is another sort.
    let sorts = async |last: &str| {
        let windows = format!(
            "SELECT rank() OVER (PARTITION BY k ORDER BY v), sum(v) OVER (PARTITION BY k), {last} FROM f WHERE v > 1"
        );
        let notes = explained(&session, &format!("EXPLAIN {windows}")).await;
        assert_eq!(notes["placement"], "GPU: rows over f");
        notes["device"].matches("all rows by").count()
    };
    assert_eq!(sorts("lag(v) OVER (PARTITION BY k ORDER BY v, id)").await, 1);
    assert_eq!(sorts("count(*) OVER (PARTITION BY k, v)").await, 1);
    assert_eq!(sorts("lag(v) OVER (PARTITION BY k ORDER BY id)").await, 2);
    let none = explained(&session, "EXPLAIN SELECT 1").await;
    assert!(none["placement"].starts_with("CPU: all of it: "), "{none:?}");
    let cpu = with_tables(cpu()).await;
    let notes = explained(&cpu, &format!("EXPLAIN {JOINED}")).await;
    assert_eq!(notes["placement"], "CPU: all of it: warpcube.placement is 'files'");
    assert!(!notes.contains_key("device"));
    let (_, summary) = run(&session, &format!("EXPLAIN {JOINED}")).await.unwrap();
    assert_eq!(summary.device_rows, 0, "EXPLAIN runs nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_is_one_tree_with_rows_places_and_times() {
    let session = with_tables(emulated()).await;
    // The window of the CPU stands above the fragment that feeds it.
    let sql = "SELECT colour, s, median(s) OVER (ORDER BY colour) AS m FROM \
               (SELECT d.colour, sum(f.v) AS s FROM f JOIN d ON f.k = d.id WHERE f.v < 50 GROUP BY d.colour)";
    let notes = kinds(&session, &format!("EXPLAIN {sql}")).await;
    assert_eq!(notes.keys().collect::<Vec<_>>(), ["placement", "plan"]);
    let lines: Vec<&str> = notes["plan"].lines().collect();
    assert!(lines[0].ends_with("place  operator"), "{}", notes["plan"]);
    let place = |line: &str| line.split_whitespace().find(|word| matches!(*word, "CPU" | "GPU")).map(String::from);
    let at = |text: &str| {
        let found = lines.iter().position(|line| line.contains(text));
        found.unwrap_or_else(|| panic!("'{text}' is not in:\n{}", notes["plan"]))
    };
    let (window, group, scan) = (at("window"), at("group by colour: sum(v)"), at("scan f, "));
    assert!(window < group && group < scan, "{}", notes["plan"]);
    assert_eq!([window, group, scan].map(|line| place(lines[line]).unwrap()), ["CPU", "GPU", "GPU"]);
    assert!(lines[scan].trim_start().starts_with("3000 "), "{}", lines[scan]);
    assert!(lines[at("inner join on k = id")].contains("GPU"));
    let ran = kinds(&session, &format!("EXPLAIN ANALYZE {sql}")).await;
    assert_eq!(ran.keys().collect::<Vec<_>>(), ["placement", "plan"]);
    let group = ran["plan"].lines().find(|line| line.contains("group by colour")).unwrap();
    let window = ran["plan"].lines().find(|line| line.contains("window")).unwrap();
    assert!(group.contains(" ms  ") && group.contains("GPU"), "{}", ran["plan"]);
    assert!(window.trim_start().starts_with("3 ") && window.contains("CPU"), "{}", ran["plan"]);
}

/// Without a GPU, and under placement `files`, planning alone says what one would take.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_gpu_would_take_is_told_without_one() {
    let session = with_tables(cpu()).await;
    let both = "SELECT (SELECT sum(v) FROM f) AS s, approx_distinct(x) AS m FROM f";
    let notes = kinds(&session, &format!("EXPLAIN {both}")).await;
    assert_eq!(notes["placement"], "CPU: all of it: warpcube.placement is 'files'");
    let with: Vec<&str> = notes["with a GPU"].lines().collect();
    assert!(with.contains(&"GPU: aggregate over f"), "{with:?}");
    assert!(with.iter().any(|line| line.starts_with("CPU: aggregate over f: ")), "{with:?}");
    assert!(!notes["plan"].contains("GPU") && notes["plan"].contains(" CPU  "), "{}", notes["plan"]);
    let none = kinds(&session, "EXPLAIN SELECT 1").await;
    assert!(none["with a GPU"].starts_with("CPU: all of it: "), "{none:?}");
    // The statement stays where it was.
    let (batches, summary) = run(&session, &format!("EXPLAIN ANALYZE {both}")).await.unwrap();
    assert_eq!(summary.device_rows, 0);
    assert!(!rows(&batches).join("\n").contains("with a GPU"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_form_of_explain_works() {
    let session = with_tables(emulated()).await;
    // The tree's boxes are cut to a width: neither a long name nor one of other letters may stop it.
    let sizes = "CREATE TABLE \"größenverzeichnis_aller_teile\" AS SELECT value AS id FROM generate_series(0, 9)";
    session.collect(sizes).await.unwrap();
    let three = "SELECT d.colour, count(*) AS n FROM f JOIN d ON f.k = d.id \
                 JOIN \"größenverzeichnis_aller_teile\" g ON f.k = g.id GROUP BY d.colour";
    let with_subquery = format!("SELECT * FROM ({JOINED}) WHERE s > (SELECT sum(v) FROM f WHERE v < 3)");
    for sql in [JOINED, three, with_subquery.as_str()] {
        for form in [
            "",
            "VERBOSE",
            "FORMAT INDENT",
            "FORMAT TREE",
            "FORMAT PGJSON",
            "FORMAT GRAPHVIZ",
            "ANALYZE",
            "ANALYZE VERBOSE",
            "ANALYZE FORMAT TREE",
        ] {
            let statement = format!("EXPLAIN {form} {sql}");
            match run(&session, &statement).await {
                Ok((batches, _)) => {
                    let text = rows(&batches).join("\n");
                    // What is for machines tells less.
                    let form_tells = !matches!(form, "FORMAT PGJSON" | "FORMAT GRAPHVIZ");
                    let device = if matches!(form, "" | "ANALYZE" | "FORMAT INDENT") { " GPU  " } else { "DeviceExec" };
                    assert!(!form_tells || text.contains(device), "{statement}:\n{text}");
                }
                // DataFusion has no such form of ANALYZE.
                Err(error) => assert!(form == "ANALYZE FORMAT TREE" && error.contains("ree"), "{statement}: {error}"),
            }
        }
    }
    let both = explained(&session, &format!("EXPLAIN {with_subquery}")).await;
    assert_eq!(both["placement"].lines().filter(|line| line.starts_with("GPU: ")).count(), 2, "{both:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn generated_source_is_dumped_where_a_setting_says() {
    let session = with_tables(emulated()).await;
    run(&session, JOINED).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let set = format!("SET warpcube.dump_source = '{}'", folder.path().join("new").display());
    session.collect(&set).await.unwrap();
    run(&session, JOINED).await.unwrap();
    let files: Vec<_> = folder.path().join("new").read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    let [file] = files.as_slice() else { panic!("{files:?}") };
    let source = std::fs::read_to_string(file).unwrap();
    assert!(source.contains("WC_KERNEL(launch_group_0") && source.contains("wc_draw("), "{source}");

    session.collect("SET warpcube.dump_source = '/dev/null/x'").await.unwrap();
    let error = run(&session, JOINED).await.unwrap_err();
    assert!(error.contains("ENG-004"), "{error}");
    session.collect("SET warpcube.dump_source = 'off'").await.unwrap();
    run(&session, JOINED).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn explain_tells_what_is_computed_once_and_why() {
    let twice =
        "WITH c AS (SELECT k, count(*) AS n FROM f GROUP BY k) SELECT sum(a.n) FROM c a JOIN c b ON a.k = b.k + 1";
    let session = with_tables(cpu()).await;
    for (explain, rows) in [("EXPLAIN", ""), ("EXPLAIN ANALYZE", "output_rows=10,")] {
        let notes = explained(&session, &format!("{explain} {twice}")).await;
        let (title, plan) = notes["shared"].split_once('\n').unwrap();
        assert_eq!(title.replace('\u{2063}', ""), "c #1 (2 reads, an aggregation)");
        assert!(plan.contains("AggregateExec: mode=") && plan.contains(rows), "{plan}");
        let physical = notes.get("physical_plan").or(notes.get("Plan with Metrics")).unwrap();
        assert_eq!(physical.matches("SharedExec: c").count(), 2, "{physical}");
        assert!(!physical.contains("AggregateExec: mode=Single, gby=[k"), "{physical}");
    }
    // Filters and projected columns of readers go on to the table that a cheap one reads.
    let cheap = "EXPLAIN WITH c AS (SELECT k, v FROM f WHERE v < 9) SELECT count(*) FROM c a JOIN c b ON a.k = b.k";
    assert!(!explained(&session, cheap).await.contains_key("shared"));
    // A subquery of IN that stands in several places.
    let unknown =
        "EXPLAIN SELECT count(*) FROM f WHERE v + 1 NOT IN (SELECT max(nullif(v, 3)) FROM f GROUP BY k) OR v = 7";
    let notes = explained(&session, unknown).await;
    assert!(notes["shared"].replace('\u{2063}', "").starts_with("subquery #2 (3 reads, an aggregation)"), "{notes:?}");
    if on_real_device() {
        return;
    }
    // On the device both readers scan the groups of one pipeline.
    let session = with_tables(emulated()).await;
    let notes = explained(&session, &format!("EXPLAIN {twice}")).await;
    assert_eq!(notes["placement"], "GPU: aggregate over c ⋈ c");
    assert!(notes["device"].contains("groups 0 as above"), "{}", notes["device"]);
    assert!(!notes.contains_key("shared"), "{notes:?}");
}

/// A subquery that refers to the rows around it is no run for each of them, nor for each pair of rows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn correlated_subqueries_are_joins() {
    let session = with_tables(cpu()).await;
    for subquery in [
        "SELECT count(*) FROM f b WHERE b.k = a.k AND b.v <= a.v",
        "SELECT b.x FROM f b WHERE b.v < a.v ORDER BY b.v DESC, b.id LIMIT 1",
        "SELECT b.x FROM f b WHERE b.id = a.k ORDER BY b.x LIMIT 1 OFFSET 1",
        "SELECT max(b.x) + a.v FROM f b WHERE b.id = a.k + 1 HAVING count(*) > a.k",
    ] {
        let notes = explained(&session, &format!("EXPLAIN SELECT id, ({subquery}) FROM f a")).await;
        let plan = &notes["physical_plan"];
        assert!(plan.contains("HashJoinExec") && !plan.contains("NestedLoopJoinExec"), "{plan}");
    }
    // The rows around and their distinct values come from one run of their join.
    let counted = "SELECT count(*) FROM f c WHERE c.v < a.v OR c.k = b.k";
    let sql = format!("EXPLAIN SELECT a.id, ({counted}) FROM f a JOIN f b ON a.id = b.k");
    let notes = explained(&session, &sql).await;
    assert!(notes["shared"].replace('\u{2063}', "").starts_with("rows #"), "{notes:?}");
    assert!(notes["shared"].contains("(2 reads, a join)"), "{notes:?}");
}
