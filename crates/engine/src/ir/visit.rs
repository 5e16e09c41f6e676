//! Walks over expressions.

use super::Expr;

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
