//! Expressions as statements of kernel source, with what is known of their values.
//!
//! Each expression becomes a [`Value`]: C code for value and validity, and an interval that bounds it. Intervals start
//! from column statistics and let decimals be computed in 64 bits, conversions go unchecked and keys be packed.
//! Evaluation errors are raised only under the guard of the conditions around an expression (the right side of AND, a
//! CASE branch), so that `b <> 0 AND 10 / b > 1` raises nothing.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::StringArray;
use warpcube_column::Dictionary;

use crate::arena::{Arena, Zone};
use crate::codegen::params::{Argument, ParamList};
use crate::error::{EngineError, Result, unsupported};
use crate::ir::{BinaryOp, DatePart, Expr, Literal, Overflow, Ty, UnaryOp};
use crate::lookup::{self, LookupTable};

/// A computed value in kernel source.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    /// C expression, free of side effects.
    pub(crate) code: String,
    /// C expression that is true where the value is not NULL; `None` if it never is NULL.
    pub(crate) valid: Option<String>,
    /// Type.
    pub(crate) ty: Ty,
    /// Whether a decimal is computed in 64 bits.
    pub(crate) narrow: bool,
    /// Bounds of valid values of integer types.
    pub(crate) range: Option<(i128, i128)>,
    /// Bound of the magnitude of a column's finite floats, where it is known.
    pub(crate) magnitude: Option<f64>,
    /// Strings behind codes.
    pub(crate) dictionary: Option<Arc<Dictionary>>,
}

impl Value {
    pub(crate) fn c_type(&self) -> &'static str {
        c_type(self.ty, self.narrow)
    }

    /// C expression that is true where the value is true and not NULL.
    pub(crate) fn truth(&self) -> String {
        match &self.valid {
            Some(valid) => format!("({valid} && {})", self.code),
            None => self.code.clone(),
        }
    }

    pub(crate) fn valid_code(&self) -> &str {
        self.valid.as_deref().unwrap_or("true")
    }

    /// Bounds, from the type where nothing better is known; floats have none.
    pub(crate) fn bounds(&self) -> Option<(i128, i128)> {
        self.range.or_else(|| self.ty.bounds())
    }
}

/// The C type of a value.
pub(crate) fn c_type(ty: Ty, narrow: bool) -> &'static str {
    match ty {
        Ty::Bool => "bool",
        Ty::I8 => "int8_t",
        Ty::I16 => "int16_t",
        Ty::I32 => "int32_t",
        Ty::I64 => "int64_t",
        Ty::U8 => "uint8_t",
        Ty::U16 => "uint16_t",
        Ty::U32 => "uint32_t",
        Ty::U64 => "uint64_t",
        Ty::F32 => "float",
        Ty::F64 => "double",
        Ty::I128 if narrow => "int64_t",
        Ty::I128 => "__int128",
    }
}

pub(super) fn fits_i64(range: Option<(i128, i128)>) -> bool {
    range.is_some_and(|(low, high)| low >= i64::MIN.into() && high <= i64::MAX.into())
}

/// Writes statements into one scope of a kernel.
pub(crate) struct Emitter<'a> {
    /// Values of registers in this scope; `None` where one is not loaded here.
    pub(crate) registers: &'a [Option<Value>],
    /// The kernel's parameters.
    pub(crate) params: &'a mut ParamList,
    /// The statement's arena, for tables.
    pub(crate) arena: &'a mut Arena,
    /// C expression of the pointer to the error slot.
    pub(crate) error_slot: &'a str,
    /// What integers do that overflow.
    pub(crate) overflow: Overflow,
    /// Counter for names, shared by the kernel.
    pub(crate) next: &'a mut usize,
    /// Statements so far.
    pub(crate) out: String,
    /// Whether an expression here can raise an error.
    pub(crate) fallible: bool,
    guards: Vec<String>,
}

impl<'a> Emitter<'a> {
    pub(crate) fn new(
        registers: &'a [Option<Value>],
        params: &'a mut ParamList,
        arena: &'a mut Arena,
        (error_slot, overflow): (&'a str, Overflow),
        next: &'a mut usize,
    ) -> Emitter<'a> {
        let (out, guards) = (String::new(), Vec::new());
        Emitter { registers, params, arena, error_slot, overflow, next, out, fallible: false, guards }
    }

    /// A new name.
    pub(crate) fn name(&mut self) -> String {
        *self.next += 1;
        format!("t{}", self.next)
    }

    /// A constant of that C type with a new name.
    pub(crate) fn define(&mut self, c_type: &str, code: &str) -> String {
        let name = self.name();
        let _ = writeln!(self.out, "const {c_type} {name} = {code};");
        name
    }

    pub(super) fn value(&mut self, ty: Ty, code: &str, valid: Option<String>, range: Option<(i128, i128)>) -> Value {
        let narrow = ty == Ty::I128 && fits_i64(range);
        let code = self.define(c_type(ty, narrow), code);
        Value { code, valid, ty, narrow, range, magnitude: None, dictionary: None }
    }

    pub(super) fn both_valid(&mut self, left: &Value, right: &Value) -> Option<String> {
        match (&left.valid, &right.valid) {
            (None, None) => None,
            (Some(valid), None) | (None, Some(valid)) => Some(valid.clone()),
            (Some(left), Some(right)) if left == right => Some(left.clone()),
            (Some(left), Some(right)) => Some(self.define("bool", &format!("{left} && {right}"))),
        }
    }

    pub(super) fn raise(&mut self, condition: &str, valid: &Option<String>, code: &str) {
        self.fallible = true;
        let mut guard: Vec<String> = self.guards.clone();
        guard.extend(valid.clone());
        guard.push(format!("({condition})"));
        // The row ends here: what follows may rely on bounds that a value that raised does not keep.
        let _ = writeln!(self.out, "if ({}) {{ wc_raise({}, {code}); return; }}", guard.join(" && "), self.error_slot);
    }

    /// Writes what sets a flag of the run where a condition holds.
    pub(crate) fn raise_flag(&mut self, condition: &str, flag: &str) {
        let _ =
            writeln!(self.out, "if ({condition}) atomicOr((uint32_t*)({} + 1), (uint32_t){flag});", self.error_slot);
    }

    /// Writes what computes `expr` for the rows for which `guard` holds, if there is one: the others raise nothing.
    pub(crate) fn emit_guarded(&mut self, expr: &Expr, guard: Option<&str>) -> Result<Value> {
        let guards = self.guards.len();
        self.guards.extend(guard.map(str::to_string));
        let value = self.emit(expr);
        self.guards.truncate(guards);
        value
    }

    /// Writes what computes `expr`.
    pub(crate) fn emit(&mut self, expr: &Expr) -> Result<Value> {
        match expr {
            Expr::Reg(register) => self.register(*register),
            Expr::Literal(literal, ty) => self.literal(*literal, *ty),
            Expr::Unary(op, inner) => self.unary(*op, inner),
            Expr::Binary(BinaryOp::And, left, right) => self.logic(BinaryOp::And, left, right),
            Expr::Binary(BinaryOp::Or, left, right) => self.logic(BinaryOp::Or, left, right),
            Expr::Binary(op, left, right) => {
                let (left, right) = (self.emit(left)?, self.emit(right)?);
                if left.ty != right.ty {
                    return Err(EngineError::Malformed(format!("{op:?} of {:?} and {:?}", left.ty, right.ty)));
                }
                match op.is_comparison() {
                    true => self.compare(*op, &left, &right),
                    false if left.ty.is_float() => self.float_arithmetic(*op, &left, &right),
                    false => self.integer_arithmetic(*op, &left, &right),
                }
            }
            Expr::Cast(inner, ty) => {
                let value = self.emit(inner)?;
                self.cast(&value, *ty)
            }
            Expr::Rescale(inner, power) => self.rescale(inner, *power),
            Expr::DecimalToFloat(inner, scale) => {
                let value = self.emit(inner)?;
                let divisor = 10f64.powi(i32::from(*scale));
                let code = format!("(double){} / {divisor:?}", value.code);
                Ok(self.value(Ty::F64, &code, value.valid, None))
            }
            Expr::Case(branches, otherwise) => self.case(branches, otherwise),
            Expr::DatePart(part, inner) => self.date_part(*part, inner),
            Expr::AddMonths(inner, months) => self.add_months(inner, *months),
            Expr::InCalendar(inner, day_ticks) => {
                let value = self.emit(inner)?;
                in_calendar(value.bounds(), *day_ticks).map(|()| value)
            }
            Expr::Text(text) => {
                let dictionary = Dictionary::from_sorted(StringArray::from(vec![text.as_ref()]));
                let value = self.value(Ty::U32, "0u", None, Some((0, 0)));
                Ok(Value { dictionary: Some(Arc::new(dictionary)), ..value })
            }
            Expr::Lookup(register, function, ty) => {
                let input = self.register(*register)?;
                let Some(dictionary) = input.dictionary.clone() else {
                    return Err(EngineError::Malformed(format!("register {register} is no string")));
                };
                let table = lookup::evaluate(&dictionary, function, *ty)?;
                self.lookup(&input, &table, *ty)
            }
        }
    }

    fn register(&mut self, register: usize) -> Result<Value> {
        match self.registers.get(register) {
            Some(Some(value)) => Ok(value.clone()),
            _ => Err(EngineError::Malformed(format!("register {register} is not loaded here"))),
        }
    }

    fn literal(&mut self, literal: Literal, ty: Ty) -> Result<Value> {
        match literal {
            Literal::Null => {
                let value = self.value(ty, "0", Some("false".into()), Some((0, 0)));
                Ok(Value { range: if ty.is_float() { None } else { value.range }, ..value })
            }
            Literal::Argument(position) => {
                Err(EngineError::Malformed(format!("argument {position} was given no value")))
            }
            Literal::Float(number) => {
                let member = self.params.add("double", Argument::F64(number));
                Ok(self.value(ty, &format!("({}){member}", c_type(ty, false)), None, None))
            }
            Literal::Int(number) if ty.is_float() => self.literal(Literal::Float(number as f64), ty),
            Literal::Int(number) => {
                let range = Some((number, number));
                let code = if let Ok(small) = i64::try_from(number) {
                    self.params.add("int64_t", Argument::I64(small))
                } else {
                    let high = self.params.add("int64_t", Argument::I64((number >> 64) as i64));
                    let low = self.params.add("uint64_t", Argument::U64(number as u64));
                    format!("((__int128)(((unsigned __int128)(uint64_t){high} << 64) | {low}))")
                };
                let narrow = ty == Ty::I128 && fits_i64(range);
                Ok(self.value(ty, &format!("({}){code}", c_type(ty, narrow)), None, range))
            }
        }
    }

    fn unary(&mut self, op: UnaryOp, inner: &Expr) -> Result<Value> {
        let value = self.emit(inner)?;
        let truth = Some((0, 1));
        Ok(match op {
            UnaryOp::Not => self.value(Ty::Bool, &format!("!{}", value.code), value.valid, truth),
            UnaryOp::IsNull => self.value(Ty::Bool, &format!("!({})", value.valid_code()), None, truth),
            UnaryOp::IsNotNull => self.value(Ty::Bool, value.valid_code(), None, truth),
            UnaryOp::IsTrue => self.value(Ty::Bool, &value.truth(), None, truth),
            UnaryOp::Negate if value.ty.is_float() => {
                self.value(value.ty, &format!("-{}", value.code), value.valid, None)
            }
            UnaryOp::Negate => {
                let zero = self.literal(Literal::Int(0), value.ty)?;
                self.integer_arithmetic(BinaryOp::Sub, &zero, &value)?
            }
        })
    }

    /// Kleene AND and OR; the right side can raise only where the left one does not decide.
    fn logic(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> Result<Value> {
        let left = self.emit(left)?;
        let (deciding, operator) = if op == BinaryOp::And { ("!", "&&") } else { ("", "||") };
        let decided = |value: &Value| match &value.valid {
            Some(valid) => format!("({valid} && {deciding}{})", value.code),
            None => format!("({deciding}{})", value.code),
        };
        self.guards.push(format!("!{}", decided(&left)));
        let right = self.emit(right);
        self.guards.pop();
        let right = right?;
        let valid = match self.both_valid(&left, &right) {
            None => None,
            Some(both) => {
                let code = format!("{both} || {} || {}", decided(&left), decided(&right));
                Some(self.define("bool", &code))
            }
        };
        // Where one side decides, an invalid other side may hold anything; the result must not depend on it.
        let code = match (&left.valid, &right.valid) {
            (None, None) => format!("{} {operator} {}", left.code, right.code),
            _ if op == BinaryOp::And => format!("{} && {}", left.truth(), right.truth()),
            _ => format!("{} || {}", left.truth(), right.truth()),
        };
        Ok(self.value(Ty::Bool, &code, valid, Some((0, 1))))
    }

    fn compare(&mut self, op: BinaryOp, left: &Value, right: &Value) -> Result<Value> {
        let operator = match op {
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            _ => ">=",
        };
        let code = if left.dictionary.is_some() || right.dictionary.is_some() {
            let (left, right) = self.images(op, left, right)?;
            format!("{left} {operator} {right}")
        } else if left.ty.is_float() {
            let (left, right) = (&left.code, &right.code);
            match op {
                BinaryOp::Eq => format!("wc_float_same({left}, {right})"),
                BinaryOp::Ne => format!("!wc_float_same({left}, {right})"),
                BinaryOp::Lt => format!("wc_float_less({left}, {right})"),
                BinaryOp::Le => format!("!wc_float_less({right}, {left})"),
                BinaryOp::Gt => format!("wc_float_less({right}, {left})"),
                _ => format!("!wc_float_less({left}, {right})"),
            }
        } else {
            format!("{} {operator} {}", left.code, right.code)
        };
        let valid = self.both_valid(left, right);
        Ok(self.value(Ty::Bool, &code, valid, Some((0, 1))))
    }

    fn float_arithmetic(&mut self, op: BinaryOp, left: &Value, right: &Value) -> Result<Value> {
        let valid = self.both_valid(left, right);
        let code = match op {
            BinaryOp::Add => format!("{} + {}", left.code, right.code),
            BinaryOp::Sub => format!("{} - {}", left.code, right.code),
            BinaryOp::Mul => format!("{} * {}", left.code, right.code),
            BinaryOp::Div => format!("{} / {}", left.code, right.code),
            BinaryOp::Rem => format!("({})fmod({}, {})", left.c_type(), left.code, right.code),
            other => return Err(EngineError::Malformed(format!("{other:?} of floats"))),
        };
        Ok(self.value(left.ty, &code, valid, None))
    }

    fn cast(&mut self, value: &Value, ty: Ty) -> Result<Value> {
        if value.ty == ty {
            return Ok(value.clone());
        }
        if value.dictionary.is_some() {
            return unsupported("a conversion of codes");
        }
        let valid = value.valid.clone();
        if ty.is_float() {
            let code = format!("({}){}", c_type(ty, false), value.code);
            return Ok(self.value(ty, &code, valid, None));
        }
        let limits = ty.bounds().expect("integers have bounds");
        if ty == Ty::Bool {
            let code = format!("{} != 0", value.code);
            return Ok(self.value(ty, &code, valid, Some((0, 1))));
        }
        if value.ty.is_float() {
            if ty == Ty::I128 {
                return unsupported("a conversion of floats to decimals");
            }
            // Bounds of 64-bit types are not doubles: compare with the power of two above instead.
            let (low, above) = (limits.0 as f64, (limits.1 + 1) as f64);
            let truncated = self.define("double", &format!("trunc((double){})", value.code));
            let fits = format!("{truncated} >= {low:?} && {truncated} < {above:?}");
            self.raise(&format!("!({fits})"), &valid, "WC_OVERFLOW");
            let code = format!("({fits}) ? ({}){truncated} : 0", c_type(ty, false));
            return Ok(self.value(ty, &code, valid, None));
        }
        let bounds = value.bounds().expect("integers have bounds");
        let inside = bounds.0 >= limits.0 && bounds.1 <= limits.1;
        let range = Some((bounds.0.max(limits.0), bounds.1.min(limits.1)));
        if !inside {
            // The smallest 64-bit integer has no literal of its own.
            let wide = |number: i128| match number == i64::MIN.into() {
                true => "(-9223372036854775807LL - 1)".to_string(),
                false => format!("({number}LL)"),
            };
            let mut outside = Vec::new();
            if bounds.0 < limits.0 {
                outside.push(format!("{} < {}", value.code, wide(limits.0)));
            }
            if bounds.1 > limits.1 {
                outside.push(format!("{} > {}", value.code, wide(limits.1)));
            }
            if limits.0 < i64::MIN.into() || limits.1 > i64::MAX.into() && bounds.1 > limits.1 {
                return unsupported("a conversion between wide integers");
            }
            self.raise(&outside.join(" || "), &valid, "WC_OVERFLOW");
        }
        let code = format!("({}){}", c_type(ty, ty == Ty::I128 && fits_i64(range)), value.code);
        Ok(self.value(ty, &code, valid, range))
    }

    fn rescale(&mut self, inner: &Expr, power: i8) -> Result<Value> {
        let value = self.emit(inner)?;
        let factor = 10i128
            .checked_pow(u32::from(power.unsigned_abs()))
            .ok_or_else(|| EngineError::Unsupported("a decimal scale change past 38 digits".into()))?;
        if power == 0 {
            return Ok(value);
        }
        let factor_value = self.literal(Literal::Int(factor), Ty::I128)?;
        if power > 0 {
            return self.integer_arithmetic(BinaryOp::Mul, &value, &factor_value);
        }
        if !value.narrow || !factor_value.narrow {
            return unsupported("rounding of decimals wider than 64 bits");
        }
        let half = factor / 2;
        let range = value.range.map(|(low, high)| (low / factor - 1, high / factor + 1));
        let code = format!(
            "({0} / {1}) + ({0} % {1} >= {half} ? 1 : {0} % {1} <= -{half} ? -1 : 0)",
            value.code, factor_value.code
        );
        Ok(self.value(Ty::I128, &code, value.valid, range))
    }

    fn case(&mut self, branches: &[(Expr, Expr)], otherwise: &Expr) -> Result<Value> {
        let mut arms: Vec<(String, Value)> = Vec::with_capacity(branches.len());
        let guards = self.guards.len();
        for (when, then) in branches {
            let when = self.emit(when)?;
            let truth = self.define("bool", &when.truth());
            self.guards.push(truth.clone());
            let then = self.emit(then);
            self.guards.pop();
            arms.push((truth.clone(), then?));
            self.guards.push(format!("!{truth}"));
        }
        let otherwise = self.emit(otherwise);
        self.guards.truncate(guards);
        let otherwise = otherwise?;
        let ty = otherwise.ty;
        if arms.iter().any(|(_, value)| value.ty != ty) {
            return Err(EngineError::Malformed("CASE branches of several types".into()));
        }
        let mut results: Vec<Value> = arms.iter().map(|(_, value)| value.clone()).chain([otherwise]).collect();
        let strings = results.iter().any(|value| value.dictionary.is_some());
        let dictionary = strings.then(|| self.share_dictionary(&mut results));
        let otherwise = results.pop().expect("the last one was put there");
        arms.iter_mut().zip(results).for_each(|((_, arm), result)| *arm = result);
        let values = || arms.iter().map(|(_, value)| value).chain([&otherwise]);
        let range = values().map(Value::bounds).reduce(|a, b| Some((a?.0.min(b?.0), a?.1.max(b?.1)))).flatten();
        let nullable = values().any(|value| value.valid.is_some());
        let result_type = c_type(ty, ty == Ty::I128 && fits_i64(range));
        let (mut code, mut valid) = (format!("({result_type}){}", otherwise.code), otherwise.valid_code().to_string());
        for (truth, value) in arms.iter().rev() {
            code = format!("{truth} ? ({result_type}){} : ({code})", value.code);
            valid = format!("{truth} ? {} : ({valid})", value.valid_code());
        }
        let valid = nullable.then(|| self.define("bool", &valid));
        let value = self.value(ty, &code, valid, range);
        Ok(Value { dictionary, ..value })
    }

    fn date_part(&mut self, part: DatePart, inner: &Expr) -> Result<Value> {
        let days = self.emit(inner)?;
        let date = self.define("WcDate", &format!("wc_civil({})", days.code));
        let year = |days: i128| 1970 + days.div_euclid(146_097) * 400 + days.rem_euclid(146_097) / 366;
        let (code, range) = match part {
            // The quotient by 366 is at most two years short, never past the year.
            DatePart::Year => (format!("{date}.year"), days.bounds().map(|(a, b)| (year(a) - 3, year(b) + 3))),
            DatePart::Quarter => (format!("({date}.month + 2) / 3"), Some((1, 4))),
            DatePart::Month => (format!("{date}.month"), Some((1, 12))),
            DatePart::Day => (format!("{date}.day"), Some((1, 31))),
        };
        // Outside of the CPU's calendar there are no parts.
        let valid = match days.bounds() {
            Some((low, high)) if low < FIRST_DAY || high > LAST_DAY => {
                let inside = format!("{0} >= {FIRST_DAY} && {0} <= {LAST_DAY}", days.code);
                Some(self.define("bool", &format!("{} && {inside}", days.valid_code())))
            }
            _ => days.valid,
        };
        Ok(self.value(Ty::I32, &code, valid, range))
    }

    fn add_months(&mut self, inner: &Expr, months: i32) -> Result<Value> {
        let days = self.emit(inner)?;
        let (low, high) = days.bounds().expect("integers have bounds");
        // Months have 28 to 31 days, and the last day of a month may be three days off.
        let months = i128::from(months);
        let (short, long) = if months < 0 { (31, 28) } else { (28, 31) };
        let range = (low + months * short - 3, high + months * long + 3);
        in_calendar(Some((low.min(range.0), high.max(range.1))), 1)?;
        let months = self.params.add("int64_t", Argument::I64(months as i64));
        let code = format!("(int32_t)wc_add_months({}, {months})", days.code);
        Ok(self.value(Ty::I32, &code, days.valid, Some(range)))
    }

    fn lookup(&mut self, input: &Value, table: &LookupTable, ty: Ty) -> Result<Value> {
        let valid = input.valid.clone();
        if let (Some((first, count)), true) = (table.true_run(), table.null_in_null_out()) {
            let first = self.params.add("int64_t", Argument::I64(i64::from(first)));
            let count = self.params.add("int64_t", Argument::I64(i64::from(count)));
            let code = format!("{} - (uint32_t){first} < (uint32_t){count}", input.code);
            return Ok(self.value(Ty::Bool, &code, valid, Some((0, 1))));
        }
        let code = match &valid {
            Some(valid) => {
                let nulls_at = self.params.add("int64_t", Argument::I64(table.len() as i64 - 1));
                self.define("uint32_t", &format!("{valid} ? {} : (uint32_t){nulls_at}", input.code))
            }
            None => input.code.clone(),
        };
        let zone: Zone = self.arena.constant(table.values());
        let pointer = self.params.add(&format!("const {}*", table.c_type()), Argument::Zone(zone));
        let result_valid = match table.validity() {
            _ if table.null_in_null_out() => valid,
            None => None,
            Some(bytes) => {
                let zone = self.arena.constant(bytes);
                let pointer = self.params.add("const uint8_t*", Argument::Zone(zone));
                Some(self.define("bool", &format!("wc_load_cached({pointer} + {code}) != 0")))
            }
        };
        let narrow = if ty == Ty::I128 { "int64_t" } else { c_type(ty, false) };
        let code = format!("({narrow})wc_load_cached({pointer} + {code})");
        let value = self.value(ty, &code, result_valid, table.range());
        Ok(Value { dictionary: table.dictionary(), ..value })
    }
}

/// The first and the last day of the CPU's calendar: years -262143 to 262142.
const FIRST_DAY: i128 = -96_465_292;
const LAST_DAY: i128 = 95_026_236;

/// Refuses bounds of dates or timestamps that do not prove them to be in the calendar.
fn in_calendar(bounds: Option<(i128, i128)>, day_ticks: i64) -> Result<()> {
    let day = |ticks: i128| ticks.div_euclid(day_ticks.into());
    match bounds {
        Some((low, high)) if day(low) >= FIRST_DAY && day(high) <= LAST_DAY => Ok(()),
        _ => unsupported("a date that may leave the calendar"),
    }
}

/// A stored value as the expression of its type: truth values are bytes, decimals 64-bit integers.
pub(crate) fn vector_value(template: &Value, code: &str) -> String {
    match template.ty {
        Ty::Bool => format!("({code} != 0)"),
        _ => code.to_string(),
    }
}
