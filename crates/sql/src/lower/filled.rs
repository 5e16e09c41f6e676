//! Fragments of a plan with parameters, with values in place of these.
//!
//! A plan with typed parameters is lowered as any other: a parameter is an argument of the fragment
//! ([`warpcube_engine::Literal::Argument`]) from [`FIRST`] on, or within a function of a string that is computed once
//! it has its value. What the engine binds has values alone.

use std::any::Any;
use std::sync::Arc;

use datafusion::common::metadata::ScalarAndMetadata;
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::logical_expr::Expr;
use warpcube_engine::{BindingCache, Expr as Device, Literal};

use super::constants::literal;
use super::parameters::FIRST;
use super::strings::OpenExpression;
use super::{Lowered, Reason};

impl Lowered {
    /// The fragment with these values of its parameters.
    ///
    /// # Errors
    /// What cannot be computed of them.
    pub(crate) fn filled(&self, values: &[ScalarValue]) -> Result<Lowered, Reason> {
        let (mut failed, mut places) = (None, 0);
        let value = |position: usize| values.get(position).ok_or_else(|| format!("parameter {position} has no value"));
        let fragment = self.fragment.with_exprs(|expr| {
            let filled = match expr {
                Device::Literal(Literal::Argument(argument), _) if *argument >= FIRST => {
                    value(*argument - FIRST).and_then(literal)
                }
                Device::Lookup(register, function, ty) => {
                    let function: &dyn Any = function.as_ref();
                    let Some(open) = function.downcast_ref::<OpenExpression>() else { return };
                    open.filled(values).map(|function| Device::Lookup(*register, Arc::new(function), *ty))
                }
                _ => return,
            };
            places += 1;
            match filled {
                Ok(filled) => *expr = filled,
                Err(reason) => failed = Some(reason),
            }
        });
        if let Some(reason) = failed {
            return Err(reason);
        }
        let identity = |known: &String| with_values(known, values);
        // Parameters that are all within filters leave what was bound for other values as it is, but for these.
        let mut of_filters = 0;
        self.fragment.filters().for_each(|filter| filter.walk(&mut |expr| of_filters += usize::from(is_open(expr))));
        let binding = if places == of_filters { self.binding.for_other_constants() } else { BindingCache::default() };
        Ok(Lowered {
            binding,
            identity: identity(&self.identity),
            join: self.join.as_ref().map(identity),
            ..self.with_fragment(fragment)
        })
    }
}

/// Whether an expression is a parameter, or a function of a string with one.
fn is_open(expr: &Device) -> bool {
    match expr {
        Device::Literal(Literal::Argument(argument), _) => *argument >= FIRST,
        Device::Lookup(_, function, _) => {
            let function: &dyn Any = function.as_ref();
            function.is::<OpenExpression>()
        }
        _ => false,
    }
}

/// Values as DataFusion puts them in place of parameters.
pub(crate) fn param_values(values: Vec<ScalarValue>) -> ParamValues {
    ParamValues::List(values.into_iter().map(|value| ScalarAndMetadata::new(value, None)).collect())
}

/// The text of a plan with values where it has parameters, as the plan with these values would be written.
fn with_values(text: &str, values: &[ScalarValue]) -> String {
    let mut parts = text.split('$');
    let mut filled = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let number = part[..digits].parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        match number.and_then(|position| values.get(position)) {
            Some(value) => {
                filled.push_str(&Expr::Literal(value.clone(), None).to_string());
                filled.push_str(&part[digits..]);
            }
            None => {
                filled.push('$');
                filled.push_str(part);
            }
        }
    }
    filled
}
