//! `UNION BY NAME` of columns whose names are equal but for case: they have the name that the first branch gives them.

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{SetExpr, SetQuantifier, TableWithJoins, With};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::{alias, columns_of_query, query_of, quoted, subquery};
use crate::error::Result;

/// Whether the branches of a set operation go by name.
pub(super) fn is_one(body: &SetExpr) -> bool {
    use SetQuantifier::{AllByName, ByName, DistinctByName};
    matches!(body, SetExpr::SetOperation { set_quantifier: AllByName | ByName | DistinctByName, .. })
}

/// Gives columns of later branches the names that those before them have.
///
/// # Errors
/// [`crate::error::SqlError::Internal`] for a branch that cannot be written.
pub(super) fn settle<'a>(
    state: &'a SessionState,
    body: &'a mut SetExpr,
    scopes: &'a [With],
) -> BoxFuture<'a, Result<()>> {
    async move {
        let is_by_name = is_one(body);
        let SetExpr::SetOperation { left, right, .. } = body else { return Ok(()) };
        settle(state, left, scopes).await?;
        settle(state, right, scopes).await?;
        if !is_by_name {
            return Ok(());
        }
        // Planning the statement gives the error of a branch, and one that reads rows around has no plan yet.
        let (Some(before), Some(own)) = (names(state, left, scopes).await, names(state, right, scopes).await) else {
            return Ok(());
        };
        let given =
            |name: &String| only_same(&own, name).and_then(|_| only_same(&before, name)).unwrap_or(name).clone();
        if own.iter().all(|name| given(name) == *name) {
            return Ok(());
        }
        let items: Vec<String> =
            own.iter().map(|name| format!("{} AS {}", quoted(name), quoted(given(name)))).collect();
        let mut query = query_of(&format!("SELECT {}", items.join(", ")))?;
        let mut branch = query_of("SELECT 1")?;
        std::mem::swap(&mut branch.body, right);
        if let SetExpr::Select(select) = query.body.as_mut() {
            let relation = subquery(false, branch, Some(alias("branch")));
            select.from.push(TableWithJoins { relation, joins: Vec::new() });
        }
        *right = query.body;
        Ok(())
    }
    .boxed()
}

/// The only one of these names that is equal to another but for case.
fn only_same<'n>(names: &'n [String], name: &str) -> Option<&'n String> {
    let lower = name.to_lowercase();
    let mut same = names.iter().filter(|other| other.to_lowercase() == lower);
    same.next().filter(|_| same.next().is_none())
}

/// The names of a branch's columns.
async fn names(state: &SessionState, branch: &SetExpr, scopes: &[With]) -> Option<Vec<String>> {
    let mut query = query_of("SELECT 1").ok()?;
    *query.body = branch.clone();
    let columns = columns_of_query(state, query, scopes).await.ok()?;
    Some(columns.into_iter().map(|column| column.name).collect())
}
