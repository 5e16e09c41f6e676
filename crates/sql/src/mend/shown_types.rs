//! DESCRIBE and `information_schema.columns` have SQL's names of types, which CAST takes.
//!
//! DataFusion 55.2 has Arrow's there. The file goes once it has SQL's.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{
    Cast, DescribeTable, EmptyRelation, Expr, LogicalPlan, LogicalPlanBuilder, Projection, lit,
};
use datafusion::optimizer::AnalyzerRule;

use crate::functions;
use crate::walk::{PlanWalk, Walk};
use crate::words::sql_name;

/// The column of types in `information_schema.columns`.
const DATA_TYPE: &str = "data_type";

/// The rule that names types.
#[derive(Debug)]
pub(super) struct ShownTypes;

impl AnalyzerRule for ShownTypes {
    fn name(&self) -> &str {
        "shown_types"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let mended = plan.transform_down_nested(|plan| match plan {
            LogicalPlan::DescribeTable(table) => Ok(Transformed::yes(described(table)?)),
            // What the rule has made.
            LogicalPlan::Projection(projection) if is_named(&projection)? => {
                Ok(Transformed::new(LogicalPlan::Projection(projection), false, TreeNodeRecursion::Jump))
            }
            plan if lists_columns(&plan) => Ok(Transformed::new(with_names(plan)?, true, TreeNodeRecursion::Jump)),
            plan => Ok(Transformed::no(plan)),
        })?;
        Ok(mended.data)
    }
}

/// The rows of a DESCRIBE.
fn described(table: DescribeTable) -> Result<LogicalPlan> {
    let names = table.output_schema.fields().clone();
    let rows: Vec<Vec<Expr>> = table
        .schema
        .fields()
        .iter()
        .map(|field| {
            let is_nullable = if field.is_nullable() { "YES" } else { "NO" };
            let texts = [field.name().clone(), sql_name(field.data_type()), is_nullable.to_string()];
            let cast = |(text, of): (String, &Arc<arrow::datatypes::Field>)| {
                Expr::Cast(Cast::new(Box::new(lit(text)), of.data_type().clone()))
            };
            texts.into_iter().zip(names.iter()).map(cast).collect()
        })
        .collect();
    if rows.is_empty() {
        return Ok(LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: false, schema: table.output_schema }));
    }
    let values = LogicalPlanBuilder::values(rows)?;
    let columns: Vec<Expr> = values.schema().columns().into_iter().map(Expr::Column).collect();
    let named = columns.into_iter().zip(names.iter()).map(|(column, name)| column.alias(name.name()));
    values.project(named.collect::<Vec<_>>())?.build()
}

fn lists_columns(plan: &LogicalPlan) -> bool {
    let LogicalPlan::TableScan(scan) = plan else { return false };
    scan.table_name.schema() == Some("information_schema") && scan.table_name.table() == "columns"
}

fn is_named(projection: &Projection) -> Result<bool> {
    let is_name = |expr: &Expr| matches!(expr, Expr::ScalarFunction(call) if call.name() == functions::TYPE_IN_SQL);
    let mut found = false;
    for expr in &projection.expr {
        found |= expr.exists(|expr| Ok(is_name(expr)))?;
    }
    Ok(found && lists_columns(&projection.input))
}

/// The columns with SQL's names of types.
fn with_names(plan: LogicalPlan) -> Result<LogicalPlan> {
    let schema = plan.schema().clone();
    let columns = schema.iter().map(|(table, field)| {
        let column = Expr::Column((table, field).into());
        match field.name() == DATA_TYPE {
            true => functions::type_in_sql().call(vec![column]).alias_qualified(table.cloned(), DATA_TYPE),
            false => column,
        }
    });
    let columns = columns.collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?))
}
