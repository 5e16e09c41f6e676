//! How deep a statement is nested.
//!
//! The parser makes chains of operators lean to the left, one level for each operand, and limits no chain. Visitors,
//! clones, drops and the evaluation of such a tree take a stack frame a level. Here chains of AND, OR and UNION ALL,
//! whose operands may be grouped in any way, become balanced trees, and what is deeper than a limit is refused, taken
//! apart without recursion.
//!
//! Invariant: nothing here recurses deeper than the limit.

use std::mem;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement as ParsedStatement;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Query, Select, SetExpr, SetOperator, SetQuantifier, Value, Values, VisitorMut,
};

use crate::error::{Result, SqlError};

/// Operands of a balanced chain for each level of the limit: the optimiser makes conjunctions lean to the left again,
/// where a level costs less.
const OPERANDS_PER_LEVEL: usize = 10;

/// Shorter chains stay as they are, those within a balanced one among them.
const OPERANDS_MIN: usize = 32;

/// Balances chains and refuses what is deeper than `limit`.
pub(super) fn settle(parsed: &mut ParsedStatement, limit: usize) -> Result<()> {
    let mut visitor = Shape { limit, depth: 0, deepest: 0 };
    let _ = super::visit(parsed, &mut visitor);
    match visitor.deepest > limit {
        true => Err(SqlError::TooDeep { depth: visitor.deepest, limit }),
        false => Ok(()),
    }
}

struct Shape {
    limit: usize,
    depth: usize,
    deepest: usize,
}

impl Shape {
    fn enter(&mut self, levels: usize) -> bool {
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth + levels);
        self.depth + levels > self.limit
    }
}

impl VisitorMut for Shape {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        balance_unions(&mut query.body);
        let tables = query.with.as_ref().map_or(0, |with| with.cte_tables.len());
        if self.enter(set_spine(&query.body) + tables) {
            take_apart_sets(&mut query.body);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        // Each join is a level of the plan.
        let joins: usize = select.from.iter().map(|table| 1 + table.joins.len()).sum();
        self.enter(joins);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _select: &mut Select) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let operands = balance(expr);
        if self.enter(spine(expr).max(operands / OPERANDS_PER_LEVEL)) {
            take_apart(expr);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, _expr: &mut Expr) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

fn nothing() -> Expr {
    Expr::value(Value::Null)
}

/// Makes a chain of AND or of OR balanced; gives the number of its operands, 0 where it is none or short.
fn balance(expr: &mut Expr) -> usize {
    let Expr::BinaryOp { op: chained @ (BinaryOperator::And | BinaryOperator::Or), .. } = expr else { return 0 };
    let chained = chained.clone();
    if chain_length(expr, &chained) <= OPERANDS_MIN {
        return 0;
    }
    let mut operands = Vec::new();
    let mut rest = mem::replace(expr, nothing());
    loop {
        match rest {
            Expr::BinaryOp { left, op, right } if op == chained => {
                operands.push(*right);
                rest = *left;
            }
            first => {
                operands.push(first);
                break;
            }
        }
    }
    let count = operands.len();
    operands.reverse();
    *expr = in_halves(operands, &|left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: chained.clone(),
        right: Box::new(right),
    });
    count
}

/// Operands of a chain of one operator.
fn chain_length(expr: &Expr, chained: &BinaryOperator) -> usize {
    let (mut length, mut at) = (1, expr);
    while let Expr::BinaryOp { left, op, .. } = at
        && op == chained
    {
        length += 1;
        at = left;
    }
    length
}

/// Makes a chain of UNION ALL balanced.
fn balance_unions(body: &mut SetExpr) {
    let is_union = |op, quantifier| op == SetOperator::Union && quantifier == SetQuantifier::All;
    let (mut length, mut at) = (1, &*body);
    while let SetExpr::SetOperation { left, op, set_quantifier, .. } = at
        && is_union(*op, *set_quantifier)
    {
        length += 1;
        at = left;
    }
    if length <= OPERANDS_MIN {
        return;
    }
    let mut operands = Vec::new();
    let mut rest = mem::replace(body, no_rows());
    loop {
        match rest {
            SetExpr::SetOperation { left, op, set_quantifier, right } if is_union(op, set_quantifier) => {
                operands.push(*right);
                rest = *left;
            }
            first => {
                operands.push(first);
                break;
            }
        }
    }
    operands.reverse();
    *body = in_halves(operands, &|left, right| SetExpr::SetOperation {
        left: Box::new(left),
        op: SetOperator::Union,
        set_quantifier: SetQuantifier::All,
        right: Box::new(right),
    });
}

/// A balanced tree over operands in their order; there is at least one.
pub(super) fn in_halves<T>(mut operands: Vec<T>, join: &impl Fn(T, T) -> T) -> T {
    if operands.len() == 1 {
        return operands.remove(0);
    }
    let right = operands.split_off(operands.len() / 2);
    join(in_halves(operands, join), in_halves(right, join))
}

/// The operand that a chain grows from.
fn first_operand(expr: &mut Expr) -> Option<&mut Expr> {
    match expr {
        Expr::BinaryOp { left, .. }
        | Expr::IsDistinctFrom(left, _)
        | Expr::IsNotDistinctFrom(left, _)
        | Expr::AnyOp { left, .. }
        | Expr::AllOp { left, .. } => Some(left),
        Expr::IsNull(expr)
        | Expr::IsNotNull(expr)
        | Expr::IsTrue(expr)
        | Expr::IsNotTrue(expr)
        | Expr::IsFalse(expr)
        | Expr::IsNotFalse(expr)
        | Expr::IsUnknown(expr)
        | Expr::IsNotUnknown(expr)
        | Expr::IsNormalized { expr, .. }
        | Expr::Cast { expr, .. }
        | Expr::UnaryOp { expr, .. }
        | Expr::Nested(expr)
        | Expr::InList { expr, .. }
        | Expr::InSubquery { expr, .. }
        | Expr::InUnnest { expr, .. }
        | Expr::Between { expr, .. }
        | Expr::Collate { expr, .. }
        | Expr::AtTimeZone { timestamp: expr, .. }
        | Expr::Like { expr, .. }
        | Expr::ILike { expr, .. }
        | Expr::SimilarTo { expr, .. }
        | Expr::RLike { expr, .. } => Some(expr),
        Expr::MemberOf(member) => Some(&mut member.value),
        Expr::OuterJoin(expr) => Some(expr),
        _ => None,
    }
}

/// Levels between an expression and the operand that its chain begins with.
fn spine(expr: &mut Expr) -> usize {
    let (mut levels, mut at) = (0, expr);
    while let Some(first) = first_operand(at) {
        levels += 1;
        at = first;
    }
    levels
}

/// Takes a chain apart from its outermost level.
fn take_apart(expr: &mut Expr) {
    let mut rest = mem::replace(expr, nothing());
    while let Some(first) = first_operand(&mut rest) {
        rest = mem::replace(first, nothing());
    }
}

fn no_rows() -> SetExpr {
    SetExpr::Values(Values { explicit_row: false, value_keyword: false, rows: Vec::new() })
}

fn set_spine(body: &SetExpr) -> usize {
    let (mut levels, mut at) = (0, body);
    while let SetExpr::SetOperation { left, .. } = at {
        levels += 1;
        at = left;
    }
    levels
}

fn take_apart_sets(body: &mut SetExpr) {
    let mut rest = mem::replace(body, no_rows());
    while let SetExpr::SetOperation { left, .. } = rest {
        rest = *left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(sql: &str) -> ParsedStatement {
        datafusion::sql::parser::DFParser::parse_sql(sql).unwrap().pop_front().unwrap()
    }

    #[test]
    fn chains_become_balanced_and_keep_their_order() {
        let names: Vec<String> = (0..200).map(|n| format!("c{n}")).collect();
        let text = format!("SELECT {} FROM t", names.join(" AND "));
        let mut statement = parsed(&text);
        settle(&mut statement, 60).unwrap();
        assert_eq!(statement.to_string(), text);
        let chain = vec!["x"; 5_000].join(" OR ");
        settle(&mut parsed(&format!("SELECT {chain}")), 600).unwrap();
    }

    #[test]
    fn what_is_too_deep_is_refused_without_recursion() {
        for deep in [
            format!("SELECT {}", vec!["1"; 200_000].join(" + ")),
            format!("SELECT x{}", "::int".repeat(50_000)),
            format!("SELECT true{}", " IS TRUE".repeat(1_000_000)),
            format!("SELECT x{}", " IS NOT UNKNOWN".repeat(50_000)),
            format!("SELECT x{}", " IS NORMALIZED".repeat(50_000)),
            format!("SELECT x{}", " SIMILAR TO 'a'".repeat(50_000)),
            format!("SELECT x{}", " RLIKE 'a'".repeat(50_000)),
            format!("SELECT x{}", " = ANY (y)".repeat(50_000)),
            format!("SELECT x{}", " <> ALL (y)".repeat(50_000)),
            format!("SELECT x{}", " IN (SELECT 1)".repeat(50_000)),
            format!("SELECT x{}", " IN UNNEST (y)".repeat(50_000)),
            format!("SELECT x{}", " MEMBER OF (y)".repeat(50_000)),
            vec!["SELECT 1"; 20_000].join(" UNION "),
            format!("SELECT {}", vec!["x"; 100_000].join(" AND ")),
        ] {
            let mut statement = parsed(&deep);
            assert!(matches!(settle(&mut statement, 300), Err(SqlError::TooDeep { limit: 300, .. })));
            // Chains of one operator are taken apart, balanced ones are flat.
            drop(statement);
        }
        settle(&mut parsed(&vec!["SELECT 1"; 2_000].join(" UNION ALL ")), 300).unwrap();
    }
}
