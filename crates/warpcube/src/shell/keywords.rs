//! Words that statements are made of, for completion and colours. Names of functions come from the database.

/// The words, in capitals and in their order.
#[rustfmt::skip]
pub(super) const KEYWORDS: [&str; 153] = [
    "ADD", "ALL", "ALTER", "ANALYZE", "AND", "ANTI", "ANY", "ARRAY", "AS", "ASC", "ASOF", "ATTACH", "BETWEEN",
    "BIGINT", "BLOB", "BOOLEAN", "BY", "CASCADE", "CASE", "CAST", "COLUMN", "COLUMNS", "COPY", "CREATE", "CROSS",
    "CUBE", "CURRENT", "DATABASE", "DATE", "DEALLOCATE", "DECIMAL", "DEFAULT", "DELETE", "DESC", "DESCRIBE", "DEVICE",
    "DISTINCT", "DO", "DOUBLE", "DROP", "ELSE", "END", "ESCAPE", "EVICT", "EXCEPT", "EXCLUDE", "EXECUTE", "EXISTS",
    "EXPLAIN", "EXTERNAL", "EXTRACT", "FALSE", "FETCH", "FILTER", "FIRST", "FLOAT", "FOLLOWING", "FOR", "FROM",
    "FULL", "FUNCTIONS", "GROUP", "GROUPING", "GROUPS", "HAVING", "IF", "ILIKE", "IN", "INNER", "INSERT", "INTEGER",
    "INTERSECT", "INTERVAL", "INTO", "IS", "JOIN", "KEY", "LAST", "LATERAL", "LEFT", "LIKE", "LIMIT", "LOAD",
    "LOCATION", "MATCHED", "MERGE", "NATURAL", "NOT", "NOTHING", "NULL", "NULLS", "OFFSET", "ON", "OPTIONS", "OR",
    "ORDER", "OUTER", "OVER", "PARTITION", "PARTITIONED", "PIVOT", "POSITION", "PRECEDING", "PREPARE", "PRIMARY",
    "QUALIFY", "RANGE", "RECURSIVE", "RENAME", "REPLACE", "RESET", "RIGHT", "ROLLUP", "ROW", "ROWS", "SCHEMA",
    "SELECT", "SEMI", "SET", "SETS", "SHOW", "SIMILAR", "SMALLINT", "SOME", "STORED", "SUMMARIZE", "TABLE", "TABLES",
    "TABLESAMPLE", "TEMPORARY", "THEN", "TIES", "TIME", "TIMESTAMP", "TO", "TRUE", "TRUNCATE", "TRY_CAST",
    "UNBOUNDED", "UNION", "UNNEST", "UNPIVOT", "UPDATE", "USING", "VALUES", "VARCHAR", "VERBOSE", "VIEW", "WHEN",
    "WHERE", "WINDOW", "WITH", "WITHIN",
];

/// Whether a word is one of them, in any case.
pub(super) fn is_keyword(word: &str) -> bool {
    KEYWORDS.binary_search(&word.to_uppercase().as_str()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_in_order() {
        assert!(KEYWORDS.is_sorted());
        assert!(is_keyword("Select") && !is_keyword("amount"));
    }
}
