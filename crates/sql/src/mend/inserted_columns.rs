//! Rows that are written to a table have the types of its columns.
//!
//! DataFusion 55.2 decides on the casts of an INSERT before types are coerced, when a CASE, a function or a UNION ALL
//! has the type of its first branch: `INSERT INTO t SELECT 1 UNION ALL SELECT 2.5` has no cast for an integer column,
//! and decimals come to its sink. Here INSERT is planned without casts, and each of its columns is cast to that of the
//! table once all types are known; the casts go through those mends of casts that stand behind. Texts for a UUID or
//! JSON are read ([`super::extension_types`]).
//!
//! The file goes once DataFusion casts the columns of an INSERT after types are coerced.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::Column;
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::dml::DmlStatement;
use datafusion::logical_expr::{Cast, Expr, LogicalPlan, LogicalPlanBuilder, WriteOp};
use datafusion::optimizer::AnalyzerRule;

use super::{common_types, extension_types};
use crate::extension_types::ExtensionType;
use crate::walk::Walk;

/// The rule, once types are coerced.
#[derive(Debug)]
pub(super) struct InsertedColumns;

impl AnalyzerRule for InsertedColumns {
    fn name(&self) -> &str {
        "inserted_columns"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let of_node = |plan| match plan {
            LogicalPlan::Dml(insert) if matches!(insert.op, WriteOp::Insert(_)) => cast_columns(insert),
            plan => Ok(Transformed::no(plan)),
        };
        Ok(plan.transform_up(of_node)?.data)
    }
}

fn cast_columns(mut insert: DmlStatement) -> Result<Transformed<LogicalPlan>> {
    let (table, input) = (insert.target.schema(), insert.input.schema().clone());
    // The type that a column has and its value lacks.
    let lacks = |to: &Field, from: &Field| ExtensionType::of(to).filter(|of| ExtensionType::of(from) != Some(*of));
    let is_like = |to: &Field, from: &Field| to.data_type() == from.data_type() && lacks(to, from).is_none();
    let is_of_table = table.fields().iter().zip(input.fields()).all(|(to, from)| is_like(to, from));
    // The number of columns is checked where the statement is planned.
    if is_of_table || table.fields().len() != input.fields().len() {
        return Ok(Transformed::no(LogicalPlan::Dml(insert)));
    }
    let item = |(column, (from, to)): (Column, (&Arc<Field>, &Arc<Field>))| {
        common_types::check_column(to, from.data_type())?;
        let (value, from) = match (Expr::Column(column), lacks(to, from)) {
            (value, Some(of)) => (extension_types::inserted(value, from.data_type(), of)?, &DataType::Utf8),
            (value, None) => (value, from.data_type()),
        };
        let value = match from == to.data_type() {
            true => value,
            false => Expr::Cast(Cast::new(Box::new(value), to.data_type().clone())),
        };
        Ok(value.alias(to.name()))
    };
    let types = input.fields().iter().zip(table.fields());
    let items = input.columns().into_iter().zip(types).map(item).collect::<Result<Vec<_>>>()?;
    let rows = LogicalPlanBuilder::from(Arc::unwrap_or_clone(insert.input)).project(items)?.build()?;
    insert.input = Arc::new(rows);
    Ok(Transformed::yes(LogicalPlan::Dml(insert)))
}
