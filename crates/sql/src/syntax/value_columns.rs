//! Columns of VALUES have a type that holds all their cells.
//!
//! DataFusion 55.2 takes a common type while it plans VALUES, where a double beside a decimal is a decimal of 15 digits
//! behind the point, and decimals of unlike scales have 38 digits, which may hold neither. Here cells that are numbers
//! or casts are cast: to doubles in a column with a double, and to decimals with room for all where 38 digits have
//! none; within lists and structs that are written out, too. Cells of other expressions are the planner's.
//!
//! The file goes once DataFusion's common type of VALUES holds all cells.

use datafusion::sql::sqlparser::ast::{CastKind, DataType, ExactNumberInfo, Expr, SetExpr, Value, Values};

use super::doubles::{as_double, is_double};

/// Digits that a decimal of 128 bits has.
const DIGITS_MAX: u64 = 38;
/// Digits that a decimal has.
const WIDE_DIGITS_MAX: u64 = 76;

/// Gives columns of the VALUES that a query's body consists of types that hold all cells; queries in parentheses are
/// visited by themselves.
pub(super) fn with_room(body: &mut SetExpr) {
    match body {
        SetExpr::Values(values) => in_columns(values),
        SetExpr::SetOperation { left, right, .. } => {
            with_room(left);
            with_room(right);
        }
        _ => {}
    }
}

fn in_columns(values: &mut Values) {
    let columns = values.rows.iter().map(|row| row.content.len()).min().unwrap_or(0);
    for column in 0..columns {
        in_cells(values.rows.iter_mut().map(|row| &mut row.content[column]).collect());
    }
}

/// Gives cells of one type, and what stands within them at one place, a type that holds all.
fn in_cells(mut cells: Vec<&mut Expr>) {
    let of = |cells: &[&mut Expr], is_sought: fn(&Expr) -> bool| cells.iter().any(|cell| is_sought(cell));
    if of(&cells, is_double) {
        cells.into_iter().filter(|cell| is_decimal(cell)).for_each(|cell| replace(cell, as_double));
    } else if let Some((precision, scale)) = wide(cells.iter().map(|cell| &**cell)) {
        let data_type = DataType::Decimal(ExactNumberInfo::PrecisionAndScale(precision, scale as i64));
        let cast = |expr| {
            let (kind, expr, data_type) = (CastKind::Cast, Box::new(expr), data_type.clone());
            Expr::Cast { kind, expr, data_type, array: false, format: None }
        };
        cells.into_iter().filter(|cell| digits(cell).is_some()).for_each(|cell| replace(cell, cast));
    } else if of(&cells, |cell| matches!(cell, Expr::Array(_))) {
        in_cells(cells.into_iter().flat_map(items).collect());
    } else {
        let count = cells.iter().map(|cell| members(cell)).max().unwrap_or(0);
        for place in 0..count {
            in_cells(cells.iter_mut().filter_map(|cell| member(cell, place)).collect());
        }
    }
}

/// The items of a list that is written out.
fn items(cell: &mut Expr) -> &mut [Expr] {
    match cell {
        Expr::Array(list) => &mut list.elem,
        _ => &mut [],
    }
}

/// The number of members of a struct that is written out.
fn members(cell: &Expr) -> usize {
    match cell {
        Expr::Dictionary(fields) => fields.len(),
        _ => 0,
    }
}

/// The member of a struct that is written out, by its place.
fn member(cell: &mut Expr, place: usize) -> Option<&mut Expr> {
    match cell {
        Expr::Dictionary(fields) => fields.get_mut(place).map(|field| field.value.as_mut()),
        _ => None,
    }
}

fn replace(cell: &mut Expr, by: impl Fn(Expr) -> Expr) {
    *cell = by(std::mem::replace(cell, Expr::value(Value::Null)));
}

/// Precision and scale of a decimal for all cells, where one of 128 bits has no room for them.
fn wide<'c>(cells: impl Iterator<Item = &'c Expr>) -> Option<(u64, u64)> {
    let (mut whole, mut scale) = (0, 0);
    for (of_cell, behind) in cells.filter_map(digits) {
        (whole, scale) = (whole.max(of_cell), scale.max(behind));
    }
    let precision = whole + scale;
    (scale > 0 && precision > DIGITS_MAX).then_some((precision.min(WIDE_DIGITS_MAX), scale))
}

/// Digits before and behind the point of a number, or of the decimal that a cast gives.
fn digits(expr: &Expr) -> Option<(u64, u64)> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(number, _) => {
                let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
                let count = |digits: &str| digits.bytes().filter(u8::is_ascii_digit).count() as u64;
                Some((count(whole.trim_start_matches('0')), count(fraction)))
            }
            _ => None,
        },
        Expr::Cast { data_type: DataType::Decimal(info) | DataType::Numeric(info) | DataType::Dec(info), .. } => {
            match info {
                ExactNumberInfo::PrecisionAndScale(precision, scale) => {
                    let scale = u64::try_from(*scale).ok()?;
                    Some((precision.checked_sub(scale)?, scale))
                }
                ExactNumberInfo::Precision(precision) => Some((*precision, 0)),
                ExactNumberInfo::None => None,
            }
        }
        Expr::UnaryOp { expr, .. } | Expr::Nested(expr) => digits(expr),
        _ => None,
    }
}

/// Whether an expression is a literal with a point.
fn is_decimal(expr: &Expr) -> bool {
    match expr {
        Expr::Value(value) => matches!(&value.value, Value::Number(digits, _) if digits.contains('.')),
        Expr::UnaryOp { expr, .. } | Expr::Nested(expr) => is_decimal(expr),
        _ => false,
    }
}
