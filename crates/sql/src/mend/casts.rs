//! Casts read, round and raise as SQL's do, by one walk over a plan once types are coerced.
//!
//! Each change stands in a file of its own, with the defect that it mends: `text_decimals` and `failing_casts` take the
//! place of a cast, the others that of its operand. A cast that a change makes goes through those behind it.

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, LogicalPlan, TryCast};
use datafusion::optimizer::AnalyzerRule;

use super::{coarser_times, each_expression, failing_casts, narrow_casts, rounded_casts, text_decimals, wall_texts};
use crate::walk::{PlanWalk, Walk};

/// The rule, once types are coerced.
#[derive(Debug)]
pub(super) struct MendedCasts;

impl AnalyzerRule for MendedCasts {
    fn name(&self) -> &str {
        "mended_casts"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let is_cast = |expr: &Expr| matches!(expr, Expr::Cast(_) | Expr::TryCast(_));
        let mended = plan.transform_up_nested(|plan| {
            // Each row of VALUES is computed.
            let raises_early = matches!(plan, LogicalPlan::Values(_));
            each_expression(plan, is_cast, |expr, schema| {
                expr.transform_up(|expr| {
                    match Conversion::of(&expr, schema).and_then(|cast| cast.mended(raises_early)) {
                        Some(mended) => Ok(Transformed::yes(mended)),
                        None => Ok(Transformed::no(expr)),
                    }
                })
            })
        })?;
        Ok(mended.data)
    }
}

/// A CAST or a TRY_CAST.
pub(super) struct Conversion<'a> {
    pub(super) operand: &'a Expr,
    /// The operand's type.
    pub(super) from: DataType,
    pub(super) to: &'a DataType,
    /// Whether what does not fit is NULL.
    pub(super) may_fail: bool,
    field: &'a FieldRef,
    schema: &'a DFSchema,
}

impl<'a> Conversion<'a> {
    fn of(expr: &'a Expr, schema: &'a DFSchema) -> Option<Conversion<'a>> {
        let (operand, field, may_fail) = match expr {
            Expr::Cast(Cast { expr, field }) => (expr.as_ref(), field, false),
            Expr::TryCast(TryCast { expr, field }) => (expr.as_ref(), field, true),
            _ => return None,
        };
        Some(Conversion {
            operand,
            from: operand.get_type(schema).ok()?,
            to: field.data_type(),
            may_fail,
            field,
            schema,
        })
    }

    /// The same kind of cast, of another operand to another type.
    pub(super) fn cast(&self, operand: Expr, to: DataType) -> Expr {
        match self.may_fail {
            true => Expr::TryCast(TryCast::new(Box::new(operand), to)),
            false => Expr::Cast(Cast::new(Box::new(operand), to)),
        }
    }

    /// This cast of another operand.
    fn of_operand(&self, operand: Expr) -> Expr {
        let (expr, field) = (Box::new(operand), self.field.clone());
        match self.may_fail {
            true => Expr::TryCast(TryCast { expr, field }),
            false => Expr::Cast(Cast { expr, field }),
        }
    }

    /// Whether the operand is a text.
    pub(super) fn is_of_text(&self) -> bool {
        match &self.from {
            DataType::Dictionary(_, values) => values.is_string(),
            from => from.is_string(),
        }
    }

    /// The expression in the cast's place, if there is another.
    fn mended(&self, raises_early: bool) -> Option<Expr> {
        if let Some(read) = text_decimals::read(self) {
            return Some(read);
        }
        // No two of them take operands of the same types, but for texts whose zone goes before they are rounded.
        let bare = wall_texts::operand(self).map(|bare| self.of_operand(bare));
        let cast = bare.as_ref().and_then(|bare| Conversion::of(bare, self.schema));
        let cast = cast.as_ref().unwrap_or(self);
        let made = |expr: Expr| match Conversion::of(&expr, self.schema).and_then(|cast| cast.finished(raises_early)) {
            Some(finished) => finished,
            None => expr,
        };
        let operand = rounded_casts::operand(cast).map(made).or_else(|| coarser_times::operand(cast, made));
        let within = operand.map(|operand| self.of_operand(operand)).or(bare);
        match &within {
            Some(within) => {
                Conversion::of(within, self.schema)?.finished(raises_early).or_else(|| Some(within.clone()))
            }
            None => self.finished(raises_early),
        }
    }

    /// The changes behind all that make casts.
    fn finished(&self, raises_early: bool) -> Option<Expr> {
        let widened = narrow_casts::widened(self).map(|operand| self.of_operand(operand));
        widened.or_else(|| if raises_early { None } else { failing_casts::failing(self) })
    }
}
