//! The program on a terminal: the shell, Ctrl-C while a statement runs, the progress bar. The terminal is made by
//! `script` of util-linux, which passes on what is typed; Ctrl-C is the key.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::harness::Place;

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(120);
/// What the keys give.
pub(crate) const CTRL_C: &str = "\u{3}";
pub(crate) const ENTER: &str = "\r";

/// The program with a terminal for its input and output.
pub(crate) struct Terminal {
    keys: ChildStdin,
    child: Child,
    seen: Arc<(Mutex<String>, Condvar)>,
    /// Bytes of what was seen that were waited for already.
    read: usize,
}

impl Terminal {
    /// Runs the program with these arguments, which the shell does not need to be kept from.
    pub(crate) fn new(place: &Place, arguments: &str) -> Terminal {
        Terminal::of(place.command(), arguments)
    }

    /// As [`Terminal::new`], for a program with more in its environment.
    pub(crate) fn of(program: Command, arguments: &str) -> Terminal {
        let line = format!("stty rows 24 cols 100; exec {} {arguments}", program.get_program().display());
        let mut command = Command::new("script");
        command.args(["-q", "-e", "-f", "-c", &line, "/dev/null"]);
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("TERM", "xterm").env("SHELL", "/bin/sh");
        command.current_dir(program.get_current_dir().unwrap());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().expect("'script' of util-linux makes the terminal of this test");
        let seen = Arc::new((Mutex::new(String::new()), Condvar::new()));
        let (mut reader, writer) = (child.stdout.take().unwrap(), seen.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                writer.0.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
                writer.1.notify_all();
            }
        });
        Terminal { keys: child.stdin.take().unwrap(), child, seen, read: 0 }
    }

    /// Types a line.
    pub(crate) fn enter(&mut self, line: &str) {
        self.press(line);
        self.press(ENTER);
    }

    /// All that has appeared.
    pub(crate) fn seen(&self) -> String {
        self.seen.0.lock().unwrap().clone()
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    /// Waits until a text has appeared behind what was waited for before.
    pub(crate) fn expect(&mut self, text: &str) {
        let (seen, changed) = &*self.seen;
        let seen = seen.lock().unwrap();
        let from = self.read;
        let is_missing = |seen: &mut String| !seen[from..].contains(text);
        let (seen, timeout) = changed.wait_timeout_while(seen, PATIENCE, is_missing).unwrap();
        assert!(!timeout.timed_out(), "'{text}' did not appear behind {from} in:\n{seen}");
        self.read = from + seen[from..].find(text).unwrap() + text.len();
    }

    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Its terminal goes with it, and with that the program.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn ctrl_c_cancels_the_statement_and_the_shell_goes_on() {
    let place = Place::new();
    let mut terminal = Terminal::new(&place, "");
    terminal.expect("warpcube> ");
    for _ in 0..2 {
        terminal.press(
            "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b \
             WHERE a.value + b.value = 7;",
        );
        terminal.press(ENTER);
        // The bar: the statement runs, and has for some time.
        terminal.expect(" running ");
        terminal.press(CTRL_C);
        terminal.expect("SQL-007 cancelled");
        terminal.expect("warpcube> ");
        terminal.press("SELECT 41 + 1 AS answer;");
        terminal.press(ENTER);
        terminal.expect(" 42 ");
        terminal.expect("(1 row, ");
        terminal.expect("warpcube> ");
    }
    terminal.press("\\q");
    terminal.press(ENTER);
    assert_eq!(terminal.exit_code(), Some(0));
}

#[test]
fn making_data_has_a_bar_with_its_name() {
    let place = Place::new();
    let mut terminal = Terminal::new(&place, "ssb --sf 1 --dir d --queries q1.1 --runs 1 --device cpu");
    terminal.expect("making ssb at scale 1 ");
    terminal.expect(" % ");
    terminal.press(CTRL_C);
    terminal.expect("SQL-007 cancelled");
    assert_eq!(terminal.exit_code(), Some(130));
}

#[test]
fn the_shell_takes_commands_and_statements_of_several_lines() {
    let place = Place::new();
    let mut terminal = Terminal::new(&place, "--device cpu");
    let mut ask = |lines: &str, answer: &str| {
        terminal.expect("warpcube> ");
        for line in lines.split('\n') {
            terminal.press(line);
            terminal.press(ENTER);
        }
        terminal.expect(answer);
    };
    ask("SELECT 6 *\n  7 AS product\n  , 'a;b' AS text;", " 42 ");
    ask("\\timing", "timing is on");
    ask("SELECT 'timed' AS a;", "(1 row, ");
    ask("\\timing off", "");
    ask("\\timing", "timing is off");
    ask("SELECT 'untimed' AS a;", "(1 row)");
    ask("CREATE TABLE t AS VALUES (1);", "(done)");
    ask("\\timing on", "");
    ask("SELECT 'again' AS a; SELECT 'more' AS a;", "(1 row, ");
    ask("\\device", "device: CPU (warpcube.device is 'cpu')");
    ask("\\device moon", "error: CFG-002 warpcube.device = 'moon'");
    ask("\\device auto", "device: ");
    ask("help;", "Statements end with ';'");
    ask("HELP", "\\timing [on|off]");
    ask("SELECT 1 / 0; SELECT 'not run' AS a;", "SQL-006 division by zero");
    ask("exit;", "");
    assert_eq!(terminal.exit_code(), Some(0));
    assert!(!terminal.seen.0.lock().unwrap().contains("│ not run"), "statements after an error were run");
    for word in ["quit;", "exit", "QUIT"] {
        let mut terminal = Terminal::new(&place, "--device cpu");
        terminal.expect("warpcube> ");
        terminal.press(word);
        terminal.press(ENTER);
        assert_eq!(terminal.exit_code(), Some(0), "{word}");
    }
}

#[test]
fn nothing_in_a_cell_is_obeyed_by_the_terminal() {
    let place = Place::new();
    let sql = "SELECT chr(27) || ']0;renamed' || chr(7) || chr(155) || '2J' AS a, chr(8238) || 'turned' AS b";
    for format in ["table", "csv", "tsv", "json", "ndjson"] {
        let mut terminal = Terminal::new(&place, &format!("--device cpu --format {format} -c \"{sql}\""));
        assert_eq!(terminal.exit_code(), Some(0));
        terminal.expect("turned");
        let seen = terminal.seen.0.lock().unwrap().clone();
        // A slow machine shows a progress bar, whose escapes are `ESC [`.
        let obeyed = ["\u{1b}]", "\u{7}", "\u{9b}", "\u{202e}"];
        assert!(!obeyed.iter().any(|control| seen.contains(control)), "{format}: {seen:?}");
        assert!(seen.contains("]0;renamed") && seen.contains("\\u202e"), "{format}: {seen:?}");
    }
}

#[test]
fn numbers_are_never_broken() {
    let place = Place::new();
    let long = "repeat('many words ', 20)";
    let sql = format!(
        "SELECT 1234567890123456789 AS n, {long} AS a, {long} AS b, 9876543210987654321 AS m, \
         timestamp '2020-01-02 03:04:05' AS a_time_with_a_long_name, 7 AS a_number_with_a_name_of_many_letters"
    );
    let mut terminal = Terminal::new(&place, &format!("--device cpu -c \"{sql}\""));
    terminal.expect(" 1234567890123456789 ");
    terminal.expect(" 9876543210987654321 ");
    terminal.expect(" 2020-01-02 03:04:05 ");
    assert_eq!(terminal.exit_code(), Some(0));
}

#[test]
fn the_history_is_kept_at_each_statement_and_by_shells_beside_each_other() {
    let place = Place::new();
    let path = place.path("history");
    let shell = || {
        let mut command = place.command();
        command.env("WARPCUBE_HISTORY", &path);
        let mut terminal = Terminal::of(command, "--device cpu");
        terminal.expect("warpcube> ");
        terminal
    };
    let ask = |terminal: &mut Terminal, number: usize| {
        terminal.press(&format!("SELECT {number} + 0 AS a;"));
        terminal.press(ENTER);
        terminal.expect(&format!(" {number} │"));
        terminal.expect("warpcube> ");
    };
    let (mut one, mut other) = (shell(), shell());
    ask(&mut one, 1001);
    ask(&mut other, 1002);
    ask(&mut one, 1003);
    // Killed, both of them.
    drop((one, other));
    let mut last = shell();
    ask(&mut last, 1004);
    let history = String::from_utf8(place.read("history")).unwrap();
    for number in 1001..=1004 {
        assert_eq!(history.matches(&format!("SELECT {number} + 0 AS a;")).count(), 1, "{history}");
    }
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn the_shell_has_a_start_up_file_and_a_history() {
    let place = Place::new();
    let rc = place.write("rc.sql", "CREATE TABLE mine AS VALUES (17);\n\\format csv\n\\timing off\nSELECT nope;\n");
    let shell = || {
        let mut command = place.command();
        command.env("WARPCUBE_RC", &rc).env("WARPCUBE_HISTORY", place.path("some/history"));
        Terminal::of(command, "--device cpu")
    };
    let mut terminal = shell();
    terminal.expect("rc.sql:4: SQL-003 unknown column 'nope'");
    terminal.expect("warpcube> ");
    terminal.press("SELECT column1 AS own FROM mine;");
    terminal.press(ENTER);
    terminal.expect("own\r\n17\r\n");
    terminal.expect("(1 row)");
    terminal.expect("warpcube> ");
    terminal.press("\\q");
    terminal.press(ENTER);
    assert_eq!(terminal.exit_code(), Some(0));
    let history = String::from_utf8(place.read("some/history")).unwrap();
    assert!(history.contains("SELECT column1 AS own FROM mine;"), "{history}");

    let mut again = shell();
    again.expect("warpcube> ");
    // Up, twice: past what left the shell, to the statement before.
    again.press("\u{1b}[A\u{1b}[A");
    again.expect("SELECT column1 AS own FROM mine;");
    again.press(ENTER);
    again.expect("own\r\n17\r\n");
    again.press("\\q");
    again.press(ENTER);
    assert_eq!(again.exit_code(), Some(0));
}
