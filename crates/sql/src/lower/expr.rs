//! Expressions: DataFusion's over base columns become the engine's over registers.

use std::sync::Arc;

use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION, DataType, i256};
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::logical_expr::expr::{InList, ScalarFunction};
use datafusion::logical_expr::{Between, BinaryExpr, Case, Cast, Expr, Operator, Volatility};
use warpcube_column::is_string;
use warpcube_engine::{BinaryOp, Expr as Device, Literal, Ty, UnaryOp};

use super::arguments::{Argument, ArgumentList};
use super::columns::{self, BaseColumn, ColumnId, columns, shown};
use super::constants::{literal, null};
use super::strings::StringExpression;
use super::{Reason, arguments, dates};
use crate::mend::cast_functions::CastFunction;
use crate::mend::{coarser_times, finer_columns, narrow_casts};
use crate::walk::Walk;

/// Longest IN list that is compared value by value.
const IN_LIST_MAX: usize = 64;

/// Translates the expressions of one pipeline.
pub(crate) struct Translator<'a> {
    options: &'a Arc<ConfigOptions>,
    /// What is given to the fragment before it is bound.
    arguments: &'a ArgumentList,
    /// The column in each register; none in those that only their numbers name.
    registers: Vec<Option<ColumnId>>,
    /// Columns that are computed from registers, or why they are not.
    computed: Vec<(ColumnId, Result<Device, Reason>)>,
}

impl<'a> Translator<'a> {
    /// A pipeline without registers; functions that DataFusion computes depend on `options`, `arguments` takes
    /// parameters and scalar subqueries.
    pub(super) fn new(options: &'a Arc<ConfigOptions>, arguments: &'a ArgumentList) -> Translator<'a> {
        Translator { options, arguments, registers: Vec::new(), computed: Vec::new() }
    }

    /// The next register holds `column`.
    pub(crate) fn add(&mut self, column: ColumnId) {
        self.registers.push(Some(column));
    }

    /// A column that is computed from registers; an expression that reads one that is not is refused for its reason.
    pub(crate) fn compute(&mut self, column: ColumnId, value: Result<Device, Reason>) {
        self.computed.push((column, value));
    }

    /// The next register, which no column names.
    pub(crate) fn unnamed(&mut self) -> Device {
        self.registers.push(None);
        Device::Reg(self.registers.len() - 1)
    }

    /// The Arrow type of an expression.
    pub(crate) fn data_type(&self, expr: &Expr) -> Result<DataType, Reason> {
        columns::data_type(expr)
    }

    fn ty(&self, expr: &Expr) -> Result<Ty, Reason> {
        let data_type = self.data_type(expr)?;
        Ty::of(&data_type).ok_or_else(|| format!("'{}' has type {data_type}", shown(expr)))
    }

    fn column(&self, column: &BaseColumn) -> Result<Device, Reason> {
        match self.computed.iter().find(|(known, _)| *known == column.id) {
            Some((_, value)) => value.clone(),
            None => Ok(Device::Reg(self.register(column)?)),
        }
    }

    fn register(&self, column: &BaseColumn) -> Result<usize, Reason> {
        match self.computed.iter().find(|(known, _)| *known == column.id) {
            Some((_, Ok(Device::Reg(register)))) => return Ok(*register),
            Some((_, Err(reason))) => return Err(reason.clone()),
            _ => {}
        }
        let position = self.registers.iter().position(|known| *known == Some(column.id));
        position.ok_or_else(|| format!("column '{}' does not reach this pipeline", column.field.name()))
    }

    /// Translates an expression.
    pub(crate) fn translate(&self, expr: &Expr) -> Result<Device, Reason> {
        // On the device all strings are codes, whatever their type.
        if let Expr::Cast(cast) = expr
            && is_string(cast.field.data_type())
            && is_string(&self.data_type(&cast.expr)?)
        {
            return self.translate(&cast.expr);
        }
        if let Some(lookup) = self.string_function(expr)? {
            return Ok(lookup);
        }
        if let Some(column) = BaseColumn::of(expr) {
            self.ty(expr)?;
            return self.column(column);
        }
        match expr {
            Expr::Alias(alias) => self.translate(&alias.expr),
            Expr::Literal(value, _) => literal(value),
            Expr::Placeholder(placeholder) => {
                let (position, ty) = arguments::parameter(placeholder)?;
                Ok(self.arguments.literal(Argument::Parameter(position), ty))
            }
            Expr::BinaryExpr(binary) => self.binary(binary, expr),
            Expr::Not(inner) => self.unary(UnaryOp::Not, inner),
            Expr::Negative(inner) => match self.ty(inner)? {
                Ty::F32 | Ty::F64 | Ty::I128 => self.unary(UnaryOp::Negate, inner),
                // The smallest integer raises or wraps, as the difference of zero and it does.
                Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 if self.data_type(inner)?.is_integer() => {
                    self.unary(UnaryOp::Negate, inner)
                }
                _ => Err(format!("the negation '{}'", shown(expr))),
            },
            Expr::IsNull(inner) => self.unary(UnaryOp::IsNull, inner),
            Expr::IsNotNull(inner) => self.unary(UnaryOp::IsNotNull, inner),
            Expr::IsTrue(inner) => self.unary(UnaryOp::IsTrue, inner),
            Expr::IsNotTrue(inner) => Ok(not(self.unary(UnaryOp::IsTrue, inner)?)),
            Expr::IsFalse(inner) => Ok(Device::Unary(UnaryOp::IsTrue, Box::new(self.unary(UnaryOp::Not, inner)?))),
            Expr::IsNotFalse(inner) => {
                Ok(not(Device::Unary(UnaryOp::IsTrue, Box::new(self.unary(UnaryOp::Not, inner)?))))
            }
            Expr::IsUnknown(inner) => self.unary(UnaryOp::IsNull, inner),
            Expr::IsNotUnknown(inner) => self.unary(UnaryOp::IsNotNull, inner),
            Expr::Between(between) => self.between(between),
            Expr::InList(list) => self.in_list(list),
            Expr::Case(case) => self.case(case),
            Expr::Cast(cast) => self.cast(narrow_casts::operand(cast, columns::no_names()), cast.field.data_type()),
            Expr::ScalarFunction(function) => self.function(function, expr),
            Expr::ScalarSubquery(subquery) if subquery.outer_ref_columns.is_empty() => {
                Ok(self.arguments.literal(Argument::Subquery(subquery.clone()), self.ty(expr)?))
            }
            other => Err(format!("the expression '{}'", shown(other))),
        }
    }

    /// An expression of one string column and nothing else as a look-up in its dictionary.
    fn string_function(&self, expr: &Expr) -> Result<Option<Device>, Reason> {
        if matches!(expr, Expr::Literal(_, _) | Expr::Placeholder(_)) || BaseColumn::of(expr).is_some() {
            return Ok(None);
        }
        let read = columns(expr);
        let (Some(column), 1) = (read.first(), read.len()) else { return Ok(None) };
        if !is_string(column.field.data_type()) || expr.is_volatile() || contains_subquery(expr) {
            return Ok(None);
        }
        // Conjunctions are taken apart, so that their parts can be ordered; whether NULL needs no dictionary.
        if matches!(expr, Expr::IsNull(inner) | Expr::IsNotNull(inner) if BaseColumn::of(inner).is_some()) {
            return Ok(None);
        }
        let result = self.data_type(expr)?;
        let ty = Ty::of(&result).ok_or_else(|| format!("'{}' has type {result}", shown(expr)))?;
        let function = StringExpression::function(expr, column, self.options)?;
        Ok(Some(Device::Lookup(self.register(column)?, function, ty)))
    }

    pub(super) fn unary(&self, op: UnaryOp, inner: &Expr) -> Result<Device, Reason> {
        Ok(Device::Unary(op, Box::new(self.translate(inner)?)))
    }

    fn binary(&self, binary: &BinaryExpr, expr: &Expr) -> Result<Device, Reason> {
        let BinaryExpr { left, op, right } = binary;
        if let Operator::IsDistinctFrom | Operator::IsNotDistinctFrom = op {
            let equal = BinaryExpr::new(left.clone(), Operator::Eq, right.clone());
            let equal = Device::Unary(UnaryOp::IsTrue, Box::new(self.translate(&Expr::BinaryExpr(equal))?));
            let nulls =
                Device::binary(BinaryOp::And, self.unary(UnaryOp::IsNull, left)?, self.unary(UnaryOp::IsNull, right)?);
            let same = Device::binary(BinaryOp::Or, equal, nulls);
            return Ok(if *op == Operator::IsDistinctFrom { not(same) } else { same });
        }
        let op = match op {
            Operator::Eq => BinaryOp::Eq,
            Operator::NotEq => BinaryOp::Ne,
            Operator::Lt => BinaryOp::Lt,
            Operator::LtEq => BinaryOp::Le,
            Operator::Gt => BinaryOp::Gt,
            Operator::GtEq => BinaryOp::Ge,
            Operator::And => BinaryOp::And,
            Operator::Or => BinaryOp::Or,
            Operator::Plus => BinaryOp::Add,
            Operator::Minus => BinaryOp::Sub,
            Operator::Multiply => BinaryOp::Mul,
            Operator::Divide => BinaryOp::Div,
            Operator::Modulo => BinaryOp::Rem,
            other => return Err(format!("the operator {other}")),
        };
        let (left_type, right_type) = (self.data_type(left)?, self.data_type(right)?);
        if let (BinaryOp::Add | BinaryOp::Sub, Expr::Literal(interval, _)) = (op, right.as_ref())
            && matches!(right_type, DataType::Interval(_))
        {
            let date = self.translate(left)?;
            return dates::shifted(date, &left_type, interval, op == BinaryOp::Sub)
                .filter(|_| self.data_type(expr).as_ref() == Ok(&left_type))
                .ok_or_else(|| format!("the date arithmetic '{}'", shown(expr)));
        }
        if let (BinaryOp::Add, Expr::Literal(interval, _)) = (op, left.as_ref())
            && matches!(left_type, DataType::Interval(_))
        {
            let date = self.translate(right)?;
            return dates::shifted(date, &right_type, interval, false)
                .filter(|_| self.data_type(expr).as_ref() == Ok(&right_type))
                .ok_or_else(|| format!("the date arithmetic '{}'", shown(expr)));
        }
        if let (DataType::Decimal256(..), DataType::Decimal256(..), true) =
            (&left_type, &right_type, op.is_comparison())
        {
            return self.wide_comparison(op, left, right);
        }
        let (mut one, mut other) = (self.translate(left)?, self.translate(right)?);
        if let (Some((p1, s1)), Some((p2, s2))) = (decimal(&left_type), decimal(&right_type)) {
            let result = self.data_type(expr)?;
            // Powers of ten by which the operands are multiplied.
            let (of_one, of_other) = match op {
                BinaryOp::Mul => match decimal(&result) {
                    Some((_, scale)) if scale == s1 + s2 => (0, 0),
                    _ => return Err(format!("the product '{}' of type {result}", shown(expr))),
                },
                BinaryOp::Div => match decimal(&result) {
                    Some((_, scale)) => {
                        let power = scale - s1 + s2;
                        (power.max(0), (-power).max(0))
                    }
                    None => return Err(format!("the quotient '{}' of type {result}", shown(expr))),
                },
                _ => (s1.max(s2) - s1, s1.max(s2) - s2),
            };
            let wide = [&left_type, &right_type, &result].into_iter().any(is_wide);
            if let BinaryOp::Mul | BinaryOp::Div = op
                && wide
            {
                let digits = match op {
                    BinaryOp::Mul => i16::from(p1) + i16::from(p2),
                    _ => (i16::from(p1) + i16::from(of_one)).max(i16::from(p2) + i16::from(of_other)),
                };
                if let (BinaryOp::Div, 0, 0..=38) = (op, of_other, of_one)
                    && digits > WIDE_DIGITS_MAX
                {
                    return Ok(Device::Quotient(Box::new([one, other]), of_one.unsigned_abs()));
                }
                expect_digits(digits).map_err(|reason| format!("'{}', {reason}", shown(expr)))?;
            }
            one = rescale(one, of_one);
            other = rescale(other, of_other);
        } else if !same(&left_type, &right_type) {
            return Err(format!("'{}' combines {left_type} and {right_type}", shown(expr)));
        } else if op == BinaryOp::Sub && left_type == DataType::Date32 && self.data_type(expr)? == DataType::Int64 {
            // A number of days.
            [one, other] = [one, other].map(|day| Device::Cast(Box::new(day), Ty::I64));
        } else if !op.is_comparison()
            && matches!(left_type, DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, _))
        {
            return Err(format!("the date arithmetic '{}'", shown(expr)));
        } else if !op.is_comparison() && is_string(&left_type) {
            return Err(format!("the expression '{}'", shown(expr)));
        }
        Ok(Device::binary(op, one, other))
    }

    /// A comparison of decimals of 256 bits in the scales of what they are made of: the engine refuses what its bounds
    /// do not hold in 128 bits.
    fn wide_comparison(&self, op: BinaryOp, left: &Expr, right: &Expr) -> Result<Device, Reason> {
        let ((one, s1), (other, s2)) = (self.in_own_scale(left)?, self.in_own_scale(right)?);
        let scale = s1.max(s2);
        Ok(Device::binary(op, rescale(one, scale - s1), rescale(other, scale - s2)))
    }

    /// A decimal of 256 bits as one of 128, and its scale: of a cast that widens that of its input, of a constant the
    /// least, of a product the sum of those of its factors.
    fn in_own_scale(&self, expr: &Expr) -> Result<(Device, i8), Reason> {
        let data_type = self.data_type(expr)?;
        let (precision, scale) =
            decimal(&data_type).ok_or_else(|| format!("'{}' has type {data_type}", shown(expr)))?;
        match expr {
            Expr::Cast(Cast { expr: inner, .. }) => match self.data_type(inner)? {
                DataType::Decimal128(digits, own)
                    if own <= scale && whole_digits(digits, own) <= whole_digits(precision, scale) =>
                {
                    return Ok((self.translate(inner)?, own));
                }
                from if from.is_integer() && integer_digits(&from) <= whole_digits(precision, scale) => {
                    return Ok((Device::Cast(Box::new(self.translate(inner)?), Ty::I128), 0));
                }
                _ => {}
            },
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Multiply, right }) => {
                let ((one, s1), (other, s2)) = (self.in_own_scale(left)?, self.in_own_scale(right)?);
                // What has more than 76 digits in the scale of its type has more than so many in its own.
                let most = i16::from(DECIMAL256_MAX_PRECISION) - i16::from(scale - s1 - s2);
                let product = Device::binary(BinaryOp::Mul, one, other);
                return match u8::try_from(most).map_err(|_| format!("the product '{}'", shown(expr)))? {
                    most @ ..=DECIMAL128_MAX_PRECISION => Ok((Device::Digits(Box::new(product), most), s1 + s2)),
                    _ => Ok((product, s1 + s2)),
                };
            }
            Expr::Literal(ScalarValue::Decimal256(Some(units), ..), _) => {
                let (mut units, mut own) = (*units, scale);
                let ten = i256::from_i128(10);
                while own > 0 && units.wrapping_rem(ten) == i256::ZERO {
                    (units, own) = (units.wrapping_div(ten), own - 1);
                }
                if let Some(units) = units.to_i128() {
                    let narrow = ScalarValue::Decimal128(Some(units), DECIMAL128_MAX_PRECISION, own);
                    return Ok((literal(&narrow)?, own));
                }
            }
            _ => {}
        }
        Ok((self.translate(expr)?, scale))
    }

    fn between(&self, between: &Between) -> Result<Device, Reason> {
        let Between { expr, negated, low, high } = between;
        let compare = |op, bound: &Expr| {
            let binary = BinaryExpr::new(expr.clone(), op, Box::new(bound.clone()));
            self.translate(&Expr::BinaryExpr(binary))
        };
        let inside = Device::binary(BinaryOp::And, compare(Operator::GtEq, low)?, compare(Operator::LtEq, high)?);
        Ok(if *negated { not(inside) } else { inside })
    }

    fn in_list(&self, list: &InList) -> Result<Device, Reason> {
        let InList { expr, list, negated } = list;
        if list.len() > IN_LIST_MAX {
            let among = self.among(expr, list)?;
            return Ok(if *negated { not(among) } else { among });
        }
        let equal = |value: &Expr| {
            let binary = BinaryExpr::new(expr.clone(), Operator::Eq, Box::new(value.clone()));
            self.translate(&Expr::BinaryExpr(binary))
        };
        let parts = list.iter().map(equal).collect::<Result<Vec<_>, _>>()?;
        let any = parts.into_iter().reduce(|left, right| Device::binary(BinaryOp::Or, left, right));
        let any = any.ok_or("an empty IN list")?;
        Ok(if *negated { not(any) } else { any })
    }

    /// Whether a number is in a long list: a search among sorted constants, of which NULL is none.
    fn among(&self, expr: &Expr, list: &[Expr]) -> Result<Device, Reason> {
        let ty = self.ty(expr)?;
        let refuse = |what: &str| format!("an IN list of {} values, {what}", list.len());
        if ty.is_float() || ty == Ty::Bool || is_string(&self.data_type(expr)?) {
            return Err(refuse("which are no integers, decimals or dates"));
        }
        let (mut values, mut has_null) = (Vec::with_capacity(list.len()), false);
        for value in list {
            match self.translate(value)? {
                Device::Literal(Literal::Int(value), of) if of == ty => {
                    values.push(i64::try_from(value).map_err(|_| refuse("one of which is wider than 64 bits"))?);
                }
                Device::Literal(Literal::Null, _) => has_null = true,
                _ => return Err(refuse("some of which are no constants")),
            }
        }
        values.sort_unstable();
        values.dedup();
        let among = Device::Among(Box::new(self.translate(expr)?), values.into());
        let unknown = Device::Literal(Literal::Null, Ty::Bool);
        Ok(if has_null { Device::binary(BinaryOp::Or, among, unknown) } else { among })
    }

    fn case(&self, case: &Case) -> Result<Device, Reason> {
        let mut branches = Vec::with_capacity(case.when_then_expr.len());
        let mut ty = None;
        for (when, then) in &case.when_then_expr {
            let when = match &case.expr {
                Some(operand) => {
                    let binary = BinaryExpr::new(operand.clone(), Operator::Eq, when.clone());
                    self.translate(&Expr::BinaryExpr(binary))?
                }
                None => self.translate(when)?,
            };
            let own = self.data_type(then)?;
            if !same(ty.get_or_insert_with(|| own.clone()), &own) {
                return Err("CASE branches of several types".into());
            }
            branches.push((when, self.translate(then)?));
        }
        let ty = ty.ok_or("a CASE without branches")?;
        let otherwise = match &case.else_expr {
            Some(otherwise) if same(&self.data_type(otherwise)?, &ty) => self.translate(otherwise)?,
            Some(otherwise) if matches!(**otherwise, Expr::Literal(ref value, _) if value.is_null()) => null(&ty)?,
            Some(_) => return Err("CASE branches of several types".into()),
            None => null(&ty)?,
        };
        Ok(Device::Case(branches, Box::new(otherwise)))
    }

    fn cast(&self, operand: &Expr, to: &DataType) -> Result<Device, Reason> {
        let from = self.data_type(operand)?;
        let inner = self.translate(operand)?;
        let refuse = || Err(format!("a conversion from {from} to {to}"));
        match (&from, to) {
            (from, to) if from == to => Ok(inner),
            (
                DataType::Decimal128(p1, s1) | DataType::Decimal256(p1, s1),
                DataType::Decimal128(p2, s2) | DataType::Decimal256(p2, s2),
            ) => {
                // Rounding may take one more digit before the point. A quotient has been translated to 128 bits.
                let is_quotient = matches!(operand, Expr::BinaryExpr(binary) if binary.op == Operator::Divide);
                if is_wide(to) && !is_quotient {
                    expect_digits(i16::from(*p1) + i16::from(s2 - s1))
                        .map_err(|reason| format!("a conversion from {from} to {to}, {reason}"))?;
                }
                let fits = has_all_digits(*p2) || whole_digits(*p2, *s2) >= whole_digits(*p1, *s1) + i16::from(s2 < s1);
                Ok(if fits { rescale(inner, s2 - s1) } else { rescale_within(inner, s2 - s1, *p2) })
            }
            (from, DataType::Decimal128(p, s) | DataType::Decimal256(p, s)) if from.is_integer() => {
                let (digits, needed) = (whole_digits(*p, *s), integer_digits(from));
                // To a negative scale the CPU cuts digits off, without rounding.
                if *s < 0 {
                    return refuse();
                }
                let inner = Device::Cast(Box::new(inner), Ty::I128);
                let fits = has_all_digits(*p) || digits >= needed;
                Ok(if fits { rescale(inner, *s) } else { rescale_within(inner, *s, *p) })
            }
            // Rounded before, where it had digits behind the point.
            (DataType::Decimal128(_, 0), to) if to.is_integer() => match Ty::of(to) {
                Some(to) => Ok(Device::Cast(Box::new(inner), to)),
                None => refuse(),
            },
            (DataType::Decimal128(_, scale @ 0..), DataType::Float64) => {
                Ok(Device::DecimalToFloat(Box::new(inner), *scale))
            }
            (from, to) if from.is_numeric() && to.is_numeric() => match (Ty::of(from), Ty::of(to)) {
                (Some(Ty::I128), _) | (_, Some(Ty::I128)) | (None, _) | (_, None) => refuse(),
                (Some(_), Some(to)) => Ok(Device::Cast(Box::new(inner), to)),
            },
            (DataType::Date64, DataType::Date32) => Ok(dates::whole_days(inner)),
            (DataType::Timestamp(_, None), DataType::Date32) => {
                dates::days(inner, &from).ok_or_else(|| format!("a conversion from {from} to {to}"))
            }
            (DataType::Date32 | DataType::Timestamp(_, None), DataType::Timestamp(unit, None)) => {
                dates::timestamp(inner, &from, *unit).ok_or_else(|| format!("a conversion from {from} to {to}"))
            }
            (DataType::Date32, DataType::Int32) | (DataType::Date64 | DataType::Timestamp(_, _), DataType::Int64) => {
                Ok(inner)
            }
            (DataType::Date32, DataType::Int64) => Ok(Device::Cast(Box::new(inner), Ty::I64)),
            (DataType::Boolean, to) if to.is_integer() => match Ty::of(to) {
                Some(to) => Ok(Device::Cast(Box::new(inner), to)),
                None => refuse(),
            },
            _ => refuse(),
        }
    }

    fn function(&self, function: &ScalarFunction, expr: &Expr) -> Result<Device, Reason> {
        if function.func.signature().volatility != Volatility::Immutable {
            return Err(format!("the function '{}'", function.name()));
        }
        if let ([time], Some(unit)) = (function.args.as_slice(), coarser_times::rounds_to(&function.func)) {
            let input = self.data_type(time)?;
            let rounded = dates::rounded(self.translate(time)?, &input, unit);
            return rounded.ok_or_else(|| format!("the rounding of {input}"));
        }
        if let Some(decimal) = CastFunction::as_double(expr) {
            return self.cast(decimal, &DataType::Float64);
        }
        if let Some(comparison) = finer_columns::as_comparison(function) {
            return self.translate(&comparison);
        }
        match (function.name(), function.args.as_slice()) {
            ("date_part", [Expr::Literal(part, _), date]) => {
                let part = part.try_as_str().flatten().unwrap_or_default().to_ascii_lowercase();
                let input = self.data_type(date)?;
                if part == "epoch" && self.data_type(expr)? == DataType::Float64 {
                    let seconds = dates::epoch(self.translate(date)?, &input);
                    return seconds.ok_or_else(|| format!("the date part 'epoch' of {input}"));
                }
                if self.data_type(expr)? != DataType::Int32 {
                    return Err(format!("the expression '{}'", shown(expr)));
                }
                dates::part(&part, self.translate(date)?, &input)
            }
            ("date_trunc", [Expr::Literal(unit, _), date]) => {
                let unit = unit.try_as_str().flatten().unwrap_or_default().to_ascii_lowercase();
                let input = self.data_type(date)?;
                if self.data_type(expr)? != input {
                    return Err(format!("the expression '{}'", shown(expr)));
                }
                dates::truncate(&unit, self.translate(date)?, &input)
            }
            ("coalesce", [first, others @ ..]) if !others.is_empty() => {
                let ty = self.data_type(expr)?;
                for arg in std::iter::once(first).chain(others) {
                    if !same(&self.data_type(arg)?, &ty) {
                        return Err(format!("'{}' over several types", shown(expr)));
                    }
                }
                let (last, before) = function.args.split_last().expect("there is a first argument");
                let branch = |arg: &Expr| Ok::<_, Reason>((self.unary(UnaryOp::IsNotNull, arg)?, self.translate(arg)?));
                let branches = before.iter().map(branch).collect::<Result<_, _>>()?;
                Ok(Device::Case(branches, Box::new(self.translate(last)?)))
            }
            ("nullif", [value, unwanted]) => {
                let ty = self.data_type(expr)?;
                let binary = BinaryExpr::new(Box::new(value.clone()), Operator::Eq, Box::new(unwanted.clone()));
                let equal = self.translate(&Expr::BinaryExpr(binary))?;
                Ok(Device::Case(vec![(equal, null(&ty)?)], Box::new(self.translate(value)?)))
            }
            ("round", [value, digits @ ..]) => self.rounded(value, digits.first(), expr),
            ("round_even", [value, Expr::Literal(ScalarValue::Int64(Some(0)), _)])
                if self.data_type(value)? == DataType::Float64 =>
            {
                self.unary(UnaryOp::RoundEven, value)
            }
            ("abs", [value]) => self.unary(UnaryOp::Absolute, value),
            ("floor" | "ceil" | "trunc" | "signum", [value]) => self.whole(function.name(), value, expr),
            _ => self.arithmetic(function, expr),
        }
    }
}

/// Whether values of both types are the same on the device.
pub(super) fn same(one: &DataType, other: &DataType) -> bool {
    one == other || is_string(one) && is_string(other)
}

/// Whether an expression reads what is not of its row.
pub(super) fn contains_subquery(expr: &Expr) -> bool {
    expr.exists(|expr| {
        Ok(matches!(
            expr,
            Expr::ScalarSubquery(_) | Expr::InSubquery(_) | Expr::Exists(_) | Expr::OuterReferenceColumn(_, _)
        ))
    })
    .unwrap_or(true)
}

/// Most digits that a decimal of 256 bits may have by its type: bounds of values are to prove that 38 do, and a sum's
/// type has ten to spare.
const WIDE_DIGITS_MAX: i16 = DECIMAL128_MAX_PRECISION as i16 + 10;

/// Refuses what bounds of values will hardly prove to fit in 128 bits, before columns are loaded for it.
fn expect_digits(digits: i16) -> Result<(), Reason> {
    match digits > WIDE_DIGITS_MAX {
        true => Err(format!("which may have {digits} digits")),
        false => Ok(()),
    }
}

/// Digits before the point of a decimal.
fn whole_digits(precision: u8, scale: i8) -> i16 {
    i16::from(precision) - i16::from(scale)
}

/// Most digits of integers of a type.
fn integer_digits(data_type: &DataType) -> i16 {
    match Ty::of(data_type) {
        Some(Ty::I8 | Ty::U8) => 3,
        Some(Ty::I16 | Ty::U16) => 5,
        Some(Ty::I32 | Ty::U32) => 10,
        _ => 20,
    }
}

/// Precision and scale of a decimal.
pub(super) fn decimal(data_type: &DataType) -> Option<(u8, i8)> {
    match data_type {
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => Some((*precision, *scale)),
        _ => None,
    }
}

fn is_wide(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Decimal256(_, _))
}

/// Whether a decimal of that precision holds every number of 128 bits.
fn has_all_digits(precision: u8) -> bool {
    precision > DECIMAL128_MAX_PRECISION
}

fn not(inner: Device) -> Device {
    Device::Unary(UnaryOp::Not, Box::new(inner))
}

pub(super) fn rescale(inner: Device, power: i8) -> Device {
    if power == 0 { inner } else { Device::Rescale(Box::new(inner), power) }
}

/// A decimal of another scale that raises where it has more than `most` digits.
fn rescale_within(inner: Device, power: i8, most: u8) -> Device {
    // Digits that are appended are zeros: what has too many with them has too many before.
    match u8::try_from(power) {
        Ok(appended) => rescale(Device::Digits(Box::new(inner), most.saturating_sub(appended)), power),
        Err(_) => Device::Digits(Box::new(rescale(inner, power)), most),
    }
}
