//! Expressions as statements of kernel source.
//!
//! Each expression becomes a [`Value`]: C code for value and validity beside what is known of it ([`crate::facts`],
//! whose rules decide what needs no check). Evaluation errors are raised only under the guard of the conditions around
//! an expression (the right side of AND, a CASE branch), so that `b <> 0 AND 10 / b > 1` raises nothing.

use std::fmt::Write;
use std::ops::Deref;

use crate::arena::{Arena, Region};
use crate::codegen::params::{Argument, ParamList};
use crate::error::{EngineError, Result};
use crate::facts::{self, FIRST_DAY, Facts, LAST_DAY, fits_i64};
use crate::ir::{BinaryOp, DatePart, Expr, Literal, Overflow, Ty, UnaryOp};
use crate::lookup::{self, LookupTable};

/// A computed value in kernel source.
#[derive(Debug, Clone)]
pub(crate) struct Value {
    /// C expression, free of side effects.
    pub(crate) code: String,
    /// C expression that is true where the value is not NULL; `None` if it never is NULL.
    pub(crate) valid: Option<String>,
    /// What is known of it; it may be NULL where there is a `valid`.
    facts: Facts,
}

impl Deref for Value {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.facts
    }
}

impl Value {
    /// A value of these facts; whether it may be NULL is what `valid` says.
    pub(crate) fn new(facts: Facts, code: String, valid: Option<String>) -> Value {
        let facts = Facts { nullable: valid.is_some(), ..facts };
        Value { code, valid, facts }
    }

    pub(crate) fn c_type(&self) -> &'static str {
        c_type(self.ty, self.is_narrow())
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

/// The C type of a value of these facts.
pub(crate) fn c_type_of(facts: &Facts) -> &'static str {
    c_type(facts.ty, facts.is_narrow())
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
    /// Slots of the steps whose rows' strings are tested at once; `None` in a scope of one row.
    pub(crate) step_slots: Option<usize>,
    /// Statements of a step, in front of the loop over its slots.
    pub(crate) of_step: String,
    /// Statements so far.
    pub(crate) out: String,
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
        let (of_step, out, guards) = (String::new(), String::new(), Vec::new());
        Emitter { registers, params, arena, error_slot, overflow, next, step_slots: None, of_step, out, guards }
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

    /// A value of these facts with a new name.
    pub(super) fn value(&mut self, facts: Facts, code: &str, valid: Option<String>) -> Value {
        debug_assert_eq!(facts.nullable, valid.is_some(), "{facts:?}: {code}");
        let code = self.define(c_type_of(&facts), code);
        Value::new(facts, code, valid)
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
            Expr::Match(register, test) => self.text_match(*register, test),
            Expr::Place(register) => self.place(*register),
            Expr::Literal(literal, ty) => self.literal(*literal, *ty),
            Expr::Unary(op, inner) => self.unary(*op, inner),
            Expr::Binary(BinaryOp::And, left, right) => self.logic(BinaryOp::And, left, right),
            Expr::Binary(BinaryOp::Or, left, right) => self.logic(BinaryOp::Or, left, right),
            Expr::Binary(op, left, right) => {
                if op.is_comparison()
                    && let Some(value) = self.decimal_against_constant(*op, left, right)?
                {
                    return Ok(value);
                }
                let (left, right) = (self.emit(left)?, self.emit(right)?);
                facts::same_type(*op, &left, &right)?;
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
            Expr::Digits(inner, most) => self.digits(inner, *most),
            Expr::DecimalToFloat(inner, scale) => {
                let value = self.emit(inner)?;
                self.nearest_double(&value, *scale)
            }
            Expr::Quotient(operands, power) => self.wide_quotient(operands, *power),
            Expr::Deviations(sums) => self.deviations(sums),
            Expr::Case(branches, otherwise) => self.case(branches, otherwise),
            Expr::DatePart(part, inner) => self.date_part(*part, inner),
            Expr::AddMonths(inner, months) => self.add_months(inner, *months),
            Expr::InCalendar(inner, day_ticks) => {
                let value = self.emit(inner)?;
                facts::in_calendar(value.bounds(), *day_ticks).map(|()| value)
            }
            Expr::Among(inner, values) => self.among(inner, values),
            Expr::Text(text) => Ok(self.value(facts::text(text), "0u", None)),
            Expr::Lookup(register, function, ty) => {
                let input = self.register(*register)?;
                let table = lookup::evaluate(facts::strings_of(&input)?, function, *ty)?;
                if let Some(value) = self.among_codes(&input, &table) {
                    return Ok(value);
                }
                self.lookup(&input, &table, *ty)
            }
        }
    }

    /// A search among sorted constants.
    fn among(&mut self, inner: &Expr, values: &[i64]) -> Result<Value> {
        let value = self.emit(inner)?;
        let region = self.arena.constant(bytemuck::cast_slice(values));
        let constants = self.params.add("const int64_t*", Argument::Region(region));
        let count = self.params.add("uint64_t", Argument::U64(values.len() as u64));
        let code = match value.ty {
            _ if value.is_wide() => {
                format!("({0} == (__int128)(int64_t){0} && wc_among({constants}, {count}, (int64_t){0}))", value.code)
            }
            // Past all constants, where a signed integer would be negative.
            Ty::U64 => format!("((int64_t){0} >= 0 && wc_among({constants}, {count}, (int64_t){0}))", value.code),
            _ => format!("wc_among({constants}, {count}, (int64_t){})", value.code),
        };
        let facts = Facts::new(Ty::Bool, value.valid.is_some(), Some((0, 1)));
        Ok(self.value(facts, &code, value.valid))
    }

    pub(super) fn register(&self, register: usize) -> Result<Value> {
        match self.registers.get(register) {
            Some(Some(value)) => Ok(value.clone()),
            _ => Err(facts::not_loaded(register)),
        }
    }

    pub(super) fn literal(&mut self, literal: Literal, ty: Ty) -> Result<Value> {
        let facts = facts::literal(literal, ty)?;
        Ok(match literal {
            Literal::Int(number) if ty.is_float() => return self.literal(Literal::Float(number as f64), ty),
            Literal::Null => self.value(facts, "0", Some("false".into())),
            Literal::Argument(position) => {
                return Err(EngineError::Malformed(format!("argument {position} was given no value")));
            }
            Literal::Float(number) => {
                let member = self.params.add("double", Argument::F64(number));
                self.value(facts, &format!("({}){member}", c_type(ty, false)), None)
            }
            Literal::Int(number) => {
                let code = match i64::try_from(number) {
                    Ok(small) => self.params.add("int64_t", Argument::I64(small)),
                    Err(_) => self.wide_constant(number),
                };
                let code = format!("({}){code}", c_type_of(&facts));
                self.value(facts, &code, None)
            }
        })
    }

    fn unary(&mut self, op: UnaryOp, inner: &Expr) -> Result<Value> {
        let value = match facts::is_there(op, inner) {
            Some(register) => self.register(register)?,
            None => self.emit(inner)?,
        };
        if op == UnaryOp::Negate && !value.ty.is_float() {
            let zero = self.literal(Literal::Int(0), value.ty)?;
            return self.integer_arithmetic(BinaryOp::Sub, &zero, &value);
        }
        if op == UnaryOp::Absolute && !value.ty.is_float() {
            return self.absolute(value);
        }
        let facts = facts::unary(op, &value)?;
        Ok(match op {
            UnaryOp::Not => self.value(facts, &format!("!{}", value.code), value.valid),
            UnaryOp::IsNull => self.value(facts, &format!("!({})", value.valid_code()), None),
            UnaryOp::IsNotNull => self.value(facts, value.valid_code(), None),
            UnaryOp::IsTrue => self.value(facts, &value.truth(), None),
            UnaryOp::Negate => self.value(facts, &format!("-{}", value.code), value.valid),
            op => self.value(facts, &of_float(op, &value.code), value.valid),
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
        Ok(self.value(facts::truth(valid.is_some()), &code, valid))
    }

    /// A decimal compared with a constant: the constant has as many bits as the decimal, however large it is.
    fn decimal_against_constant(&mut self, op: BinaryOp, left: &Expr, right: &Expr) -> Result<Option<Value>> {
        let (value, op, number) = match (left, right) {
            (Expr::Literal(_, _), Expr::Literal(_, _)) => return Ok(None),
            (value, Expr::Literal(Literal::Int(number), Ty::I128)) => (value, op, *number),
            (Expr::Literal(Literal::Int(number), Ty::I128), value) => (value, op.mirrored(), *number),
            _ => return Ok(None),
        };
        let value = self.emit(value)?;
        facts::same_type(op, &value, &facts::literal(Literal::Int(number), Ty::I128)?)?;
        // A constant past 64 bits is as far from all values as the ends of 64 bits, where no value is one of those.
        let ends = (i128::from(i64::MIN), i128::from(i64::MAX));
        let code = match value.range {
            Some((low, high)) if low > ends.0 && high < ends.1 => {
                let nearest = number.clamp(ends.0, ends.1) as i64;
                format!("(int64_t){}", self.params.add("int64_t", Argument::I64(nearest)))
            }
            _ => self.wide_constant(number),
        };
        let facts = Facts { range: None, ..facts::literal(Literal::Int(number), Ty::I128)? };
        self.compare(op, &value, &Value::new(facts, code, None)).map(Some)
    }

    /// A constant of 128 bits.
    fn wide_constant(&mut self, number: i128) -> String {
        let high = self.params.add("int64_t", Argument::I64((number >> 64) as i64));
        let low = self.params.add("uint64_t", Argument::U64(number as u64));
        format!("((__int128)(((unsigned __int128)(uint64_t){high} << 64) | {low}))")
    }

    fn compare(&mut self, op: BinaryOp, left: &Value, right: &Value) -> Result<Value> {
        let facts = facts::compare(op, left, right)?;
        let operator = match op {
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            _ => ">=",
        };
        let code = if left.dictionary.is_some() || right.dictionary.is_some() {
            let (left, right) = self.images(left, right);
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
        Ok(self.value(facts, &code, valid))
    }

    fn cast(&mut self, value: &Value, ty: Ty) -> Result<Value> {
        let (facts, raises) = facts::cast(value, ty)?;
        if value.ty == ty {
            return Ok(value.clone());
        }
        let valid = value.valid.clone();
        let result_type = c_type_of(&facts);
        if ty.is_float() {
            return Ok(self.value(facts, &format!("({result_type}){}", value.code), valid));
        }
        if ty == Ty::Bool {
            return Ok(self.value(facts, &format!("{} != 0", value.code), valid));
        }
        let limits = ty.bounds().expect("integers have bounds");
        if value.ty.is_float() {
            // Bounds of 64-bit types are not doubles: compare with the power of two above instead.
            let (low, above) = (limits.0 as f64, (limits.1 + 1) as f64);
            let truncated = self.define("double", &format!("trunc((double){})", value.code));
            let fits = format!("{truncated} >= {low:?} && {truncated} < {above:?}");
            self.raise(&format!("!({fits})"), &valid, "WC_OVERFLOW");
            return Ok(self.value(facts, &format!("({fits}) ? ({result_type}){truncated} : 0"), valid));
        }
        if raises {
            // The smallest 64-bit integer has no literal of its own.
            let wide = |number: i128| match number == i64::MIN.into() {
                true => "(-9223372036854775807LL - 1)".to_string(),
                false => format!("({number}LL)"),
            };
            let bounds = value.bounds().expect("integers have bounds");
            let below = (bounds.0 < limits.0).then(|| format!("{} < {}", value.code, wide(limits.0)));
            let above = (bounds.1 > limits.1).then(|| format!("{} > {}", value.code, wide(limits.1)));
            let outside: Vec<String> = below.into_iter().chain(above).collect();
            self.raise(&outside.join(" || "), &valid, "WC_OVERFLOW");
        }
        Ok(self.value(facts, &format!("({result_type}){}", value.code), valid))
    }

    fn rescale(&mut self, inner: &Expr, power: i8) -> Result<Value> {
        let value = self.emit(inner)?;
        let factor = facts::rescale_factor(power)?;
        if power == 0 {
            return Ok(value);
        }
        let factor_value = self.literal(Literal::Int(factor), Ty::I128)?;
        if power > 0 {
            return self.integer_arithmetic(BinaryOp::Mul, &value, &factor_value);
        }
        let facts = facts::rescale_down(&value, factor);
        let half = self.literal(Literal::Int(factor / 2), Ty::I128)?.code;
        let code = format!(
            "({2})(({0} / {1}) + ({0} % {1} >= {half} ? 1 : {0} % {1} <= -{half} ? -1 : 0))",
            value.code,
            factor_value.code,
            c_type_of(&facts)
        );
        Ok(self.value(facts, &code, value.valid))
    }

    /// A decimal that raises where it has more digits.
    fn digits(&mut self, inner: &Expr, most: u8) -> Result<Value> {
        let value = self.emit(inner)?;
        let (facts, raises) = facts::digits(&value, most)?;
        if !raises {
            return Ok(value);
        }
        let limit = self.literal(Literal::Int(10i128.pow(most.into()) - 1), Ty::I128)?.code;
        self.raise(&format!("{0} > {limit} || {0} < -{limit}", value.code), &value.valid, "WC_OVERFLOW");
        let code = format!("({}){}", c_type_of(&facts), value.code);
        Ok(self.value(facts, &code, value.valid))
    }

    fn case(&mut self, branches: &[(Expr, Expr)], otherwise: &Expr) -> Result<Value> {
        let mut truths: Vec<String> = Vec::with_capacity(branches.len());
        let mut results: Vec<Value> = Vec::with_capacity(branches.len() + 1);
        let guards = self.guards.len();
        for (when, then) in branches {
            let when = self.emit(when)?;
            let truth = self.define("bool", &when.truth());
            self.guards.push(truth.clone());
            let then = self.emit(then);
            self.guards.pop();
            results.push(then?);
            self.guards.push(format!("!{truth}"));
            truths.push(truth);
        }
        let otherwise = self.emit(otherwise);
        self.guards.truncate(guards);
        results.push(otherwise?);
        let facts = facts::case(results.iter().map(|value| (**value).clone()).collect())?;
        if let Some(shared) = &facts.dictionary {
            self.share_dictionary(shared, &mut results);
        }
        let result_type = c_type_of(&facts);
        let otherwise = results.pop().expect("the last one was put there");
        let (mut code, mut valid) = (format!("({result_type}){}", otherwise.code), otherwise.valid_code().to_string());
        for (truth, value) in truths.iter().zip(&results).rev() {
            code = format!("{truth} ? ({result_type}){} : ({code})", value.code);
            valid = format!("{truth} ? {} : ({valid})", value.valid_code());
        }
        let valid = facts.nullable.then(|| self.define("bool", &valid));
        Ok(self.value(facts, &code, valid))
    }

    fn date_part(&mut self, part: DatePart, inner: &Expr) -> Result<Value> {
        let days = self.emit(inner)?;
        let date = self.define("WcDate", &format!("wc_civil({})", days.code));
        let code = match part {
            DatePart::Year => format!("{date}.year"),
            DatePart::Quarter => format!("({date}.month + 2) / 3"),
            DatePart::Month => format!("{date}.month"),
            DatePart::Day => format!("{date}.day"),
        };
        // Outside of the CPU's calendar there are no parts.
        let valid = match facts::may_leave_calendar(&days) {
            true => {
                let inside = format!("{0} >= {FIRST_DAY} && {0} <= {LAST_DAY}", days.code);
                Some(self.define("bool", &format!("{} && {inside}", days.valid_code())))
            }
            false => days.valid.clone(),
        };
        Ok(self.value(facts::date_part(part, &days), &code, valid))
    }

    fn add_months(&mut self, inner: &Expr, months: i32) -> Result<Value> {
        let days = self.emit(inner)?;
        let facts = facts::add_months(&days, months)?;
        let months = self.params.add("int64_t", Argument::I64(months.into()));
        let code = format!("(int32_t)wc_add_months({}, {months})", days.code);
        Ok(self.value(facts, &code, days.valid))
    }

    /// A truth value of codes without a table: a bit a code where these are few, bounds where the codes for which it is
    /// true are neighbours whatever the constants are. Constants that only happen to have neighbours do not ask for
    /// another kernel.
    fn among_codes(&mut self, input: &Value, table: &LookupTable) -> Option<Value> {
        let facts = facts::looked_up(input, table, Ty::Bool);
        let valid = input.valid.clone();
        if let Some(bits) = table.true_bits().filter(|_| table.null_in_null_out()) {
            let bits = self.params.add("uint64_t", Argument::U64(bits));
            let code = match table.len() - 1 {
                ..=32 => format!("(bool)((uint32_t){bits} >> ({} & 31u) & 1u)", input.code),
                _ => format!("(bool)({bits} >> ({} & 63u) & 1u)", input.code),
            };
            return Some(self.value(facts, &code, valid));
        }
        let run = table.true_run()?;
        let first = self.params.add("int64_t", Argument::I64(run.start as i64));
        let count = self.params.add("int64_t", Argument::I64(run.len() as i64));
        let code = format!("{} - (uint32_t){first} < (uint32_t){count}", input.code);
        Some(self.value(facts, &code, valid))
    }

    fn lookup(&mut self, input: &Value, table: &LookupTable, ty: Ty) -> Result<Value> {
        let facts = facts::looked_up(input, table, ty);
        let valid = input.valid.clone();
        let code = match &valid {
            Some(valid) => {
                let nulls_at = self.params.add("int64_t", Argument::I64(table.len() as i64 - 1));
                self.define("uint32_t", &format!("{valid} ? {} : (uint32_t){nulls_at}", input.code))
            }
            None => input.code.clone(),
        };
        let region: Region = self.arena.constant(table.values());
        let pointer = self.params.add(&format!("const {}*", table.storage().c_name()), Argument::Region(region));
        let result_valid = match table.validity() {
            _ if table.null_in_null_out() => valid,
            None => None,
            Some(bytes) => {
                let region = self.arena.constant(bytes);
                let pointer = self.params.add("const uint8_t*", Argument::Region(region));
                Some(self.define("bool", &format!("wc_load_cached({pointer} + {code}) != 0")))
            }
        };
        let narrow = if ty == Ty::I128 { "int64_t" } else { c_type(ty, false) };
        let code = format!("({narrow})wc_load_cached({pointer} + {code})");
        Ok(self.value(facts, &code, result_valid))
    }
}

/// A stored value as the expression of its type: truth values are bytes, decimals 64-bit integers.
pub(crate) fn vector_value(facts: &Facts, code: &str) -> String {
    match facts.ty {
        Ty::Bool => format!("({code} != 0)"),
        _ => code.to_string(),
    }
}

/// Whether 64 bits hold the bounds of both; what is computed of them then is too.
pub(super) fn are_narrow(left: &Facts, right: &Facts, range: facts::Range) -> bool {
    fits_i64(range) && left.is_narrow() && right.is_narrow()
}

/// A magnitude, a rounding or the sign of a float.
fn of_float(op: UnaryOp, code: &str) -> String {
    match op {
        UnaryOp::Floor => format!("floor({code})"),
        UnaryOp::Ceil => format!("ceil({code})"),
        UnaryOp::Round => format!("round({code})"),
        UnaryOp::RoundEven => format!("rint({code})"),
        UnaryOp::Truncate => format!("{code} == 0 ? 0 : trunc({code})"),
        UnaryOp::Sign => format!("{code} == 0 ? 0 : {code} > 0 ? 1 : {code} < 0 ? -1 : {code}"),
        UnaryOp::Root => format!("sqrt({code})"),
        _ => format!("fabs({code})"),
    }
}
