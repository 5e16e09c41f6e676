//! Fragments with values in place of their arguments.
//!
//! A plan with typed parameters is lowered as any other: a parameter is an argument of the fragment, as the result of a
//! scalar subquery is, or stands within a function of a string, which is computed once the parameter has its value.
//! What the engine binds has values alone. Where these are all within filters, the fragment takes over what was bound
//! for other values ([`BindingCache::for_other_constants`]).

use std::any::Any;
use std::sync::Arc;

use datafusion::common::metadata::ScalarAndMetadata;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::error::{DataFusionError, Result as PlanResult};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, Subquery};
use warpcube_engine::{BindingCache, Expr as Device, Literal};

use super::arguments::{Argument, with_value};
use super::constants::literal;
use super::strings::OpenExpression;
use super::{DeviceNode, Lowered, Reason};
use crate::walk::{PlanWalk, Walk};

/// A lowered plan with values of its parameters; `each` is shown every fragment.
///
/// # Errors
/// What a fragment cannot compute of them, and what `each` refuses.
pub(crate) fn fill(
    plan: LogicalPlan,
    values: &[ScalarValue],
    each: &mut dyn FnMut(&Arc<Lowered>) -> Result<(), Reason>,
) -> PlanResult<LogicalPlan> {
    let params = Arc::new(param_values(values.to_vec()));
    let filled = plan.transform_down_nested(|plan| {
        let Some((node, lowered)) = DeviceNode::of(&plan).and_then(|node| Some((node, node.lowered()?))) else {
            return plan.map_exprs(|expr| expr.transform_up(|expr| Ok(with_value(expr, values))));
        };
        let mut filled = lowered.filled(values).map_err(DataFusionError::Internal)?;
        for argument in &mut filled.arguments {
            if let Argument::Subquery(Subquery { subquery, .. }) = argument {
                *subquery = Arc::new(fill(subquery.as_ref().clone(), values, each)?);
            }
        }
        let filled = Arc::new(filled);
        each(&filled).map_err(DataFusionError::Internal)?;
        let node = Arc::new(node.filled(filled, params.clone()));
        Ok(Transformed::new(LogicalPlan::Extension(Extension { node }), true, TreeNodeRecursion::Jump))
    })?;
    Ok(filled.data)
}

impl Lowered {
    /// The fragment with these values of its parameters.
    ///
    /// # Errors
    /// What cannot be computed of them.
    fn filled(&self, values: &[ScalarValue]) -> Result<Lowered, Reason> {
        let value = |argument: &Argument| match argument {
            Argument::Parameter(position) => match values.get(*position) {
                Some(value) => Ok(Some(value.clone())),
                None => Err(format!("parameter {position} has no value")),
            },
            Argument::Subquery(_) => Ok(None),
        };
        let known = self.arguments.iter().map(value).collect::<Result<Vec<_>, _>>()?;
        let identity = |known: &String| with_values(known, values);
        Ok(Lowered {
            identity: identity(&self.identity),
            join: self.join.as_ref().map(identity),
            ..self.with_arguments(&known, values)?
        })
    }

    /// The fragment with these results of its scalar subqueries, itself where it has none; the last one is kept.
    ///
    /// # Errors
    /// What cannot be computed of them.
    pub(crate) fn with_results(self: &Arc<Lowered>, results: Vec<ScalarValue>) -> Result<Arc<Lowered>, Reason> {
        if results.is_empty() {
            return Ok(self.clone());
        }
        let mut last = self.last_results.lock();
        if let Some((_, lowered)) = last.as_ref().filter(|(known, _)| *known == results) {
            return Ok(lowered.clone());
        }
        let mut next = results.iter().cloned();
        let known: Vec<_> = self.arguments.iter().map(|one| one.subquery().and_then(|_| next.next())).collect();
        let lowered = Arc::new(self.with_arguments(&known, &[])?);
        *last = Some((results, lowered.clone()));
        Ok(lowered)
    }

    /// The fragment with values of those arguments that are `known`, and of parameters within functions of strings.
    fn with_arguments(&self, known: &[Option<ScalarValue>], parameters: &[ScalarValue]) -> Result<Lowered, Reason> {
        let (mut failed, mut places) = (None, 0);
        let is_known = |number: usize| known.get(number).is_some_and(Option::is_some);
        let fragment = self.fragment.with_exprs(|expr| {
            let filled = match expr {
                Device::Literal(Literal::Argument(number), _) => match known.get(*number) {
                    Some(Some(value)) => literal(value),
                    _ => {
                        // Those that are left are numbered anew.
                        *number -= (0..*number).filter(|before| is_known(*before)).count();
                        return;
                    }
                },
                Device::Lookup(register, function, ty) => match open(function.as_ref()) {
                    Some(open) if !parameters.is_empty() => {
                        open.filled(parameters).map(|function| Device::Lookup(*register, Arc::new(function), *ty))
                    }
                    _ => return,
                },
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
        let is_filled = |expr: &Device| match expr {
            Device::Literal(Literal::Argument(number), _) => is_known(*number),
            Device::Lookup(_, function, _) => !parameters.is_empty() && open(function.as_ref()).is_some(),
            _ => false,
        };
        let mut of_filters = 0;
        self.fragment.filters().for_each(|filter| filter.walk(&mut |expr| of_filters += usize::from(is_filled(expr))));
        let binding = if places == of_filters { self.binding.for_other_constants() } else { BindingCache::default() };
        let left = self.arguments.iter().zip(known).filter(|(_, value)| value.is_none());
        let arguments = left.map(|(argument, _)| argument.clone()).collect();
        Ok(Lowered { binding, arguments, ..self.with_fragment(fragment) })
    }
}

/// A function of a string that has parameters.
fn open(function: &dyn Any) -> Option<&OpenExpression> {
    function.downcast_ref()
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
