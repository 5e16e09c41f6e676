//! The forms of statements, as `\h` shows them.

use crate::commands::Next;
use crate::console::print;
use crate::error::{CliError, Result};

/// Statements by name, each with its form.
pub(crate) static STATEMENTS: [(&str, &str); 34] = [
    (
        "SELECT",
        "[WITH [RECURSIVE] name AS (query), …]\nSELECT [ALL | DISTINCT [ON (expression, …)]] expression [AS name], …\n\
         [FROM table | 'file' | (query) | function(…) [AS name], … [JOIN … ON … | USING (…)]]\n[WHERE condition]\n\
         [GROUP BY expression, … | ALL | ROLLUP (…) | CUBE (…) | GROUPING SETS (…)]\n[HAVING condition]\n\
         [WINDOW name AS (…)]\n[QUALIFY condition]\n[UNION | INTERSECT | EXCEPT [ALL] query]\n\
         [ORDER BY expression [ASC | DESC] [NULLS FIRST | LAST], …]\n[LIMIT rows | share%] [OFFSET rows]",
    ),
    ("VALUES", "VALUES (expression, …), …"),
    (
        "INSERT",
        "INSERT [OR REPLACE | OR IGNORE] INTO table [(column, …)] query | VALUES (…), …\n\
         [ON CONFLICT [(column, …)] DO NOTHING | DO UPDATE SET column = excluded.column, …]",
    ),
    ("UPDATE", "UPDATE table SET column = expression, … [FROM …] [WHERE condition]"),
    ("DELETE", "DELETE FROM table [USING …] [WHERE condition]"),
    (
        "MERGE",
        "MERGE INTO table USING source ON condition\n\
         WHEN MATCHED [AND condition] THEN UPDATE SET column = expression, … | DELETE | DO NOTHING\n\
         WHEN NOT MATCHED [BY SOURCE] [AND condition] THEN INSERT [(column, …)] VALUES (…) | DO NOTHING",
    ),
    ("TRUNCATE", "TRUNCATE TABLE table"),
    (
        "CREATE TABLE",
        "CREATE [OR REPLACE] [TEMP] TABLE [IF NOT EXISTS] name (column type, …)\n\
         CREATE [OR REPLACE] [TEMP] TABLE [IF NOT EXISTS] name AS query",
    ),
    (
        "ALTER TABLE",
        "ALTER TABLE [IF EXISTS] table\nADD [COLUMN] name type | DROP [COLUMN] name | RENAME [COLUMN] name TO name |\n\
         RENAME TO name | ALTER [COLUMN] name TYPE type [USING expression] | SET | DROP DEFAULT | NOT NULL, …",
    ),
    (
        "CREATE EXTERNAL TABLE",
        "CREATE EXTERNAL TABLE [IF NOT EXISTS] name [(column type, …)]\n\
         STORED AS PARQUET | CSV | JSON | ARROW\n[PARTITIONED BY (column, …)] [WITH ORDER (expression, …)]\n\
         LOCATION 'file, folder or pattern' [OPTIONS (name value, …)]",
    ),
    ("CREATE MACRO", "CREATE [OR REPLACE] [TEMP] MACRO name([argument [:= default], …]) AS expression | TABLE query"),
    ("CREATE VIEW", "CREATE [OR REPLACE] VIEW [IF NOT EXISTS] name [(column, …)] AS query"),
    ("CREATE SCHEMA", "CREATE SCHEMA [IF NOT EXISTS] name"),
    ("DROP", "DROP TABLE | VIEW | MACRO | SCHEMA [IF EXISTS] name"),
    (
        "COPY",
        "COPY table | (query) TO 'file' [STORED AS format] [PARTITIONED BY (column, …)] [OPTIONS (name value, …)]\n\
         COPY table [(column, …)] | (query) TO 'file' (FORMAT format, option value, …)\n\
         COPY table [(column, …)] FROM 'file' [(FORMAT format, option value, …)]",
    ),
    ("ATTACH", "ATTACH 'folder' [AS name] [(READ_ONLY)]"),
    ("DETACH", "DETACH name"),
    ("USE", "USE catalog | schema | catalog.schema"),
    (
        "PIVOT",
        "PIVOT table ON column [IN (value, …)], … [USING aggregate(…), …] [GROUP BY column, …]\n\
         [ORDER BY expression, …] [LIMIT rows]",
    ),
    ("UNPIVOT", "UNPIVOT table ON column, … [INTO NAME name VALUE name] [ORDER BY expression, …]"),
    ("SUMMARIZE", "SUMMARIZE table | query"),
    ("DESCRIBE", "DESCRIBE table | 'file'"),
    ("EXPLAIN", "EXPLAIN [ANALYZE] [VERBOSE] statement"),
    ("SHOW", "SHOW TABLES | COLUMNS FROM table | FUNCTIONS | ALL | DEVICE TABLES | setting"),
    ("SET", "SET [GLOBAL] setting = value"),
    ("RESET", "RESET [GLOBAL] setting"),
    ("PREPARE", "PREPARE name [(type, …)] AS statement"),
    ("EXECUTE", "EXECUTE name [(value, …)]"),
    ("DEALLOCATE", "DEALLOCATE name | ALL"),
    ("LOAD TABLE", "LOAD TABLE table [(column, …)]"),
    ("EVICT TABLE", "EVICT TABLE table"),
    ("CASE", "CASE [expression] WHEN … THEN … [ELSE …] END"),
    ("CAST", "CAST(expression AS type), TRY_CAST(expression AS type), expression::type"),
    (
        "OVER",
        "function(…) [FILTER (WHERE condition)] OVER ([PARTITION BY expression, …] [ORDER BY expression, …]\n\
         [ROWS | RANGE | GROUPS BETWEEN … AND …])",
    ),
];

/// Shows the forms of the statements whose names begin like that, or the names.
pub(super) fn help(name: &str) -> Result<Next> {
    let wanted = name.to_uppercase();
    if wanted.is_empty() {
        let names: Vec<&str> = STATEMENTS.iter().map(|(name, _)| *name).collect();
        print(&format!("\\h NAME shows the form of one:\n  {}\n", names.join("\n  ")))?;
        return Ok(Next::Prompt);
    }
    let found: Vec<&str> =
        STATEMENTS.iter().filter(|(name, _)| name.starts_with(&wanted)).map(|(_, form)| *form).collect();
    if found.is_empty() {
        return Err(CliError::Command(format!("there is no statement '{name}'; \\h lists them")));
    }
    print(&format!("{}\n", found.join("\n\n")))?;
    Ok(Next::Prompt)
}
