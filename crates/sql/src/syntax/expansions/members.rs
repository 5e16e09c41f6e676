//! `s.*` of a column that is a struct, and `t.s.*` and `s.m.*`, as its members.

use arrow::datatypes::{DataType, Fields};
use datafusion::sql::sqlparser::ast::{
    AccessExpr, Expr, Ident, ObjectName, Select, SelectItem, Subscript, TableFactor,
};

use super::super::items::folded;
use super::super::quotes;
use super::super::relations::{name_of, parts};
use super::{Column, quoted};
use crate::error::{Result, SqlError};

/// Whether `name.*` cannot be all columns of a table in FROM, all of which have names.
pub(super) fn are_meant(select: &Select, name: &ObjectName) -> bool {
    let last = |parts: Vec<Ident>| parts.last().map(folded);
    let Some(called) = parts(name).and_then(last) else { return false };
    let is_other = |factor: &TableFactor| match factor {
        TableFactor::Derived { alias: None, .. } => true,
        factor => name_of(factor).and_then(last).is_some_and(|name| name != called),
    };
    let factors = select
        .from
        .iter()
        .flat_map(|tables| std::iter::once(&tables.relation).chain(tables.joins.iter().map(|join| &join.relation)));
    !select.from.is_empty() && factors.into_iter().all(is_other)
}

/// An item for each member of the struct of that name, but for those that are left out.
///
/// # Errors
/// [`SqlError::UnknownTable`] for the name of no struct, and [`SqlError::UnknownColumn`] for members that are not
/// there.
pub(super) fn of_struct(name: &ObjectName, left_out: &[String], columns: &[Column]) -> Result<Vec<SelectItem>> {
    let unknown = || SqlError::UnknownTable { name: name.to_string(), nearest: None };
    let path: Vec<String> = parts(name).ok_or_else(unknown)?.iter().map(folded).collect();
    let (column, inner) = found(&path, columns).ok_or_else(unknown)?;
    let fields = fields(&column.data_type, inner).ok_or_else(unknown)?;
    if let Some(name) = left_out.iter().find(|name| fields.find(name).is_none()) {
        return Err(SqlError::UnknownColumn { name: name.clone(), nearest: None });
    }
    let root = column.called(columns)?;
    let item = |member: &String| {
        let index = |name: &String| {
            let index = Expr::value(quotes::text(name));
            AccessExpr::Subscript(Subscript::Index { index })
        };
        let access_chain = inner.iter().chain([member]).map(index).collect();
        let expr = Expr::CompoundFieldAccess { root: Box::new(root.clone()), access_chain };
        SelectItem::ExprWithAlias { expr, alias: quoted(member) }
    };
    let listed = fields.iter().map(|field| field.name()).filter(|name| !left_out.contains(name));
    Ok(listed.map(item).collect())
}

/// The column that a path begins with, behind the name of its table or without one, and the members behind it.
fn found<'a>(path: &'a [String], columns: &'a [Column]) -> Option<(&'a Column, &'a [String])> {
    let (first, behind) = path.split_first()?;
    let of_table = behind.split_first().and_then(|(second, behind)| {
        let is_it = |column: &&Column| {
            column.name == *second && column.table.as_ref().is_some_and(|table| table.table() == first)
        };
        Some((columns.iter().find(is_it)?, behind))
    });
    of_table.or_else(|| Some((columns.iter().find(|column| column.name == *first)?, behind)))
}

/// The members of the struct at a path within a type.
fn fields<'a>(data_type: &'a DataType, path: &[String]) -> Option<&'a Fields> {
    let DataType::Struct(fields) = data_type else { return None };
    match path.split_first() {
        Some((name, behind)) => self::fields(fields.find(name)?.1.data_type(), behind),
        None => Some(fields),
    }
}
