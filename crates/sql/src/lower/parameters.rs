//! Parameters of a plan in expressions of fragments.

use datafusion::logical_expr::expr::Placeholder;
use warpcube_column::is_string;
use warpcube_engine::{Expr as Device, Literal, Ty};

use super::Reason;

/// The first argument that is a parameter; those before are scalar subqueries.
pub(super) const FIRST: usize = 1 << 20;

/// A parameter in place of a number. Strings are operands of functions of strings alone.
pub(super) fn parameter(placeholder: &Placeholder) -> Result<Device, Reason> {
    let refuse = || format!("the parameter '{}'", placeholder.id);
    let data_type = placeholder.field.as_ref().map(|field| field.data_type()).ok_or_else(refuse)?;
    let ty = Ty::of(data_type).filter(|_| !is_string(data_type)).ok_or_else(refuse)?;
    Ok(Device::Literal(Literal::Argument(FIRST + position(placeholder).ok_or_else(refuse)?), ty))
}

/// The position of a parameter's value.
pub(super) fn position(placeholder: &Placeholder) -> Option<usize> {
    placeholder.id.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)
}
