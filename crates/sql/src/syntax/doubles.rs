//! Expressions of syntax trees that are doubles.

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
};

/// Whether an expression is a power of doubles. A cast of one would make plans of long chains slow.
pub(super) fn is_power(expr: &Expr) -> bool {
    let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = expr else { return false };
    let is_double = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => is_double(argument),
        _ => false,
    };
    name.to_string() == "power" && list.args.iter().all(is_double)
}

/// A value as a double.
pub(super) fn as_double(expr: Expr) -> Expr {
    let (kind, data_type) = (CastKind::Cast, DataType::Double(ExactNumberInfo::None));
    Expr::Cast { kind, expr: Box::new(expr), data_type, array: false, format: None }
}

/// Whether an expression says that it is a float: a cast to one, or what computes with one.
pub(super) fn is_double(expr: &Expr) -> bool {
    match expr {
        Expr::Cast { data_type, .. } => matches!(
            data_type,
            DataType::Double(_)
                | DataType::DoublePrecision
                | DataType::Float(_)
                | DataType::Real
                | DataType::Float4
                | DataType::Float8
                | DataType::Float32
                | DataType::Float64
        ),
        Expr::UnaryOp { expr, .. } | Expr::Nested(expr) => is_double(expr),
        Expr::BinaryOp { left, right, .. } => is_double(left) || is_double(right),
        Expr::Function(Function { args: FunctionArguments::List(list), .. }) => list.args.iter().any(
            |argument| matches!(argument, FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) if is_double(argument)),
        ),
        _ => false,
    }
}
