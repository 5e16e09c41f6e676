//! DESCRIBE and `information_schema.columns` have SQL's names of types, which CAST takes.
//!
//! DataFusion 55.2 has Arrow's there. The file goes once it has SQL's.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{
    Cast, DescribeTable, EmptyRelation, Expr, LogicalPlan, LogicalPlanBuilder, Projection, lit,
};
use datafusion::optimizer::AnalyzerRule;

use crate::catalog::extension_types;
use crate::functions;
use crate::walk::{PlanWalk, Walk};
use crate::words::type_name;

/// The column of types in `information_schema.columns`.
const DATA_TYPE: &str = "data_type";

/// The columns there that tell whose type it is.
const NAMES: [&str; 4] = ["table_catalog", "table_schema", "table_name", "column_name"];

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
            let texts = [field.name().clone(), type_name(field), is_nullable.to_string()];
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
            true => {
                let names = NAMES.map(|name| Expr::Column(Column::new(table.cloned(), name)));
                let arguments = std::iter::once(column).chain(names).collect();
                functions::type_in_sql(BTreeMap::new()).call(arguments).alias_qualified(table.cloned(), DATA_TYPE)
            }
            false => column,
        }
    });
    let columns = columns.collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?))
}

/// The plan with the names of extension types where it lists columns: those of the session's tables at this moment.
pub(crate) async fn with_extension_types(plan: &LogicalPlan, state: &SessionState) -> Result<Option<LogicalPlan>> {
    let mut found = false;
    plan.apply_nested(|plan| {
        found |= lists_columns(plan);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !found {
        return Ok(None);
    }
    let function = functions::type_in_sql(extension_types(state.catalog_list().as_ref()).await);
    let of_call = |expr: Expr| match expr {
        Expr::ScalarFunction(mut call) if call.name() == functions::TYPE_IN_SQL => {
            call.func = function.clone();
            Ok(Transformed::yes(Expr::ScalarFunction(call)))
        }
        other => Ok(Transformed::no(other)),
    };
    let plan = plan.clone().transform_up_nested(|plan| plan.map_exprs(|expr| expr.transform_up(of_call)))?;
    Ok(Some(plan.data))
}
