//! The common types of values, where DataFusion's lose some: of floats beside decimals, times of several units, dates
//! and texts beside timestamps, and decimals without room. What is within lists, structs and maps has them, too.
//!
//! [`super::mixed`] says where values get them. Numbers beside dates are refused.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, Field, FieldRef, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::{Cast, Expr, ExprSchemable};

use super::conversion::is_text;
use crate::error::SqlError;
use crate::syntax::has_nanoseconds;
use crate::text_bytes::is_bytes;
use crate::time_units::per_second;
use crate::words::sql_name;

pub(super) fn is_decimal(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Decimal128(_, _) | DataType::Decimal256(_, _))
}

fn is_time(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Time32(_) | DataType::Time64(_))
}

/// What values of several types become.
#[derive(Debug, Clone)]
pub(super) enum Common {
    Double,
    Time,
    /// Timestamps of a unit and a zone, beside dates and texts.
    Timestamp(TimeUnit, Option<Arc<str>>),
    /// Decimals of 76 digits, so many of them behind the point.
    Wide(i8),
    /// Bytes, beside texts that are read as such.
    Bytes,
    /// Lists, by their items.
    Items(Box<Common>),
    /// Structs, by their members, and the entries of maps.
    Members(Vec<Member>),
}

/// The members of structs that stand at one place, and what they become; none where they stay as they are.
#[derive(Debug, Clone)]
pub(super) struct Member {
    name: String,
    common: Option<Common>,
}

impl Common {
    /// An expression of the common type, as far as this is not DataFusion's to find.
    pub(super) fn of(&self, expr: Expr, schema: &DFSchema) -> Expr {
        let Ok(found) = expr.get_type(schema) else { return expr };
        let Some(mut to) = self.in_place_of(&found) else { return expr };
        if let Expr::Literal(value, _) = &expr {
            // A literal is rounded once, from its digits.
            if let (DataType::Float64, Some(number)) = (&to, double(value)) {
                return Expr::Literal(ScalarValue::Float64(Some(number)), None);
            }
            if let (DataType::Timestamp(unit, _), Some(text)) = (&mut to, value.try_as_str().flatten()) {
                *unit = if has_nanoseconds(text) { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
            }
        }
        Expr::Cast(Cast::new(Box::new(expr), to))
    }

    /// The type in place of another one; none where that stays.
    fn in_place_of(&self, own: &DataType) -> Option<DataType> {
        use DataType::{Date32, Date64, FixedSizeList, LargeList, List, Map, Struct};
        let within = |common: &Common, field: &FieldRef| {
            let to = common.in_place_of(field.data_type())?;
            Some(Arc::new(field.as_ref().clone().with_data_type(to)))
        };
        match (self, own) {
            (Common::Double, own) => is_decimal(own).then_some(DataType::Float64),
            (Common::Time, own) => {
                let finest = DataType::Time64(TimeUnit::Nanosecond);
                (is_time(own) && *own != finest).then_some(finest)
            }
            (Common::Timestamp(unit, _), Date32 | Date64) => Some(DataType::Timestamp(*unit, None)),
            (Common::Timestamp(unit, zone), own) => is_text(own).then(|| DataType::Timestamp(*unit, zone.clone())),
            (Common::Wide(scale), own) => {
                let wide = DataType::Decimal256(DECIMAL256_MAX_PRECISION, *scale);
                ((own.is_integer() || is_decimal(own)) && *own != wide).then_some(wide)
            }
            (Common::Bytes, own) => is_text(own).then_some(DataType::Binary),
            (Common::Items(common), List(items)) => within(common, items).map(List),
            (Common::Items(common), LargeList(items)) => within(common, items).map(LargeList),
            (Common::Items(common), FixedSizeList(items, length)) => {
                within(common, items).map(|items| FixedSizeList(items, *length))
            }
            (Common::Members(_), Map(entries, is_sorted)) => within(self, entries).map(|to| Map(to, *is_sorted)),
            (Common::Members(members), Struct(fields)) => {
                let mut is_changed = false;
                let fields = fields.iter().enumerate().map(|(place, field)| {
                    let of_name = members.iter().find(|member| member.name == *field.name());
                    let common = of_name.or(members.get(place)).and_then(|member| member.common.as_ref());
                    let changed = common.and_then(|common| within(common, field));
                    is_changed |= changed.is_some();
                    changed.unwrap_or_else(|| field.clone())
                });
                let fields = fields.collect();
                is_changed.then_some(Struct(fields))
            }
            _ => None,
        }
    }
}

/// Types of values within lists, structs and maps, by their places there.
enum Within {
    Items(Vec<DataType>),
    Members(Vec<(String, Vec<DataType>)>),
}

impl Within {
    /// What is within values of the first type that has something within, and of those like it.
    fn of<'t>(types: impl IntoIterator<Item = &'t DataType>) -> Option<Within> {
        use DataType::{FixedSizeList, LargeList, List, Map, Struct};
        let items = |own: &DataType| match own {
            List(items) | LargeList(items) | FixedSizeList(items, _) => Some(items.data_type().clone()),
            _ => None,
        };
        let members = |own: &'t DataType| match own {
            Struct(fields) => Some(fields),
            Map(entries, _) => match entries.data_type() {
                Struct(fields) => Some(fields),
                _ => None,
            },
            _ => None,
        };
        let mut types = types.into_iter().skip_while(|&own| items(own).is_none() && members(own).is_none());
        let first = types.next()?;
        let Some(fields) = members(first) else {
            return Some(Within::Items(std::iter::once(first).chain(types).filter_map(items).collect()));
        };
        let mut places: Vec<_> =
            fields.iter().map(|field| (field.name().clone(), vec![field.data_type().clone()])).collect();
        let is_like = |own: &&DataType| std::mem::discriminant(*own) == std::mem::discriminant(first);
        for others in types.filter(is_like).filter_map(members) {
            // As DataFusion brings structs together: by names where all are the same, or by places.
            let has_all = fields.iter().all(|field| others.find(field.name()).is_some());
            for (place, (name, types)) in places.iter_mut().enumerate() {
                let other = if has_all { others.find(name).map(|(_, other)| other) } else { others.get(place) };
                types.extend(other.map(|other| other.data_type().clone()));
            }
        }
        Some(Within::Members(places))
    }
}

/// The common type of expressions that are to be of one type, and an error for numbers beside dates.
pub(super) fn checked<'a>(exprs: impl IntoIterator<Item = &'a Expr>, schema: &DFSchema) -> Result<Option<Common>> {
    let typed = |expr: &'a Expr| Some((expr, expr.get_type(schema).ok()?));
    let typed: Vec<(&Expr, DataType)> = exprs.into_iter().filter_map(typed).collect();
    check_kinds(typed.iter().map(|(_, data_type)| data_type))?;
    let of_value = |expr: &Expr, data_type: &DataType| match expr {
        Expr::Literal(value, _) => Digits::of_value(value),
        _ => Digits::of(data_type),
    };
    let digits = typed.iter().filter_map(|(expr, data_type)| of_value(expr, data_type)).collect();
    let types: Vec<DataType> = typed.into_iter().map(|(_, data_type)| data_type).collect();
    Ok(of_all(&types, digits))
}

/// Whether a type is one of dates, timestamps or times of day.
pub(crate) fn is_on_calendar(data_type: &DataType) -> bool {
    use DataType::{Date32, Date64, Time32, Time64, Timestamp};
    matches!(data_type, Date32 | Date64 | Timestamp(..) | Time32(_) | Time64(_))
}

/// What makes a date or a time of a number, by its type.
pub(super) fn of_number(date: &DataType) -> &'static str {
    match date {
        DataType::Timestamp(..) => {
            "to_timestamp(n) of seconds since 1970, to_timestamp_millis(n), to_timestamp_micros(n)"
        }
        DataType::Time32(_) | DataType::Time64(_) => "make_time(hour, minute, second)",
        _ => "DATE '1970-01-01' + n",
    }
}

/// Refuses types of numbers beside types of dates.
///
/// # Errors
/// [`SqlError::Planning`], with both types.
pub(crate) fn check_kinds<'a>(types: impl IntoIterator<Item = &'a DataType> + Clone) -> Result<()> {
    let number = types.clone().into_iter().find(|data_type| data_type.is_numeric());
    let date = types.into_iter().find(|data_type| is_on_calendar(data_type));
    match (number, date) {
        (Some(number), Some(date)) => {
            let (number, kind, remedy) = (sql_name(number), sql_name(date), of_number(date));
            let reason = format!("{number} and {kind} have no common type; write CAST(… AS {number}), or {remedy}");
            Err(SqlError::Planning(reason).into())
        }
        _ => Ok(()),
    }
}

/// Refuses a number for a column of dates, and a date for one of numbers.
///
/// # Errors
/// [`SqlError::Planning`], with the column and both types.
pub(crate) fn check_column(column: &Field, given: &DataType) -> Result<()> {
    let (name, kind) = (column.name(), column.data_type());
    let remedy = match is_on_calendar(kind) {
        true if given.is_numeric() => of_number(kind).to_string(),
        false if kind.is_numeric() && is_on_calendar(given) => format!("CAST(… AS {})", sql_name(kind)),
        _ => return Ok(()),
    };
    let (number, date) = if given.is_numeric() { (given, kind) } else { (kind, given) };
    let (one, other) = (sql_name(number), sql_name(date));
    let reason = format!("column '{name}': {one} and {other} have no common type; write {remedy}");
    Err(SqlError::Planning(reason).into())
}

/// What expressions become that have several types which DataFusion does not bring together.
pub(super) fn common<'a>(exprs: impl IntoIterator<Item = &'a Expr>, schema: &DFSchema) -> Option<Common> {
    common_of(exprs.into_iter().filter_map(|expr| expr.get_type(schema).ok()))
}

/// What values become that are to be of one type.
pub(super) fn shared(types: impl IntoIterator<Item = DataType>) -> Option<Common> {
    let types: Vec<DataType> = types.into_iter().collect();
    let digits = types.iter().filter_map(Digits::of).collect();
    of_all(&types, digits)
}

/// Types of values that are to be of one type, as far as that is not DataFusion's to find.
pub(super) fn alike(mut types: Vec<DataType>) -> Vec<DataType> {
    if let Some(common) = shared(types.iter().cloned()) {
        types.iter_mut().for_each(|own| *own = common.in_place_of(own).unwrap_or_else(|| own.clone()));
    }
    types
}

fn of_all(types: &[DataType], digits: Vec<Digits>) -> Option<Common> {
    let is_beside_bytes = |found: &DataType| is_bytes(found) || is_text(found) || found.is_null();
    let are_bytes = || types.iter().any(is_bytes) && types.iter().any(is_text) && types.iter().all(is_beside_bytes);
    let single = common_of(types.iter().cloned()).or_else(|| with_texts(types)).or_else(|| wide(types, digits));
    single.or_else(|| are_bytes().then_some(Common::Bytes)).or_else(|| match Within::of(types)? {
        Within::Items(items) => Some(Common::Items(Box::new(shared(items)?))),
        Within::Members(members) => {
            let members = members.into_iter().map(|(name, types)| Member { name, common: shared(types) });
            let members: Vec<Member> = members.collect();
            members.iter().any(|member| member.common.is_some()).then_some(Common::Members(members))
        }
    })
}

/// Digits before and behind the point of a number.
#[derive(Debug, Clone, Copy)]
struct Digits {
    whole: i16,
    scale: i8,
}

impl Digits {
    /// Those of all values of a type of integers or decimals.
    fn of(data_type: &DataType) -> Option<Digits> {
        let whole = match data_type {
            DataType::Int8 | DataType::UInt8 => 3,
            DataType::Int16 | DataType::UInt16 => 5,
            DataType::Int32 | DataType::UInt32 => 10,
            DataType::Int64 => 19,
            DataType::UInt64 => 20,
            DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
                return Some(Digits { whole: i16::from(*precision) - i16::from(*scale), scale: *scale });
            }
            _ => return None,
        };
        Some(Digits { whole, scale: 0 })
    }

    /// Those of a constant; a NULL has none.
    fn of_value(value: &ScalarValue) -> Option<Digits> {
        let of_type = Digits::of(&value.data_type()).filter(|_| !value.is_null())?;
        let unscaled = match value {
            ScalarValue::Decimal128(Some(unscaled), ..) => unscaled.to_string(),
            ScalarValue::Decimal256(Some(unscaled), ..) => unscaled.to_string(),
            integer => integer.to_string(),
        };
        let digits = unscaled.trim_start_matches(['-', '0']).len() as i16;
        Some(Digits { whole: digits - i16::from(of_type.scale), ..of_type })
    }
}

/// The wide type of decimals, and of integers beside them, which DataFusion's common type has no room for.
fn wide(types: &[DataType], digits: Vec<Digits>) -> Option<Common> {
    let is_wide = |data_type: &DataType| matches!(data_type, DataType::Decimal256(..));
    let room = if types.iter().any(is_wide) { DECIMAL256_MAX_PRECISION } else { DECIMAL128_MAX_PRECISION };
    let whole = digits.iter().map(|digits| digits.whole).max()?;
    let scale = digits.iter().map(|digits| digits.scale).max()?;
    let has_room = whole + i16::from(scale) <= i16::from(room);
    (!has_room && types.iter().any(is_decimal)).then_some(Common::Wide(scale))
}

/// The type of timestamps beside texts; those of arithmetic are no timestamps.
fn with_texts(types: &[DataType]) -> Option<Common> {
    if !types.iter().any(is_text) {
        return None;
    }
    let (unit, zone) = finest(types)?;
    let unit = if unit == TimeUnit::Nanosecond { unit } else { TimeUnit::Microsecond };
    Some(Common::Timestamp(unit, zone))
}

/// The finest unit of timestamps among some types, and the first of their zones.
fn finest(types: &[DataType]) -> Option<(TimeUnit, Option<Arc<str>>)> {
    let timestamp = |data_type: &DataType| match data_type {
        DataType::Timestamp(unit, zone) => Some((*unit, zone.clone())),
        _ => None,
    };
    let timestamps = || types.iter().filter_map(timestamp);
    let unit = timestamps().map(|(unit, _)| unit).max_by_key(|unit| per_second(*unit))?;
    Some((unit, timestamps().find_map(|(_, zone)| zone)))
}

fn common_of(types: impl IntoIterator<Item = DataType>) -> Option<Common> {
    let types: Vec<DataType> = types.into_iter().collect();
    let is_date = |data_type: &DataType| matches!(data_type, DataType::Date32 | DataType::Date64);
    let times: HashSet<&DataType> = types.iter().filter(|data_type| is_time(data_type)).collect();
    if types.iter().any(DataType::is_floating) && types.iter().any(is_decimal) {
        return Some(Common::Double);
    }
    if times.len() > 1 {
        return Some(Common::Time);
    }
    // Nanoseconds are DataFusion's to bring together with a date.
    let (unit, zone) = finest(&types).filter(|(unit, _)| types.iter().any(is_date) && *unit != TimeUnit::Nanosecond)?;
    Some(Common::Timestamp(unit, zone))
}

/// The double of a decimal, rounded once, from its digits.
fn double(value: &ScalarValue) -> Option<f64> {
    digits(value)?.parse().ok()
}

/// A decimal as a number with an exponent.
fn digits(value: &ScalarValue) -> Option<String> {
    match value {
        ScalarValue::Decimal128(Some(unscaled), _, scale) => Some(format!("{unscaled}e{}", -i16::from(*scale))),
        ScalarValue::Decimal256(Some(unscaled), _, scale) => Some(format!("{unscaled}e{}", -i16::from(*scale))),
        _ => None,
    }
}
