//! How much text the rows of a step become.
//!
//! Loops over slots are unrolled, since their vectors lie in registers, so that whatever is computed for a row stands
//! in a kernel as often as a lane has slots, and again for each step on its way. Compilers take minutes over thousands
//! of divisions; the more a row costs, the less there is to gain from long steps.

use crate::ir::{BinaryOp, Expr, Sink};
use crate::plan::order::Item;

/// Most text of a loop, in operations: what compiles in about a second.
const MOST: usize = 2_000;

/// Operations of a row above which rows go through a queue: what is done with them then stands there once.
pub(crate) const HEAVY: usize = MOST / 16;

/// Operations of an expression, as compiled: there are no instructions for divisions of integers.
fn of(expr: &Expr) -> usize {
    match expr {
        Expr::Reg(_) | Expr::Place(_) | Expr::Literal(_, _) | Expr::Text(_) | Expr::Lookup(_, _, _) => 1,
        Expr::Match(_, _) => 32,
        Expr::Unary(_, inner) | Expr::Cast(inner, _) | Expr::Digits(inner, _) => 1 + of(inner),
        Expr::DecimalToFloat(inner, _) => 8 + of(inner),
        Expr::Rescale(inner, _) => 24 + of(inner),
        Expr::DatePart(_, inner) => 48 + of(inner),
        Expr::AddMonths(inner, _) => 96 + of(inner),
        Expr::InCalendar(inner, _) => of(inner),
        Expr::Quotient(operands, _) => 96 + operands.iter().map(of).sum::<usize>(),
        Expr::Deviations(sums) => 64 + sums.iter().map(of).sum::<usize>(),
        Expr::Among(inner, _) => 8 + of(inner),
        Expr::Binary(op, left, right) => {
            let own = if matches!(op, BinaryOp::Div | BinaryOp::Rem) { 32 } else { 1 };
            own + of(left) + of(right)
        }
        Expr::Case(branches, otherwise) => {
            branches.iter().map(|(when, then)| 1 + of(when) + of(then)).sum::<usize>() + of(otherwise)
        }
    }
}

/// Operations of a step of the pipeline.
pub(crate) fn of_item(item: &Item) -> usize {
    match item {
        Item::Filter(expr) => of(expr),
        Item::Probe(probe, _) => 16 + probe.keys.iter().chain(&probe.residual).map(of).sum::<usize>(),
        Item::Limit { .. } => 8,
    }
}

/// Operations of what a pipeline ends in.
pub(crate) fn of_sink(sink: &Sink) -> usize {
    match sink {
        Sink::Build { keys, payload } => keys.iter().chain(payload).map(of).sum::<usize>(),
        Sink::Aggregate { groups, aggregates } => {
            let groups = groups.iter().map(|(expr, _)| of(expr));
            let arguments = aggregates.iter().flat_map(|call| call.argument.iter().chain(&call.filter)).map(of);
            groups.chain(arguments).sum()
        }
        Sink::TopK(top) => top.keys.iter().map(|key| 2 + of(&key.expr)).sum(),
        Sink::Rows { columns, .. } => columns.iter().map(|(expr, _)| of(expr)).sum(),
    }
}

/// Slots of a lane and steps on their way for rows of so many operations: no more than wanted, and no fewer slots than
/// `least`.
pub(crate) fn bounded(weight: usize, slots: usize, ahead: usize, least: usize) -> (usize, usize) {
    // The last steps of a ticket are a loop of their own.
    let ahead = if weight * slots * (ahead + 1) > MOST { 1 } else { ahead };
    let mut slots = slots;
    while slots > least && weight * slots * (ahead + 1) > MOST {
        slots /= 2;
    }
    (slots, ahead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_expressions_have_short_steps() {
        assert_eq!(bounded(12, 32, 4, 8), (32, 4));
        assert_eq!(bounded(30, 32, 4, 8), (32, 1));
        assert_eq!(bounded(60, 32, 4, 8), (16, 1));
        assert_eq!(bounded(5_000, 32, 4, 8), (8, 1));
        let divided = Expr::Binary(BinaryOp::Div, Box::new(Expr::Reg(0)), Box::new(Expr::Reg(1)));
        assert_eq!(of(&divided), 34);
        assert_eq!(of(&Expr::Case(vec![(Expr::Reg(0), divided.clone())], Box::new(divided))), 70);
    }
}
