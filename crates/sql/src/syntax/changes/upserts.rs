//! INSERT with ON CONFLICT, OR REPLACE and OR IGNORE, as MERGE.
//!
//! A row conflicts with the row of the table that has its key. OR REPLACE sets the columns that are inserted, as in
//! DuckDB; of several rows of one key it takes the first, and so does DO NOTHING. DO UPDATE refuses several rows of one
//! key, as in PostgreSQL: they change one row, or repeat its key.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use datafusion::catalog::TableProvider;
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    Assignment, ConflictTarget, DoUpdate, Expr, Insert, Merge, ObjectName, OnConflict, OnConflictAction, OnInsert,
    Query, SqliteOnConflict, Statement as SqlStatement, TableAliasColumnDef, TableFactor, TableObject, Visitor,
    VisitorMut,
};

use super::super::casts::written_type;
use super::super::dialect::parser_of;
use super::super::expansions;
use super::super::items::{each_name, folded};
use super::super::quotes::quoted;
use super::super::rows::check_copied;
use super::super::visits;
use super::parts::{default_of, found};
use crate::error::{Result, SqlError};
use crate::memory_table::MemoryTable;

/// The table whose place the source takes.
const SOURCE: &str = "\u{2063}source";
/// The number of a row of the source.
const NUMBER: &str = "\u{2063}number";

/// What becomes of rows that conflict.
pub(super) enum Conflict {
    Ignore(Option<Vec<String>>),
    Replace,
    Update(Option<Vec<String>>, Box<DoUpdate>),
}

impl Conflict {
    /// Takes what an INSERT says of conflicts.
    ///
    /// # Errors
    /// [`SqlError::Unsupported`] for other forms.
    pub(super) fn take(insert: &mut Insert) -> Result<Option<Conflict>> {
        let refused = |what: &str| Err(SqlError::Unsupported(format!("{what} in INSERT")));
        match (insert.or.take(), insert.on.take()) {
            (None, None) => Ok(None),
            (Some(SqliteOnConflict::Replace), None) => Ok(Some(Conflict::Replace)),
            (Some(SqliteOnConflict::Ignore), None) => Ok(Some(Conflict::Ignore(None))),
            (Some(_), None) => refused("OR ROLLBACK, ABORT and FAIL"),
            (Some(_), Some(_)) => refused("OR beside ON CONFLICT"),
            (None, Some(OnInsert::OnConflict(OnConflict { conflict_target, action }))) => {
                let columns = match conflict_target {
                    None => None,
                    Some(ConflictTarget::Columns(columns)) => Some(columns.iter().map(folded).collect()),
                    Some(ConflictTarget::OnConstraint(_)) => return refused("ON CONFLICT ON CONSTRAINT"),
                };
                Ok(Some(match action {
                    OnConflictAction::DoNothing => Conflict::Ignore(columns),
                    OnConflictAction::DoUpdate(update) => Conflict::Update(columns, Box::new(update)),
                }))
            }
            (None, Some(_)) => refused("ON DUPLICATE KEY"),
        }
    }

    /// The MERGE of an INSERT; none where no row may conflict.
    ///
    /// # Errors
    /// [`SqlError::Planning`] for columns that are no key, [`SqlError::Unsupported`] where it is open which key is
    /// meant.
    pub(super) async fn merge(self, state: &SessionState, insert: &Insert) -> Result<Option<Merge>> {
        let (TableObject::TableName(name), Some(source)) = (&insert.table, &insert.source) else {
            return Err(SqlError::Unsupported("ON CONFLICT in an INSERT without rows".into()));
        };
        let provider = found(state, name).await?;
        let Some(table) = provider.downcast_ref::<MemoryTable>() else {
            return Err(SqlError::Unsupported(format!("ON CONFLICT into {name}, which is no table in memory")));
        };
        let wanted = match &self {
            Conflict::Ignore(columns) | Conflict::Update(columns, _) => columns.as_ref(),
            Conflict::Replace => None,
        };
        let keys = table.keys();
        let key = match (wanted, keys.as_slice()) {
            (Some(wanted), keys) => {
                let is_it =
                    |key: &&Vec<String>| key.len() == wanted.len() && wanted.iter().all(|name| key.contains(name));
                keys.iter().find(is_it).ok_or_else(|| {
                    SqlError::Planning(format!("ON CONFLICT ({}), which is no key of {name}", wanted.join(", ")))
                })?
            }
            (None, [key]) => key,
            (None, []) if matches!(self, Conflict::Ignore(_)) => return Ok(None),
            (None, []) => return Err(SqlError::Planning(format!("{name} has no PRIMARY KEY and nothing UNIQUE"))),
            (None, _) => {
                return Err(SqlError::Unsupported(format!(
                    "a conflict with one of several keys of {name}; name its columns by ON CONFLICT (…)"
                )));
            }
        };
        let columns: Vec<String> = match insert.columns.is_empty() {
            true => provider.schema().fields().iter().map(|field| field.name().clone()).collect(),
            false => insert.columns.iter().filter_map(|name| name.0.last()?.as_ident().map(folded)).collect(),
        };
        if let Some(name) = key.iter().find(|name| !columns.contains(name)) {
            return Err(SqlError::Unsupported(format!("a default for '{name}', a column of the key of a conflict")));
        }
        let own = name.0.last().map(ToString::to_string).unwrap_or_default();
        let quoted = |name: &String| quoted(name.as_str()).to_string();
        let excluded = |name: &String| format!("excluded.{}", quoted(name));
        let all = |of: &dyn Fn(&String) -> String, names: &[String]| names.iter().map(of).collect::<Vec<_>>();
        let (listed, key_names) = (all(&quoted, &columns).join(", "), all(&quoted, key));
        let update = match &self {
            Conflict::Ignore(_) => String::new(),
            Conflict::Replace => {
                let set = |name: &String| format!("{} = {}", quoted(name), excluded(name));
                let rest: Vec<&String> = columns.iter().filter(|name| !key.contains(name)).collect();
                // A row of its key alone is replaced by itself: it counts, and RETURNING has it.
                let replaced = if rest.is_empty() { key.iter().collect() } else { rest };
                let replaced: Vec<String> = replaced.into_iter().map(set).collect();
                format!("WHEN MATCHED THEN UPDATE SET {} ", replaced.join(", "))
            }
            Conflict::Update(_, update) => {
                let DoUpdate { assignments, selection } = update.as_ref();
                let mut assignments = assignments.clone();
                for Assignment { target: _, value } in &mut assignments {
                    qualify(value, name);
                }
                let condition = selection.clone().map_or_else(String::new, |mut condition| {
                    qualify(&mut condition, name);
                    format!("AND ({condition}) ")
                });
                let set: Vec<String> = assignments.iter().map(ToString::to_string).collect();
                format!("WHEN MATCHED {condition}THEN UPDATE SET {} ", set.join(", "))
            }
        };
        // Keys are compared, and values are read, as those of the table's columns.
        let schema = provider.schema();
        let typed = |name: &String| match schema.field_with_name(name) {
            Ok(field) => match written_type(field.data_type()) {
                Some(data_type) => format!("CAST({0} AS {data_type}) AS {0}", quoted(name)),
                None => quoted(name),
            },
            Err(_) => quoted(name),
        };
        let mut typed = all(&typed, &columns);
        if let Conflict::Update(_, update) = &self {
            typed.extend(defaults_read(update, provider.as_ref(), &columns)?);
        }
        let typed = format!("SELECT {} FROM \"{SOURCE}\"", typed.join(", "));
        let rows = match &self {
            Conflict::Update(..) => typed,
            Conflict::Ignore(_) | Conflict::Replace => {
                let unknown = key_names.iter().map(|name| format!(" OR {name} IS NULL")).collect::<String>();
                format!(
                    "SELECT {listed} FROM (SELECT *, row_number() OVER () AS \"{NUMBER}\" FROM ({typed}) AS typed) \
                     AS numbered QUALIFY row_number() OVER (PARTITION BY {} ORDER BY \"{NUMBER}\") = 1{unknown}",
                    key_names.join(", ")
                )
            }
        };
        let on = key.iter().map(|name| format!("{own}.{} = {}", quoted(name), excluded(name))).collect::<Vec<_>>();
        let values = all(&excluded, &columns).join(", ");
        let text = format!(
            "MERGE INTO {name} USING ({rows}) AS excluded ON {} {update}WHEN NOT MATCHED THEN INSERT ({listed}) \
             VALUES ({values})",
            on.join(" AND ")
        );
        let parsed = parser_of(&text).and_then(|mut parser| parser.parse_statement());
        let mut merge = match parsed.map_err(|error| SqlError::Internal(format!("{error} in {text}")))? {
            SqlStatement::Merge(merge) => merge,
            other => return Err(SqlError::Internal(format!("{other} is no MERGE"))),
        };
        let _ = visits::visit_mut(&mut merge.source, &mut Put { source, columns: &columns });
        Ok(Some(merge))
    }
}

/// The defaults of columns that an INSERT does not list and that DO UPDATE reads as `excluded.column`.
///
/// # Errors
/// [`SqlError::Unsupported`] for a default that has another value each time.
fn defaults_read(update: &DoUpdate, table: &dyn TableProvider, listed: &[String]) -> Result<Vec<String>> {
    struct Read(BTreeSet<String>);
    impl Visitor for Read {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            if let Expr::CompoundIdentifier(parts) = expr
                && let [of, column] = parts.as_slice()
                && folded(of) == "excluded"
            {
                self.0.insert(folded(column));
            }
            ControlFlow::Continue(())
        }
    }
    let mut read = Read(BTreeSet::new());
    let _ = visits::visit(&update.assignments, &mut read);
    let _ = visits::visit(&update.selection, &mut read);
    let schema = table.schema();
    let unlisted = read.0.iter().filter(|name| !listed.contains(name));
    unlisted
        .filter_map(|name| schema.field_with_name(name).ok())
        .map(|field| {
            let default = default_of(table, field.name());
            check_copied([&default])?;
            let name = quoted(field.name().as_str());
            Ok(match written_type(field.data_type()) {
                Some(data_type) => format!("CAST({default} AS {data_type}) AS {name}"),
                None => format!("{default} AS {name}"),
            })
        })
        .collect()
}

/// Puts the rows of an INSERT in their place.
struct Put<'a> {
    source: &'a Query,
    columns: &'a [String],
}

impl VisitorMut for Put<'_> {
    type Break = ();
    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        let TableFactor::Table { name, .. } = factor else { return ControlFlow::Continue(()) };
        if name.0.last().and_then(|name| name.as_ident()).is_none_or(|name| name.value != SOURCE) {
            return ControlFlow::Continue(());
        }
        let mut alias = expansions::alias(SOURCE);
        alias.columns = self
            .columns
            .iter()
            .map(|name| TableAliasColumnDef { name: quoted(name.as_str()), data_type: None })
            .collect();
        *factor = expansions::subquery(false, Box::new(self.source.clone()), Some(alias));
        ControlFlow::Break(())
    }
}

/// Calls columns without a table's name by that of a table; those of subqueries stay.
fn qualify(expr: &mut Expr, table: &ObjectName) {
    let Some(table) = table.0.last().and_then(|table| table.as_ident()).cloned() else { return };
    if !super::is_default(expr) {
        each_name(expr, &mut |expr| {
            if let Expr::Identifier(name) = expr {
                *expr = Expr::CompoundIdentifier(vec![table.clone(), name.clone()]);
            }
        });
    }
}
