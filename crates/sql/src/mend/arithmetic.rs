//! Arithmetic of integers and of decimals that overflows is an error.
//!
//! DataFusion 55.2 wraps: `min(a * b)` over two columns of 32 bits may be −2147483648. A flag of its physical
//! operator would check, but no planner sets it and plans that travel lose it. Under `warpcube.overflow = 'error'`
//! additions, subtractions and products of integers and negations become functions here, in the final plan; what has
//! no column is replaced before the optimiser folds it. Decimals are checked where DataFusion gives a result 38 digits
//! that may need more: it lets pass what 128 bits hold. Casts, quotients and `abs` fail by themselves.
//!
//! A batch whose extremes prove that nothing overflows is computed without checks. The file goes once DataFusion's
//! planner takes the flag from a setting.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrowPrimitiveType, AsArray, Datum, PrimitiveArray, Scalar};
use arrow::compute::kernels::{aggregate, numeric};
use arrow::datatypes::{
    DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Field, FieldRef, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::error::ArrowError;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

use super::{each_expression, each_node};
use crate::error::SqlError;
use crate::settings::Settings;
use crate::values::Overflow;
use crate::walk::{PlanWalk, Walk};
use crate::words::sql_name;

/// Whether overflow is an error in a session of these settings.
pub(super) fn is_checked(options: &ConfigOptions) -> bool {
    options.extensions.get::<Settings>().is_none_or(|settings| settings.overflow == Overflow::Error)
}

/// The rule that checks constants, which the optimiser would fold.
#[derive(Debug)]
pub(crate) struct CheckConstants;

impl AnalyzerRule for CheckConstants {
    fn name(&self) -> &str {
        "check_constants"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        if !is_checked(config) {
            return Ok(plan);
        }
        let checked = plan.transform_up_nested(|plan| in_plan(plan, &is_constant))?;
        Ok(checked.data)
    }
}

/// Whether an expression reads no row and has one value; a parameter becomes a constant.
fn is_constant(expr: &Expr) -> Result<bool> {
    // Chains lean to the left: their last operand is near.
    if let Expr::BinaryExpr(BinaryExpr { right, .. }) = expr
        && !is_constant(right)?
    {
        return Ok(false);
    }
    let reads = expr.exists(|expr| {
        Ok(matches!(
            expr,
            Expr::Column(_)
                | Expr::OuterReferenceColumn(_, _)
                | Expr::ScalarSubquery(_)
                | Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
        ) || expr.is_volatile_node())
    })?;
    Ok(!reads)
}

/// The final plan with checked arithmetic.
pub(super) fn check(plan: LogicalPlan, options: &ConfigOptions) -> Result<LogicalPlan> {
    if !is_checked(options) {
        return Ok(plan);
    }
    each_node(plan, |plan| in_plan(plan, &|_| Ok(true)))
}

fn in_plan(plan: LogicalPlan, applies: &impl Fn(&Expr) -> Result<bool>) -> Result<Transformed<LogicalPlan>> {
    if matches!(plan, LogicalPlan::TableScan(_)) {
        // What a scan leaves out by its statistics is looked at again by the filter above it.
        return Ok(Transformed::no(plan));
    }
    let computed = computed_before(&plan)?;
    each_expression(
        plan,
        |expr| operation(expr).is_some(),
        |expr, schema| {
            expr.transform_up(|expr| {
                let Some(operation) = operation(&expr) else { return Ok(Transformed::no(expr)) };
                if !applies(&expr)? {
                    return Ok(Transformed::no(expr));
                }
                let data_type = operation.integers(&expr, schema).or_else(|| operation.decimals(&expr, schema));
                let Some(data_type) = data_type else { return Ok(Transformed::no(expr)) };
                let text = sql_text(&as_written(&expr, &computed)?);
                let args = match expr {
                    Expr::BinaryExpr(BinaryExpr { left, right, .. }) => vec![*left, *right],
                    Expr::Negative(inner) => vec![*inner],
                    other => return Ok(Transformed::no(other)),
                };
                let func = Arc::new(ScalarUDF::from(Checked::new(operation, text, data_type)));
                Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args })))
            })
        },
    )
}

/// What columns of the optimiser's stand for: what several expressions have in common is computed before them.
pub(super) type Computed = HashMap<String, Expr>;

/// Whether a name is one of the optimiser's.
fn is_given(name: &str) -> bool {
    name.starts_with("__common_expr_")
}

/// What columns with names of the optimiser's stand for that a node reads; nothing for most nodes.
pub(super) fn computed_before(plan: &LogicalPlan) -> Result<Computed> {
    let mut computed = Computed::new();
    if !plan.inputs().iter().any(|input| input.schema().fields().iter().any(|field| is_given(field.name()))) {
        return Ok(computed);
    }
    plan.apply(|plan| {
        if let LogicalPlan::Projection(projection) = plan {
            for expr in &projection.expr {
                if let Expr::Alias(alias) = expr
                    && is_given(&alias.name)
                {
                    computed.entry(alias.name.clone()).or_insert_with(|| (*alias.expr).clone());
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(computed)
}

/// An expression as the statement has it.
pub(super) fn as_written(expr: &Expr, computed: &Computed) -> Result<Expr> {
    if computed.is_empty() {
        return Ok(expr.clone());
    }
    let written = expr.clone().transform_down(|expr| match &expr {
        Expr::Column(column) => match computed.get(&column.name) {
            // What it stands for may read others.
            Some(computed) => Ok(Transformed::yes(computed.clone())),
            None => Ok(Transformed::no(expr)),
        },
        _ => Ok(Transformed::no(expr)),
    })?;
    Ok(written.data)
}

/// Longest text of an operand, in characters.
const TEXT_MAX: usize = 200;
/// Levels of an expression that an error shows.
const LEVELS_SHOWN: usize = 12;

/// An expression as errors name it.
pub(super) fn sql_text(expr: &Expr) -> String {
    SqlText(expr, LEVELS_SHOWN).to_string()
}

/// An expression as an error names it: columns without their tables, and what is deep left out.
struct SqlText<'a>(&'a Expr, usize);

impl fmt::Display for SqlText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                write!(f, "{} {op} {}", Operand(left, self.1), Operand(right, self.1))
            }
            Expr::Negative(inner) => write!(f, "-{}", Operand(inner, self.1)),
            Expr::Column(column) => f.write_str(&column.name),
            Expr::Literal(value, _) => write!(f, "{value}"),
            Expr::Cast(cast) => write!(f, "{}", SqlText(&cast.expr, self.1)),
            Expr::Alias(alias) => write!(f, "{}", SqlText(&alias.expr, self.1)),
            Expr::ScalarFunction(function) => match function.func.inner().downcast_ref::<Checked>() {
                Some(checked) if checked.text.chars().count() > TEXT_MAX => f.write_str("…"),
                Some(checked) => f.write_str(&checked.text),
                None => write!(f, "{}", self.0.schema_name()),
            },
            other => write!(f, "{}", other.schema_name()),
        }
    }
}

/// An operand, in parentheses where it is an operation itself.
struct Operand<'a>(&'a Expr, usize);

impl fmt::Display for Operand<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_operation = match self.0 {
            Expr::Cast(cast) => return Operand(&cast.expr, self.1).fmt(f),
            Expr::BinaryExpr(_) => true,
            other => as_checked(other).is_some(),
        };
        match is_operation {
            true if self.1 == 0 => f.write_str("(…)"),
            true => write!(f, "({})", SqlText(self.0, self.1 - 1)),
            false => write!(f, "{}", SqlText(self.0, self.1)),
        }
    }
}

fn as_checked(expr: &Expr) -> Option<&Checked> {
    match expr {
        Expr::ScalarFunction(function) => function.func.inner().downcast_ref::<Checked>(),
        _ => None,
    }
}

/// Whether an expression's outermost step will be checked in the final plan.
pub(super) fn may_overflow(expr: &Expr, schema: &DFSchema) -> bool {
    let of = |operation: Operation| operation.integers(expr, schema).or_else(|| operation.decimals(expr, schema));
    operation(expr).and_then(of).is_some()
}

/// Operations that are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Negate,
}

/// The operation that an expression's outermost step is.
fn operation(expr: &Expr) -> Option<Operation> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { op: Operator::Plus, .. }) => Some(Operation::Add),
        Expr::BinaryExpr(BinaryExpr { op: Operator::Minus, .. }) => Some(Operation::Subtract),
        Expr::BinaryExpr(BinaryExpr { op: Operator::Multiply, .. }) => Some(Operation::Multiply),
        Expr::Negative(_) => Some(Operation::Negate),
        _ => None,
    }
}

impl Operation {
    /// The type of the operands, if they are integers.
    fn integers(self, expr: &Expr, schema: &DFSchema) -> Option<DataType> {
        // What is checked already tells its type without a look at its operands.
        let data_type = |expr: &Expr| match as_checked(expr) {
            Some(checked) => Some(checked.data_type.clone()),
            None => expr.get_type(schema).ok(),
        };
        let is_integer = |expr: &Expr| data_type(expr).filter(DataType::is_integer);
        match expr {
            Expr::BinaryExpr(BinaryExpr { left, right, .. }) => {
                is_integer(right).filter(|right| is_integer(left).as_ref() == Some(right))
            }
            Expr::Negative(inner) => is_integer(inner).filter(DataType::is_signed_integer),
            _ => None,
        }
    }

    /// The type of the result, if the operands are decimals and it may need more digits than there are.
    fn decimals(self, expr: &Expr, schema: &DFSchema) -> Option<DataType> {
        let Expr::BinaryExpr(BinaryExpr { left, right, .. }) = expr else { return None };
        let parts = |expr: &Expr| match expr.get_type(schema) {
            Ok(DataType::Decimal128(precision, scale)) => Some((i16::from(precision), i16::from(scale))),
            _ => None,
        };
        let ((p1, s1), (p2, s2)) = (parts(left)?, parts(right)?);
        let digits = match self {
            Operation::Multiply => p1 + p2,
            _ => (p1 - s1).max(p2 - s2) + s1.max(s2) + 1,
        };
        let is_short = digits <= i16::from(DECIMAL128_MAX_PRECISION);
        expr.get_type(schema).ok().filter(|data_type| !is_short && matches!(data_type, DataType::Decimal128(_, _)))
    }

    fn name(self) -> &'static str {
        match self {
            Operation::Add => "checked_add",
            Operation::Subtract => "checked_subtract",
            Operation::Multiply => "checked_multiply",
            Operation::Negate => "checked_negate",
        }
    }

    /// Whether no pair of values within these bounds leaves the type, whose bounds are the last ones.
    fn is_within(self, (a, b): (i128, i128), (c, d): (i128, i128), (low, high): (i128, i128)) -> bool {
        let (least, most) = match self {
            Operation::Add => (a + c, b + d),
            Operation::Subtract => (a - d, b - c),
            Operation::Negate => (-b, -a),
            Operation::Multiply => {
                // Values of 64 bits: products fit in 128 bits but for the largest unsigned ones.
                let products = [a.checked_mul(c), a.checked_mul(d), b.checked_mul(c), b.checked_mul(d)];
                let products: Option<Vec<i128>> = products.into_iter().collect();
                let Some(products) = products else { return false };
                let (least, most) = (products.iter().min(), products.iter().max());
                (least.copied().unwrap_or_default(), most.copied().unwrap_or_default())
            }
        };
        least >= low && most <= high
    }
}

/// One operation of one expression.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Checked {
    operation: Operation,
    /// The expression as errors name it.
    text: String,
    /// The type of the result, and of operands that are integers.
    data_type: DataType,
    signature: Signature,
}

impl Checked {
    fn new(operation: Operation, text: String, data_type: DataType) -> Checked {
        Checked { operation, text, data_type, signature: Signature::variadic_any(Volatility::Immutable) }
    }

    fn computed<T: ArrowPrimitiveType>(&self, args: &[ColumnarValue]) -> Result<ColumnarValue>
    where
        T::Native: Into<i128>,
    {
        let operand = |value: &ColumnarValue| match value {
            ColumnarValue::Array(array) => Ok((array.clone(), false)),
            ColumnarValue::Scalar(scalar) => Ok::<_, DataFusionError>((scalar.to_array()?, true)),
        };
        let (left, left_is_scalar) = operand(&args[0])?;
        let (right, right_is_scalar) = match args.get(1) {
            Some(right) => operand(right)?,
            None => (left.clone(), left_is_scalar),
        };
        let (left, right) = (left.as_primitive::<T>(), right.as_primitive::<T>());
        let within = match (extremes(left), extremes(right)) {
            (Some(of_left), Some(of_right)) => {
                let limits = limits(&T::DATA_TYPE);
                self.operation.is_within(of_left, of_right, limits)
            }
            // Without a valid value there is nothing to overflow.
            _ => true,
        };
        let left_scalar = left_is_scalar.then(|| Scalar::new(left.clone()));
        let right_scalar = right_is_scalar.then(|| Scalar::new(right.clone()));
        let left = left_scalar.as_ref().map_or(left as &dyn Datum, |scalar| scalar);
        let right = right_scalar.as_ref().map_or(right as &dyn Datum, |scalar| scalar);
        let result = match (self.operation, within) {
            (Operation::Add, true) => numeric::add_wrapping(left, right),
            (Operation::Add, false) => numeric::add(left, right),
            (Operation::Subtract, true) => numeric::sub_wrapping(left, right),
            (Operation::Subtract, false) => numeric::sub(left, right),
            (Operation::Multiply, true) => numeric::mul_wrapping(left, right),
            (Operation::Multiply, false) => numeric::mul(left, right),
            (Operation::Negate, true) => numeric::neg_wrapping(left.get().0),
            (Operation::Negate, false) => numeric::neg(left.get().0),
        };
        let result = result.map_err(|error| match error {
            ArrowError::ArithmeticOverflow(_) => self.overflowed(&T::DATA_TYPE),
            other => other.into(),
        })?;
        Ok(match left_is_scalar && right_is_scalar {
            true => ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?),
            false => ColumnarValue::Array(result),
        })
    }

    /// A result of decimals, which have 38 digits: 128 bits hold more.
    fn decimal(&self, args: &[ColumnarValue]) -> Result<ColumnarValue> {
        let [left, right] = ColumnarValue::values_to_arrays(args)?
            .try_into()
            .map_err(|_| DataFusionError::Internal(format!("{} of other than two decimals", self.name())))?;
        let result = match self.operation {
            Operation::Add => numeric::add(&left, &right),
            Operation::Subtract => numeric::sub(&left, &right),
            Operation::Multiply => numeric::mul(&left, &right),
            Operation::Negate => return Err(DataFusionError::Internal("a checked negation of a decimal".into())),
        };
        let result = result.map_err(|error| match error {
            ArrowError::ArithmeticOverflow(_) => self.overflowed(&self.data_type),
            other => other.into(),
        })?;
        let largest = 10i128.pow(DECIMAL128_MAX_PRECISION.into()) - 1;
        match extremes(result.as_primitive::<Decimal128Type>()) {
            Some((low, high)) if low < -largest || high > largest => Err(self.overflowed(&self.data_type)),
            _ if args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_))) => {
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?))
            }
            _ => Ok(ColumnarValue::Array(result)),
        }
    }

    fn overflowed(&self, data_type: &DataType) -> DataFusionError {
        let hint = if data_type.is_integer() { "; cast an operand to a wider type" } else { "" };
        let reason = format!("overflow: {} leaves {}{hint}", self.text, sql_name(data_type));
        SqlError::Execution(reason).into()
    }
}

/// The smallest and the largest valid value.
fn extremes<T: ArrowPrimitiveType>(values: &PrimitiveArray<T>) -> Option<(i128, i128)>
where
    T::Native: Into<i128>,
{
    Some((aggregate::min(values)?.into(), aggregate::max(values)?.into()))
}

/// The bounds of an integer type.
pub(super) fn limits(data_type: &DataType) -> (i128, i128) {
    match data_type {
        DataType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        DataType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        DataType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        DataType::Int64 => (i64::MIN.into(), i64::MAX.into()),
        DataType::UInt8 => (0, u8::MAX.into()),
        DataType::UInt16 => (0, u16::MAX.into()),
        DataType::UInt32 => (0, u32::MAX.into()),
        _ => (0, u64::MAX.into()),
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        self.operation.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(self.data_type.clone())
    }

    /// As nullable as the operation: results are checked against the plan's schema.
    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.data_type.clone(), nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args[0].data_type() {
            DataType::Int8 => self.computed::<Int8Type>(&args.args),
            DataType::Int16 => self.computed::<Int16Type>(&args.args),
            DataType::Int32 => self.computed::<Int32Type>(&args.args),
            DataType::Int64 => self.computed::<Int64Type>(&args.args),
            DataType::UInt8 => self.computed::<UInt8Type>(&args.args),
            DataType::UInt16 => self.computed::<UInt16Type>(&args.args),
            DataType::UInt32 => self.computed::<UInt32Type>(&args.args),
            DataType::UInt64 => self.computed::<UInt64Type>(&args.args),
            DataType::Decimal128(_, _) => self.decimal(&args.args),
            other => Err(DataFusionError::Internal(format!("checked arithmetic of {other}"))),
        }
    }
}
