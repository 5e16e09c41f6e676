//! Bytes where DataFusion 55.2 makes texts of them by itself: LIKE and `length`.
//!
//! A cast writes bytes with escapes ([`crate::text_bytes`]). LIKE looks at the texts that they are in UTF-8, so that
//! columns of files that call their texts bytes are matched; `length` counts bytes, as in PostgreSQL.
//!
//! The file goes once DataFusion casts no bytes there.

use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use super::each_expression;
use crate::functions;
use crate::text_bytes::is_bytes;
use crate::walk::{PlanWalk, Walk};

/// The function that counts characters.
const LENGTH: &str = "character_length";

/// The rule, before types are coerced.
#[derive(Debug)]
pub(super) struct ByteTexts;

impl AnalyzerRule for ByteTexts {
    fn name(&self) -> &str {
        "byte_texts"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let is_candidate = |expr: &Expr| match expr {
            Expr::Like(_) => true,
            Expr::ScalarFunction(call) => call.name() == LENGTH,
            _ => false,
        };
        let mended = plan.transform_up_nested(|plan| {
            let mended =
                each_expression(plan, is_candidate, |expr, schema| expr.transform_up(|expr| of_bytes(expr, schema)))?;
            match mended.transformed {
                true => mended.map_data(LogicalPlan::recompute_schema),
                false => Ok(mended),
            }
        })?;
        Ok(mended.data)
    }
}

fn of_bytes(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let are_bytes = |expr: &Expr| expr.get_type(schema).is_ok_and(|found| is_bytes(&found));
    match expr {
        Expr::Like(mut like) if are_bytes(&like.expr) => {
            *like.expr = functions::decoded(std::mem::take(&mut like.expr))?;
            Ok(Transformed::yes(Expr::Like(like)))
        }
        Expr::ScalarFunction(call) if call.name() == LENGTH && call.args.first().is_some_and(are_bytes) => {
            Ok(Transformed::yes(functions::byte_count(call.args)?))
        }
        expr => Ok(Transformed::no(expr)),
    }
}
