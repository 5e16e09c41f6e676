//! Clauses of function calls.
//!
//! The planner takes a scalar function by its name before it looks at DISTINCT, FILTER, OVER and the like, and window
//! functions leave DISTINCT and FILTER out. Which aggregates compute DISTINCT is known from their sources.

use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList, FunctionArguments,
    NullTreatment, WindowSpec, WindowType,
};

use super::super::items::folded;
use super::queries::order_key;
use super::refuse;
use crate::error::{Result, SqlError};

/// Scalar functions that are in no registry.
const BUILT_IN: [&str; 3] = ["unnest", "unnest_outer", "make_map"];
/// Window functions that read IGNORE NULLS.
const OF_NULLS: [&str; 5] = ["lead", "lag", "first_value", "last_value", "nth_value"];
/// Aggregates whose window form is a function of its own.
const IN_WINDOWS: [&str; 3] = ["first_value", "last_value", "nth_value"];
/// Aggregates that pass over DISTINCT where it would change their value.
const WITHOUT_DISTINCT: [&str; 6] =
    ["corr", "covar_samp", "covar_pop", "nth_value", "approx_percentile_cont", "grouping"];

/// What a name calls.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Called<'a> {
    Scalar,
    /// An aggregate of this name, by itself or over a window.
    Aggregate(&'a str),
    Window(&'a str),
    /// The planner tells that there is none.
    Nothing,
}

/// Checks the clauses of a call.
pub(super) fn function(function: &Function, state: &SessionState) -> Result<()> {
    let Function { name, uses_odbc_syntax: _, parameters, args, filter, null_treatment, over, within_group } = function;
    refuse([("a list of parameters before that of arguments, f(1)(x)", *parameters != FunctionArguments::None)])?;
    let (mut is_distinct, mut is_all, mut has_wildcard, mut is_of_table) = (false, false, false, false);
    let (mut is_ordered, mut treats_nulls, mut replaces_value) = (false, null_treatment.is_some(), false);
    match args {
        FunctionArguments::None => {}
        FunctionArguments::Subquery(_) => {
            return Err(SqlError::Unsupported(format!("a subquery as the argument of {name}; use {name}((SELECT …))")));
        }
        FunctionArguments::List(FunctionArgumentList { duplicate_treatment, args, clauses }) => {
            use datafusion::sql::sqlparser::ast::DuplicateTreatment::{All, Distinct};
            (is_distinct, is_all) = (*duplicate_treatment == Some(Distinct), *duplicate_treatment == Some(All));
            has_wildcard = args.iter().any(|argument| !matches!(argument_of(argument), FunctionArgExpr::Expr(_)));
            is_of_table =
                args.iter().any(|argument| matches!(argument_of(argument), FunctionArgExpr::QualifiedWildcard(_)));
            for clause in clauses {
                match clause {
                    FunctionArgumentClause::OrderBy(keys) => {
                        is_ordered = true;
                        keys.iter().try_for_each(order_key)?;
                        // The planner takes the key of f(x, 0.5 ORDER BY key) in the place of x.
                        replaces_value = match (args.as_slice(), keys.as_slice()) {
                            ([value, _, ..], [key]) => *argument_of(value) != FunctionArgExpr::Expr(key.expr.clone()),
                            _ => false,
                        };
                    }
                    FunctionArgumentClause::IgnoreOrRespectNulls(
                        NullTreatment::IgnoreNulls | NullTreatment::RespectNulls,
                    ) => treats_nulls = true,
                    // The planner refuses these.
                    FunctionArgumentClause::Limit(_)
                    | FunctionArgumentClause::OnOverflow(_)
                    | FunctionArgumentClause::Having(_)
                    | FunctionArgumentClause::Separator(_)
                    | FunctionArgumentClause::JsonNullClause(_)
                    | FunctionArgumentClause::JsonReturningClause(_) => {}
                }
            }
        }
    }
    if let Some(WindowType::WindowSpec(WindowSpec { window_name: _, partition_by: _, order_by, window_frame: _ })) =
        over
    {
        order_by.iter().try_for_each(order_key)?;
    }
    if is_distinct && has_wildcard {
        return Err(SqlError::Unsupported(format!("{name}(DISTINCT *)")));
    }
    // The planner forgets the table.
    if is_of_table {
        return Err(SqlError::Unsupported(format!("{name}(t.*); use {name} of a column")));
    }
    let refused = match called(function, over.is_some(), state) {
        Called::Nothing => None,
        Called::Scalar => [
            ("DISTINCT", is_distinct),
            ("ALL", is_all),
            ("ORDER BY", is_ordered),
            ("FILTER", filter.is_some()),
            ("IGNORE and RESPECT NULLS", treats_nulls),
            ("WITHIN GROUP", !within_group.is_empty()),
            ("OVER", over.is_some()),
        ]
        .into_iter()
        .find(|(_, is_there)| *is_there)
        .map(|(clause, _)| format!("{clause} of {name}, which is no aggregate")),
        Called::Window(own) => [
            ("DISTINCT", is_distinct),
            ("FILTER", filter.is_some()),
            ("IGNORE and RESPECT NULLS", treats_nulls && !OF_NULLS.contains(&own)),
        ]
        .into_iter()
        .find(|(_, is_there)| *is_there)
        .map(|(clause, _)| format!("{clause} of the window function {name}")),
        Called::Aggregate(own) => {
            let passes_over = WITHOUT_DISTINCT.contains(&own) || own.starts_with("regr_");
            let supports_nulls = || {
                let aggregate = state.aggregate_functions().get(own);
                aggregate.is_some_and(|aggregate| aggregate.supports_null_handling_clause())
            };
            let is_of_ordered_set = || {
                let aggregate = state.aggregate_functions().get(own);
                aggregate.is_some_and(|aggregate| aggregate.supports_within_group_clause())
            };
            if replaces_value && is_of_ordered_set() {
                Some(format!("ORDER BY of another value than the first argument of {name}"))
            } else if is_distinct && passes_over {
                Some(format!("{name}(DISTINCT …)"))
            } else if own == "grouping" && (filter.is_some() || over.is_some()) {
                Some(format!("FILTER and OVER of {name}"))
            } else if over.is_some() && treats_nulls && !supports_nulls() {
                Some(format!("IGNORE and RESPECT NULLS of {name}"))
            } else {
                None
            }
        }
    };
    refused.map_or(Ok(()), |clause| Err(SqlError::Unsupported(clause)))
}

/// What a call's name means to the planner.
fn called<'a>(function: &Function, has_window: bool, state: &'a SessionState) -> Called<'a> {
    let name = match function.name.0.as_slice() {
        [part] => match part.as_ident() {
            Some(name) => folded(name),
            None => return Called::Nothing,
        },
        _ => function.name.to_string(),
    };
    let is_scalar = state.scalar_functions().contains_key(&name)
        || state.higher_order_functions().contains_key(&name)
        || BUILT_IN.contains(&name.as_str());
    if is_scalar {
        return Called::Scalar;
    }
    // Functions go by their own names, which aliases lead to.
    let aggregate = state.aggregate_functions().get(&name).map(|aggregate| aggregate.name());
    match aggregate {
        Some(own) if !has_window || !IN_WINDOWS.contains(&own) => Called::Aggregate(own),
        _ => state.window_functions().get(&name).map_or(Called::Nothing, |window| Called::Window(window.name())),
    }
}

fn argument_of(argument: &FunctionArg) -> &FunctionArgExpr {
    let (FunctionArg::Unnamed(argument)
    | FunctionArg::Named { name: _, arg: argument, operator: _ }
    | FunctionArg::ExprNamed { name: _, arg: argument, operator: _ }) = argument;
    argument
}
