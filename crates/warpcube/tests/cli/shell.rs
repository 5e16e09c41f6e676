//! The shell before a person: prompts, the pager, the editor, completion, colours, start-up files. Commands that a
//! script has, too, are tested there.

use crate::harness::Place;
use crate::terminal::{CTRL_C, ENTER, Terminal};

const PROMPT: &str = "warpcube> ";

/// The shell, at its first prompt.
fn shell(place: &Place, environment: &[(&str, &str)], arguments: &str) -> Terminal {
    let mut command = place.command();
    command.envs(environment.iter().copied());
    let mut terminal = Terminal::of(command, &format!("--device cpu {arguments}"));
    terminal.expect(PROMPT);
    terminal
}

#[test]
fn the_prompt_shows_what_is_open() {
    let place = Place::new();
    let mut terminal = shell(&place, &[], "");
    for (line, prompt) in [
        ("SELECT 'it''s", "       '> "),
        ("more' AS a, (1 +", "       (> "),
        ("[2, 3][1]", "       (> "),
        (") AS \"b", "       \"> "),
        ("c\" /* a", "       *> "),
        ("*/", "       -> "),
    ] {
        terminal.enter(line);
        terminal.expect(prompt);
    }
    terminal.enter(";");
    terminal.expect("│ it's ┆");
    terminal.expect("│ more ┆");
    terminal.expect(PROMPT);
    // Ctrl-C leaves the statement.
    terminal.enter("SELECT (");
    terminal.expect("       (> ");
    terminal.press(CTRL_C);
    terminal.expect(PROMPT);
    // Up: the whole statement of before.
    terminal.press("\u{1b}[A");
    terminal.expect("more' AS a");
    terminal.press(ENTER);
    terminal.expect("│ more ┆");
    terminal.expect(PROMPT);
    terminal.enter("SELECT 6 AS six");
    terminal.expect("       -> ");
    terminal.enter("\\p");
    terminal.expect("SELECT 6 AS six\r\n");
    terminal.enter("\\g");
    terminal.expect("│   6 │");
    terminal.enter("\\q");
    assert_eq!(terminal.exit_code(), Some(0));
}

#[test]
fn what_is_larger_than_the_screen_goes_to_the_pager() {
    let place = Place::new();
    let mut terminal = shell(&place, &[("PAGER", "tee -a paged.txt | head -n 1")], "");
    let paged = || String::from_utf8(place.read("paged.txt")).unwrap();
    terminal.enter("SELECT value FROM generate_series(1, 10);");
    terminal.expect("(10 rows");
    assert!(!place.path("paged.txt").exists(), "it fits the screen");
    terminal.enter("SELECT value FROM generate_series(1, 30);");
    terminal.expect("(30 rows");
    assert_eq!(paged().lines().filter(|line| line.starts_with('│')).count(), 31);
    std::fs::remove_file(place.path("paged.txt")).unwrap();
    // Too many columns: the pager has all of them, the screen says how many it has not.
    let columns: Vec<String> = (1..=30).map(|number| format!("{number}000 AS column_{number}")).collect();
    let wide = format!("SELECT {};", columns.join(", "));
    terminal.enter(&wide);
    terminal.expect("(1 row");
    assert!(paged().contains("column_15") && paged().contains("15000"), "{}", paged());
    std::fs::remove_file(place.path("paged.txt")).unwrap();
    terminal.enter("\\pset pager off");
    terminal.expect("pager is off");
    terminal.enter(&wide);
    terminal.expect(" of 30 columns");
    terminal.expect("(1 row");
    terminal.enter("\\x auto");
    terminal.enter(&wide);
    terminal.expect("column_15 = 15000");
    terminal.enter("\\x off");
    terminal.enter("SELECT 5 AS five \\gx");
    terminal.expect("five = 5");
    terminal.enter("SELECT value FROM generate_series(1, 30);");
    terminal.expect("│    30 │");
    terminal.enter("\\q");
    assert_eq!(terminal.exit_code(), Some(0));
    assert!(!place.path("paged.txt").exists());
}

#[test]
fn a_result_is_written_where_there_is_no_pager() {
    let place = Place::new();
    let mut terminal = shell(&place, &[("PAGER", "no-such-program")], "");
    terminal.enter("SELECT value FROM generate_series(1, 30);");
    terminal.expect("│    30 │");
    terminal.enter("\\q");
    assert_eq!(terminal.exit_code(), Some(0));
}

#[test]
fn the_editor_gets_the_buffer_and_what_it_leaves_runs() {
    let place = Place::new();
    let script = place.write("edit.sh", "cat $1 >> was.txt; echo 'SELECT 40 + 2 AS edited; SELECT 7' > $1\n");
    let editor = format!("sh {}", script.display());
    let mut terminal = shell(&place, &[("EDITOR", &editor)], "");
    terminal.enter("SELECT 1 AS first,");
    terminal.expect("       -> ");
    terminal.enter("\\e");
    terminal.expect("│     42 │");
    // What has no semicolon is the buffer.
    terminal.expect("       -> ");
    terminal.enter("AS rest;");
    terminal.expect("│    7 │");
    assert_eq!(place.read("was.txt"), b"SELECT 1 AS first,\n");
    terminal.enter("\\! echo of the system");
    terminal.expect("\r\nof the system\r\n");
    terminal.enter("\\q");
    assert_eq!(terminal.exit_code(), Some(0));
    let history = String::from_utf8(place.read("data/warpcube/history")).unwrap();
    assert!(history.contains("SELECT 40 + 2 AS edited"), "{history}");
}

#[test]
fn tab_completes_and_statements_have_colours() {
    let place = Place::new();
    place.write("sales_of_may.csv", "a\n1\n");
    let mut terminal = shell(&place, &[("NO_COLOR", "")], "");
    terminal.enter("CREATE TABLE costs AS SELECT 1 AS heating, 2 AS rent;");
    terminal.expect("(done");
    terminal.press("SELECT hea\t");
    terminal.expect("\u{1b}[1;36mSELECT\u{1b}[0m heating");
    terminal.enter(" + 5 AS sum FROM cos\t;");
    terminal.expect("│   6 │");
    terminal.enter("SELECT a + 8 AS n FROM 'sales_of\t';");
    terminal.expect("│ 9 │");
    terminal.enter("\\timi\t off");
    terminal.enter("SET warpcube.max_r\t = 3;");
    terminal.expect("(done)");
    terminal.enter("SELECT 1 AS kept;\rSELECT 2 AS typed_before;");
    terminal.expect("│            2 │");
    terminal.enter("\\q");
    assert_eq!(terminal.exit_code(), Some(0));
}

#[test]
fn a_start_up_file_is_at_home_or_configured_or_left_out() {
    let place = Place::new();
    place.write("config/warpcube/warpcuberc", "SELECT 'configured' AS a;\n");
    let seen = |arguments: &str| shell(&place, &[], arguments).seen();
    assert!(seen("").contains("configured"));
    place.write(".warpcuberc", "SELECT 'at home' AS a;\n");
    assert!(seen("").contains("at home") && !seen("").contains("configured"));
    for flag in ["-X", "--no-rc"] {
        assert!(!seen(flag).contains("at home"), "{flag}");
    }
    let error = place.run(&["-X", "doctor"]).error(2);
    assert!(error.contains("--no-rc does not go with 'doctor'"), "{error}");
}

#[test]
fn a_statement_is_run_again_and_again_until_ctrl_c() {
    let place = Place::new();
    let mut terminal = shell(&place, &[], "");
    terminal.enter("SELECT 40 + 2 AS x;");
    terminal.expect(" 42 ");
    terminal.enter("\\watch 0.1");
    (0..3).for_each(|_| terminal.expect(" 42 "));
    terminal.press(CTRL_C);
    terminal.expect(PROMPT);
    terminal.enter("\\watch often");
    terminal.expect("\\watch takes a number of seconds, not 'often'");
    terminal.enter("\\dt sales.*");
    terminal.expect("(0 rows");
}
