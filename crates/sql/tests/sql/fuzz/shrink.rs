//! From a failing case to a small SQL file: parts of the query go, then rows, then columns.

use std::fmt::Write;

use arrow::util::display::{ArrayFormatter, FormatOptions};

use super::bench::{Bench, Verdict};
use super::data::{Table, Tables};
use super::query::{Query, is_text};
use crate::format;

/// Most runs spent on one case.
const RUNS_MAX: usize = 150;

/// The smallest case found that still differs.
pub async fn shrink(bench: &mut Bench, tables: Tables, query: Query) -> (Tables, Query) {
    let (mut tables, mut query) = (tables, query);
    let mut runs = 0;
    'parts: loop {
        for smaller in query.smaller() {
            runs += 1;
            if runs < RUNS_MAX && matches!(bench.check(&smaller.sql()).await, Verdict::Differs(_)) {
                query = smaller;
                continue 'parts;
            }
        }
        break;
    }
    // Rows of tables that are not read go first of all, in one piece.
    for index in 0..tables.tables.len() {
        let mut piece = tables.tables[index].rows.num_rows();
        while piece > 0 {
            let mut start = 0;
            while start < tables.tables[index].rows.num_rows() && runs < RUNS_MAX * 2 {
                let mut fewer = tables.clone();
                fewer.tables[index] = tables.tables[index].without(start, piece);
                bench.load(&fewer).await;
                runs += 1;
                match bench.check(&query.sql()).await {
                    Verdict::Differs(_) => tables = fewer,
                    _ => start += piece,
                }
            }
            piece /= 2;
        }
    }
    bench.load(&tables).await;
    (tables, query)
}

/// The case as a file for the runner of SQL files, with the CPU's answer as what is expected.
pub async fn write_up(bench: &Bench, tables: &Tables, query: &Query, about: &str) -> String {
    let sql = query.sql();
    let mut text = String::new();
    let _ = writeln!(text, "# {}", about.replace('\n', " "));
    let reads = |table: &&Table| table.columns.iter().any(|column| sql.contains(&column.name)) || table.name == "f";
    for table in tables.tables.iter().filter(reads) {
        let _ = writeln!(text, "\nstatement ok\n{}", creation(table, &sql));
    }
    let rows = bench.expected(&sql).await.unwrap_or_default();
    let types = rows.first().map(|batch| format::types(batch.schema_ref())).unwrap_or_default();
    let _ = writeln!(text, "\n# placement: device\nquery {types} rowsort\n{sql}\n----");
    let mut lines: Vec<String> = format::rows(&rows).iter().map(|row| row.join(" ")).collect();
    lines.sort();
    lines.push(String::new());
    text += &lines.join("\n");
    text
}

/// A statement that makes the columns of a table that a query reads.
fn creation(table: &Table, sql: &str) -> String {
    let used: Vec<usize> =
        (0..table.columns.len()).filter(|index| *index == 0 || sql.contains(&table.columns[*index].name)).collect();
    let options = FormatOptions::new();
    let cell = |index: usize, row: usize| {
        let values = table.rows.column(index);
        if values.is_null(row) {
            return "NULL".to_string();
        }
        let text = ArrayFormatter::try_new(values.as_ref(), &options).expect("displayable").value(row).to_string();
        match is_text(values.data_type()) || !values.data_type().is_integer() {
            true => format!("'{}'", text.replace('\'', "''")),
            false => text,
        }
    };
    let outputs: Vec<String> = used
        .iter()
        .enumerate()
        .map(|(position, index)| {
            let column = &table.columns[*index];
            format!("arrow_cast(column{}, '{:?}') AS {}", position + 1, column.data_type, column.name)
        })
        .collect();
    let line = |row: usize| {
        let cells: Vec<String> = used.iter().map(|index| cell(*index, row)).collect();
        format!("({})", cells.join(", "))
    };
    let rows = table.rows.num_rows();
    let (lines, none) = match rows {
        0 => (vec![format!("({})", vec!["NULL"; used.len()].join(", "))], " WHERE false"),
        _ => ((0..rows).map(line).collect::<Vec<_>>(), ""),
    };
    let values = lines.join(", ");
    format!("CREATE TABLE {} AS SELECT {} FROM (VALUES {values}){none}", table.name, outputs.join(", "))
}
