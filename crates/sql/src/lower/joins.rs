//! Joins of a graph: inner ones put their relations into one core, all others hang a core of their own on the one that
//! they preserve.

use datafusion::common::{JoinType, NullEquality, ScalarValue};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Case, Expr, ExprSchemable, Join, LogicalPlan, Operator};
use warpcube_engine::JoinKind;

use super::columns::{BaseColumn, RelationId, data_type, no_names, relations, rewrite, rewrite_over, text};
use super::flatten::lets_one_row_pass;
use super::graph::{Compared, Core, Graph, Hanging, Relation, mark_column};
use super::tables::TableFacts;
use super::{Reason, unions};
use crate::mend::cast_functions::CastFunction;
use crate::words::sql_name;

/// The sides of a join that keeps the rows of one of them.
struct Sides<'p> {
    kind: JoinKind,
    /// The side whose rows are kept, and the expressions of its columns.
    kept: &'p LogicalPlan,
    kept_columns: Vec<Expr>,
    /// The other side, and the expressions of its columns.
    hung: &'p LogicalPlan,
    own_columns: Vec<Expr>,
    /// The first relation of the other side.
    first_own: RelationId,
}

impl Graph {
    /// Adds a join to `core`; the result has an expression for each of its columns.
    pub(super) fn join(&mut self, join: &Join, facts: &TableFacts, core: &mut Core) -> Result<Vec<Expr>, Reason> {
        if join.null_aware {
            return self.not_in(join, facts, core);
        }
        let (kind, flipped) = match join.join_type {
            JoinType::Inner if has_limit(&join.right) => (JoinKind::Inner, false),
            JoinType::Inner if has_limit(&join.left) => (JoinKind::Inner, true),
            JoinType::Inner => return self.inner_join(join, facts, core),
            JoinType::Left => (JoinKind::Left, false),
            JoinType::LeftSemi => (JoinKind::Semi, false),
            JoinType::LeftAnti => (JoinKind::Anti, false),
            JoinType::LeftMark => (JoinKind::Mark, false),
            JoinType::Right => (JoinKind::Left, true),
            JoinType::RightSemi => (JoinKind::Semi, true),
            JoinType::RightAnti => (JoinKind::Anti, true),
            JoinType::RightMark => (JoinKind::Mark, true),
            other => return Err(format!("a {other} join")),
        };
        let (kept, hung) = if flipped { (&join.right, &join.left) } else { (&join.left, &join.right) };
        let distinct;
        let hung = match kind {
            JoinKind::Inner | JoinKind::Left => hung,
            _ => {
                distinct = unions::without_union(hung)?;
                &distinct
            }
        };
        let kept_columns = self.flatten(kept, facts, core)?;
        core.without_limit("a join")?;
        let first_own = self.next();
        let mut own = Core::default();
        let own_columns = self.flatten(hung, facts, &mut own)?;
        let mut sides = Sides { kind, kept, kept_columns, hung, own_columns, first_own };
        let mut on = Vec::with_capacity(join.on.len());
        for of_join in &join.on {
            let (left, right) = of_join;
            let (of_kept, of_hung) = if flipped { (right, left) } else { (left, right) };
            let pair = (
                rewrite(of_kept, sides.kept.schema(), &sides.kept_columns)?,
                rewrite(of_hung, sides.hung.schema(), &sides.own_columns)?,
            );
            on.extend(equality(pair, join, of_join)?);
        }
        if kind == JoinKind::Left {
            Graph::null_without_match(&mut sides, &on, join)?;
        }
        if on.is_empty() {
            // All rows have one key.
            on.push((one(), one()));
        }
        let hanging = self.hang(&sides, (core, own), on, join)?;
        let mark = hanging.mark;
        core.hanging.push(hanging);
        let Sides { kept_columns, own_columns, .. } = sides;
        Ok(match kind {
            JoinKind::Inner | JoinKind::Left if flipped => own_columns.into_iter().chain(kept_columns).collect(),
            JoinKind::Inner | JoinKind::Left => kept_columns.into_iter().chain(own_columns).collect(),
            _ => kept_columns.into_iter().chain(mark.map(mark_column)).collect(),
        })
    }

    /// What the inner side of an outer join computes is NULL where nothing matches, whatever it makes of NULLs.
    fn null_without_match(sides: &mut Sides, on: &[(Expr, Expr)], join: &Join) -> Result<(), Reason> {
        let is_computed = |column: &Expr| BaseColumn::of(column).is_none();
        if !sides.own_columns.iter().any(is_computed) {
            return Ok(());
        }
        let is_own = |expr: &&Expr| {
            let read = relations(expr);
            is_strict(expr) && !read.is_empty() && read.iter().all(|relation| *relation >= sides.first_own)
        };
        // No row matches for which one of these is NULL.
        let mut strict: Option<Expr> = on.iter().map(|(_, key)| key).find(is_own).cloned();
        for part in join.filter.iter().flat_map(split_conjunction) {
            let Expr::BinaryExpr(BinaryExpr { left, op, right }) = sides.over_both(part)? else { continue };
            let is_comparison = matches!(
                op,
                Operator::Eq | Operator::NotEq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq
            );
            let of_own = [left.as_ref(), right.as_ref()].into_iter().find(is_own);
            strict = strict.or_else(|| of_own.filter(|_| is_comparison).cloned());
        }
        let certain = |column: &&Expr| !is_computed(column) && column.nullable(no_names()).is_ok_and(|null| !null);
        let strict = strict.or_else(|| sides.own_columns.iter().find(certain).cloned());
        let matched = strict.ok_or("an outer join whose inner side computes its key and columns")?.is_not_null();
        for column in sides.own_columns.iter_mut().filter(|column| is_computed(column)) {
            *column = when(matched.clone(), column.clone());
        }
        Ok(())
    }

    /// A join as what hangs on `core`, with the conditions beside its equalities `on`.
    fn hang(
        &mut self,
        sides: &Sides,
        (core, mut own): (&mut Core, Core),
        mut on: Vec<(Expr, Expr)>,
        join: &Join,
    ) -> Result<Hanging, Reason> {
        let (mut guard, mut compared, mut residual) = (None::<Expr>, None::<Compared>, None::<Expr>);
        // One row has no other extremes than its value, of any type and width.
        let is_unique = self.is_unique(&own, &on);
        for part in join.filter.iter().flat_map(split_conjunction) {
            if matches!(part, Expr::Literal(ScalarValue::Boolean(Some(true)), _)) {
                continue;
            }
            let part = sides.over_both(part)?;
            let read = relations(&part);
            let of_own = read.iter().filter(|relation| **relation >= sides.first_own).count();
            match sides.kind {
                // Rows of the inner side for which it is not true match nothing.
                _ if of_own > 0 && of_own == read.len() && own.limit.is_none() => own.filters.push(part),
                JoinKind::Semi if of_own == 0 => core.filters.push(part),
                JoinKind::Inner => core.filters.push(part),
                _ if of_own == 0 => guard = Some(all(guard, part)),
                JoinKind::Left => residual = Some(all(residual, part)),
                _ => match comparison(&part, sides.first_own).filter(|_| compared.is_none() && !is_unique) {
                    Some(pair) => compared = Some(pair),
                    None => residual = Some(all(residual, part)),
                },
            }
        }
        // A row for which the condition on its own side is not true matches nothing, as a NULL key does not.
        if let (Some(guard), Some((of_kept, _))) = (guard, on.first_mut()) {
            *of_kept = when(guard, of_kept.clone());
        }
        if residual.is_some()
            && let Some(Compared { kept, op, own }) = compared.take()
        {
            let part = Expr::BinaryExpr(BinaryExpr { left: Box::new(kept), op, right: Box::new(own) });
            residual = Some(all(residual, part));
        }
        let mark = if sides.kind == JoinKind::Mark { Some(self.add_mark()) } else { None };
        Ok(Hanging { kind: sides.kind, on, core: own, compared, residual, mark })
    }

    /// Whether the rows of a core have keys of their own: they are groups, by what is compared with these keys.
    fn is_unique(&self, core: &Core, on: &[(Expr, Expr)]) -> bool {
        let ([relation], true) = (&core.members[..], core.hanging.is_empty()) else { return false };
        let Relation::Groups(grouped) = self.relation(*relation) else { return false };
        let is_key = |position| {
            let is_it = |key: &Expr| BaseColumn::of(key).is_some_and(|column| column.id.position == position);
            on.iter().any(|(_, key)| is_it(key))
        };
        (0..grouped.group_count).all(is_key)
    }

    /// `x NOT IN (SELECT y …)` as anti joins: with rows that match, for all rows with any NULL among `y`, and for rows
    /// whose `x` is NULL with any row at all.
    fn not_in(&mut self, join: &Join, facts: &TableFacts, core: &mut Core) -> Result<Vec<Expr>, Reason> {
        let ([(x, y)], None, JoinType::LeftAnti) = (join.on.as_slice(), &join.filter, join.join_type) else {
            return Err("a correlated NOT IN over a column that may be NULL".into());
        };
        let kept_columns = self.flatten(&join.left, facts, core)?;
        core.without_limit("a join")?;
        let y_may_be_null = y.nullable(join.right.schema().as_ref()).map_err(text)?;
        let x_may_be_null = x.nullable(join.left.schema().as_ref()).map_err(text)?;
        let x = rewrite(x, join.left.schema(), &kept_columns)?;
        let right = unions::without_union(&join.right)?;
        let mut anti = |graph: &mut Graph, pair: &dyn Fn(Expr) -> (Expr, Expr)| {
            let mut own = Core::default();
            let own_columns = graph.flatten(&right, facts, &mut own)?;
            // Each of the joins would be with other rows.
            own.without_limit("NOT IN")?;
            let y = rewrite(y, right.schema(), &own_columns)?;
            let (on, kind) = (vec![pair(y)], JoinKind::Anti);
            core.hanging.push(Hanging { kind, on, core: own, compared: None, residual: None, mark: None });
            Ok::<_, Reason>(())
        };
        anti(self, &|y| (x.clone(), y))?;
        if y_may_be_null {
            anti(self, &|y| (one(), when(y.is_null(), one())))?;
        }
        if x_may_be_null {
            anti(self, &|y| (when(x.clone().is_null(), one()), when(y.clone().is_null().or(y.is_not_null()), one())))?;
        }
        Ok(kept_columns)
    }

    fn inner_join(&mut self, join: &Join, facts: &TableFacts, core: &mut Core) -> Result<Vec<Expr>, Reason> {
        let left = self.flatten(&join.left, facts, core)?;
        let right = self.flatten(&join.right, facts, core)?;
        core.without_limit("a join")?;
        for pair in &join.on {
            let one = rewrite(&pair.0, join.left.schema(), &left)?;
            let other = rewrite(&pair.1, join.right.schema(), &right)?;
            for (one, other) in equality((one, other), join, pair)? {
                core.equal(one, other);
            }
        }
        let both: Vec<Expr> = left.into_iter().chain(right).collect();
        for part in join.filter.iter().flat_map(split_conjunction) {
            match rewrite(part, &join.schema, &both)? {
                Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => core.equal(*left, *right),
                other => core.filters.push(other),
            }
        }
        Ok(both)
    }
}

impl Sides<'_> {
    /// A condition of the join over base columns.
    fn over_both(&self, part: &Expr) -> Result<Expr, Reason> {
        let plans = [(self.kept, &self.kept_columns), (self.hung, &self.own_columns)];
        rewrite_over(part, plans.map(|(plan, columns)| (plan.schema().as_ref(), &columns[..])))
    }
}

/// A comparison of the kept side with the other, of one type, that the extremes of the other's values decide.
fn comparison(part: &Expr, first_own: RelationId) -> Option<Compared> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = part else { return None };
    let is_own = |expr: &Expr| relations(expr).iter().all(|relation| *relation >= first_own);
    let is_kept = |expr: &Expr| relations(expr).iter().all(|relation| *relation < first_own);
    let is_order = matches!(op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq);
    if !is_order && *op != Operator::NotEq {
        return None;
    }
    let (kept, op, own) = match (is_own(left) && is_kept(right), is_own(right) && is_kept(left)) {
        (true, _) => (right, op.swap()?, left),
        (_, true) => (left, *op, right),
        _ => return None,
    };
    let (of_own, of_kept) = (data_type(own).ok()?, data_type(kept).ok()?);
    (of_own == of_kept && !of_own.is_floating()).then(|| Compared { kept: (**kept).clone(), op, own: (**own).clone() })
}

/// An equality of a join over base columns; where NULL equals NULL, as equalities of values that never are NULL.
fn equality(pair: (Expr, Expr), join: &Join, (left, right): &(Expr, Expr)) -> Result<Vec<(Expr, Expr)>, Reason> {
    let nullable = |expr: &Expr, plan: &LogicalPlan| expr.nullable(plan.schema().as_ref()).map_err(text);
    let nothing = join.null_equality == NullEquality::NullEqualsNothing;
    if nothing || !(nullable(left, &join.left)? && nullable(right, &join.right)?) {
        return Ok(vec![pair]);
    }
    let value = |expr: Expr| {
        let data_type = data_type(&expr)?;
        if data_type.is_nested() {
            return Err(format!("an equality of NULLs of type {}", sql_name(&data_type)));
        }
        let default = ScalarValue::new_default(&data_type).map_err(text)?;
        Ok::<_, Reason>(Expr::Case(Case {
            expr: None,
            when_then_expr: vec![(Box::new(expr.clone().is_not_null()), Box::new(expr))],
            else_expr: Some(Box::new(Expr::Literal(default, None))),
        }))
    };
    let (one, other) = pair;
    Ok(vec![(one.clone().is_null(), other.clone().is_null()), (value(one)?, value(other)?)])
}

/// Whether a plan gives the rows that a limit lets pass.
fn has_limit(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Limit(limit) => !lets_one_row_pass(limit),
        LogicalPlan::Projection(projection) => has_limit(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => has_limit(&alias.input),
        _ => false,
    }
}

/// Whether an expression of columns is NULL where those are.
fn is_strict(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(_) => {
            BaseColumn::of(expr).is_some() || CastFunction::as_double(expr).is_some_and(is_strict)
        }
        Expr::Cast(cast) => is_strict(&cast.expr),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Plus | Operator::Minus | Operator::Multiply, right }) => {
            is_strict(left) || is_strict(right)
        }
        _ => false,
    }
}

/// A conjunction with one part more.
fn all(parts: Option<Expr>, part: Expr) -> Expr {
    match parts {
        Some(parts) => parts.and(part),
        None => part,
    }
}

/// `CASE WHEN condition THEN value END`.
fn when(condition: Expr, value: Expr) -> Expr {
    Expr::Case(Case { expr: None, when_then_expr: vec![(Box::new(condition), Box::new(value))], else_expr: None })
}

/// The key of joins without an equality.
fn one() -> Expr {
    Expr::Literal(ScalarValue::Int64(Some(1)), None)
}
