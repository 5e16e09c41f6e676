//! Calls and operators that are changed as they are planned, before DataFusion plans them.
//!
//! - Names of aggregates and windows leave casts out in DataFusion 55.2, so that `sum(i), sum(i::double)` are two
//!   columns of one name and are refused. Arguments and keys of partitions with a cast are given a name of their own,
//!   which tells it.
//! - `SUM(x + 1), SUM(x + 2)` become `SUM(x) + 1 * COUNT(x)` and so on, which overflow where the sums do not, and not
//!   where an addition does. An argument with a name is left alone; [`super::shifted_sums`] knows which may be taken
//!   apart.
//! - A float beside a decimal, and times of two units, get a common type of ours ([`super::common_types`]): the type
//!   of an operation is asked for before plans are analysed. So are a text beside an interval, a date that an interval
//!   with a time of day moves, and what a sign stands before ([`super::intervals`]).
//! - A difference of ranks has a sign ([`super::signed`]), and `~x` the type of `x` ([`super::bits`]).
//! - `m[k]` of a map finds any key, which has a type in common with its keys; DataFusion finds constants of their type.
//! - `j @> part` of texts is that of JSON, as in PostgreSQL; DataFusion takes lists alone.
//! - `list || NULL` is the list, as in PostgreSQL; DataFusion appends an element.
//! - `s[2:3]` and `s[1]` of a text are its characters, as in DuckDB; DataFusion takes lists and maps alone.
//!
//! The file goes once names tell casts, and sums are not taken apart.

use arrow::datatypes::{DataType, Field};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::planner::{
    ExprPlanner, PlannerResult, RawAggregateExpr, RawBinaryExpr, RawFieldAccessExpr, RawWindowExpr,
};
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, GetFieldAccess, Operator};
use datafusion::sql::sqlparser::ast::BinaryOperator::{
    ArrowAt, AtArrow, Divide, Eq, Gt, GtEq, Lt, LtEq, Minus, Modulo, Multiply, NotEq, Plus, StringConcat,
};

use super::{bits, decimals, interval_products, intervals, list_elements, mixed, signed, told_casts};
use crate::canonical_floats::holds_floats;
use crate::extension_types::ExtensionType;
use crate::functions;
use crate::syntax::{is_bits, is_sign, is_told};
use crate::walk::Walk;

/// The planner that comes before DataFusion's.
#[derive(Debug)]
pub(crate) struct SessionExprPlanner;

impl ExprPlanner for SessionExprPlanner {
    fn plan_aggregate(&self, mut raw: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>> {
        // Its arguments are keys, which are found by being equal.
        if raw.func.name() == "grouping" {
            return Ok(PlannerResult::Original(raw));
        }
        raw.args = raw.args.into_iter().map(named).collect::<Result<_>>()?;
        Ok(PlannerResult::Original(raw))
    }

    fn plan_window(&self, mut raw: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        raw.args = raw.args.into_iter().map(named).collect::<Result<_>>()?;
        raw.partition_by = raw.partition_by.into_iter().map(told).collect::<Result<_>>()?;
        Ok(PlannerResult::Original(raw))
    }

    fn plan_field_access(
        &self,
        raw: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let key = match &raw.field_access {
            GetFieldAccess::NamedStructField { name } => Some(Expr::Literal(name.clone(), None)),
            GetFieldAccess::ListIndex { key } => Some(key.as_ref().clone()),
            GetFieldAccess::ListRange { .. } => None,
        };
        if let Some(key) = key.clone().filter(|_| is_json(&raw.expr, &raw.field_access, schema))
            && let Some(found) = functions::in_json(raw.expr.clone(), key)
        {
            return Ok(PlannerResult::Planned(found));
        }
        if let (Ok(DataType::Map(entries, _)), Some(key)) = (raw.expr.get_type(schema), &key)
            && !is_found(&entries, key)
        {
            return Ok(PlannerResult::Planned(list_elements::of_key(raw.expr, key.clone())));
        }
        let is_one = |stride: &Expr| matches!(stride, Expr::Literal(ScalarValue::Int64(Some(1)), _));
        let places = match &raw.field_access {
            GetFieldAccess::ListIndex { key } => Some((key, key)),
            GetFieldAccess::ListRange { start, stop, stride } if is_one(stride) => Some((start, stop)),
            _ => None,
        };
        let sliced = match places {
            Some((first, last)) if raw.expr.get_type(schema).is_ok_and(|of| of.is_string()) => {
                functions::text_slice(raw.expr.clone(), first.as_ref().clone(), last.as_ref().clone())
            }
            _ => None,
        };
        Ok(sliced.map_or(PlannerResult::Original(raw), PlannerResult::Planned))
    }

    fn plan_binary_op(&self, mut raw: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        if is_sign(&raw.op) {
            return Ok(PlannerResult::Planned(intervals::negative(signed::operand(raw.right, schema), schema)?));
        }
        if is_told(&raw.op) {
            return Ok(PlannerResult::Planned(told_casts::told(raw.right)));
        }
        if is_bits(&raw.op) {
            return Ok(PlannerResult::Planned(bits::turned(raw.right, schema)?));
        }
        let is_text = |side: &Expr| side.get_type(schema).is_ok_and(|of| of.is_string());
        if matches!(raw.op, AtArrow | ArrowAt) && is_text(&raw.left) && is_text(&raw.right) {
            let (whole, part) = if raw.op == AtArrow { (raw.left, raw.right) } else { (raw.right, raw.left) };
            return Ok(PlannerResult::Planned(functions::covers(whole, part)?));
        }
        (raw.left, raw.right, _) = mixed::operands(raw.left, raw.right, schema);
        if let Some(product) = interval_products::planned(&raw.op, &raw.left, &raw.right, schema)? {
            return Ok(PlannerResult::Planned(product));
        }
        if raw.op == StringConcat
            && let Some(list) = beside_null(&raw.left, &raw.right, schema)
        {
            return Ok(PlannerResult::Planned(list));
        }
        if matches!(raw.op, Eq | NotEq | Lt | LtEq | Gt | GtEq) {
            (raw.left, raw.right) = intervals::with_interval(raw.left, raw.right, schema);
        }
        if matches!(raw.op, Plus | Minus) {
            (raw.left, raw.right) = intervals::with_time_of_day(raw.left, raw.right, schema);
        }
        if raw.op == Multiply {
            (raw.left, raw.right) = decimals::with_room(raw.left, raw.right, schema);
        }
        if raw.op == Minus {
            (raw.left, raw.right) = signed::operands(raw.left, raw.right, schema);
        }
        if matches!(raw.op, Divide | Modulo) {
            (raw.left, raw.right) = signed::beside_signed(raw.left, raw.right, schema);
        }
        Ok(PlannerResult::Original(raw))
    }
}

/// The list of `list || NULL`, or of `NULL || list`, which is no element more.
fn beside_null(left: &Expr, right: &Expr, schema: &DFSchema) -> Option<Expr> {
    let is_list = |own: &DataType| matches!(own, DataType::List(_) | DataType::LargeList(_));
    // The type of a parameter is not known here.
    if matches!(left, Expr::Placeholder(_)) || matches!(right, Expr::Placeholder(_)) {
        return None;
    }
    match (left.get_type(schema).ok()?, right.get_type(schema).ok()?) {
        (list, DataType::Null) if is_list(&list) => Some(left.clone()),
        (DataType::Null, list) if is_list(&list) => Some(right.clone()),
        _ => None,
    }
}

/// Whether DataFusion finds a key among those of a map: a constant of their type, which has one value of its bits.
fn is_found(entries: &Field, key: &Expr) -> bool {
    let DataType::Struct(fields) = entries.data_type() else { return true };
    match (fields.first(), key) {
        (Some(own), Expr::Literal(key, _)) => *own.data_type() == key.data_type() && !holds_floats(own.data_type()),
        _ => false,
    }
}

/// Whether a key is looked for in JSON: in a column or a value of that type, and in a text by a name.
fn is_json(expr: &Expr, key: &GetFieldAccess, schema: &DFSchema) -> bool {
    if matches!(key, GetFieldAccess::NamedStructField { .. }) {
        return expr.get_type(schema).is_ok_and(|of| of.is_string());
    }
    let of = match expr {
        Expr::ScalarFunction(call) => functions::extension_type(&call.func),
        other => other.to_field(schema).ok().and_then(|(_, field)| ExtensionType::of(&field)),
    };
    of == Some(ExtensionType::Json)
}

/// An argument with a name where it needs one: casts are told, and what the optimiser would take apart keeps its own.
fn named(argument: Expr) -> Result<Expr> {
    let argument = told(argument)?;
    Ok(match &argument {
        Expr::BinaryExpr(BinaryExpr { op: Operator::Plus | Operator::Minus, .. }) => {
            let name = argument.schema_name().to_string();
            argument.alias(name)
        }
        _ => argument,
    })
}

/// An expression with a name that tells its casts.
fn told(expr: Expr) -> Result<Expr> {
    let has_cast = expr.exists(|expr| Ok(matches!(expr, Expr::Cast(_) | Expr::TryCast(_))))?;
    Ok(match has_cast && !matches!(expr, Expr::Alias(_)) {
        true => {
            let name = expr.to_string();
            expr.alias(name)
        }
        false => expr,
    })
}
