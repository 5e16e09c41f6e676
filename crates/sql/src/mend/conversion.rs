//! A CAST or a TRY_CAST with the types on both of its sides.

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::DFSchema;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable, TryCast};

/// A CAST or a TRY_CAST.
pub(super) struct Conversion<'a> {
    pub(super) operand: &'a Expr,
    /// The operand's type.
    pub(super) from: DataType,
    pub(super) to: &'a DataType,
    /// Whether what does not fit is NULL.
    pub(super) may_fail: bool,
    field: &'a FieldRef,
    /// The columns that the operand may read.
    pub(super) schema: &'a DFSchema,
}

impl<'a> Conversion<'a> {
    /// The cast that an expression is; none of any other expression.
    pub(super) fn of(expr: &'a Expr, schema: &'a DFSchema) -> Option<Conversion<'a>> {
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
    pub(super) fn of_operand(&self, operand: Expr) -> Expr {
        let (expr, field) = (Box::new(operand), self.field.clone());
        match self.may_fail {
            true => Expr::TryCast(TryCast { expr, field }),
            false => Expr::Cast(Cast { expr, field }),
        }
    }

    /// Whether the operand is a text.
    pub(super) fn is_of_text(&self) -> bool {
        is_text(&self.from)
    }
}

/// Whether values of a type are texts.
pub(super) fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => values.is_string(),
        other => other.is_string(),
    }
}
