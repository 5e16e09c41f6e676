//! Walks over expressions.

use std::sync::Arc;

use super::{Expr, Fragment, Literal, Step};

impl Expr {
    /// Calls `visit` for every register the expression reads.
    pub fn registers(&self, visit: &mut impl FnMut(usize)) {
        match self {
            Expr::Reg(register) | Expr::Place(register) | Expr::Lookup(register, _, _) | Expr::Match(register, _) => {
                visit(*register)
            }
            other => other.each(&mut |inner| inner.registers(visit)),
        }
    }

    /// Calls `visit` for the expression and every one within it.
    pub fn walk(&self, visit: &mut impl FnMut(&Expr)) {
        visit(self);
        self.each(&mut |inner| inner.walk(visit));
    }

    /// Whether another expression is the same, as far as that is known of functions of strings.
    pub(crate) fn is_same(&self, other: &Expr) -> bool {
        let own = match (self, other) {
            (Expr::Reg(one), Expr::Reg(other)) | (Expr::Place(one), Expr::Place(other)) => one == other,
            (Expr::Literal(Literal::Float(one), ty), Expr::Literal(Literal::Float(other), other_ty)) => {
                (one.to_bits(), ty) == (other.to_bits(), other_ty)
            }
            (Expr::Literal(one, ty), Expr::Literal(other, other_ty)) => (one, ty) == (other, other_ty),
            (Expr::Text(one), Expr::Text(other)) => one == other,
            (Expr::Unary(one, _), Expr::Unary(other, _)) => one == other,
            (Expr::Binary(one, _, _), Expr::Binary(other, _, _)) => one == other,
            (Expr::Cast(_, one), Expr::Cast(_, other)) => one == other,
            (Expr::Rescale(_, one), Expr::Rescale(_, other)) => one == other,
            (Expr::Digits(_, one), Expr::Digits(_, other)) => one == other,
            (Expr::DecimalToFloat(_, one), Expr::DecimalToFloat(_, other)) => one == other,
            (Expr::DatePart(one, _), Expr::DatePart(other, _)) => one == other,
            (Expr::AddMonths(_, one), Expr::AddMonths(_, other)) => one == other,
            (Expr::InCalendar(_, one), Expr::InCalendar(_, other)) => one == other,
            (Expr::Among(_, one), Expr::Among(_, other)) => one == other,
            (Expr::Quotient(_, one), Expr::Quotient(_, other)) => one == other,
            (Expr::Deviations(_), Expr::Deviations(_)) => true,
            (Expr::Case(one, _), Expr::Case(other, _)) => one.len() == other.len(),
            (Expr::Match(one, test), Expr::Match(other, other_test)) => one == other && Arc::ptr_eq(test, other_test),
            (Expr::Lookup(one, function, ty), Expr::Lookup(other, other_function, other_ty)) => {
                let is_same = Arc::ptr_eq(function, other_function) || function.is_same(other_function.as_ref());
                (one, ty) == (other, other_ty) && is_same
            }
            _ => false,
        };
        let (mut operands, mut others) = (Vec::new(), Vec::new());
        self.each_operand(&mut |operand| operands.push(operand));
        other.each_operand(&mut |operand| others.push(operand));
        own && operands.iter().zip(others).all(|(one, other)| one.is_same(other))
    }

    /// Whether it tests a string without a dictionary.
    pub(crate) fn tests_strings(&self) -> bool {
        let mut found = matches!(self, Expr::Match(_, _));
        self.each(&mut |inner| found |= inner.tests_strings());
        found
    }

    /// Calls `visit` for the operands.
    pub(crate) fn each(&self, visit: &mut dyn FnMut(&Expr)) {
        self.each_operand(&mut |operand| visit(operand));
    }

    fn each_operand<'a>(&'a self, visit: &mut dyn FnMut(&'a Expr)) {
        match self {
            Expr::Reg(_) | Expr::Place(_) | Expr::Lookup(_, _, _) | Expr::Match(_, _) => {}
            Expr::Literal(_, _) | Expr::Text(_) => {}
            Expr::Unary(_, inner)
            | Expr::Cast(inner, _)
            | Expr::Rescale(inner, _)
            | Expr::Digits(inner, _)
            | Expr::DecimalToFloat(inner, _)
            | Expr::DatePart(_, inner)
            | Expr::AddMonths(inner, _)
            | Expr::Among(inner, _)
            | Expr::InCalendar(inner, _) => visit(inner),
            Expr::Binary(_, left, right) => {
                visit(left);
                visit(right);
            }
            Expr::Quotient(operands, _) => operands.iter().for_each(visit),
            Expr::Deviations(sums) => sums.iter().for_each(visit),
            Expr::Case(branches, otherwise) => {
                for (when, then) in branches {
                    visit(when);
                    visit(then);
                }
                visit(otherwise);
            }
        }
    }

    /// Calls `change` for every expression within, then for the whole.
    pub(crate) fn change(&mut self, change: &mut impl FnMut(&mut Expr)) {
        match self {
            Expr::Reg(_) | Expr::Place(_) | Expr::Lookup(_, _, _) | Expr::Match(_, _) => {}
            Expr::Literal(_, _) | Expr::Text(_) => {}
            Expr::Unary(_, inner)
            | Expr::Cast(inner, _)
            | Expr::Rescale(inner, _)
            | Expr::Digits(inner, _)
            | Expr::DecimalToFloat(inner, _)
            | Expr::DatePart(_, inner)
            | Expr::AddMonths(inner, _)
            | Expr::Among(inner, _)
            | Expr::InCalendar(inner, _) => inner.change(change),
            Expr::Binary(_, left, right) => {
                left.change(change);
                right.change(change);
            }
            Expr::Quotient(operands, _) => operands.iter_mut().for_each(|inner| inner.change(change)),
            Expr::Deviations(sums) => sums.iter_mut().for_each(|inner| inner.change(change)),
            Expr::Case(branches, otherwise) => {
                for (when, then) in branches {
                    when.change(change);
                    then.change(change);
                }
                otherwise.change(change);
            }
        }
        change(self);
    }
}

impl Fragment {
    /// The fragment with `arguments` in place of [`Literal::Argument`], by position.
    pub fn with_arguments(&self, arguments: &[Expr]) -> Fragment {
        self.with_exprs(|expr| {
            if let Expr::Literal(Literal::Argument(position), _) = expr
                && let Some(argument) = arguments.get(*position)
            {
                *expr = argument.clone();
            }
        })
    }

    /// The conditions of all filters.
    pub fn filters(&self) -> impl Iterator<Item = &Expr> {
        self.pipelines.iter().flat_map(|pipeline| &pipeline.steps).filter_map(|step| match step {
            Step::Filter(expr) => Some(expr),
            Step::Probe(_) | Step::Limit { .. } => None,
        })
    }

    /// The fragment without the values of its literals: mostly, fragments of one shape have the same kernels.
    pub fn shape(&self) -> Fragment {
        self.with_exprs(|expr| match expr {
            Expr::Literal(value, _) => *value = Literal::Null,
            Expr::Text(text) => *text = Arc::default(),
            _ => {}
        })
    }

    /// The fragment with its expressions changed from the inside out.
    pub fn with_exprs(&self, mut fill: impl FnMut(&mut Expr)) -> Fragment {
        let mut fragment = self.clone();
        fragment.pipelines.iter_mut().for_each(|pipeline| pipeline.change(&mut fill));
        fragment.result.iter_mut().for_each(|(expr, _)| expr.change(&mut fill));
        fragment
    }
}
