//! The benchmarks at a tiny scale, so that they never rot.

use serde_json::Value;

use crate::harness::{Place, Ran};

#[test]
fn ssb_runs_verifies_and_writes_its_results() {
    let place = Place::new();
    let arguments =
        ["ssb", "--sf", "0.01", "--dir", "d", "--verify", "--json", "r.json", "--runs", "1", "--device", "cpu"];
    let ran = place.run(&arguments);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(
        ran.out.lines().filter(|line| line.starts_with('q') && line.ends_with("yes")).count(),
        13,
        "{}",
        ran.out
    );
    let found: Value = serde_json::from_slice(&place.read("r.json")).unwrap();
    assert_eq!((&found["suite"], &found["params"]["sf"]), (&"ssb".into(), &0.01.into()));
    let results = found["results"].as_array().unwrap();
    assert_eq!(results.len(), 13);
    for result in results {
        assert!(result["warm_ms"].as_f64().unwrap() > 0.0 && result["first_ms"].as_f64().unwrap() > 0.0);
        let rival = |name: &str| result["rivals"][name].as_f64().unwrap();
        assert!(rival("datafusion_ms") > 0.0 && rival("datafusion_first_ms") > 0.0, "{result}");
        assert!(result["fresh_ms"].as_f64().unwrap() > 0.0, "{result}");
        // A statement of a known shape is neither parsed nor planned.
        let step = |name: &str| result["fresh"][format!("{name}_ms")].as_f64();
        assert!(["parse", "plan", "lower"].iter().all(|name| step(name) == Some(0.0)), "{result}");
        assert!(["optimize", "physical", "run"].iter().all(|name| step(name) > Some(0.0)), "{result}");
        assert_eq!(result["verified"], true);
        // What was not measured is absent.
        assert!(result.get("device_ms").is_none() && result.get("share_of_peak").is_none(), "{result}");
    }
    let again =
        place.run(&["ssb", "--sf", "0.01", "--dir", "d", "--queries", "q1.1,q4.3", "--runs", "1", "--device", "cpu"]);
    assert!(again.err.contains("(was there)"), "{again:?}");
    assert_eq!(again.out.lines().filter(|line| line.starts_with('q') && !line.starts_with("query")).count(), 2);
}

#[test]
fn the_largest_table_can_be_sorted() {
    let place = Place::new();
    let run = |column: &str| {
        let arguments = ["ssb", "--sf", "0.01", "--dir", "d", "--queries", "q1.1", "--runs", "1", "--json", "r.json"];
        place.run(&[&arguments[..], &["--device", "cpu", "--verify", "--sorted-by", column]].concat())
    };
    let sorted = run("lo_orderdate");
    assert!(sorted.code == 0 && sorted.err.contains("sorting lineorder by lo_orderdate"), "{sorted:?}");
    let found: Value = serde_json::from_slice(&place.read("r.json")).unwrap();
    assert_eq!(
        (&found["params"]["sorted_by"], &found["results"][0]["verified"]),
        (&"lo_orderdate".into(), &true.into())
    );
    let falls = "SELECT count(*) AS n FROM (SELECT lo_orderdate < lag(lo_orderdate) OVER () AS falls \
                 FROM 'd/lineorder-by-lo_orderdate.parquet') WHERE falls";
    assert_eq!(place.csv(falls), "n\n0\n");
    // Once is enough, and the table itself is as it was.
    let again = run("lo_orderdate");
    assert!(again.code == 0 && again.err.contains("(was there)") && !again.err.contains("sorting"), "{again:?}");
    let unknown = run("lo_orderdata");
    assert!(unknown.code != 0 && unknown.err.contains("lo_orderdate"), "{unknown:?}");
}

#[test]
fn answers_are_compared_with_files() {
    let place = Place::new();
    let run = |queries: &str| {
        let arguments = ["ssb", "--sf", "0.01", "--dir", "d", "--answers", "a", "--queries", queries, "--runs", "1"];
        place.run(&[&arguments[..], &["--device", "cpu"]].concat())
    };
    let nowhere = run("q1.1");
    assert!(nowhere.code == 2 && nowhere.err.contains("--answers: there is no folder 'a'"), "{nowhere:?}");
    place.write("a/q1.2.csv", "");
    let missing = run("q1.1");
    assert!(missing.code == 2 && missing.err.contains("q1.1.csv"), "{missing:?}");
    let sql = "SELECT sum(lo_extendedprice * lo_discount) AS revenue FROM 'd/lineorder.parquet' JOIN 'd/date.parquet' \
               ON lo_orderdate = d_datekey WHERE d_year = 1993 AND lo_discount BETWEEN 1 AND 3 AND lo_quantity < 25";
    let right = place.csv(sql);
    place.write("a/q1.1.csv", &right);
    let same = run("q1.1");
    assert!(
        same.code == 0 && same.out.lines().any(|line| line.starts_with("q1.1") && line.ends_with("yes")),
        "{same:?}"
    );
    place.write("a/q1.1.csv", "revenue\n1\n");
    let other = run("q1.1");
    assert!(other.code == 1 && other.err.contains("CLI-008") && other.err.contains("expected (1)"), "{other:?}");
}

#[test]
fn loading_memory_and_threads_are_reported() {
    let place = Place::new();
    let arguments = [
        "ssb",
        "--sf",
        "0.01",
        "--dir",
        "d",
        "--queries",
        "q1.1,q2.1",
        "--verify",
        "--json",
        "r.json",
        "--runs",
        "1",
        "--device",
        "emulated",
        "--threads",
        "3",
    ];
    let ran = Ran::of(place.emulated().args(arguments).output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(
        ran.out.lines().filter(|line| line.starts_with('q') && line.ends_with("  yes")).count(),
        2,
        "{}",
        ran.out
    );
    assert!(!ran.out.contains("placement"), "{}", ran.out);
    assert!(ran.out.lines().any(|line| line.starts_with("loaded: ") && line.ends_with(" GB/s a core")), "{}", ran.out);
    let found: Value = serde_json::from_slice(&place.read("r.json")).unwrap();
    // Four columns of 60 thousand rows and more, four bytes each, and two of the dates.
    assert!(found["loading"]["bytes"].as_u64().unwrap() >= 4 * 4 * 59_000, "{found}");
    assert!(
        found["loading"]["gb_per_s_core"].as_f64().unwrap() > 0.0 && found["loading"]["ms"].as_f64().unwrap() > 0.0
    );
    // The columns that are listed, with tables beside them, and all of it asked of the driver before the warm runs.
    let bytes = |name: &str| found["memory"][name].as_u64().unwrap();
    let columns = found["columns"].as_array().unwrap().iter().map(|column| column["bytes"].as_u64().unwrap());
    assert_eq!(bytes("columns_bytes"), columns.sum::<u64>(), "{found}");
    assert!(bytes("tables_bytes") > 0 && bytes("held_bytes") <= bytes("held_peak_bytes"), "{found}");
    assert!(bytes("held_bytes") >= bytes("columns_bytes") && bytes("warm_driver_allocations") == 0, "{found}");
    let threads = &found["threads"];
    assert!(threads["statements"] == 6 && threads["verified"] == true, "{found}");
    assert!(ran.out.lines().any(|line| line.starts_with("3 threads: 6 statements in ")), "{}", ran.out);
}

#[test]
fn the_cpu_answers_while_kernels_are_compiled() {
    let place = Place::new();
    let run = |yields: &str| {
        let arguments = ["ssb", "--sf", "0.01", "--dir", "d", "--queries", "q1.1", "--verify", "--json", "r.json"];
        // Kernels that nobody has compiled, which takes longer than the query.
        let mut command = place.command();
        command.env("WARPCUBE_EMULATOR_CACHE", place.path(&format!("kernels-{yields}")));
        command.env("WARPCUBE_TUNING", format!("yields={yields}"));
        let ran = Ran::of(command.args(arguments).args(["--runs", "1", "--device", "emulated"]).output().unwrap());
        assert!(ran.code == 0 && ran.out.lines().any(|line| line.ends_with("  yes")), "{ran:?}");
        let found: Value = serde_json::from_slice(&place.read("r.json")).unwrap();
        let result = found["results"][0].clone();
        // Runs to come find the kernels there.
        assert!(result["gpu_share"] == 1.0 && result["device_ms"].as_f64().unwrap() > 0.0, "{found}");
        result
    };
    assert!(run("0").get("cold_ms").is_some(), "the first run waited for the compiler");
    assert!(run("2").get("cold_ms").is_none(), "no run waited for it");
}

#[test]
fn what_was_not_on_the_device_has_its_reason() {
    let place = Place::new();
    let arguments = ["ssb", "--sf", "0.01", "--dir", "d", "--queries", "q1.1", "--runs", "1", "--device"];
    let cpu = place.run(&[&arguments[..], &["cpu"]].concat());
    assert!(cpu.out.starts_with("ssb on CPU (warpcube.device is 'cpu')\n"), "{cpu:?}");
    let emulated = place.emulated().args(arguments).args(["emulated", "--set", "warpcube.load_factor=0"]).output();
    let emulated = Ran::of(emulated.unwrap());
    let reason = "CPU aggregate over lineorder ⋈ date: estimated cheaper on the CPU";
    assert!(emulated.out.lines().any(|line| line.trim_start().starts_with(reason)), "{emulated:?}");
    let placed = [&arguments[..], &["emulated", "--set", "warpcube.placement=files"]].concat();
    let placed = Ran::of(place.emulated().args(placed).output().unwrap());
    assert!(placed.out.starts_with("ssb on CPU (warpcube.placement is 'files')\n"), "{placed:?}");
}

#[test]
fn tpch_shows_where_each_part_ran() {
    let place = Place::new();
    let ran = place.run(&["tpch", "--sf", "0.01", "--dir", "d", "--verify", "--runs", "1", "--device", "cpu"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.out.lines().filter(|line| line.ends_with("  yes")).count(), 22, "{}", ran.out);
    assert_eq!(ran.out.lines().filter(|line| line.ends_with("  on the CPU")).count(), 22, "{}", ran.out);
    assert!(!ran.out.contains("% of rows") && !ran.out.contains("0 %"), "{}", ran.out);
    assert!(ran.out.starts_with("tpch on CPU (warpcube.device is 'cpu')\n"), "{}", ran.out);
}

#[test]
fn primitives_are_verified_written_and_drawn() {
    let place = Place::new();
    let line = |case: &str, ms: f64| {
        format!(
            "{{\"rival\": \"cub\", \"version\": \"3.0.1\", \"device\": \"emulated device\", \"log_rows\": 14, \
             \"case\": \"{case}\", \"ms\": {ms}}}\n"
        )
    };
    place.write("rivals", line("scan/u32", 0.125) + &line("sort/keys/u32", 3.0));
    let arguments = ["bench", "primitives", "--device", "emulated", "--log-rows", "14", "--runs", "1"];
    let wanted = ["--cases", "select/30,select/70/any,scan,topk/f32/uniform/32/threshold", "--rivals", "rivals"];
    let kept = ["--json", "r.json", "--figures", "drawn/here"];
    let ran = Ran::of(place.emulated().args(arguments).args(wanted).args(kept).output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines[0], "primitives on emulated device, milliseconds");
    assert!(lines[1].starts_with("case ") && lines[1].ends_with("  verified"), "{}", ran.out);
    let cases: Vec<&str> = lines[2..].iter().filter_map(|line| line.split_whitespace().next()).collect();
    let expected = ["select/30/any", "select/70/any", "select/30/stable", "scan/u32", "topk/f32/uniform/32/threshold"];
    assert_eq!(cases, expected);
    assert!(lines[2..].iter().all(|line| line.ends_with("  yes")), "{}", ran.out);
    assert!(lines[5].ends_with(" cub 0.1250  yes"), "{}", ran.out);
    let found: Value = serde_json::from_slice(&place.read("r.json")).unwrap();
    assert_eq!((&found["suite"], &found["params"]["log_rows"]), (&"primitives".into(), &14.into()));
    assert_eq!(found["rivals"]["cub"], "3.0.1");
    let results = found["results"].as_array().unwrap();
    let rivals: Vec<&Value> = results.iter().filter_map(|result| result.get("rivals")).collect();
    assert_eq!(rivals, [&serde_json::json!({"cub_ms": 0.125})], "only what was measured has a rival");
    assert!(results.iter().all(|result| result["verified"] == true && result["device_ms"].as_f64().unwrap() > 0.0));
    // The emulated device has no bandwidth, and so no floor.
    assert!(results.iter().all(|result| result.get("floor_ms").is_none()), "{found}");
    assert_eq!(ran.err, "figures in drawn/here: select\n");
    let svg = String::from_utf8(place.read("drawn/here/select.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("in the order of the input"), "{svg}");
}

#[test]
fn rivals_that_are_missing_have_no_line() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/rivals/run.sh");
    let place = Place::new();
    // A compiler of programs that print a line, but cannot compile one of them.
    let compiler = "#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\ncase $2 in */sort) exit 1 ;; esac\n\
                    printf '#!/bin/sh\\necho %s $*\\n' $(basename $2) >$2\nchmod +x $2\n";
    let nvcc = place.write("nvcc", compiler);
    std::process::Command::new("chmod").arg("+x").arg(&nvcc).status().unwrap();
    let run = |nvcc: &std::path::Path| {
        let mut command = std::process::Command::new("bash");
        command.arg(script).arg(place.path("lines")).args(["--runs", "3"]);
        command.env("NVCC", nvcc).env("PYTHON", place.path("no-python")).env("BUILD", place.path("built"));
        let ran = Ran::of(command.output().unwrap());
        assert!(ran.code == 0 && ran.err.contains("torch is not measured"), "{ran:?}");
        String::from_utf8(place.read("lines")).unwrap()
    };
    assert_eq!(run(&place.path("no-nvcc")), "");
    assert_eq!(run(&nvcc), "ordered --runs 3\nsegsort --runs 3\nselect --runs 3\ntopk --runs 3\n");
}

#[test]
fn primitives_can_be_listed_and_named() {
    let place = Place::new();
    let primitives = |arguments: &[&str]| {
        let all = [&["bench", "primitives", "--log-rows", "14"], arguments].concat();
        Ran::of(place.emulated().args(all).output().unwrap())
    };
    let listed = primitives(&["--list", "--cases", "sort,project/sigmoid"]).ok();
    let sorts = ["sort/keys/u32", "sort/pairs/u32", "sort/pairs/u64"].map(|case| format!("{case}\n{case}/msd\n"));
    assert_eq!(listed, format!("project/sigmoid\n{}", sorts.concat()));
    assert!(primitives(&["--list"]).ok().lines().count() > 100);
    let unknown = primitives(&["--device", "emulated", "--cases", "select/35"]).error(2);
    assert!(
        unknown.starts_with("CLI-001 --cases select/35: no case has this name; --list shows all but "),
        "{unknown}"
    );
    let on_cpu = primitives(&["--device", "cpu"]).error(2);
    assert_eq!(on_cpu, "CLI-001 primitives are measured on a GPU, or with --device emulated: warpcube.device is 'cpu'");
    assert!(primitives(&["--json", "none/r.json"]).error(2).starts_with("CLI-001 --json: there is no folder 'none'"));
    assert!(primitives(&["--rivals", "none", "--device", "emulated"]).error(2).starts_with("CLI-001 --rivals none: "));
    let findings = primitives(&["--findings", "none/f.json", "--device", "emulated"]).error(2);
    assert!(findings.starts_with("CLI-001 --findings none/f.json: there is no folder 'none'"), "{findings}");
    assert!(primitives(&["--runs", "0"]).error(2).contains("'--runs <RUNS>'"));
    assert_eq!(primitives(&["-c", "SELECT 1"]).code, 2);
    assert!(place.run(&["-c", "SELECT 1", "bench", "primitives"]).error(2).contains("-c does not go with 'bench'"));
    let help = place.run(&["bench", "--help"]).ok();
    assert!(["primitives", "ssb", "topk", "tpch"].iter().all(|suite| help.contains(suite)), "{help}");
}

#[test]
fn first_rows_are_found_on_the_device_and_are_those_of_datafusion() {
    let place = Place::new();
    let arguments = ["bench", "topk", "--sf", "0.01", "--dir", "d", "--verify", "--json", "r.json", "--runs", "1"];
    let on_device =
        ["--queries", "filtered-100,string-100", "--device", "emulated", "--set", "warpcube.placement=cuda"];
    let ran = Ran::of(place.emulated().args([&arguments[..], &on_device].concat()).output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    let found: Value = serde_json::from_slice(&place.read("r.json")).unwrap();
    assert_eq!(found["suite"], "topk");
    let results = found["results"].as_array().unwrap();
    assert_eq!(results.iter().map(|result| &result["case"]).collect::<Vec<_>>(), ["filtered-100", "string-100"]);
    let is_right = |result: &Value| result["verified"] == true && result["device_ms"].as_f64().unwrap() > 0.0;
    assert!(results.iter().all(is_right), "{found}");
    let on_cpu = place.run(&[&arguments[..], &["--device", "cpu"]].concat());
    assert_eq!(on_cpu.code, 0, "{on_cpu:?}");
    let found: Value = serde_json::from_slice(&place.read("r.json")).unwrap();
    assert_eq!(found["results"].as_array().unwrap().len(), 8);
}

#[test]
fn duckdb_is_measured_beside_ours() {
    let place = Place::new();
    // A Python that keeps its program and its request, and answers with `lines`, or as `ends` says.
    let run = |lines: &str, ends: &str| {
        let script = format!("#!/bin/sh\nprintf %s \"$2\" >program\ncat >request\ncat <<E\n{lines}\nE\n{ends}\n");
        let python = place.write("python", script);
        std::process::Command::new("chmod").arg("+x").arg(&python).status().unwrap();
        let arguments = ["ssb", "--sf", "0.01", "--dir", "d", "--queries", "q1.1,q2.3", "--runs", "2"];
        let rival = ["--rival", "duckdb", "--python", "./python", "--json", "r.json", "--device", "cpu"];
        place.run(&[&arguments[..], &rival].concat())
    };
    let head = "{\"version\": \"2.0.1\", \"threads\": 2, \"load_ms\": 150.5}\n";
    // Columns that are not summed up are not compared: the first query has one, the other three.
    let line = |case: &str, rows: usize| {
        let sums = if case == "q1.1" { "[null]" } else { "[null, null, null]" };
        let times = "\"first_ms\": 7.5, \"warm_ms\": 2.25";
        format!("{{\"case\": \"{case}\", \"rows\": {rows}, \"sums\": {sums}, {times}}}")
    };
    let all = format!("{head}{}\n{}", line("q1.1", 1), line("q2.3", 5));
    let ran = run(&all, "");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.lines().nth(1).unwrap().ends_with("      DuckDB  verified"), "{}", ran.out);
    assert!(ran.out.lines().any(|line| line.starts_with("q1.1") && line.ends_with("     2.25 ms  -")), "{}", ran.out);
    let found: Value = serde_json::from_slice(&place.read("r.json")).unwrap();
    let duckdb = serde_json::json!({"version": "2.0.1", "threads": 2, "load_ms": 150.5, "sums": true});
    assert_eq!(found["rivals"]["duckdb"], duckdb);
    for result in found["results"].as_array().unwrap() {
        assert_eq!(result["rivals"], serde_json::json!({"duckdb_ms": 2.25, "duckdb_first_ms": 7.5}));
    }
    // The program is that of the repository, and is asked for the same texts over the same files.
    let program = include_str!("../../../../bench/rivals/duckdb_rival.py");
    assert_eq!(String::from_utf8(place.read("program")).unwrap(), program);
    let request: Value = serde_json::from_slice(&place.read("request")).unwrap();
    assert_eq!((&request["runs"], request["tables"].as_object().unwrap().len()), (&2.into(), 5));
    let lineorder = request["tables"]["lineorder"].as_str().unwrap();
    assert!(lineorder.starts_with('/') && std::path::Path::new(lineorder).exists(), "{lineorder}");
    assert_eq!(request["cases"][1]["case"], "q2.3");
    assert!(request["cases"][1]["sql"].as_str().unwrap().contains("p_brand1 = 'MFGR#2239'"));

    // Over the files, once each, of data that are compressed.
    let files = format!("{head}{}", line("q1.1", 1)).replace("150.5", "null").replace(", \"warm_ms\": 2.25", "");
    let script = format!("#!/bin/sh\ncat >request\ncat <<E\n{files}\nE\n");
    place.write("python", script);
    let arguments =
        ["ssb", "--sf", "0.01", "--dir", "z", "--queries", "q1.1", "--compression", "zstd", "--device", "cpu"];
    let rival = ["--rival", "duckdb-files", "--python", "./python", "--json", "z.json"];
    let ran = place.run(&[&arguments[..], &rival].concat());
    assert_eq!(ran.code, 0, "{ran:?}");
    let found: Value = serde_json::from_slice(&place.read("z.json")).unwrap();
    let duckdb = serde_json::json!({"version": "2.0.1", "threads": 2, "files": true, "sums": true});
    assert_eq!((&found["rivals"]["duckdb"], &found["params"]["compression"]), (&duckdb, &"zstd".into()));
    assert_eq!(found["results"][0]["rivals"], serde_json::json!({"duckdb_first_ms": 7.5}));
    let request: Value = serde_json::from_slice(&place.read("request")).unwrap();
    assert_eq!(request["runs"], Value::Null);
    let bytes = |folder: &str| place.read(&format!("{folder}/supplier.parquet")).len();
    assert!(bytes("z") < bytes("d"), "{} and {} bytes", bytes("z"), bytes("d"));

    let other = run(&format!("{head}{}\n{}", line("q1.1", 1), line("q2.3", 8)), "");
    assert!(other.code == 1 && other.err.contains("CLI-008 q2.3: 5 rows, 8 in DuckDB"), "{other:?}");
    let sum = run(&format!("{head}{}\n{}", line("q1.1", 1).replace("null", "-1"), line("q2.3", 5)), "");
    assert!(sum.code == 1 && sum.err.contains("CLI-008 q1.1: the sum of column 'revenue' is "), "{sum:?}");
    let found: Value = serde_json::from_slice(&place.read("r.json")).unwrap();
    assert_eq!(found["rivals"]["duckdb"]["sums"], false);
    let missing = run(&format!("{head}{}", line("q1.1", 1)), "");
    assert!(missing.code == 2 && missing.err.contains("CLI-001 --rival duckdb: no time for q2.3"), "{missing:?}");
    let failed = run("", "echo 'No module named duckdb' >&2; exit 1");
    assert!(
        failed.err.contains("./python ends with exit status: 1: No module named duckdb; see --python"),
        "{failed:?}"
    );
    let torn = run("nothing", "");
    assert!(torn.code == 2 && torn.err.contains("./python writes what is no measurement: "), "{torn:?}");
    let nowhere = place.run(&["ssb", "--sf", "0.01", "--dir", "d", "--rival", "duckdb", "--python", "./none"]);
    assert!(nowhere.code == 2 && nowhere.err.contains("--rival duckdb: ./none does not run: "), "{nowhere:?}");
}

#[test]
fn wrong_benchmarks() {
    let place = Place::new();
    // Queries are one benchmark by both names.
    assert!(place.run(&["bench", "ssb", "--queries", "q7.1"]).error(2).starts_with("CLI-001 --queries q7.1: "));
    assert!(place.run(&["ssb", "--queries", "q7.1", "--dir", "d"]).error(2).starts_with("CLI-001 --queries q7.1: "));
    assert!(place.run(&["ssb", "--runs", "0", "--dir", "d"]).error(2).starts_with("CLI-001 --runs"));
    let scale = place.run(&["ssb", "--sf", "0", "--dir", "d"]).error(2);
    assert!(scale.starts_with("CLI-001 --sf: scale factor 0 is out of range"), "{scale}");
    let encoding = place.run(&["ssb", "--encoding", "tight", "--dir", "d"]).error(2);
    let expected = "CFG-002 warpcube.encoding = 'tight' (from flag --encoding): expected 'auto', ";
    assert!(encoding.starts_with(expected), "{encoding}");
}

#[test]
fn the_judge_is_no_session() {
    let place = Place::new();
    let arguments = ["ssb", "--sf", "0.01", "--dir", "d", "--queries", "q1.1", "--runs", "2", "--device", "cpu"];
    let ran = place.run(&[&arguments[..], &["--verify", "--log", "warpcube_sql=info"]].concat());
    assert!(ran.code == 0 && ran.out.lines().any(|line| line.starts_with("q1.1") && line.ends_with("yes")), "{ran:?}");
    // Five tables, a first run, three until it has settled, two warm ones and two of other literals: each statement of
    // a connection has a span.
    let statements = ran.err.lines().filter(|line| line.contains("\"}: warpcube_sql::connection: close ")).count();
    assert_eq!(statements, 13, "{}", ran.err);
}

#[test]
fn every_stage_on_a_gpu_is_named_and_benchmarks_start_without_kernels() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../gpu/run.sh");
    let text = std::fs::read_to_string(script).unwrap();
    let stages = text.lines().filter_map(|line| line.strip_prefix("    ")?.split_once(')'));
    let word = |name: &&str| name.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !name.is_empty();
    let stages: Vec<&str> = stages.map(|(name, _)| name).filter(word).collect();
    assert!(stages.contains(&"encodings") && stages.len() >= 12, "{stages:?}");
    let place = Place::new();
    let output = std::process::Command::new("bash")
        .args([script, "no-such-stage"])
        .env("OUT", place.path("out"))
        .env("DATA", place.path("data"))
        .output()
        .unwrap();
    let usage = String::from_utf8(output.stderr).unwrap();
    let named: Vec<&str> = usage.split_once(": ").unwrap().1.split([',', ' ', '\n']).collect();
    for stage in &stages {
        assert!(named.contains(stage), "{stage} is not named in {usage}");
    }
    // A program that tells whether its cache is empty and its own.
    let program = place.write("program", "#!/bin/sh\nls -A \"$WARPCUBE_CACHE\" | wc -l; touch \"$WARPCUBE_CACHE/k\"\n");
    std::process::Command::new("chmod").arg("+x").arg(&program).status().unwrap();
    let ran = std::process::Command::new("bash")
        .args([script, "ssb", "ssb-plain", "ssb-auto", "tpch"])
        .env("OUT", place.path("out"))
        .env("DATA", place.path("data"))
        .env("WARPCUBE", &program)
        .env_remove("WARPCUBE_CACHE")
        .output()
        .unwrap();
    let ran = Ran::of(ran);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.out.lines().filter(|line| line.trim() == "0").count(), 4, "{ran:?}");
}
