//! The input of an aggregation as scans, equi-joins, filters and aggregations below it.
//!
//! Projections, aliases and filters dissolve: every expression is rewritten over *base columns*, which name a scan by
//! number (`#2.p_brand1`). Inner joins of one [`Core`] may be taken in any order; an outer, semi or anti join hangs a
//! core of its own on the one it preserves.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, NullEquality, ScalarValue, TableReference, plan_datafusion_err};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Case, Expr, ExprSchemable, Join, LogicalPlan, Operator};
use warpcube_engine::JoinKind;

use super::Reason;
use super::aggregate::Grouped;
use super::tables::{TableFacts, TableInfo};

/// Rows that a pipeline scans.
#[derive(Debug)]
pub(crate) enum Relation {
    /// Those of a table.
    Table(Arc<TableInfo>),
    /// The groups of an aggregation below.
    Groups(Box<Grouped>),
}

impl Relation {
    /// Rows, as far as they are known; of groups a guess.
    pub(crate) fn rows(&self) -> u64 {
        match self {
            Relation::Table(table) => table.rows.unwrap_or(0),
            Relation::Groups(grouped) => {
                grouped.inputs.iter().map(|input| input.graph.rows_max()).sum::<u64>() / ROWS_PER_GROUP
            }
        }
    }
}

/// Relations joined by inner joins, with what hangs on them.
#[derive(Debug, Default)]
pub(crate) struct Core {
    /// Relations by number.
    pub(crate) members: Vec<usize>,
    /// Equalities between a member and one or several others.
    pub(crate) edges: Vec<(Expr, Expr)>,
    /// Other conditions.
    pub(crate) filters: Vec<Expr>,
    /// Outer, semi and anti joins.
    pub(crate) hanging: Vec<Hanging>,
}

/// A join that keeps the rows of the core it hangs on.
#[derive(Debug)]
pub(crate) struct Hanging {
    /// Left, semi or anti.
    pub(crate) kind: JoinKind,
    /// Equalities: an expression of the core it hangs on, one of its own.
    pub(crate) on: Vec<(Expr, Expr)>,
    /// Its own relations.
    pub(crate) core: Core,
    /// For semi and anti joins: what must differ as well, an expression of the core it hangs on and one of its own.
    pub(crate) differ: Option<(Expr, Expr)>,
    /// Another condition over both sides: a row of its own for which it is not true is no match.
    pub(crate) residual: Option<Expr>,
}

/// Rows a group that are taken for the size of groups of which nothing is known.
const ROWS_PER_GROUP: u64 = 2;

/// All relations of an aggregation's input.
#[derive(Debug)]
pub(crate) struct Graph {
    /// Tables and groups; a base column's qualifier is a position here.
    pub(crate) relations: Vec<Relation>,
    /// Types of all base columns.
    pub(crate) schema: DFSchema,
    /// The session's settings.
    pub(crate) options: Arc<ConfigOptions>,
}

impl Graph {
    /// A graph of no relations.
    pub(crate) fn new(options: Arc<ConfigOptions>) -> Graph {
        Graph { relations: Vec::new(), schema: DFSchema::empty(), options }
    }

    /// Rows of the largest relation.
    pub(super) fn rows_max(&self) -> u64 {
        self.relations.iter().map(Relation::rows).max().unwrap_or(0)
    }

    /// Adds a relation with these columns; the result is its number.
    pub(super) fn add(&mut self, relation: Relation, schema: &Schema, core: &mut Core) -> Result<usize, Reason> {
        let number = self.relations.len();
        let qualified = DFSchema::try_from_qualified_schema(qualifier(number), schema).map_err(text)?;
        self.schema = self.schema.join(&qualified).map_err(text)?;
        self.relations.push(relation);
        core.members.push(number);
        Ok(number)
    }

    /// Adds the relations of `plan` to `core`; the result has an expression over base columns for each column of the
    /// plan.
    pub(crate) fn flatten(
        &mut self,
        plan: &LogicalPlan,
        facts: &TableFacts,
        core: &mut Core,
    ) -> Result<Vec<Expr>, Reason> {
        match plan {
            LogicalPlan::TableScan(scan) => {
                if scan.fetch.is_some() {
                    return Err("a scan with a limit".into());
                }
                let table = facts.get(&scan.source).ok_or("a table that only its planner knows")?;
                let schema = table.provider.schema();
                let relation = self.add(Relation::Table(table.clone()), &schema, core)?;
                let column = |index: usize| base_column(relation, schema.field(index).name());
                let all: Vec<Expr> = (0..schema.fields().len()).map(column).collect();
                for filter in scan.filters.iter().flat_map(split_conjunction) {
                    let rewritten = rewrite_by_name(filter, relation)?;
                    core.filters.push(rewritten);
                }
                Ok(match &scan.projection {
                    Some(projection) => projection.iter().map(|index| all[*index].clone()).collect(),
                    None => all,
                })
            }
            LogicalPlan::Projection(projection) => {
                let inputs = self.flatten(&projection.input, facts, core)?;
                let schema = projection.input.schema();
                projection.expr.iter().map(|expr| rewrite(expr, schema, &inputs)).collect()
            }
            LogicalPlan::Filter(filter) => {
                let inputs = self.flatten(&filter.input, facts, core)?;
                for part in split_conjunction(&filter.predicate) {
                    let part = rewrite(part, filter.input.schema(), &inputs)?;
                    // What was pushed into a scan as a hint stands here again.
                    if !core.filters.contains(&part) {
                        core.filters.push(part);
                    }
                }
                Ok(inputs)
            }
            LogicalPlan::SubqueryAlias(alias) => self.flatten(&alias.input, facts, core),
            LogicalPlan::Aggregate(aggregate) if !facts.apart => {
                let grouped = Grouped::of(aggregate, facts)?;
                if grouped.group_count() == 0 || grouped.has_exact_sums() {
                    return Err("its input has an aggregation that is not scanned".into());
                }
                let fields = grouped.types.iter().enumerate().zip(aggregate.schema.fields());
                let field = |((position, data_type), field): ((usize, &DataType), &FieldRef)| {
                    Field::new(output_name(position), data_type.clone(), field.is_nullable())
                };
                let schema = Schema::new(fields.map(field).collect::<Vec<_>>());
                let relation = self.add(Relation::Groups(Box::new(grouped)), &schema, core)?;
                let column = |position: usize| base_column(relation, &output_name(position));
                Ok((0..schema.fields().len()).map(column).collect())
            }
            LogicalPlan::Join(join) => self.join(join, facts, core),
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => self.flatten(&sort.input, facts, core),
            other => Err(format!("its input has a {}", kind_of(other))),
        }
    }

    fn join(&mut self, join: &Join, facts: &TableFacts, core: &mut Core) -> Result<Vec<Expr>, Reason> {
        if join.null_aware {
            return self.not_in(join, facts, core);
        }
        let (kind, flipped) = match join.join_type {
            JoinType::Inner => return self.inner_join(join, facts, core),
            JoinType::Left => (JoinKind::Left, false),
            JoinType::LeftSemi => (JoinKind::Semi, false),
            JoinType::LeftAnti => (JoinKind::Anti, false),
            JoinType::Right => (JoinKind::Left, true),
            JoinType::RightSemi => (JoinKind::Semi, true),
            JoinType::RightAnti => (JoinKind::Anti, true),
            other => return Err(format!("a {other} join")),
        };
        let (kept, hung) = if flipped { (&join.right, &join.left) } else { (&join.left, &join.right) };
        let kept_columns = self.flatten(kept, facts, core)?;
        let first_own = self.relations.len();
        let mut own = Core::default();
        let mut own_columns = self.flatten(hung, facts, &mut own)?;
        let mut on = Vec::with_capacity(join.on.len());
        for equality in &join.on {
            let (left, right) = equality;
            let (of_kept, of_hung) = if flipped { (right, left) } else { (left, right) };
            let pair =
                (rewrite(of_kept, kept.schema(), &kept_columns)?, rewrite(of_hung, hung.schema(), &own_columns)?);
            on.extend(self.equality(pair, join, equality)?);
        }
        if kind == JoinKind::Left {
            // What the inner side computes is NULL where nothing matches, whatever it makes of NULLs.
            let matched = on.iter().find(|(_, of_hung)| is_strict(of_hung)).map(|(_, key)| key.clone().is_not_null());
            for column in own_columns.iter_mut().filter(|column| !matches!(column, Expr::Column(_))) {
                let matched = matched.clone().ok_or("an outer join whose inner side computes its key and columns")?;
                *column = when(matched, column.clone());
            }
        }
        let (mut guard, mut differ, mut residual) = (None::<Expr>, None, None::<Expr>);
        for part in join.filter.iter().flat_map(split_conjunction) {
            let part = rewrite_over(part, [(kept.schema(), &kept_columns[..]), (hung.schema(), &own_columns[..])])?;
            let read = relations(&part);
            let of_own = read.iter().filter(|relation| **relation >= first_own).count();
            match kind {
                // Rows of the inner side for which it is not true match nothing.
                _ if of_own > 0 && of_own == read.len() => own.filters.push(part),
                JoinKind::Semi if of_own == 0 => core.filters.push(part),
                _ if of_own == 0 => guard = Some(all(guard, part)),
                JoinKind::Left => residual = Some(all(residual, part)),
                _ => match self.unlike(&part, first_own).filter(|_| differ.is_none()) {
                    Some(pair) => differ = Some(pair),
                    None => residual = Some(all(residual, part)),
                },
            }
        }
        // A row for which the condition on its own side is not true matches nothing, as a NULL key does not.
        if let (Some(guard), Some((of_kept, _))) = (guard, on.first_mut()) {
            *of_kept = when(guard, of_kept.clone());
        }
        if residual.is_some()
            && let Some((kept, own)) = differ.take()
        {
            residual = Some(all(residual, kept.not_eq(own)));
        }
        core.hanging.push(Hanging { kind, on, core: own, differ, residual });
        Ok(match (kind, flipped) {
            (JoinKind::Left, false) => kept_columns.into_iter().chain(own_columns).collect(),
            (JoinKind::Left, true) => own_columns.into_iter().chain(kept_columns).collect(),
            _ => kept_columns,
        })
    }

    /// The sides of an inequality `kept <> own` of one type whose extremes tell whether any value differs.
    fn unlike(&self, part: &Expr, first_own: usize) -> Option<(Expr, Expr)> {
        let Expr::BinaryExpr(BinaryExpr { left, op: Operator::NotEq, right }) = part else { return None };
        let is_own = |expr: &Expr| relations(expr).iter().all(|relation| *relation >= first_own);
        let is_kept = |expr: &Expr| relations(expr).iter().all(|relation| *relation < first_own);
        let (kept, own) = match (is_own(left) && is_kept(right), is_own(right) && is_kept(left)) {
            (true, _) => (right, left),
            (_, true) => (left, right),
            _ => return None,
        };
        let data_type = own.get_type(&self.schema).ok()?;
        let same = kept.get_type(&self.schema).ok()? == data_type;
        (same && !data_type.is_floating()).then(|| (kept.as_ref().clone(), own.as_ref().clone()))
    }

    /// `x NOT IN (SELECT y …)` as anti joins: with rows that match, for all rows with any NULL among `y`, and for rows
    /// whose `x` is NULL with any row at all.
    fn not_in(&mut self, join: &Join, facts: &TableFacts, core: &mut Core) -> Result<Vec<Expr>, Reason> {
        let ([(x, y)], None, JoinType::LeftAnti) = (join.on.as_slice(), &join.filter, join.join_type) else {
            return Err("a correlated NOT IN over a column that may be NULL".into());
        };
        let kept_columns = self.flatten(&join.left, facts, core)?;
        let y_may_be_null = y.nullable(join.right.schema().as_ref()).map_err(text)?;
        let x_may_be_null = x.nullable(join.left.schema().as_ref()).map_err(text)?;
        let x = rewrite(x, join.left.schema(), &kept_columns)?;
        let mut anti = |graph: &mut Graph, pair: &dyn Fn(Expr) -> (Expr, Expr)| {
            let mut own = Core::default();
            let own_columns = graph.flatten(&join.right, facts, &mut own)?;
            let y = rewrite(y, join.right.schema(), &own_columns)?;
            let (on, kind) = (vec![pair(y)], JoinKind::Anti);
            core.hanging.push(Hanging { kind, on, core: own, differ: None, residual: None });
            Ok::<_, Reason>(())
        };
        let one = || Expr::Literal(ScalarValue::Int64(Some(1)), None);
        anti(self, &|y| (x.clone(), y))?;
        if y_may_be_null {
            anti(self, &|y| (one(), when(y.is_null(), one())))?;
        }
        if x_may_be_null {
            anti(self, &|y| (when(x.clone().is_null(), one()), when(y.clone().is_null().or(y.is_not_null()), one())))?;
        }
        Ok(kept_columns)
    }

    /// An equality of a join over base columns; where NULL equals NULL, as equalities of values that never are NULL.
    fn equality(
        &self,
        pair: (Expr, Expr),
        join: &Join,
        (left, right): &(Expr, Expr),
    ) -> Result<Vec<(Expr, Expr)>, Reason> {
        let nullable = |expr: &Expr, plan: &LogicalPlan| expr.nullable(plan.schema().as_ref()).map_err(text);
        let nothing = join.null_equality == NullEquality::NullEqualsNothing;
        if nothing || !(nullable(left, &join.left)? && nullable(right, &join.right)?) {
            return Ok(vec![pair]);
        }
        let value = |expr: Expr| {
            let data_type = expr.get_type(&self.schema).map_err(text)?;
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

    fn inner_join(&mut self, join: &Join, facts: &TableFacts, core: &mut Core) -> Result<Vec<Expr>, Reason> {
        let left = self.flatten(&join.left, facts, core)?;
        let right = self.flatten(&join.right, facts, core)?;
        for pair in &join.on {
            let one = rewrite(&pair.0, join.left.schema(), &left)?;
            let other = rewrite(&pair.1, join.right.schema(), &right)?;
            for (one, other) in self.equality((one, other), join, pair)? {
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

/// Whether an expression of columns is NULL where those are.
fn is_strict(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) => true,
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

impl Hanging {
    /// The relations of the core it hangs on that it reads.
    pub(crate) fn kept(&self) -> BTreeSet<usize> {
        let mut own = BTreeSet::new();
        self.core.all_members(&mut |relation| _ = own.insert(relation));
        let both = self.residual.iter().flat_map(relations).filter(|relation| !own.contains(relation));
        self.on.iter().chain(&self.differ).flat_map(|(kept, _)| relations(kept)).chain(both).collect()
    }
}

impl Core {
    /// An equality: an edge if one side is of one relation and the other of different ones, a filter otherwise.
    fn equal(&mut self, left: Expr, right: Expr) {
        let (one, other) = (relations(&left), relations(&right));
        let ties = (one.len() == 1 && !other.is_empty()) || (other.len() == 1 && !one.is_empty());
        if ties && one.is_disjoint(&other) {
            self.edges.push((left, right));
        } else {
            self.filters.push(left.eq(right));
        }
    }
}

/// The base column that an output of an aggregation is.
pub(crate) fn output_name(position: usize) -> String {
    format!("output {position}")
}

/// The output of an aggregation that a base column is.
pub(crate) fn output_of(column: &Column) -> Option<usize> {
    column.name.strip_prefix("output ")?.parse().ok()
}

fn qualifier(relation: usize) -> TableReference {
    TableReference::bare(format!("#{relation}"))
}

/// A base column.
pub(crate) fn base_column(relation: usize, name: &str) -> Expr {
    Expr::Column(Column::new(Some(qualifier(relation)), name))
}

/// The relation of a base column.
pub(crate) fn relation_of(column: &Column) -> Option<usize> {
    column.relation.as_ref()?.table().strip_prefix('#')?.parse().ok()
}

/// An expression with the base columns of one relation as those of another.
pub(crate) fn renumber(expr: &Expr, from: usize, to: usize) -> Expr {
    let renumbered = expr.clone().transform(|expr| match &expr {
        Expr::Column(column) if relation_of(column) == Some(from) => {
            Ok(Transformed::yes(base_column(to, &column.name)))
        }
        _ => Ok(Transformed::no(expr)),
    });
    renumbered.expect("columns take the place of columns").data
}

/// The base columns an expression reads.
pub(crate) fn columns(expr: &Expr) -> Vec<Column> {
    let mut columns: Vec<Column> = expr.column_refs().into_iter().cloned().collect();
    columns.sort();
    columns
}

/// The relations an expression reads.
pub(crate) fn relations(expr: &Expr) -> BTreeSet<usize> {
    expr.column_refs().into_iter().filter_map(relation_of).collect()
}

/// An expression over a plan's columns as one over base columns.
pub(crate) fn rewrite(expr: &Expr, schema: &DFSchema, columns: &[Expr]) -> Result<Expr, Reason> {
    rewrite_over(expr, [(schema, columns)])
}

/// An expression over the columns of several plans as one over base columns.
fn rewrite_over<'a, const PLANS: usize>(
    expr: &Expr,
    plans: [(&'a DFSchema, &'a [Expr]); PLANS],
) -> Result<Expr, Reason> {
    let rewritten = expr
        .clone()
        .unalias_nested()
        .data
        .transform(|expr| match &expr {
            Expr::Column(column) => {
                let found = plans.iter().find_map(|(schema, columns)| {
                    schema.maybe_index_of_column(column).map(|index| columns[index].clone())
                });
                let base = found.ok_or_else(|| plan_datafusion_err!("no column '{column}'"))?;
                Ok(Transformed::new(base, true, TreeNodeRecursion::Jump))
            }
            _ => Ok(Transformed::no(expr)),
        })
        .map_err(text)?;
    Ok(rewritten.data)
}

/// A filter of a scan, whose columns are named without regard to the projection.
fn rewrite_by_name(expr: &Expr, relation: usize) -> Result<Expr, Reason> {
    let rewritten = expr
        .clone()
        .unalias_nested()
        .data
        .transform(|expr| match &expr {
            Expr::Column(column) => {
                let base = base_column(relation, &column.name);
                Ok(Transformed::new(base, true, TreeNodeRecursion::Jump))
            }
            _ => Ok(Transformed::no(expr)),
        })
        .map_err(text)?;
    Ok(rewritten.data)
}

fn text(error: datafusion::error::DataFusionError) -> Reason {
    error.strip_backtrace()
}

fn kind_of(plan: &LogicalPlan) -> String {
    let line = plan.display().to_string();
    let end = line.find([':', ' ', '(']).unwrap_or(line.len());
    line[..end].to_string()
}

/// A plan in a few words: what is done over which tables.
pub(crate) fn describe(plan: &LogicalPlan, what: &str) -> String {
    match tables(plan) {
        tables if tables.is_empty() => what.to_string(),
        tables => format!("{what} over {tables}"),
    }
}

/// The tables of a plan: those of joins and of unions.
fn tables(plan: &LogicalPlan) -> String {
    if let LogicalPlan::TableScan(scan) = plan {
        return scan.table_name.table().to_string();
    }
    let inputs: Vec<&LogicalPlan> = plan.inputs();
    let is_union = matches!(plan, LogicalPlan::Union(_));
    let of_input = |input: &&LogicalPlan| match tables(input) {
        tables if !is_union && inputs.len() > 1 && tables.contains(" ∪ ") => format!("({tables})"),
        tables => tables,
    };
    let named: Vec<String> = inputs.iter().map(of_input).filter(|tables| !tables.is_empty()).collect();
    named.join(if is_union { " ∪ " } else { " ⋈ " })
}
