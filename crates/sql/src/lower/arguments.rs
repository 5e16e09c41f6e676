//! Arguments of a fragment: what takes the place of [`Literal::Argument`] before it is bound.
//!
//! Values of parameters are known when a statement is planned, results of scalar subqueries once these have run. Both
//! are numbered in one list, and are put in place in one way ([`super::filled`]).

use std::cell::RefCell;

use datafusion::common::ScalarValue;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{Expr, Subquery};
use warpcube_column::is_string;
use warpcube_engine::{Expr as Device, Literal, Ty};

use super::Reason;

/// What a value is taken from.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Argument {
    /// The parameter at this position.
    Parameter(usize),
    /// A scalar subquery.
    Subquery(Subquery),
}

impl Argument {
    /// The subquery, if it is one.
    pub(crate) fn subquery(&self) -> Option<&Subquery> {
        match self {
            Argument::Parameter(_) => None,
            Argument::Subquery(subquery) => Some(subquery),
        }
    }
}

/// The arguments of a fragment that is written; equal ones have one number.
#[derive(Debug, Default)]
pub(super) struct ArgumentList(RefCell<Vec<Argument>>);

impl ArgumentList {
    /// An argument in an expression.
    pub(super) fn literal(&self, argument: Argument, ty: Ty) -> Device {
        let mut arguments = self.0.borrow_mut();
        let known = arguments.iter().position(|known| *known == argument);
        let number = known.unwrap_or_else(|| {
            arguments.push(argument);
            arguments.len() - 1
        });
        Device::Literal(Literal::Argument(number), ty)
    }

    /// The list so far, to be written on in another place.
    pub(super) fn take(&self) -> ArgumentList {
        ArgumentList(RefCell::new(self.0.take()))
    }

    /// Goes on with a list.
    pub(super) fn replace(&self, list: ArgumentList) {
        self.0.replace(list.into_inner());
    }

    /// The arguments by number.
    pub(super) fn into_inner(self) -> Vec<Argument> {
        self.0.into_inner()
    }
}

/// The position of a parameter that is in place of a number, and its type. Strings are operands of functions of strings
/// alone.
pub(super) fn parameter(placeholder: &Placeholder) -> Result<(usize, Ty), Reason> {
    let refuse = || format!("the parameter '{}'", placeholder.id);
    let data_type = placeholder.field.as_ref().map(|field| field.data_type()).ok_or_else(refuse)?;
    let ty = Ty::of(data_type).filter(|_| !is_string(data_type)).ok_or_else(refuse)?;
    Ok((position(placeholder).ok_or_else(refuse)?, ty))
}

/// The position of a parameter's value.
fn position(placeholder: &Placeholder) -> Option<usize> {
    placeholder.id.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)
}

/// The value of a parameter in its place; anything else as it is.
pub(super) fn with_value(expr: Expr, values: &[ScalarValue]) -> Transformed<Expr> {
    let value = match &expr {
        Expr::Placeholder(placeholder) => position(placeholder).and_then(|at| values.get(at)),
        _ => None,
    };
    match value {
        Some(value) => Transformed::yes(Expr::Literal(value.clone(), None)),
        None => Transformed::no(expr),
    }
}
