//! The rule that shares tables of WITH: finds them ([`super::found`]), takes branches of unions apart
//! ([`super::branches`]), and puts readers in the place of copies.

use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlan, SubqueryAlias};
use datafusion::optimizer::AnalyzerRule;

use super::branches::apart;
use super::found::{Cost, Found, find, with_copies, with_readers};
use super::{Shared, With, in_query};

/// The rule that shares tables of WITH.
#[derive(Debug)]
pub(crate) struct ShareTables;

impl AnalyzerRule for ShareTables {
    fn name(&self) -> &str {
        "share_tables"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        in_query(plan, &mut |query| {
            // It was analysed before.
            if With::of(&query).is_some() {
                return Ok(query);
            }
            let mut query = with_copies(query)?;
            let mut found = find(&query, &[])?;
            if found.iter().any(Found::is_shared) {
                let unions;
                (query, unions) = apart(query, &found)?;
                found = if unions.is_empty() { found } else { find(&query, &unions)? };
            }
            if found.is_empty() {
                return Ok(query);
            }
            let shared: Vec<(usize, &Found)> =
                found.iter().enumerate().filter(|(_, found)| found.is_shared()).collect();
            let table = |(id, found): &(usize, &Found)| -> Result<Shared> {
                let Cost { why, must, .. } = found.cost.clone();
                let alias = SubqueryAlias::try_new(found.plan.clone(), found.alias.clone())?;
                let plan = with_readers(LogicalPlan::SubqueryAlias(alias), true, &shared)?;
                let name = found.alias.table().to_string();
                Ok(Shared { id: *id, name, reads: found.reads, why, must, filtered: false, plan })
            };
            let tables = shared.iter().map(table).collect::<Result<_>>()?;
            Ok(With { query: with_readers(query, false, &shared)?, tables }.into_plan())
        })
    }
}
