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

    /// Whether it tests a string without a dictionary.
    pub(crate) fn tests_strings(&self) -> bool {
        let mut found = matches!(self, Expr::Match(_, _));
        self.each(&mut |inner| found |= inner.tests_strings());
        found
    }

    /// Calls `visit` for the operands.
    pub(crate) fn each(&self, visit: &mut dyn FnMut(&Expr)) {
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
        fragment
    }
}
