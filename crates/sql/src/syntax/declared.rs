//! What a `CREATE TABLE` declares of its rows, taken out of the tree: DataFusion 55.2 believes keys that nothing holds,
//! forgets NOT NULL where there is a query, and refuses CHECK.
//!
//! Tables in memory keep all of it ([`crate::memory_table`]). Foreign keys, and what is declared of tables over files,
//! are refused.

use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::KeyOrIndexDisplay;
use datafusion::sql::sqlparser::ast::{
    CheckConstraint, ColumnDef, ColumnOption, ConstraintCharacteristics, Expr, IndexColumn, NullsDistinctOption,
    OrderByExpr, OrderByOptions, PrimaryKeyConstraint, Statement as SqlStatement, TableConstraint, UniqueConstraint,
};

use super::items::folded;
use super::visits::has_query;
use crate::error::{Result, SqlError};

/// A PRIMARY KEY or UNIQUE as it is declared.
#[derive(Debug, Clone)]
pub(crate) struct DeclaredKey {
    pub(crate) is_primary: bool,
    pub(crate) columns: Vec<String>,
}

/// What a statement declares of the rows of the table that it makes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Declared {
    not_null: Vec<String>,
    pub(crate) keys: Vec<DeclaredKey>,
    pub(crate) checks: Vec<Expr>,
    pub(crate) defaults: Vec<(String, Expr)>,
}

impl Declared {
    /// Whether a column takes no NULL: by its declaration, or as part of the primary key.
    pub(crate) fn is_not_null(&self, column: &str) -> bool {
        let of_key = |key: &DeclaredKey| key.is_primary && key.columns.iter().any(|name| name == column);
        self.not_null.iter().any(|name| name == column) || self.keys.iter().any(of_key)
    }

    /// Takes the declarations out of a statement; nothing where it makes no table in memory.
    pub(crate) fn take(parsed: &mut ParsedStatement) -> Result<Declared> {
        match parsed {
            ParsedStatement::CreateExternalTable(external) => {
                let mut of_column = external.columns.iter().flat_map(|column| &column.options);
                let of_column = of_column.find_map(|option| name_of(&option.option));
                if let Some(name) = of_column.or_else(|| external.constraints.first().map(name_of_table_constraint)) {
                    return Err(SqlError::Unsupported(format!("{name} of a table over files, which nothing holds")));
                }
                // INSERT holds NOT NULL; the table has it by the command.
                Ok(Declared::default())
            }
            ParsedStatement::Statement(statement) => match statement.as_mut() {
                SqlStatement::CreateTable(table) => Declared::of(&mut table.columns, &mut table.constraints),
                _ => Ok(Declared::default()),
            },
            ParsedStatement::Explain(explain) => Declared::take(&mut explain.statement),
            _ => Ok(Declared::default()),
        }
    }

    fn of(columns: &mut [ColumnDef], constraints: &mut Vec<TableConstraint>) -> Result<Declared> {
        let mut declared = Declared::default();
        for column in columns {
            let name = folded(&column.name);
            let mut kept = Vec::with_capacity(column.options.len());
            for definition in std::mem::take(&mut column.options) {
                match definition.option {
                    ColumnOption::NotNull => declared.not_null.push(name.clone()),
                    ColumnOption::Null => {}
                    ColumnOption::PrimaryKey(key) => declared.primary(key, Some(&name))?,
                    ColumnOption::Unique(key) => declared.unique(key, Some(&name))?,
                    ColumnOption::Check(check) => declared.check(check)?,
                    ColumnOption::ForeignKey(_) => return Err(foreign_key()),
                    ColumnOption::Default(ref value) => {
                        declared.defaults.push((name.clone(), value.clone()));
                        kept.push(definition);
                    }
                    other => {
                        return Err(SqlError::Unsupported(format!("'{other}' of column '{name}'")));
                    }
                }
            }
            column.options = kept;
        }
        for constraint in std::mem::take(constraints) {
            match constraint {
                TableConstraint::PrimaryKey(key) => declared.primary(key, None)?,
                TableConstraint::Unique(key) => declared.unique(key, None)?,
                TableConstraint::Check(check) => declared.check(check)?,
                TableConstraint::ForeignKey(_) => return Err(foreign_key()),
                other @ (TableConstraint::Index(_)
                | TableConstraint::FulltextOrSpatial(_)
                | TableConstraint::PrimaryKeyUsingIndex(_)
                | TableConstraint::UniqueUsingIndex(_)) => {
                    return Err(SqlError::Unsupported(format!("'{other}' of a table")));
                }
            }
        }
        match declared.keys.iter().filter(|key| key.is_primary).count() {
            0 | 1 => Ok(declared),
            _ => Err(SqlError::Planning("a table has one PRIMARY KEY at most".into())),
        }
    }

    fn primary(&mut self, key: PrimaryKeyConstraint, column: Option<&String>) -> Result<()> {
        let text = key.to_string();
        // A constraint's name is shown nowhere.
        let PrimaryKeyConstraint { name: _, index_name, index_type, columns, index_options, characteristics } = key;
        let is_plain = index_name.is_none() && index_type.is_none() && index_options.is_empty();
        let columns = key_columns(&columns, column).filter(|_| is_plain && is_held(characteristics));
        self.key(true, columns, &text)
    }

    fn unique(&mut self, key: UniqueConstraint, column: Option<&String>) -> Result<()> {
        let text = key.to_string();
        let UniqueConstraint {
            name: _,
            index_name,
            index_type_display,
            index_type,
            columns,
            index_options,
            characteristics,
            nulls_distinct,
        } = key;
        let is_plain = index_name.is_none()
            && index_type.is_none()
            && index_options.is_empty()
            && matches!(index_type_display, KeyOrIndexDisplay::None)
            && !matches!(nulls_distinct, NullsDistinctOption::NotDistinct);
        let columns = key_columns(&columns, column).filter(|_| is_plain && is_held(characteristics));
        self.key(false, columns, &text)
    }

    fn key(&mut self, is_primary: bool, columns: Option<Vec<String>>, text: &str) -> Result<()> {
        let columns = columns.ok_or_else(|| SqlError::Unsupported(format!("'{text}'; keys are of plain columns")))?;
        self.keys.push(DeclaredKey { is_primary, columns });
        Ok(())
    }

    fn check(&mut self, check: CheckConstraint) -> Result<()> {
        let text = check.to_string();
        let CheckConstraint { name: _, expr, enforced } = check;
        if enforced == Some(false) || has_query(&expr) {
            return Err(SqlError::Unsupported(format!("'{text}'")));
        }
        self.checks.push(*expr);
        Ok(())
    }
}

fn foreign_key() -> SqlError {
    SqlError::Unsupported("FOREIGN KEY".into())
}

/// Whether a constraint is held at the end of each statement, which is when ours are.
fn is_held(characteristics: Option<ConstraintCharacteristics>) -> bool {
    characteristics.is_none_or(|ConstraintCharacteristics { deferrable, initially, enforced }| {
        deferrable != Some(true) && initially.is_none() && enforced != Some(false)
    })
}

/// The columns of a key by name: those it names, otherwise the one it stands at.
fn key_columns(columns: &[IndexColumn], own: Option<&String>) -> Option<Vec<String>> {
    if columns.is_empty() {
        return own.map(|own| vec![own.clone()]);
    }
    let name = |column: &IndexColumn| {
        let IndexColumn { column: OrderByExpr { expr, options, with_fill }, operator_class } = column;
        let OrderByOptions { asc, nulls_first } = options;
        match expr {
            Expr::Identifier(name)
                if asc.is_none() && nulls_first.is_none() && with_fill.is_none() && operator_class.is_none() =>
            {
                Some(folded(name))
            }
            _ => None,
        }
    };
    columns.iter().map(name).collect()
}

/// The name of a constraint on a column.
fn name_of(option: &ColumnOption) -> Option<&'static str> {
    match option {
        ColumnOption::PrimaryKey(_) => Some("PRIMARY KEY"),
        ColumnOption::Unique(_) => Some("UNIQUE"),
        ColumnOption::Check(_) => Some("CHECK"),
        ColumnOption::ForeignKey(_) => Some("FOREIGN KEY"),
        _ => None,
    }
}

fn name_of_table_constraint(constraint: &TableConstraint) -> &'static str {
    match constraint {
        TableConstraint::PrimaryKey(_) | TableConstraint::PrimaryKeyUsingIndex(_) => "PRIMARY KEY",
        TableConstraint::Unique(_) | TableConstraint::UniqueUsingIndex(_) => "UNIQUE",
        TableConstraint::Check(_) => "CHECK",
        TableConstraint::ForeignKey(_) => "FOREIGN KEY",
        TableConstraint::Index(_) | TableConstraint::FulltextOrSpatial(_) => "INDEX",
    }
}
