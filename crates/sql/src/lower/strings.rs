//! Functions of one string column, computed by DataFusion's own expressions over the column's dictionary. Those that
//! compare the string with constants are tests of bytes too, for columns without a dictionary.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use arrow::record_batch::RecordBatch;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, Operator};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr, create_physical_expr, expressions as physical_expr};
use datafusion::physical_expr_common::physical_expr::fmt_sql;
use warpcube_column::is_string;
use warpcube_engine::{BinaryOp, DictionaryFunction, Expr as Device, LikePattern, Literal, TextMatch, Ty, UnaryOp};

use super::Reason;
use super::arguments::with_value;
use super::columns::{BaseColumn, replace, text as text_of};
use crate::walk::Walk;

/// Longest list of strings that each string is compared with.
const IN_LIST_MAX: usize = 64;
/// Functions of strings and numbers that give strings, by no setting of the session.
const DERIVING_FUNCTIONS: [&str; 9] =
    ["substr", "left", "right", "upper", "lower", "btrim", "ltrim", "rtrim", "reverse"];
/// Most characters in front of a part, and the part's first.
const PART_FIRST_MAX: usize = 64;

/// An expression over one string column.
pub(crate) struct StringExpression {
    text: String,
    data_type: DataType,
    schema: arrow::datatypes::SchemaRef,
    expr: Arc<dyn PhysicalExpr>,
    /// The function as tests of register 0, if tests are all that it needs.
    tests: Option<Device>,
    /// The function in two steps.
    steps: Option<[Arc<dyn DictionaryFunction>; 2]>,
}

impl StringExpression {
    /// A function whose only column is `column`; functions such as `to_unixtime` ask the options for a time zone.
    pub(crate) fn function(
        expr: &Expr,
        column: &BaseColumn,
        options: &Arc<ConfigOptions>,
    ) -> Result<Arc<dyn DictionaryFunction>, Reason> {
        let field = column.field.as_ref().clone().with_nullable(true);
        let own_column = Expr::Column(Column::new_unqualified(field.name()));
        let own = DFSchema::try_from(Schema::new(vec![field])).map_err(text_of)?;
        let expr = replace(expr, |_| Some(own_column.clone()));
        if expr.exists(|expr| Ok(matches!(expr, Expr::Placeholder(_)))).map_err(text_of)? {
            return Ok(Arc::new(OpenExpression { expr, schema: own, options: options.clone() }));
        }
        Ok(Arc::new(StringExpression::in_steps(&expr, &own, options)?))
    }

    /// An expression over a schema of one column, with the steps it has.
    fn in_steps(expr: &Expr, own: &DFSchema, options: &Arc<ConfigOptions>) -> Result<StringExpression, Reason> {
        Ok(StringExpression { steps: steps(expr, own, options)?, ..StringExpression::over(expr, own, options)? })
    }

    /// The function as a column beside the one that it is of, if it gives strings and nothing but its own arguments,
    /// which are numbers, determines them.
    pub(super) fn as_column(&self) -> Option<FieldRef> {
        let field = self.expr.return_field(&self.schema).ok().filter(|field| is_string(field.data_type()))?;
        let mut is_plain = true;
        let walk = self.expr.apply(|expr| {
            is_plain &= match expr.downcast_ref::<ScalarFunctionExpr>() {
                Some(function) => DERIVING_FUNCTIONS.contains(&function.name()),
                None => {
                    let literal = expr.downcast_ref::<physical_expr::Literal>();
                    expr.is::<physical_expr::Column>()
                        || literal.is_some_and(|literal| literal.value().data_type().is_integer())
                }
            };
            Ok(if is_plain { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
        });
        let name = fmt_sql(self.expr.as_ref()).to_string();
        (walk.is_ok() && is_plain).then(|| Arc::new(Field::new(name, field.data_type().clone(), true)))
    }

    /// An expression over a schema of one column.
    fn over(expr: &Expr, own: &DFSchema, options: &Arc<ConfigOptions>) -> Result<StringExpression, Reason> {
        let props = ExecutionProps { config_options: Some(options.clone()), ..ExecutionProps::new() };
        let physical = create_physical_expr(expr, own, &props, &PhysicalPlanningContext::default()).map_err(text_of)?;
        Ok(StringExpression {
            text: expr.to_string(),
            data_type: own.field(0).data_type().clone(),
            schema: own.inner().clone(),
            expr: physical,
            tests: tests(expr),
            steps: None,
        })
    }
}

/// An expression over one string column that has parameters: it is computed with their values in place.
#[derive(Debug)]
pub(super) struct OpenExpression {
    expr: Expr,
    schema: DFSchema,
    options: Arc<ConfigOptions>,
}

impl OpenExpression {
    /// The expression with values of its parameters.
    pub(super) fn filled(&self, values: &[ScalarValue]) -> Result<StringExpression, Reason> {
        let expr = self.expr.clone().transform_up(|expr| Ok(with_value(expr, values)));
        StringExpression::in_steps(&expr.map_err(text_of)?.data, &self.schema, &self.options)
    }
}

impl DictionaryFunction for OpenExpression {
    fn apply(&self, _strings: &ArrayRef) -> Result<ArrayRef, String> {
        Err(format!("'{}' was given no values", self.expr))
    }

    fn describe(&self) -> String {
        self.expr.to_string()
    }
}

/// An expression in two steps: the outermost function of the column within it that gives strings, and the rest, if that
/// asks for nothing else of the column.
fn steps(
    expr: &Expr,
    own: &DFSchema,
    options: &Arc<ConfigOptions>,
) -> Result<Option<[Arc<dyn DictionaryFunction>; 2]>, Reason> {
    let mut first = None;
    expr.apply_children(|child| {
        child.apply(|inner| {
            let is_step = matches!(inner, Expr::ScalarFunction(_))
                && !inner.column_refs().is_empty()
                && is_string(&inner.get_type(own)?);
            if is_step && first.is_none() {
                first = Some(inner.clone());
            }
            Ok(if first.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })
    .map_err(text_of)?;
    let Some(first) = first else { return Ok(None) };
    let result = Column::new_unqualified("result");
    let rest = expr.clone().transform_down(|inner| {
        let is_first = inner == first;
        let inner = if is_first { Expr::Column(result.clone()) } else { inner };
        Ok(Transformed::new(
            inner,
            is_first,
            if is_first { TreeNodeRecursion::Jump } else { TreeNodeRecursion::Continue },
        ))
    });
    let rest = rest.map_err(text_of)?.data;
    if rest.column_refs().iter().any(|column| **column != result) {
        return Ok(None);
    }
    let field = Field::new("result", first.get_type(own).map_err(text_of)?, true);
    let of_result = DFSchema::try_from(Schema::new(vec![field])).map_err(text_of)?;
    let (first, rest) =
        (StringExpression::over(&first, own, options)?, StringExpression::over(&rest, &of_result, options)?);
    Ok(Some([Arc::new(first), Arc::new(rest)]))
}

impl fmt::Debug for StringExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl DictionaryFunction for StringExpression {
    fn apply(&self, strings: &ArrayRef) -> Result<ArrayRef, String> {
        let rows = strings.len();
        let input = cast(strings, &self.data_type).map_err(|error| error.to_string())?;
        let batch = RecordBatch::try_new(self.schema.clone(), vec![input]).map_err(|error| error.to_string())?;
        let result = self.expr.evaluate(&batch).map_err(|error| error.strip_backtrace())?;
        result.into_array(rows).map_err(|error| error.strip_backtrace())
    }

    fn describe(&self) -> String {
        self.text.clone()
    }

    fn over_bytes(&self) -> Option<Device> {
        self.tests.clone()
    }

    /// Physical expressions are equal where their functions, constants and options are.
    fn is_same(&self, other: &dyn DictionaryFunction) -> bool {
        let Some(other) = (other as &dyn Any).downcast_ref::<StringExpression>() else { return false };
        self.text == other.text && self.data_type == other.data_type && self.expr.as_ref() == other.expr.as_ref()
    }

    fn steps(&self) -> Option<[Arc<dyn DictionaryFunction>; 2]> {
        self.steps.clone()
    }
}

/// An expression whose only column is a string as tests of register 0 with what joins them.
fn tests(expr: &Expr) -> Option<Device> {
    let test = |test: TextMatch| Some(Device::Match(0, Arc::new(test)));
    match expr {
        Expr::Alias(alias) => tests(&alias.expr),
        Expr::Literal(ScalarValue::Boolean(value), _) => {
            let value = value.map_or(Literal::Null, |value| Literal::Int(value.into()));
            Some(Device::Literal(value, Ty::Bool))
        }
        Expr::Not(inner) => Some(not(tests(inner)?)),
        Expr::IsNull(inner) if is_column(inner) => Some(of_column(UnaryOp::IsNull)),
        Expr::IsNotNull(inner) if is_column(inner) => Some(of_column(UnaryOp::IsNotNull)),
        Expr::IsNull(inner) | Expr::IsUnknown(inner) => unary(UnaryOp::IsNull, inner),
        Expr::IsNotNull(inner) | Expr::IsNotUnknown(inner) => unary(UnaryOp::IsNotNull, inner),
        Expr::IsTrue(inner) => unary(UnaryOp::IsTrue, inner),
        Expr::IsNotTrue(inner) => Some(not(unary(UnaryOp::IsTrue, inner)?)),
        Expr::IsFalse(inner) => Some(Device::Unary(UnaryOp::IsTrue, Box::new(not(tests(inner)?)))),
        Expr::IsNotFalse(inner) => Some(not(Device::Unary(UnaryOp::IsTrue, Box::new(not(tests(inner)?))))),
        Expr::BinaryExpr(binary) => of_operator(binary),
        Expr::Between(Between { expr, negated, low, high }) if is_column(expr) => {
            let bound = |op, bound: &Expr| test(TextMatch::Order(op, text(bound)?));
            let inside = Device::binary(BinaryOp::And, bound(BinaryOp::Ge, low)?, bound(BinaryOp::Le, high)?);
            Some(if *negated { not(inside) } else { inside })
        }
        Expr::InList(InList { expr, list, negated }) if list.len() <= IN_LIST_MAX => {
            let texts: Vec<Arc<str>> = list.iter().map(text).collect::<Option<_>>()?;
            let any = match Part::of(expr) {
                None if is_column(expr) => test(TextMatch::In(texts))?,
                None => return None,
                Some(part) => {
                    let each = texts.iter().map(|text| part.is(text));
                    each.reduce(|left, right| Device::binary(BinaryOp::Or, left, right))?
                }
            };
            Some(if *negated { not(any) } else { any })
        }
        Expr::Like(like) if is_column(&like.expr) && !like.case_insensitive => {
            let matches = test(TextMatch::Like(LikePattern::new(&text(&like.pattern)?)))?;
            // DataFusion takes no other character.
            let escapes = like.escape_char.is_none_or(|char| char == '\\');
            escapes.then(|| if like.negated { not(matches) } else { matches })
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) => {
            let [string, part] = args.as_slice() else { return None };
            let (before, behind) = match func.name() {
                "starts_with" => (false, true),
                "ends_with" => (true, false),
                "contains" => (true, true),
                _ => return None,
            };
            let part = text(part).filter(|_| is_column(string))?;
            test(TextMatch::Like(LikePattern::around(&part, before, behind)))
        }
        _ => None,
    }
}

/// Comparisons with a constant on either side, AND and OR.
fn of_operator(BinaryExpr { left, op, right }: &BinaryExpr) -> Option<Device> {
    let logical = match op {
        Operator::And => Some(BinaryOp::And),
        Operator::Or => Some(BinaryOp::Or),
        _ => None,
    };
    if let Some(op) = logical {
        return Some(Device::binary(op, tests(left)?, tests(right)?));
    }
    if let Operator::Eq | Operator::NotEq = op {
        let part = Part::of(left).zip(text(right)).or_else(|| Part::of(right).zip(text(left)));
        if let Some((part, constant)) = part {
            let is = part.is(&constant);
            return Some(if *op == Operator::NotEq { not(is) } else { is });
        }
    }
    let (constant, is_mirrored) = match (is_column(left), is_column(right)) {
        (true, false) => (text(right)?, false),
        (false, true) => (text(left)?, true),
        _ => return None,
    };
    let order =
        |op: BinaryOp, mirrored: BinaryOp| TextMatch::Order(if is_mirrored { mirrored } else { op }, constant.clone());
    let (test, is_negated) = match op {
        Operator::Eq => (TextMatch::In(vec![constant]), false),
        Operator::NotEq => (TextMatch::In(vec![constant]), true),
        Operator::Lt => (order(BinaryOp::Lt, BinaryOp::Gt), false),
        Operator::LtEq => (order(BinaryOp::Le, BinaryOp::Ge), false),
        Operator::Gt => (order(BinaryOp::Gt, BinaryOp::Lt), false),
        Operator::GtEq => (order(BinaryOp::Ge, BinaryOp::Le), false),
        Operator::LikeMatch if !is_mirrored => (TextMatch::Like(LikePattern::new(&constant)), false),
        Operator::NotLikeMatch if !is_mirrored => (TextMatch::Like(LikePattern::new(&constant)), true),
        _ => return None,
    };
    let test = Device::Match(0, Arc::new(test));
    Some(if is_negated { not(test) } else { test })
}

/// A part of the column's strings: characters from the `first` on, from 1, at most `chars` of them if that is given.
#[derive(Debug, Clone, Copy)]
struct Part {
    first: usize,
    chars: Option<usize>,
}

impl Part {
    /// The part that an expression is, if it is one near a string's start.
    fn of(expr: &Expr) -> Option<Part> {
        let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else { return None };
        let number = |expr: &Expr| match expr {
            Expr::Literal(ScalarValue::Int64(Some(number)), _) => usize::try_from(*number).ok(),
            _ => None,
        };
        let part = match (func.name(), args.as_slice()) {
            ("substr", [string, first]) if is_column(string) => Part { first: number(first)?, chars: None },
            ("substr", [string, first, chars]) if is_column(string) => {
                Part { first: number(first)?, chars: Some(number(chars)?) }
            }
            ("left", [string, chars]) if is_column(string) => Part { first: 1, chars: Some(number(chars)?) },
            _ => return None,
        };
        (1..=PART_FIRST_MAX).contains(&part.first).then_some(part)
    }

    /// Whether the part is a constant, as LIKE: the characters before it are any, and so are those behind a part that
    /// is as long as it may be.
    fn is(self, constant: &str) -> Device {
        let like = |before: usize, text: &str, behind: bool| {
            let pattern = LikePattern::after(before, text, behind);
            Device::Match(0, Arc::new(TextMatch::Like(pattern)))
        };
        let chars = constant.chars().count();
        match self.chars {
            // Every string is longer or not; the part of NULL is NULL.
            Some(most) if chars > most => not(like(0, "", true)),
            Some(0) => like(0, "", true),
            // Strings that end before the part.
            _ if chars == 0 => not(like(self.first, "", true)),
            most => like(self.first - 1, constant, most == Some(chars)),
        }
    }
}

fn unary(op: UnaryOp, inner: &Expr) -> Option<Device> {
    Some(Device::Unary(op, Box::new(tests(inner)?)))
}

fn of_column(op: UnaryOp) -> Device {
    Device::Unary(op, Box::new(Device::Reg(0)))
}

fn not(inner: Device) -> Device {
    Device::Unary(UnaryOp::Not, Box::new(inner))
}

/// Whether an expression is the column, as whatever type of strings.
fn is_column(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) => true,
        Expr::Alias(alias) => is_column(&alias.expr),
        Expr::Cast(cast) => is_string(cast.field.data_type()) && is_column(&cast.expr),
        _ => false,
    }
}

/// The string of a constant that is not NULL.
fn text(expr: &Expr) -> Option<Arc<str>> {
    match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten().map(Arc::from),
        Expr::Cast(cast) if is_string(cast.field.data_type()) => text(&cast.expr),
        _ => None,
    }
}
