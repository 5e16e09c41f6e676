//! Clauses of tables in FROM, and of joins.

use datafusion::sql::sqlparser::ast::{
    FunctionArg, Join, JoinOperator, TableAlias, TableAliasColumnDef, TableFactor, TableFunctionArgs, TableWithJoins,
};

use super::refuse;
use crate::error::{Result, SqlError};

/// Checks the joins of a table; the tables are visited by themselves.
pub(super) fn joins(tables: &TableWithJoins) -> Result<()> {
    let TableWithJoins { relation: _, joins } = tables;
    joins.iter().try_for_each(join)
}

pub(super) fn join(join: &Join) -> Result<()> {
    // GLOBAL is what is read for ASOF, which [`expansions`](super::super::expansions) takes.
    let Join { relation: _, global, join_operator } = join;
    refuse([("ASOF JOIN here", *global)])?;
    let name = match join_operator {
        JoinOperator::Join(_)
        | JoinOperator::Inner(_)
        | JoinOperator::Left(_)
        | JoinOperator::LeftOuter(_)
        | JoinOperator::Right(_)
        | JoinOperator::RightOuter(_)
        | JoinOperator::FullOuter(_)
        | JoinOperator::CrossJoin(_)
        | JoinOperator::LeftSemi(_)
        | JoinOperator::RightSemi(_)
        | JoinOperator::LeftAnti(_)
        | JoinOperator::RightAnti(_)
        | JoinOperator::Semi(_)
        | JoinOperator::Anti(_) => return Ok(()),
        JoinOperator::CrossApply => "CROSS APPLY; write CROSS JOIN LATERAL",
        JoinOperator::OuterApply => "OUTER APPLY; write LEFT JOIN LATERAL",
        JoinOperator::AsOf { match_condition: _, constraint: _ } => {
            "ASOF JOIN … MATCH_CONDITION; write the condition behind ON"
        }
        JoinOperator::StraightJoin(_) => "STRAIGHT_JOIN",
        JoinOperator::ArrayJoin | JoinOperator::LeftArrayJoin | JoinOperator::InnerArrayJoin => "ARRAY JOIN",
    };
    Err(SqlError::Unsupported(name.into()))
}

/// Checks a table of FROM.
pub(super) fn factor(factor: &TableFactor) -> Result<()> {
    let (alias, name) = match factor {
        TableFactor::Table {
            name: _,
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_hints,
        } => {
            let has_settings = matches!(args, Some(TableFunctionArgs { args: _, settings }) if settings.is_some());
            refuse([
                ("TABLESAMPLE", sample.is_some()),
                ("hints of a table, WITH (…)", !with_hints.is_empty()),
                ("WITH ORDINALITY", *with_ordinality),
                ("PARTITION (…) of a table", !partitions.is_empty()),
                ("a path within a table", json_path.is_some()),
                ("USE, IGNORE and FORCE INDEX", !index_hints.is_empty()),
                ("SETTINGS of a table function", has_settings),
            ])?;
            if let Some(version) = version {
                return Err(SqlError::Unsupported(version.to_string()));
            }
            (alias, None)
        }
        TableFactor::Derived { lateral: _, subquery: _, alias, sample } => {
            refuse([("TABLESAMPLE", sample.is_some())])?;
            (alias, None)
        }
        TableFactor::Function { lateral: _, name: _, args, with_ordinality, alias } => {
            let is_named = |arg: &FunctionArg| !matches!(arg, FunctionArg::Unnamed(_));
            refuse([
                ("WITH ORDINALITY", *with_ordinality),
                ("named arguments of a table function", args.iter().any(is_named)),
            ])?;
            (alias, None)
        }
        TableFactor::UNNEST { alias, array_exprs: _, with_offset, with_offset_alias: _, with_ordinality } => {
            refuse([("UNNEST … WITH OFFSET", *with_offset), ("UNNEST … WITH ORDINALITY", *with_ordinality)])?;
            (alias, None)
        }
        TableFactor::NestedJoin { table_with_joins, alias } => {
            joins(table_with_joins)?;
            (alias, None)
        }
        TableFactor::TableFunction { expr: _, alias } => (alias, Some("TABLE (…) in FROM")),
        TableFactor::JsonTable { json_expr: _, json_path: _, columns: _, alias } => (alias, Some("JSON_TABLE")),
        TableFactor::OpenJsonTable { json_expr: _, json_path: _, columns: _, alias } => (alias, Some("OPENJSON")),
        TableFactor::Pivot { alias, .. } => (alias, Some("PIVOT")),
        TableFactor::Unpivot { alias, .. } => (alias, Some("UNPIVOT")),
        TableFactor::MatchRecognize { alias, .. } => (alias, Some("MATCH_RECOGNIZE")),
        TableFactor::XmlTable { alias, .. } => (alias, Some("XMLTABLE")),
        TableFactor::SemanticView { alias, .. } => (alias, Some("SEMANTIC_VIEW")),
    };
    if let Some(name) = name {
        return Err(SqlError::Unsupported(name.into()));
    }
    alias.as_ref().map_or(Ok(()), self::alias)
}

/// Checks the name of a table and of its columns.
pub(super) fn alias(alias: &TableAlias) -> Result<()> {
    let TableAlias { explicit: _, name: _, columns, at } = alias;
    let is_typed = |TableAliasColumnDef { name: _, data_type }: &TableAliasColumnDef| data_type.is_some();
    refuse([
        ("types in a list of column names; use CAST", columns.iter().any(is_typed)),
        ("AT behind a table's name", at.is_some()),
    ])
}
