//! Instants are instants: the session has a time zone, UTC at first, in which times without one are read.
//!
//! DataFusion 55.2 has no zone at first, so that `now()` and `timestamptz '…+01'` lose theirs. With one, it still reads
//! times in the zone of whatever column they meet, casts an instant to a timestamp in UTC and to a date in the zone of
//! its column, and the optimiser takes casts from columns as if clocks never changed.
//!
//! As in PostgreSQL, texts without an offset, dates and timestamps become instants in the session's zone, and
//! instants become timestamps, dates, times and texts in it, whatever the zone of the column; so are both sides of a
//! comparison read, and so is what `extract`, `date_trunc` and the like take apart, and what intervals move, and AT
//! TIME ZONE ([`super::timezone`]). `SET TIME ZONE ''` leaves all to DataFusion.
//!
//! The files go once DataFusion has a zone for the session and casts by it.

use std::str::FromStr;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef, TimeUnit};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::Transformed;
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::functions::datetime::to_local_time;
use datafusion::logical_expr::dml::WriteOp;
use datafusion::logical_expr::expr::{Alias, ScalarFunction, WindowFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, TryCast};
use datafusion::optimizer::AnalyzerRule;

use super::in_zone::{in_zone, is_in_zone, unit_of, zone_of};
use super::{each_expression, list_calls, moved_instants, timezone};
use crate::functions;
use crate::walk::{PlanWalk, Walk};

/// Before types are coerced: zones that the statement itself names.
#[derive(Debug)]
pub(super) struct NamedZones;

impl AnalyzerRule for NamedZones {
    fn name(&self) -> &str {
        "named_zones"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = with_meanings(plan, zone_of(config).unwrap_or("UTC"))?;
        let Some(zone) = zone_of(config) else { return Ok(plan) };
        // Steps down from an INSERT in which its own casts may be.
        let mut below_insert = 0;
        let named = plan.transform_down_nested(|plan| {
            // What an INSERT casts to the types of its table names no zone: in the projection below it, and in VALUES.
            let is_own = below_insert == 2 || below_insert == 1 && matches!(plan, LogicalPlan::Values(_));
            below_insert = if is_insert(&plan) { 2 } else { usize::saturating_sub(below_insert, 1) };
            let names = NamePreserver::new(&plan);
            plan.map_exprs(|expr| {
                let saved = names.save(&expr);
                let named = if is_own { below_cast(expr, zone) } else { name_zones(expr, zone) };
                Ok(named?.update_data(|expr| saved.restore(expr)))
            })
        })?;
        Ok(named.data)
    }
}

/// The plan with what AT TIME ZONE means in its place, and what calls of functions mean before types are coerced.
fn with_meanings(plan: LogicalPlan, zone: &str) -> Result<LogicalPlan> {
    let is_call = |expr: &Expr| matches!(expr, Expr::ScalarFunction(_));
    let mended = plan.transform_up_nested(|plan| {
        each_expression(plan, is_call, |expr, schema| {
            expr.transform_up(|expr| {
                let meaning = match timezone::meaning(&expr, zone, schema)? {
                    None => list_calls::meaning(&expr, schema)?,
                    meaning => meaning,
                };
                Ok(meaning.map_or_else(|| Transformed::no(expr), Transformed::yes))
            })
        })
    })?;
    Ok(mended.data)
}

fn is_insert(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Dml(dml) if matches!(dml.op, WriteOp::Insert(_)))
}

fn below_cast(expr: Expr, zone: &str) -> Result<Transformed<Expr>> {
    match expr {
        Expr::Alias(Alias { expr, relation, name, metadata }) => Ok(below_cast(*expr, zone)?
            .update_data(|expr| Expr::Alias(Alias { expr: Box::new(expr), relation, name, metadata }))),
        Expr::Cast(Cast { expr, field }) => {
            Ok(name_zones(*expr, zone)?.update_data(|expr| Expr::Cast(Cast { expr: Box::new(expr), field })))
        }
        expr => name_zones(expr, zone),
    }
}

/// A cast to an instant of a zone that is not the session's reads times in that zone.
fn name_zones(expr: Expr, zone: &str) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| {
        Ok(match expr {
            Expr::Cast(Cast { expr, field }) if !is_in_zone(&expr) => match field.data_type() {
                DataType::Timestamp(unit, Some(named)) if named.as_ref() != zone => {
                    let read = in_zone(*expr, named, *unit);
                    Transformed::yes(Expr::Cast(Cast { expr: Box::new(read), field }))
                }
                _ => Transformed::no(Expr::Cast(Cast { expr, field })),
            },
            expr => Transformed::no(expr),
        })
    })
}

/// After types are coerced: the session's zone, where none is named.
#[derive(Debug)]
pub(super) struct SessionZone;

impl AnalyzerRule for SessionZone {
    fn name(&self) -> &str {
        "session_zone"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let Some(zone) = zone_of(config) else { return Ok(plan) };
        let zoned = plan.transform_up_nested(|plan| {
            let names = NamePreserver::new(&plan);
            let schema = merge_schema(&plan.inputs());
            plan.map_exprs(|expr| {
                if !expr.exists(|expr| Ok(may_cross(expr)))? {
                    return Ok(Transformed::no(expr));
                }
                let saved = names.save(&expr);
                let zoned = expr.transform_up(|expr| Ok(in_session(expr, zone, &schema)))?;
                Ok(zoned.update_data(|expr| saved.restore(expr)))
            })
        })?;
        Ok(zoned.data)
    }
}

/// Whether a function takes instants apart.
fn takes_apart(name: &str) -> bool {
    ["date_part", "date_trunc", "generate_series", "range", "to_char"].contains(&name) || functions::takes_apart(name)
}

/// Whether an expression may make an instant of what is none, or the other way round.
fn may_cross(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(cast) => is_instant(cast.field.data_type()) || is_on_wall(cast.field.data_type()),
        Expr::TryCast(cast) => is_instant(cast.field.data_type()) || is_on_wall(cast.field.data_type()),
        Expr::ScalarFunction(function) => function.name() == "arrow_cast" || takes_apart(function.name()),
        Expr::BinaryExpr(binary) => is_sum(binary.op),
        Expr::WindowFunction(_) => true,
        _ => false,
    }
}

fn is_sum(op: Operator) -> bool {
    matches!(op, Operator::Plus | Operator::Minus)
}

/// An instant moved by an interval on the calendar of the session's zone; its result keeps its type.
fn moved(binary: &BinaryExpr, zone: &str, schema: &DFSchema) -> Option<Expr> {
    let types = [&binary.left, &binary.right].map(|side| side.get_type(schema).ok());
    let (instant, interval, own) = match types {
        [Some(own @ DataType::Timestamp(_, Some(_))), Some(DataType::Interval(_))] => {
            (&binary.left, &binary.right, own)
        }
        [Some(DataType::Interval(_)), Some(own @ DataType::Timestamp(_, Some(_)))] => {
            (&binary.right, &binary.left, own)
        }
        _ => return None,
    };
    let DataType::Timestamp(unit, Some(named)) = &own else { return None };
    let is_own = named.as_ref() == zone || is_utc(named) && is_utc(zone);
    // The clocks of UTC go on.
    if moved_instants::is_time_alone(interval) || is_own && is_utc(zone) {
        return None;
    }
    let seen = DataType::Timestamp(*unit, Some(zone.into()));
    let seen = if is_own { instant.as_ref().clone() } else { Way::Cast.to(instant.as_ref().clone(), seen) };
    let moved = moved_instants::moved(seen, binary.op, interval.as_ref().clone());
    Some(if is_own { moved } else { Way::Cast.to(moved, own) })
}

/// A window over a RANGE frame of days or months on the calendar of the session's zone.
fn framed(window: &WindowFunction, zone: &str, schema: &DFSchema) -> Option<Expr> {
    let offsets = moved_instants::offsets(window);
    let key = &window.params.order_by.first().filter(|_| !offsets.is_empty())?.expr;
    let DataType::Timestamp(unit, Some(named)) = key.get_type(schema).ok()? else { return None };
    let is_own = named.as_ref() == zone || is_utc(&named) && is_utc(zone);
    if is_own && is_utc(zone) || moved_instants::is_checked(key) {
        return None;
    }
    let seen = DataType::Timestamp(unit, Some(zone.into()));
    let seen = if is_own { key.clone() } else { Way::Cast.to(key.clone(), seen) };
    let mut framed = window.clone();
    framed.params.order_by[0].expr = moved_instants::checked(seen, offsets);
    Some(Expr::WindowFunction(Box::new(framed)))
}

fn is_instant(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(_, Some(_)))
}

/// Whether values of a type are what a calendar or a clock on a wall shows.
fn is_on_wall(data_type: &DataType) -> bool {
    use DataType::{Date32, Date64, Time32, Time64, Timestamp};
    matches!(data_type, Timestamp(_, None) | Date32 | Date64 | Time32(_) | Time64(_)) || data_type.is_string()
}

/// How a value is cast.
#[derive(Clone, Copy)]
enum Way {
    Cast,
    Try,
}

impl Way {
    fn to(self, expr: Expr, data_type: DataType) -> Expr {
        match self {
            Way::Cast => Expr::Cast(Cast::new(Box::new(expr), data_type)),
            Way::Try => Expr::TryCast(TryCast::new(Box::new(expr), data_type)),
        }
    }
}

/// A cast that crosses between instants and what is on a wall, and what takes an instant apart or moves it, in the
/// session's zone.
pub(super) fn in_session(expr: Expr, zone: &str, schema: &DFSchema) -> Transformed<Expr> {
    let crossed = match &expr {
        Expr::Cast(cast) => crossed(&cast.expr, cast.field.data_type(), Way::Cast, zone, schema),
        Expr::TryCast(cast) => crossed(&cast.expr, cast.field.data_type(), Way::Try, zone, schema),
        Expr::ScalarFunction(function) if function.name() == "arrow_cast" => match function.args.as_slice() {
            [value, Expr::Literal(name, _)] => {
                let target = name.try_as_str().flatten().and_then(|name| DataType::from_str(name).ok());
                target.and_then(|target| match &target {
                    // The type names the zone.
                    DataType::Timestamp(unit, Some(named)) if named.as_ref() != zone => {
                        let from = value.get_type(schema).ok()?;
                        let read = || in_zone(value.clone(), named, *unit);
                        is_on_wall(&from).then(|| Way::Cast.to(read(), target.clone()))
                    }
                    _ => crossed(value, &target, Way::Cast, zone, schema),
                })
            }
            _ => None,
        },
        Expr::ScalarFunction(function) if takes_apart(function.name()) => apart(function, zone, schema),
        Expr::BinaryExpr(binary) if is_sum(binary.op) => moved(binary, zone, schema),
        Expr::WindowFunction(window) => framed(window, zone, schema),
        _ => None,
    };
    match crossed {
        Some(crossed) => Transformed::yes(crossed),
        None => Transformed::no(expr),
    }
}

/// The type with instants of a zone in the place of those of others, within lists, structs and maps, too; none where it
/// has no others.
fn seen_in(own: &DataType, zone: &str) -> Option<DataType> {
    use DataType::{FixedSizeList, LargeList, List, Map, Struct, Timestamp};
    let within = |field: &FieldRef| {
        let seen = seen_in(field.data_type(), zone)?;
        Some(Arc::new(field.as_ref().clone().with_data_type(seen)))
    };
    match own {
        Timestamp(unit, Some(own)) if own.as_ref() != zone => Some(Timestamp(*unit, Some(zone.into()))),
        List(items) => within(items).map(List),
        LargeList(items) => within(items).map(LargeList),
        FixedSizeList(items, length) => within(items).map(|items| FixedSizeList(items, *length)),
        Map(entries, is_sorted) => within(entries).map(|entries| Map(entries, *is_sorted)),
        Struct(fields) => {
            let seen: Vec<Option<FieldRef>> = fields.iter().map(within).collect();
            let is_changed = seen.iter().any(Option::is_some);
            let fields = seen.into_iter().zip(fields).map(|(seen, own)| seen.unwrap_or_else(|| own.clone()));
            is_changed.then(|| Struct(fields.collect()))
        }
        _ => None,
    }
}

/// The function over the instant in the session's zone; its result keeps its type.
fn apart(function: &ScalarFunction, zone: &str, schema: &DFSchema) -> Option<Expr> {
    let mut mended = function.clone();
    let mut changed = false;
    for argument in &mut mended.args {
        if let Some(seen) = argument.get_type(schema).ok().and_then(|own| seen_in(&own, zone)) {
            *argument = Way::Cast.to(std::mem::take(argument), seen);
            changed = true;
        }
    }
    if !changed {
        return None;
    }
    let mended = Expr::ScalarFunction(mended);
    let before = Expr::ScalarFunction(function.clone()).get_type(schema).ok()?;
    let now = mended.get_type(schema).ok()?;
    Some(if now == before { mended } else { Way::Cast.to(mended, before) })
}

/// A cast that crosses between instants and what is on a wall, by way of the session's zone; none where it is that
/// already.
fn crossed(value: &Expr, target: &DataType, way: Way, zone: &str, schema: &DFSchema) -> Option<Expr> {
    let from = value.get_type(schema).ok()?;
    let unit = match target {
        DataType::Timestamp(unit, _) => *unit,
        _ => TimeUnit::Microsecond,
    };
    let is_own = |own: &str| own == zone || is_utc(own) && is_utc(zone);
    let in_session = |data_type: &DataType| match data_type {
        DataType::Timestamp(_, Some(own)) => is_own(own),
        _ => false,
    };
    let then = |expr: Expr, data_type: &DataType| match data_type == target {
        true => expr,
        false => way.to(expr, target.clone()),
    };
    match (is_instant(&from), is_instant(target)) {
        (false, false) if from.is_nested() && target.is_string() => {
            seen_in(&from, zone).map(|seen| way.to(way.to(value.clone(), seen), target.clone()))
        }
        (false, true) if is_on_wall(&from) => {
            // Arrow's cast reads in the zone of its target; the optimiser sees through it as if clocks never changed.
            if is_utc(zone) || from.is_string() && matches!(way, Way::Try) {
                let session = DataType::Timestamp(unit, Some(zone.into()));
                return (!in_session(target)).then(|| way.to(way.to(value.clone(), session), target.clone()));
            }
            let read = DataType::Timestamp(unit_of(&from, unit), Some(zone.into()));
            Some(then(in_zone(value.clone(), zone, unit), &read))
        }
        (true, false) if is_on_wall(target) => {
            let own = unit_of(&from, unit);
            let session = DataType::Timestamp(own, Some(zone.into()));
            let seen = if in_session(&from) { value.clone() } else { way.to(value.clone(), session) };
            match target {
                // Arrow's cast to a timestamp is in UTC.
                DataType::Timestamp(_, _) if is_utc(zone) => None,
                target if target.is_string() || is_utc(zone) => {
                    (!in_session(&from)).then(|| way.to(seen, target.clone()))
                }
                _ => {
                    let wall = to_local_time().call(vec![seen]);
                    Some(then(wall, &DataType::Timestamp(own, None)))
                }
            }
        }
        _ => None,
    }
}

/// Whether a zone is that of UTC by one of its names.
pub(super) fn is_utc(zone: &str) -> bool {
    ["UTC", "+00:00", "+00", "Z", "GMT", "Etc/UTC"].contains(&zone)
}
