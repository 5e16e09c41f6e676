//! What a `CREATE TABLE` declares of its rows, taken out of the tree: DataFusion 55.2 believes keys that nothing
//! checks, forgets NOT NULL where there is a query, and refuses CHECK.
//!
//! Tables in memory keep all of it ([`crate::memory_table`]); what they cannot keep, [`super::unread`] has refused.

use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    ColumnDef, ColumnOption, CreateTable, Expr, IndexColumn, Statement as SqlStatement, TableConstraint,
};

use super::items::folded;
use crate::error::{Result, SqlError};
use crate::extension_types::ExtensionType;

/// A PRIMARY KEY or UNIQUE as it is declared.
#[derive(Debug, Clone)]
pub(crate) struct DeclaredKey {
    pub(crate) is_primary: bool,
    pub(crate) columns: Vec<String>,
}

/// What a statement declares of the rows of the table that it makes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Declared {
    pub(super) not_null: Vec<String>,
    pub(crate) keys: Vec<DeclaredKey>,
    pub(crate) checks: Vec<Expr>,
    pub(crate) defaults: Vec<(String, Expr)>,
    /// The extension types of columns.
    pub(crate) extension_types: Vec<(String, ExtensionType)>,
    /// Whether the table is one of the connection alone, which the planner refuses.
    pub(crate) is_temporary: bool,
}

impl Declared {
    /// Whether a column takes no NULL: by its declaration, or as part of the primary key.
    pub(crate) fn is_not_null(&self, column: &str) -> bool {
        let of_key = |key: &DeclaredKey| key.is_primary && key.columns.iter().any(|name| name == column);
        self.not_null.iter().any(|name| name == column) || self.keys.iter().any(of_key)
    }

    /// Takes the declarations out of a statement that [`super::unread`] has passed; nothing where it makes no table in
    /// memory: INSERT holds NOT NULL of a table over files, which has it by the command.
    ///
    /// # Errors
    /// [`SqlError::Planning`] for several primary keys, [`SqlError::Unsupported`] for declarations below PREPARE.
    pub(crate) fn take(parsed: &mut ParsedStatement) -> Result<Declared> {
        match parsed {
            ParsedStatement::Statement(statement) => match statement.as_mut() {
                SqlStatement::CreateTable(table) => Ok(Declared {
                    is_temporary: std::mem::take(&mut table.temporary),
                    ..Declared::of(&mut table.columns, &mut table.constraints)?
                }),
                SqlStatement::CreateView(view) => {
                    Ok(Declared { is_temporary: std::mem::take(&mut view.temporary), ..Declared::default() })
                }
                SqlStatement::Prepare { statement, .. } => match statement.as_ref() {
                    SqlStatement::CreateTable(table) if is_declared(table) => Err(SqlError::Unsupported(
                        "constraints and defaults of CREATE TABLE in PREPARE; run the CREATE TABLE itself".into(),
                    )),
                    _ => Ok(Declared::default()),
                },
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
            let own = || vec![name.clone()];
            declared.extension_types.extend(ExtensionType::of_sql(&column.data_type).map(|of| (name.clone(), of)));
            column.options.retain_mut(|definition| {
                match &mut definition.option {
                    ColumnOption::NotNull => declared.not_null.push(name.clone()),
                    ColumnOption::PrimaryKey(_) => declared.keys.push(DeclaredKey { is_primary: true, columns: own() }),
                    ColumnOption::Unique(_) => declared.keys.push(DeclaredKey { is_primary: false, columns: own() }),
                    ColumnOption::Check(check) => declared.checks.push(check.expr.as_ref().clone()),
                    ColumnOption::Default(value) => declared.defaults.push((name.clone(), value.clone())),
                    _ => {}
                }
                matches!(definition.option, ColumnOption::Default(_))
            });
        }
        for constraint in std::mem::take(constraints) {
            match constraint {
                TableConstraint::PrimaryKey(key) => declared.key(true, &key.columns),
                TableConstraint::Unique(key) => declared.key(false, &key.columns),
                TableConstraint::Check(check) => declared.checks.push(*check.expr),
                _ => {}
            }
        }
        match declared.keys.iter().filter(|key| key.is_primary).count() {
            0 | 1 => Ok(declared),
            _ => Err(SqlError::Planning("a table has one PRIMARY KEY at most".into())),
        }
    }

    fn key(&mut self, is_primary: bool, columns: &[IndexColumn]) {
        let name = |column: &IndexColumn| match &column.column.expr {
            Expr::Identifier(name) => Some(folded(name)),
            _ => None,
        };
        self.keys.push(DeclaredKey { is_primary, columns: columns.iter().filter_map(name).collect() });
    }
}

/// Whether a table has constraints or defaults.
fn is_declared(table: &CreateTable) -> bool {
    let mut options = table.columns.iter().flat_map(|column| &column.options);
    !table.constraints.is_empty() || options.any(|definition| !matches!(definition.option, ColumnOption::Null))
}
