//! Units of time in calls and in EXTRACT, by the names that functions know.
//!
//! DataFusion 55.2 and REWRITTEN of [`super::functions`] know one or some names a unit: `date_trunc('months', t)` would
//! be refused. Centuries and the like are functions of their own, which EXTRACT and `date_part` become.

use datafusion::sql::sqlparser::ast::{
    DateTimeField, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, Value,
};

use super::call;
use crate::calendar_units::unit_of;

/// Functions whose first argument is a unit.
const FUNCTIONS: [&str; 8] =
    ["date_part", "datepart", "date_trunc", "datetrunc", "date_diff", "datediff", "date_sub", "datesub"];

/// Parts that are functions.
const PARTS: [&str; 9] = [
    "century",
    "decade",
    "era",
    "julian",
    "millennium",
    "timezone_hour",
    "timezone_minute",
    "timezone_offset",
    "yearweek",
];

/// Names a unit as functions know it.
pub(super) fn settle(expr: &mut Expr) {
    match expr {
        Expr::Extract { field, syntax: _, expr: value } => {
            let name = match &*field {
                DateTimeField::Custom(name) => name.value.clone(),
                field => field.to_string(),
            };
            let Some(part) = part_of(&name) else { return };
            if PARTS.contains(&part) {
                let value = std::mem::replace(value.as_mut(), Expr::value(Value::Null));
                *expr = call(part, vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(value))]);
            } else if !name.eq_ignore_ascii_case(part) {
                *field = DateTimeField::Custom(Ident::new(part));
            }
        }
        Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) => {
            let called = name.to_string().to_lowercase();
            if !FUNCTIONS.contains(&called.as_str()) {
                return;
            }
            let is_part = list.args.len() == 2 && ["date_part", "datepart"].contains(&called.as_str());
            let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(unit)))) = list.args.first_mut() else {
                return;
            };
            let Value::SingleQuotedString(text) = &mut unit.value else { return };
            let Some(part) = part_of(text) else { return };
            if is_part && PARTS.contains(&part) {
                *expr = call(part, list.args.split_off(1));
            } else {
                *text = part.to_string();
            }
        }
        _ => {}
    }
}

fn part_of(name: &str) -> Option<&'static str> {
    // The function of that name has the zone for an argument.
    if name.eq_ignore_ascii_case("timezone") {
        return Some("timezone_offset");
    }
    let part = PARTS.iter().copied().find(|part| part.eq_ignore_ascii_case(name));
    part.or_else(|| unit_of(name))
}
