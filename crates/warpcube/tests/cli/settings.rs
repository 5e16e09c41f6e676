//! Settings: from where, in which order of precedence, and as `SHOW` shows them.

use crate::harness::{Place, Ran};

/// Value and origin of a setting.
fn shown(out: &str) -> String {
    out.lines().nth(1).unwrap().to_string()
}

#[test]
fn a_flag_wins_over_the_environment_over_a_file_over_the_default() {
    let place = Place::new();
    let show = ["--format", "csv", "-c", "SHOW warpcube.timeout"];
    assert_eq!(shown(&place.run(&show).ok()), "warpcube.timeout,off,default");

    let file =
        place.write("config/warpcube/config.toml", "timeout = '1s'\n[datafusion.execution]\nbatch_size = 4096\n");
    assert_eq!(shown(&place.run(&show).ok()), format!("warpcube.timeout,1s,file {}", file.display()));

    let output = place.command().args(show).env("WARPCUBE_TIMEOUT", "2s").output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(shown(&out), "warpcube.timeout,2s,environment WARPCUBE_TIMEOUT");

    let output =
        place.command().args(show).args(["--set", "timeout=3s"]).env("WARPCUBE_TIMEOUT", "2s").output().unwrap();
    assert_eq!(shown(&String::from_utf8(output.stdout).unwrap()), "warpcube.timeout,3s,flag --set");

    let set = "SET warpcube.timeout = '4s'; SHOW warpcube.timeout; RESET warpcube.timeout; SHOW warpcube.timeout";
    let out = place.csv(set);
    assert_eq!(out.lines().nth(1), Some("warpcube.timeout,4s,SET"));
    assert_eq!(out.lines().nth(3), Some(format!("warpcube.timeout,1s,file {}", file.display()).as_str()));

    let all = place.csv("SHOW ALL");
    assert!(all.contains(&format!("datafusion.execution.batch_size,4096,file {}", file.display())), "{all}");
    assert!(all.contains("warpcube.device_memory,auto,default"), "{all}");
}

#[test]
fn reset_gives_back_what_the_session_started_with() {
    let place = Place::new();
    place.write("config/warpcube/config.toml", "[datafusion.execution]\nbatch_size = 4096\n");
    let shown = |sql: &str| place.csv(sql).lines().last().unwrap().to_string();
    let name = "datafusion.execution.batch_size";
    assert_eq!(shown(&format!("SET {name} = 100; RESET {name}; SHOW {name}")), format!("{name},4096"));
    // These filters give wrong answers: no reset switches them on, nor a setting that means several.
    let filters = "datafusion.optimizer.enable_aggregate_dynamic_filter_pushdown";
    let all = "datafusion.optimizer.enable_dynamic_filter_pushdown";
    for sql in [format!("RESET {filters}"), format!("RESET {all}"), format!("SET {all} = true")] {
        assert_eq!(shown(&format!("{sql}; SHOW {filters}")), format!("{filters},false"), "{sql}");
    }
    assert_eq!(shown(&format!("SET {filters} = true; SHOW {filters}")), format!("{filters},true"));
    // Lists of files are not kept, so that files that are added are seen.
    let refused = place.run(&["-c", "RESET datafusion.runtime.list_files_cache_limit"]).error(1);
    assert!(refused.starts_with("SQL-005 "), "{refused}");
    // What the one setting says does not undo the other.
    let set = "SET datafusion.runtime.memory_limit = '64M'; SET warpcube.spill_folder = 'spilled'";
    assert_eq!(shown(&format!("{set}; SHOW datafusion.runtime.memory_limit")), "datafusion.runtime.memory_limit,64M");
}

#[test]
fn another_configuration_file() {
    let place = Place::new();
    place.write("mine.toml", "max_rows = 7\n");
    let out = place.run(&["--config", "mine.toml", "--format", "csv", "-c", "SHOW warpcube.max_rows"]).ok();
    assert_eq!(shown(&out), "warpcube.max_rows,7,file mine.toml");
    assert!(
        place.run(&["--config", "none.toml", "-c", "SELECT 1"]).error(2).starts_with("CLI-003 cannot read none.toml")
    );
}

#[test]
fn mistakes_in_settings_are_told_with_their_origin() {
    let place = Place::new();
    place.write("bad.toml", "timeout = '1s'\ndevcie = 'cpu'\n");
    let unknown = place.run(&["--config", "bad.toml", "-c", "SELECT 1"]).error(2);
    let expected = "CFG-001 unknown setting 'warpcube.devcie' (from file bad.toml); did you mean 'warpcube.device'?";
    assert_eq!(unknown, expected);
    let unknown = place.run(&["--set", "datafusion.execution.batchsize=1", "-c", "SELECT 1"]).error(2);
    assert!(
        unknown.starts_with("CFG-001 unknown setting 'datafusion.execution.batchsize' (from flag --set)"),
        "{unknown}"
    );
    place.write("broken.toml", "timeout = '1s'\ndevice = \n");
    let broken = place.run(&["--config", "broken.toml", "-c", "SELECT 1"]).error(2);
    assert!(broken.starts_with("CLI-004 broken.toml: line 2: "), "{broken}");
    place.write("wrong.toml", "memory_limit = 'much'\n");
    let wrong = place.run(&["--config", "wrong.toml", "-c", "SELECT 1"]).error(2);
    assert!(
        wrong.starts_with("CFG-002 warpcube.memory_limit = 'much' (from file wrong.toml): expected 'auto', bytes"),
        "{wrong}"
    );
    let output = place.command().args(["-c", "SELECT 1"]).env("WARPCUBE_PLACEMENT", "moon").output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.contains("(from environment WARPCUBE_PLACEMENT): expected 'auto', 'cuda', 'columns' or 'files'"),
        "{error}"
    );
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn settings_of_datafusion_come_from_the_environment_too() {
    let place = Place::new();
    let show = ["--format", "csv", "-c", "SHOW ALL"];
    let with = |variable: &str, value: &str, more: &[&str]| {
        Ran::of(place.command().args(show).args(more).env(variable, value).output().unwrap())
    };
    let (variable, name) = ("DATAFUSION_EXECUTION_BATCH_SIZE", "datafusion.execution.batch_size");
    let all = with(variable, "1234", &[]).ok();
    assert!(all.contains(&format!("\n{name},1234,environment {variable}\n")), "{all}");
    let all = with(variable, "1234", &["--set", "datafusion.execution.batch_size=77"]).ok();
    assert!(all.contains(&format!("\n{name},77,flag --set\n")), "{all}");
    let all = with("DATAFUSION_RUNTIME_MEMORY_LIMIT", "64M", &[]).ok();
    let expected = "\ndatafusion.runtime.memory_limit,64M,environment DATAFUSION_RUNTIME_MEMORY_LIMIT\n";
    assert!(all.contains(expected), "{all}");
    assert!(!with("DATAFUSION_NO_SUCH_SETTING", "1", &[]).ok().contains("1,environment"));

    let wrong = with(variable, "many", &[]).error(2);
    assert!(wrong.starts_with(&format!("CFG-002 {name} = 'many' (from environment {variable}): expected ")), "{wrong}");
    let wrong = with("DATAFUSION_RUNTIME_MEMORY_LIMIT", "much", &[]).error(2);
    let expected =
        "CFG-002 datafusion.runtime.memory_limit = 'much' (from environment DATAFUSION_RUNTIME_MEMORY_LIMIT): ";
    assert!(wrong.starts_with(expected), "{wrong}");
}

#[test]
fn set_is_checked_and_names_what_is_near() {
    let place = Place::new();
    let error = place.error("SET warpcube.timout = '1s'");
    assert_eq!(error, "CFG-001 unknown setting 'warpcube.timout'; did you mean 'warpcube.timeout'?");
    let error = place.error("SET datafusion.execution.batchsize = 1");
    assert!(error.ends_with("did you mean 'datafusion.execution.batch_size'?"), "{error}");
    let error = place.error("SET datafusion.execution.batch_size = many");
    assert!(error.starts_with("CFG-002 datafusion.execution.batch_size = 'many': "), "{error}");
    let error = place.error("SHOW warpcube.nothing_like_it");
    assert_eq!(error, "CFG-001 unknown setting 'warpcube.nothing_like_it'");
}

#[test]
fn a_read_only_program_writes_no_file_but_its_output() {
    let place = Place::new();
    let copy = "COPY (SELECT 1 AS a) TO 'x.csv'";
    let refused = place.run(&["--read-only", "-c", copy]).error(1);
    assert!(refused.starts_with("FILE-008 "), "{refused}");
    assert!(!place.path("x.csv").exists());
    let opened = place.run(&["--read-only", "-c", "SET warpcube.read_only = 'off'"]).error(1);
    assert!(opened.contains("warpcube.read_only"), "{opened}");
    let sql = "CREATE TABLE t AS VALUES (1); SELECT column1 AS a FROM t";
    assert_eq!(place.run(&["--read-only", "-c", sql, "-o", "y.csv"]).ok(), "");
    assert_eq!(place.read("y.csv"), b"a\n1\n");
    let config = place.write("c.toml", "read_only = true\n");
    let ran = place.run(&["--config", config.to_str().unwrap(), "-c", copy]).error(1);
    assert!(ran.starts_with("FILE-008 "), "{ran}");
}

#[test]
fn a_memory_limit_makes_sorts_spill_and_joins_fail_by_name() {
    let place = Place::new();
    let sort = "SET warpcube.memory_limit = '24MiB'; SET warpcube.target_partitions = 1; \
                SELECT sum(r) AS s FROM (SELECT value, row_number() OVER (ORDER BY value * 7919 % 1000003) AS r \
                FROM generate_series(1, 1000000))";
    assert_eq!(place.csv(sort), "s\n500000500000\n");
    let join = "SET warpcube.memory_limit = '1MiB'; \
                SELECT count(*) FROM generate_series(1, 1000000) a JOIN generate_series(1, 1000000) b USING (value)";
    let error = place.error(join);
    assert!(error.starts_with("SQL-009 out of memory on the CPU: "), "{error}");
}

#[test]
fn runtime_settings_of_datafusion_can_be_set_too() {
    let out = Place::new().csv("SET datafusion.runtime.memory_limit = '64M'; SHOW ALL");
    assert!(out.contains("datafusion.runtime.memory_limit,64M,SET"), "{out}");
}
