//! Columns of VALUES have a type that holds all their cells.
//!
//! DataFusion 55.2 takes a common type while it plans VALUES, where a double beside a decimal is a decimal of 15 digits
//! behind the point, and decimals of unlike scales have 38 digits, which may hold neither. Here cells that are numbers
//! or casts are cast: to doubles in a column with a double, and to decimals with room for all where 38 digits have
//! none; within lists, structs and maps that are written out, too. Cells of other expressions are the planner's.
//!
//! The file goes once DataFusion's common type of VALUES holds all cells.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, SetExpr, Value, Values,
};

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
    if of(&cells, gives_double) {
        cells.into_iter().filter(|cell| gives_decimal(cell)).for_each(|cell| replace(cell, as_double));
    } else if let Some((precision, scale)) = wide(cells.iter().map(|cell| &**cell)) {
        let cast = |expr| as_decimal(expr, precision, scale);
        cells.into_iter().filter(|cell| digits(cell).is_some()).for_each(|cell| replace(cell, cast));
    } else if of(&cells, |cell| list(cell).is_some()) {
        in_cells(cells.into_iter().flat_map(items).collect());
    } else if of(&cells, |cell| matches!(cell, Expr::Map(_))) {
        let entries = cells.into_iter().flat_map(|cell| match cell {
            Expr::Map(map) => map.entries.as_mut_slice(),
            _ => &mut [],
        });
        let (keys, values) = entries.map(|entry| (entry.key.as_mut(), entry.value.as_mut())).unzip();
        in_cells(keys);
        in_cells(values);
    } else {
        let count = cells.iter().map(|cell| members(cell)).max().unwrap_or(0);
        for place in 0..count {
            in_cells(cells.iter_mut().filter_map(|cell| member(cell, place)).collect());
        }
    }
}

/// Functions of lists of their arguments.
const LISTS: [&str; 2] = ["list_value", "make_array"];
/// Functions of structs and maps of their arguments.
const STRUCTS: [&str; 5] = ["map", "named_struct", "row", "struct", "struct_pack"];

/// The arguments of a call of one of these functions.
fn arguments<'e>(expr: &'e Expr, names: &[&str]) -> Option<&'e [FunctionArg]> {
    match expr {
        Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) => {
            names.iter().any(|own| name.to_string().eq_ignore_ascii_case(own)).then_some(list.args.as_slice())
        }
        _ => None,
    }
}

/// The same, to be changed.
fn arguments_mut(expr: &mut Expr) -> &mut [FunctionArg] {
    match expr {
        Expr::Function(Function { args: FunctionArguments::List(list), .. }) => &mut list.args,
        _ => &mut [],
    }
}

fn value(argument: &mut FunctionArg) -> Option<&mut Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value))
        | FunctionArg::Named { arg: FunctionArgExpr::Expr(value), .. }
        | FunctionArg::ExprNamed { arg: FunctionArgExpr::Expr(value), .. } => Some(value),
        _ => None,
    }
}

/// The number of items of a list that is written out, or of a call that makes one.
fn list(cell: &Expr) -> Option<usize> {
    match cell {
        Expr::Array(list) => Some(list.elem.len()),
        call => arguments(call, &LISTS).map(<[_]>::len),
    }
}

/// The items of such a list.
fn items(cell: &mut Expr) -> Vec<&mut Expr> {
    if list(cell).is_none() {
        return Vec::new();
    }
    match cell {
        Expr::Array(list) => list.elem.iter_mut().collect(),
        call => arguments_mut(call).iter_mut().filter_map(value).collect(),
    }
}

/// The number of members of a struct that is written out, or of a call that makes one.
fn members(cell: &Expr) -> usize {
    match cell {
        Expr::Dictionary(fields) => fields.len(),
        Expr::Tuple(members) => members.len(),
        call => arguments(call, &STRUCTS).map_or(0, <[_]>::len),
    }
}

/// The member of such a struct, by its place.
fn member(cell: &mut Expr, place: usize) -> Option<&mut Expr> {
    if place >= members(cell) {
        return None;
    }
    match cell {
        Expr::Dictionary(fields) => Some(fields[place].value.as_mut()),
        Expr::Tuple(members) => members.get_mut(place),
        call => value(&mut arguments_mut(call)[place]),
    }
}

/// Functions that give doubles whatever they are given.
const DOUBLES: [&str; 25] = [
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cos", "cosh", "cot", "degrees", "exp", "ln",
    "log", "log10", "log2", "pi", "radians", "random", "sin", "sinh", "sqrt", "tan", "tanh",
];

/// Functions that give what they are given.
const KEEPING: [&str; 14] = [
    "abs", "ceil", "ceiling", "coalesce", "floor", "greatest", "if", "ifnull", "least", "nullif", "nvl", "round",
    "sign", "trunc",
];

/// Whether an expression says that it is a float, by a cast or by a function.
fn gives_double(expr: &Expr) -> bool {
    match expr {
        Expr::UnaryOp { expr, .. } | Expr::Nested(expr) => gives_double(expr),
        Expr::BinaryOp { left, op, right } => is_arithmetic(op) && (gives_double(left) || gives_double(right)),
        Expr::Case { conditions, else_result, .. } => {
            conditions.iter().map(|when| &when.result).chain(else_result.as_deref()).any(gives_double)
        }
        Expr::Function(Function { args: FunctionArguments::List(given), .. }) => {
            let is_value = |argument: &FunctionArg| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => gives_double(value),
                _ => false,
            };
            let keeps_type = arguments(expr, &KEEPING).is_some();
            arguments(expr, &DOUBLES).is_some() || keeps_type && given.args.iter().any(is_value)
        }
        other => is_double(other),
    }
}

/// Whether an expression says that it is a decimal: a literal with a point, a cast, or what is computed of such.
fn gives_decimal(expr: &Expr) -> bool {
    const OF_DECIMALS: [&str; 8] = ["abs", "ceil", "coalesce", "floor", "greatest", "least", "round", "trunc"];
    match expr {
        Expr::Cast { data_type, .. } => {
            matches!(data_type, DataType::Decimal(_) | DataType::Numeric(_) | DataType::Dec(_))
        }
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => gives_decimal(inner),
        Expr::BinaryOp { left, op, right } => is_arithmetic(op) && (gives_decimal(left) || gives_decimal(right)),
        Expr::Function(_) => arguments(expr, &OF_DECIMALS).unwrap_or_default().iter().any(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => gives_decimal(value),
            _ => false,
        }),
        other => is_decimal(other),
    }
}

fn is_arithmetic(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Divide, Minus, Modulo, Multiply, PGExp, Plus};
    matches!(op, Plus | Minus | Multiply | Divide | Modulo | PGExp)
}

fn replace(cell: &mut Expr, by: impl Fn(Expr) -> Expr) {
    *cell = by(std::mem::replace(cell, Expr::value(Value::Null)));
}

/// Gives a number with a point as many digits as decimals have.
pub(super) fn widen(number: &mut Expr) {
    let Some((_, scale)) = digits(number).filter(|(_, scale)| is_decimal(number) && *scale < DIGITS_MAX) else {
        return;
    };
    replace(number, |number| as_decimal(number, DIGITS_MAX, scale));
}

fn as_decimal(expr: Expr, precision: u64, scale: u64) -> Expr {
    let data_type = DataType::Decimal(ExactNumberInfo::PrecisionAndScale(precision, scale as i64));
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(expr), data_type, array: false, format: None }
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
