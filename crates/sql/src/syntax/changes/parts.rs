//! The parts that statements which change tables are rewritten with.

use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::TableReference;
use datafusion::datasource::TableType;
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, JoinOperator, ObjectName, ObjectNamePart, Query, SelectItem, SetExpr, Statement as SqlStatement,
    TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins, Value, VisitorMut,
};

use super::super::items::folded;
use super::super::quotes::quoted;
use super::super::{Mends, TableOfWith, relations, visits};
use crate::error::{Result, SqlError};
use crate::memory_table::{MemoryTable, ROW, Role};

/// The table that a statement changes.
pub(super) struct Target {
    name: ObjectName,
    /// The name that its columns are called by in the statement.
    qualifier: Ident,
    is_aliased: bool,
    columns: Vec<String>,
    table: Arc<dyn TableProvider>,
}

impl Target {
    /// Looks a table up.
    ///
    /// # Errors
    /// Clauses of the table, a name that is unknown, and what is no table in memory.
    pub(super) async fn of(state: &SessionState, factor: TableFactor, statement: &str) -> Result<Target> {
        let TableFactor::Table {
            name,
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_hints,
        } = factor
        else {
            return Err(SqlError::Unsupported(format!("{statement} {factor}, which is no table")));
        };
        super::refuse(
            statement,
            &[
                ("arguments of the table", args.is_some()),
                ("hints", !with_hints.is_empty() || !index_hints.is_empty()),
                ("a version of the table", version.is_some()),
                ("WITH ORDINALITY", with_ordinality),
                ("PARTITION", !partitions.is_empty()),
                ("a path within the table", json_path.is_some()),
                ("TABLESAMPLE", sample.is_some()),
            ],
        )?;
        let table = found(state, &name).await?;
        if table.downcast_ref::<MemoryTable>().is_none() {
            let what = match table.table_type() {
                TableType::View => "a view",
                _ => "not in memory",
            };
            return Err(SqlError::Unsupported(format!(
                "{statement} {name}, which is {what}; only tables in memory change"
            )));
        }
        let columns = table.schema().fields().iter().map(|field| field.name().clone()).collect();
        let is_aliased = alias.is_some();
        let qualifier = match alias {
            Some(TableAlias { explicit: _, name, columns, at }) => {
                super::refuse(statement, &[("names of columns", !columns.is_empty()), ("AT", at.is_some())])?;
                name
            }
            None => last(&name)?.clone(),
        };
        Ok(Target { name, qualifier, is_aliased, columns, table })
    }

    /// The name that its columns are called by.
    pub(super) fn qualifier(&self) -> &Ident {
        &self.qualifier
    }

    pub(super) fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The table with numbers of rows, under its name.
    pub(super) fn rows(&self) -> TableFactor {
        let alias = TableAlias { explicit: true, name: self.qualifier.clone(), columns: Vec::new(), at: None };
        table(self.in_role(Role::Numbered), Some(alias))
    }

    /// The rows that the statement changes, under its name.
    pub(super) fn returned(&self) -> TableFactor {
        let alias = TableAlias { explicit: true, name: self.qualifier.clone(), columns: Vec::new(), at: None };
        table(self.in_role(Role::Returned), Some(alias))
    }

    pub(super) fn deleted(&self) -> ObjectName {
        self.in_role(Role::Deleted)
    }

    pub(super) fn changed(&self) -> ObjectName {
        self.in_role(Role::Changed)
    }

    fn in_role(&self, role: Role) -> ObjectName {
        let mut name = self.name.clone();
        if let Some(ObjectNamePart::Identifier(last)) = name.0.last_mut() {
            *last = quoted(role.name_of(&folded(last)));
        }
        name
    }

    /// The number of a row.
    pub(super) fn row(&self) -> Expr {
        self.column(ROW)
    }

    /// A column of the table.
    pub(super) fn column(&self, name: &str) -> Expr {
        column_of(&self.qualifier, name)
    }

    /// The number of a column that is set.
    pub(super) fn column_number(&self, name: &ObjectName) -> Result<usize> {
        let parts = idents(name)?;
        let (column, before) = parts.split_last().ok_or_else(|| SqlError::Syntax("a column without a name".into()))?;
        let own: Vec<String> = idents(&self.name)?.into_iter().map(folded).collect();
        let before: Vec<String> = before.iter().map(|part| folded(part)).collect();
        let is_own = match before.as_slice() {
            [] => true,
            [one] if *one == folded(&self.qualifier) => true,
            several => !self.is_aliased && own.ends_with(several),
        };
        let column = folded(column);
        let number = self.columns.iter().position(|known| *known == column).filter(|_| is_own);
        number.ok_or_else(|| SqlError::UnknownColumn { name: name.to_string(), nearest: None })
    }

    /// The default of a column, NULL where there is none.
    pub(super) fn default_of(&self, column: usize) -> Expr {
        default_of(self.table.as_ref(), &self.columns[column])
    }

    /// Columns by the table's whole name, `schema.table.column`, get the one that the rewritten statement knows.
    pub(super) fn unqualify(&self, statement: &mut SqlStatement) {
        struct Unqualify(Vec<String>, Ident);
        impl VisitorMut for Unqualify {
            type Break = ();
            fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
                if let Expr::CompoundIdentifier(parts) = expr
                    && parts.len() > self.0.len()
                    && self.0.iter().zip(parts.iter()).all(|(name, part)| *name == folded(part))
                {
                    parts.splice(..self.0.len(), [self.1.clone()]);
                }
                ControlFlow::Continue(())
            }
        }
        let Ok(parts) = idents(&self.name) else { return };
        if parts.len() > 1 && !self.is_aliased {
            let names = parts.into_iter().map(folded).collect();
            let _ = visits::visit_mut(statement, &mut Unqualify(names, self.qualifier.clone()));
        }
    }
}

/// The table of a name.
pub(super) async fn found(state: &SessionState, name: &ObjectName) -> Result<Arc<dyn TableProvider>> {
    Ok(found_table(state, name).await?.1)
}

/// The table of a name, and the name as plans have it.
///
/// # Errors
/// [`SqlError::UnknownTable`].
pub(crate) async fn found_table(
    state: &SessionState,
    name: &ObjectName,
) -> Result<(TableReference, Arc<dyn TableProvider>)> {
    let parts: Vec<String> = idents(name)?.into_iter().map(folded).collect();
    let of_with = parts.last().and_then(|part| TableOfWith::of(part)).map(|table| table.name.to_string());
    let unknown =
        || SqlError::UnknownTable { name: of_with.clone().unwrap_or_else(|| name.to_string()), nearest: None };
    let reference = match parts.as_slice() {
        [table] => TableReference::bare(table.as_str()),
        [schema, table] => TableReference::partial(schema.as_str(), table.as_str()),
        [catalog, schema, table] => TableReference::full(catalog.as_str(), schema.as_str(), table.as_str()),
        _ => return Err(unknown()),
    };
    let schema = state.schema_for_ref(reference.clone()).map_err(|_| unknown())?;
    let table = schema.table(reference.table()).await?.ok_or_else(unknown)?;
    Ok((reference, table))
}

/// A column of an INSERT as the planner reads its name.
///
/// # Errors
/// [`SqlError::Unsupported`] for a name of several parts.
pub(crate) fn column_name(name: &ObjectName) -> Result<String> {
    match idents(name)?.as_slice() {
        [column] => Ok(folded(column)),
        _ => Err(SqlError::Unsupported(format!("'{name}' as a column of INSERT"))),
    }
}

/// Whether a name is that of a table in a hidden role.
pub(super) fn is_hidden(name: &ObjectName) -> bool {
    last(name).is_ok_and(|name| Role::of_name(&name.value).is_some())
}

/// The default of a column as it was written, NULL where there is none.
pub(super) fn default_of(table: &dyn TableProvider, column: &str) -> Expr {
    let written = table.downcast_ref::<MemoryTable>().and_then(|table| table.default_of(column));
    written.map_or_else(|| Expr::value(Value::Null), |written| Expr::Nested(Box::new(written.clone())))
}

fn idents(name: &ObjectName) -> Result<Vec<&Ident>> {
    fn ident(part: &ObjectNamePart) -> Result<&Ident> {
        part.as_ident().ok_or_else(|| SqlError::Unsupported(format!("'{part}' as a name")))
    }
    name.0.iter().map(ident).collect()
}

fn last(name: &ObjectName) -> Result<&Ident> {
    idents(name)?.pop().ok_or_else(|| SqlError::Syntax("a table without a name".into()))
}

/// A column by the name of its table.
pub(super) fn column_of(table: &Ident, name: &str) -> Expr {
    Expr::CompoundIdentifier(vec![table.clone(), quoted(name)])
}

/// A table by its name.
pub(super) fn table(name: ObjectName, alias: Option<TableAlias>) -> TableFactor {
    TableFactor::Table {
        name,
        alias,
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    }
}

pub(super) fn aliased(expr: Expr, alias: &str) -> SelectItem {
    SelectItem::ExprWithAlias { expr, alias: quoted(alias) }
}

pub(super) fn number(number: i64) -> Expr {
    Expr::value(Value::Number(number.to_string(), false))
}

/// A column of the row that a query gives: `(SELECT "1" FROM (query) AS assigned ("0", "1"))`.
pub(super) fn member_of_row(query: &Query, columns: usize, place: usize) -> Result<Expr> {
    let name = |at: usize| quoted(at.to_string());
    let column = |at: usize| TableAliasColumnDef { name: name(at), data_type: None };
    let columns = (0..columns).map(column).collect();
    let alias = TableAlias { explicit: true, name: Ident::new("assigned"), columns, at: None };
    let relation =
        TableFactor::Derived { lateral: false, subquery: Box::new(query.clone()), alias: Some(alias), sample: None };
    let tables = vec![TableWithJoins { relation, joins: Vec::new() }];
    Ok(Expr::Subquery(select(vec![SelectItem::UnnamedExpr(Expr::Identifier(name(place)))], tables, None)?.0))
}

/// Whether an expression is the word DEFAULT.
pub(super) fn is_default(expr: &Expr) -> bool {
    matches!(expr, Expr::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"))
}

/// Whether a join has rows that its left side has not.
pub(super) fn adds_rows(join: &JoinOperator) -> bool {
    use JoinOperator::*;
    !matches!(join, Join(_) | Inner(_) | Left(_) | LeftOuter(_) | CrossJoin(_))
}

/// `SELECT items FROM tables WHERE selection`, and whether joins of it merge columns.
pub(super) fn select(
    items: Vec<SelectItem>,
    mut tables: Vec<TableWithJoins>,
    selection: Option<Expr>,
) -> Result<(Box<Query>, bool)> {
    let mut mends = Mends::default();
    if tables.iter_mut().try_for_each(|table| mends.check_joins(&mut table.joins)).is_break() {
        return Err(mends.refused.unwrap_or_else(|| SqlError::Syntax("expected a condition of JOIN".into())));
    }
    let mut tables = tables.into_iter();
    let first = tables.next().ok_or_else(|| SqlError::Syntax("expected a table".into()))?;
    let mut query = relations::all_of(first)?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = items;
        select.from.extend(tables);
        select.selection = selection;
    }
    Ok((query, mends.merges_columns))
}
