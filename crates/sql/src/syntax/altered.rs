//! ALTER TABLE of a table in memory, as `CREATE OR REPLACE TABLE t AS SELECT … FROM t` with the constraints that are
//! left.
//!
//! As in PostgreSQL, a column takes its keys, its CHECKs and its default with it when it is dropped, and they go by its
//! new name when it is renamed. RENAME TO makes the table anew under its other name, before the old one is dropped.

use datafusion::common::TableReference;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::sql::parser::{DFParserBuilder, Statement as ParsedStatement};
use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, CastKind, ColumnDef, DataType, Expr, ObjectName,
    RenameTableNameKind, Statement as SqlStatement, Value,
};

use super::changes::found_table;
use super::declared::{Declared, DeclaredKey};
use super::dialect::{SessionDialect, parser_of, tokens_of};
use super::items::{each_name, folded};
use super::quotes::quoted;
use super::stored;
use crate::error::{Result, SqlError};
use crate::memory_table::MemoryTable;

/// What an ALTER TABLE is run as.
pub(crate) struct Altered {
    pub(crate) statement: ParsedStatement,
    pub(crate) declared: Declared,
    /// The table that is dropped afterwards.
    pub(crate) renamed: Option<TableReference>,
    pub(crate) table: TableReference,
}

/// The statement that an ALTER TABLE is run as; none within where there is nothing to do, by IF EXISTS or by IF NOT
/// EXISTS of a view; none for another statement.
///
/// # Errors
/// [`SqlError::Unsupported`] for other operations and for what is no table in memory, and unknown and repeated names.
pub(crate) async fn altered(state: &SessionState, parsed: &mut ParsedStatement) -> Result<Option<Option<Altered>>> {
    let ParsedStatement::Statement(statement) = parsed else { return Ok(None) };
    let alter = match statement.as_mut() {
        SqlStatement::AlterTable(alter) => &*alter,
        SqlStatement::CreateView(view) if view.if_not_exists => {
            view.if_not_exists = false;
            return Ok(stored::is_there(state, &view.name).then_some(None));
        }
        _ => return Ok(None),
    };
    let AlterTable { name, if_exists, only, operations, location, on_cluster, table_type, end_token: _ } = alter;
    if *only || location.is_some() || on_cluster.is_some() || table_type.is_some() {
        return Err(SqlError::Unsupported("ONLY, LOCATION, ON CLUSTER and kinds of tables in ALTER TABLE".into()));
    }
    let (reference, provider) = match found_table(state, name).await {
        Ok(found) => found,
        Err(SqlError::UnknownTable { .. }) if *if_exists => return Ok(Some(None)),
        Err(error) => return Err(error),
    };
    let Some(table) = provider.downcast_ref::<MemoryTable>().filter(|table| table.is_listed()) else {
        return Err(SqlError::Unsupported(format!("ALTER TABLE {name}, which is no table in memory of the catalog")));
    };
    let mut draft = Draft::of(table)?;
    let mut made = name.clone();
    for operation in operations {
        match operation {
            AlterTableOperation::RenameTable {
                table_name: RenameTableNameKind::To(other) | RenameTableNameKind::As(other),
            } => {
                let Some(last) = other.0.last() else { continue };
                // A name alone is one of the table's schema.
                let mut parts = name.0.clone();
                parts.pop();
                parts.push(last.clone());
                made = if other.0.len() == 1 { ObjectName(parts) } else { other.clone() };
            }
            operation => draft.change(state, name, operation)?,
        }
    }
    let is_renamed = made != *name;
    let Draft { columns, declared } = draft;
    let items: Vec<String> =
        columns.iter().map(|(name, value)| format!("{value} AS {}", quoted(name.as_str()))).collect();
    let replace = if is_renamed { "" } else { "OR REPLACE " };
    let text = format!("CREATE {replace}TABLE {made} AS SELECT {} FROM {name}", items.join(", "));
    let statement = super::settled(state, read(&text)?, "").await?.0;
    Ok(Some(Some(Altered { statement, declared, renamed: is_renamed.then(|| reference.clone()), table: reference })))
}

fn read(text: &str) -> Result<ParsedStatement> {
    let statement = DFParserBuilder::new(tokens_of(text).map_err(DataFusionError::from)?)
        .with_dialect(&SessionDialect)
        .build()?
        .parse_statements()?
        .pop_front();
    statement.ok_or_else(|| SqlError::Internal(format!("{text} is no statement")))
}

/// A table as it is to be: its columns with their values over the former ones, and its constraints.
struct Draft {
    columns: Vec<(String, Expr)>,
    declared: Declared,
}

impl Draft {
    /// A table as it is.
    fn of(table: &MemoryTable) -> Result<Draft> {
        let mut declared = Declared::default();
        for (is_primary, columns) in table.declared_keys() {
            declared.keys.push(DeclaredKey { is_primary, columns });
        }
        for text in table.checks() {
            let parsed = parser_of(text).and_then(|mut parser| parser.parse_expr());
            declared.checks.push(parsed.map_err(|error| SqlError::Internal(format!("{error} in {text}")))?);
        }
        let mut columns = Vec::new();
        for (name, is_nullable) in table.columns() {
            if let Some(default) = table.default_of(&name) {
                declared.defaults.push((name.clone(), default.clone()));
            }
            if !is_nullable {
                declared.not_null.push(name.clone());
            }
            columns.push((name.clone(), Expr::Identifier(quoted(name))));
        }
        Ok(Draft { columns, declared })
    }

    fn change(&mut self, state: &SessionState, table: &ObjectName, operation: &AlterTableOperation) -> Result<()> {
        let refused = || Err(SqlError::Unsupported(format!("ALTER TABLE {table} {operation}")));
        match operation {
            AlterTableOperation::AddColumn { column_keyword: _, if_not_exists, column_def, column_position: None } => {
                let name = folded(&column_def.name);
                if self.place(&name).is_some() {
                    return match if_not_exists {
                        true => Ok(()),
                        false => Err(SqlError::Planning(format!("column '{name}' of {table} exists already"))),
                    };
                }
                let (data_type, mut own) = defined(state, column_def)?;
                let default = own.defaults.first().map(|(_, default)| default.clone());
                let value = cast(default.unwrap_or_else(|| Expr::value(Value::Null)), data_type);
                self.columns.push((name, value));
                self.declared.not_null.append(&mut own.not_null);
                self.declared.keys.append(&mut own.keys);
                self.declared.checks.append(&mut own.checks);
                self.declared.defaults.append(&mut own.defaults);
                match self.declared.keys.iter().filter(|key| key.is_primary).count() {
                    0 | 1 => Ok(()),
                    _ => Err(SqlError::Planning("a table has one PRIMARY KEY at most".into())),
                }
            }
            AlterTableOperation::DropColumn { has_column_keyword: _, column_names, if_exists, drop_behavior: _ } => {
                for name in column_names.iter().map(folded) {
                    match self.place(&name) {
                        Some(_) if self.columns.len() == 1 => {
                            return Err(SqlError::Planning(format!("'{name}' is the last column of {table}")));
                        }
                        Some(place) => _ = self.columns.remove(place),
                        None if *if_exists => continue,
                        None => return Err(SqlError::UnknownColumn { name, nearest: None }),
                    }
                    self.declared.not_null.retain(|column| *column != name);
                    self.declared.keys.retain(|key| !key.columns.contains(&name));
                    self.declared.checks.retain(|check| !reads(check, &name));
                    self.declared.defaults.retain(|(column, _)| *column != name);
                }
                Ok(())
            }
            AlterTableOperation::RenameColumn { old_column_name, new_column_name } => {
                let (old, new) = (folded(old_column_name), folded(new_column_name));
                let place = self.named(&old)?;
                if self.place(&new).is_some() {
                    return Err(SqlError::Planning(format!("column '{new}' of {table} exists already")));
                }
                self.columns[place].0 = new.clone();
                let of_keys = self.declared.keys.iter_mut().flat_map(|key| &mut key.columns);
                let of_defaults = self.declared.defaults.iter_mut().map(|(column, _)| column);
                let names = self.declared.not_null.iter_mut().chain(of_keys).chain(of_defaults);
                names.filter(|name| **name == old).for_each(|name| *name = new.clone());
                for check in &mut self.declared.checks {
                    each_name(check, &mut |expr| {
                        if let Expr::Identifier(name) = expr
                            && folded(name) == old
                        {
                            *name = quoted(new.as_str());
                        }
                    });
                }
                Ok(())
            }
            AlterTableOperation::AlterColumn { column_name, op } => {
                let name = folded(column_name);
                let place = self.named(&name)?;
                match op {
                    AlterColumnOperation::SetNotNull => self.declared.not_null.push(name),
                    AlterColumnOperation::DropNotNull => {
                        self.declared.not_null.retain(|column| *column != name);
                        if self.declared.is_not_null(&name) {
                            return Err(SqlError::Planning(format!(
                                "column '{name}' is in the PRIMARY KEY of {table}"
                            )));
                        }
                    }
                    AlterColumnOperation::SetDefault { value } => {
                        self.declared.defaults.retain(|(column, _)| *column != name);
                        self.declared.defaults.push((name, value.clone()));
                    }
                    AlterColumnOperation::DropDefault => {
                        self.declared.defaults.retain(|(column, _)| *column != name);
                    }
                    AlterColumnOperation::SetDataType { data_type, using, had_set: _ } => {
                        if self.declared.checks.iter().any(|check| reads(check, &name)) {
                            return Err(SqlError::Unsupported(format!(
                                "a type of column '{name}', which a CHECK reads"
                            )));
                        }
                        let column =
                            ColumnDef { name: quoted(name), data_type: data_type.clone(), options: Vec::new() };
                        let (data_type, mut own) = defined(state, &column)?;
                        self.declared.checks.append(&mut own.checks);
                        let value = using.clone().unwrap_or_else(|| self.columns[place].1.clone());
                        self.columns[place].1 = cast(value, data_type);
                    }
                    AlterColumnOperation::AddGenerated { .. } => return refused(),
                }
                Ok(())
            }
            _ => refused(),
        }
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|(column, _)| column == name)
    }

    fn named(&self, name: &str) -> Result<usize> {
        self.place(name).ok_or_else(|| SqlError::UnknownColumn { name: name.into(), nearest: None })
    }
}

fn cast(value: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(value), data_type, array: false, format: None }
}

/// The type of a column and what is declared of it, as CREATE TABLE reads them.
fn defined(state: &SessionState, column: &ColumnDef) -> Result<(DataType, Declared)> {
    let mut parsed = read(&format!("CREATE TABLE altered ({column})"))?;
    super::mend(state, &mut parsed, "")?;
    let declared = Declared::take(&mut parsed)?;
    if let ParsedStatement::Statement(statement) = &parsed
        && let SqlStatement::CreateTable(table) = statement.as_ref()
        && let Some(column) = table.columns.first()
    {
        return Ok((column.data_type.clone(), declared));
    }
    Err(SqlError::Internal(format!("{column} defines no column")))
}

/// Whether a condition reads a column.
fn reads(condition: &Expr, column: &str) -> bool {
    let mut found = false;
    // The visit changes nothing.
    each_name(&mut condition.clone(), &mut |expr| {
        found |= matches!(expr, Expr::Identifier(name) if folded(name) == column);
    });
    found
}
