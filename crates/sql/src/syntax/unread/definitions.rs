//! Clauses of definitions: columns, constraints, views.

use datafusion::sql::sqlparser::ast::{
    CheckConstraint, ColumnDef, ColumnOption, ColumnOptionDef, ConstraintCharacteristics, CreateTable,
    CreateTableOptions, CreateView, Expr, IndexColumn, KeyOrIndexDisplay, NullsDistinctOption, OrderByExpr,
    OrderByOptions, PrimaryKeyConstraint, TableConstraint, UniqueConstraint, ViewColumnDef,
};

use super::refuse;
use super::types::{self, Lengths};
use crate::error::{Result, SqlError};
use crate::syntax::visits::has_query;

/// Checks a table in memory. The planner takes `CreateTable` apart without `..` itself, and refuses what it does not
/// read, but for what columns and constraints hold: [`Declared`](super::super::Declared) keeps what passes here.
pub(super) fn table(table: &CreateTable) -> Result<()> {
    refuse([("options of CREATE TABLE", table.table_options != CreateTableOptions::None)])?;
    columns(&table.columns, Lengths::OfVarchar)?;
    table.constraints.iter().try_for_each(|constraint| match constraint {
        TableConstraint::Unique(constraint) => unique(constraint),
        TableConstraint::PrimaryKey(constraint) => primary_key(constraint),
        TableConstraint::Check(constraint) => check(constraint),
        other @ (TableConstraint::ForeignKey(_)
        | TableConstraint::Index(_)
        | TableConstraint::FulltextOrSpatial(_)
        | TableConstraint::PrimaryKeyUsingIndex(_)
        | TableConstraint::UniqueUsingIndex(_)) => Err(SqlError::Unsupported(name_of_constraint(other).into())),
    })
}

/// Checks a table over files, whose rows are held to NOT NULL by INSERT alone.
pub(super) fn external(columns: &[ColumnDef], constraints: &[TableConstraint]) -> Result<()> {
    let of_columns = columns.iter().flat_map(|column| &column.options).find_map(|option| match option.option {
        ColumnOption::PrimaryKey(_) => Some("PRIMARY KEY"),
        ColumnOption::Unique(_) => Some("UNIQUE"),
        ColumnOption::Check(_) => Some("CHECK"),
        ColumnOption::ForeignKey(_) => Some(FOREIGN_KEY),
        _ => None,
    });
    match of_columns.or_else(|| constraints.first().map(name_of_constraint)) {
        Some(name) => {
            Err(SqlError::Unsupported(format!("{name} of a table over files; declare it of a table in memory")))
        }
        None => self::columns(columns, Lengths::Refused),
    }
}

fn columns(columns: &[ColumnDef], lengths: Lengths) -> Result<()> {
    columns.iter().try_for_each(|ColumnDef { name: _, data_type, options }| {
        types::check(data_type, lengths)?;
        options.iter().try_for_each(|ColumnOptionDef { name: _, option }| column_option(option))
    })
}

const FOREIGN_KEY: &str = "FOREIGN KEY";

fn name_of_constraint(constraint: &TableConstraint) -> &'static str {
    match constraint {
        TableConstraint::PrimaryKey(_) => "PRIMARY KEY",
        TableConstraint::Unique(_) => "UNIQUE",
        TableConstraint::Check(_) => "CHECK",
        TableConstraint::ForeignKey(_) => FOREIGN_KEY,
        TableConstraint::Index(_) | TableConstraint::FulltextOrSpatial(_) => "INDEX",
        TableConstraint::PrimaryKeyUsingIndex(_) => "PRIMARY KEY USING INDEX",
        TableConstraint::UniqueUsingIndex(_) => "UNIQUE USING INDEX",
    }
}

fn column_option(option: &ColumnOption) -> Result<()> {
    let name = match option {
        ColumnOption::Null | ColumnOption::NotNull | ColumnOption::Default(_) => return Ok(()),
        ColumnOption::ForeignKey(_) => return Err(SqlError::Unsupported(FOREIGN_KEY.into())),
        ColumnOption::PrimaryKey(constraint) => return primary_key(constraint),
        ColumnOption::Unique(constraint) => return unique(constraint),
        ColumnOption::Check(constraint) => return check(constraint),
        ColumnOption::DialectSpecific(tokens) => {
            let words: Vec<String> = tokens.iter().map(|token| token.to_string()).collect();
            return Err(SqlError::Unsupported(format!("{} of a column", words.join(" "))));
        }
        ColumnOption::Materialized(_) => "MATERIALIZED",
        ColumnOption::Ephemeral(_) => "EPHEMERAL",
        ColumnOption::Alias(_) => "ALIAS",
        ColumnOption::CharacterSet(_) => "CHARACTER SET",
        ColumnOption::Collation(_) => "COLLATE",
        ColumnOption::Comment(_) => "COMMENT",
        ColumnOption::OnUpdate(_) => "ON UPDATE",
        ColumnOption::Generated {
            generated_as: _,
            sequence_options: _,
            generation_expr: _,
            generation_expr_mode: _,
            generated_keyword: _,
        } => "GENERATED",
        ColumnOption::Options(_) => "OPTIONS",
        ColumnOption::Identity(_) => "IDENTITY",
        ColumnOption::OnConflict(_) => "ON CONFLICT",
        ColumnOption::Policy(_) => "POLICY",
        ColumnOption::Tags(_) => "TAG",
        ColumnOption::Srid(_) => "SRID",
        ColumnOption::Invisible => "INVISIBLE",
    };
    Err(SqlError::Unsupported(format!("{name} of a column")))
}

fn primary_key(constraint: &PrimaryKeyConstraint) -> Result<()> {
    let PrimaryKeyConstraint { name: _, index_name, index_type, columns, index_options, characteristics } = constraint;
    refuse([("an index for PRIMARY KEY", index_name.is_some() || index_type.is_some() || !index_options.is_empty())])?;
    keys(columns)?;
    characteristics.as_ref().map_or(Ok(()), enforcement)
}

fn unique(constraint: &UniqueConstraint) -> Result<()> {
    let UniqueConstraint {
        name: _,
        index_name,
        index_type_display,
        index_type,
        columns,
        index_options,
        characteristics,
        nulls_distinct,
    } = constraint;
    refuse([
        ("an index for UNIQUE", index_name.is_some() || index_type.is_some() || !index_options.is_empty()),
        ("UNIQUE KEY and UNIQUE INDEX", !matches!(index_type_display, KeyOrIndexDisplay::None)),
        ("UNIQUE NULLS NOT DISTINCT", matches!(nulls_distinct, NullsDistinctOption::NotDistinct)),
    ])?;
    keys(columns)?;
    characteristics.as_ref().map_or(Ok(()), enforcement)
}

fn check(constraint: &CheckConstraint) -> Result<()> {
    let CheckConstraint { name: _, expr, enforced } = constraint;
    refuse([("CHECK … NOT ENFORCED", *enforced == Some(false)), ("CHECK with a subquery", has_query(expr))])
}

fn keys(columns: &[IndexColumn]) -> Result<()> {
    columns.iter().try_for_each(|IndexColumn { column, operator_class }| {
        let OrderByExpr { expr, options: OrderByOptions { asc, nulls_first }, with_fill } = column;
        if !matches!(expr, Expr::Identifier(_)) {
            return Err(SqlError::Unsupported(format!("a key of '{expr}'; keys are of plain columns")));
        }
        refuse([
            ("ASC and DESC of a key's columns", asc.is_some() || nulls_first.is_some() || with_fill.is_some()),
            ("operator classes of a key's columns", operator_class.is_some()),
        ])
    })
}

fn enforcement(characteristics: &ConstraintCharacteristics) -> Result<()> {
    let ConstraintCharacteristics { deferrable, initially, enforced } = characteristics;
    refuse([
        ("DEFERRABLE constraints", *deferrable == Some(true)),
        ("INITIALLY of a constraint", initially.is_some()),
        ("constraints that are NOT ENFORCED", *enforced == Some(false)),
    ])
}

/// Checks a view; its query is visited by itself.
pub(super) fn view(view: &CreateView) -> Result<()> {
    let CreateView {
        or_alter,
        or_replace: _,
        materialized,
        secure,
        name: _,
        name_before_not_exists: _,
        columns,
        query: _,
        options,
        cluster_by,
        comment,
        with_no_schema_binding,
        // The connection looks whether it is there.
        if_not_exists: _,
        temporary: _,
        copy_grants,
        to,
        params,
    } = view;
    for ViewColumnDef { name: _, data_type, options } in columns {
        refuse([
            ("types of a view's columns", data_type.is_some()),
            ("options of a view's columns", options.is_some()),
        ])?;
    }
    refuse([
        ("CREATE OR ALTER VIEW", *or_alter),
        ("CREATE MATERIALIZED VIEW", *materialized),
        ("CREATE SECURE VIEW", *secure),
        ("options of CREATE VIEW", *options != CreateTableOptions::None),
        ("CLUSTER BY of CREATE VIEW", !cluster_by.is_empty()),
        ("COMMENT of CREATE VIEW", comment.is_some()),
        ("WITH NO SCHEMA BINDING", *with_no_schema_binding),
        ("COPY GRANTS", *copy_grants),
        ("TO of CREATE VIEW", to.is_some()),
        ("ALGORITHM, DEFINER and SQL SECURITY of CREATE VIEW", params.is_some()),
    ])
}
