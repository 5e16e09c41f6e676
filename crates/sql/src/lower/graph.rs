//! The input of an aggregation as scans, equi-joins and filters.
//!
//! Projections, aliases and filters dissolve: every expression is rewritten over *base columns*, which name a scan by
//! number (`#2.p_brand1`). Inner joins of one [`Core`] may be taken in any order; an outer, semi or anti join hangs a
//! core of its own on the one it preserves.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, NullEquality, TableReference};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Join, LogicalPlan, Operator};
use warpcube_engine::JoinKind;

use super::Reason;
use super::tables::{TableFacts, TableInfo};

/// A scan.
#[derive(Debug)]
pub(crate) struct Relation {
    /// The table.
    pub(crate) table: Arc<TableInfo>,
}

/// Relations joined by inner joins, with what hangs on them.
#[derive(Debug, Default)]
pub(crate) struct Core {
    /// Relations by number.
    pub(crate) members: Vec<usize>,
    /// Equalities between members.
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
}

/// All relations of an aggregation's input.
#[derive(Debug)]
pub(crate) struct Graph {
    /// Scans; a base column's qualifier is a position here.
    pub(crate) relations: Vec<Relation>,
    /// Types of all base columns.
    pub(crate) schema: DFSchema,
}

impl Graph {
    /// A graph of no relations.
    pub(crate) fn new() -> Graph {
        Graph { relations: Vec::new(), schema: DFSchema::empty() }
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
                let relation = self.relations.len();
                let schema = table.provider.schema();
                let qualified = DFSchema::try_from_qualified_schema(qualifier(relation), &schema).map_err(text)?;
                self.schema = self.schema.join(&qualified).map_err(text)?;
                self.relations.push(Relation { table: table.clone() });
                core.members.push(relation);
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
            LogicalPlan::Join(join) => self.join(join, facts, core),
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => self.flatten(&sort.input, facts, core),
            other => Err(format!("its input has a {}", kind_of(other))),
        }
    }

    fn join(&mut self, join: &Join, facts: &TableFacts, core: &mut Core) -> Result<Vec<Expr>, Reason> {
        if join.null_equality != NullEquality::NullEqualsNothing {
            return Err("a join in which NULL equals NULL".into());
        }
        if join.null_aware {
            return Err("a NOT IN over a column that may be NULL".into());
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
        if join.filter.is_some() {
            return Err(format!("a {} join with a further condition", join.join_type));
        }
        let (kept, hung) = if flipped { (&join.right, &join.left) } else { (&join.left, &join.right) };
        let kept_columns = self.flatten(kept, facts, core)?;
        let mut own = Core::default();
        let own_columns = self.flatten(hung, facts, &mut own)?;
        let mut on = Vec::with_capacity(join.on.len());
        for (left, right) in &join.on {
            let (of_kept, of_hung) = if flipped { (right, left) } else { (left, right) };
            let pair =
                (rewrite(of_kept, kept.schema(), &kept_columns)?, rewrite(of_hung, hung.schema(), &own_columns)?);
            on.push(pair);
        }
        core.hanging.push(Hanging { kind, on, core: own });
        Ok(match (kind, flipped) {
            (JoinKind::Left, false) => kept_columns.into_iter().chain(own_columns).collect(),
            (JoinKind::Left, true) => own_columns.into_iter().chain(kept_columns).collect(),
            _ => kept_columns,
        })
    }

    fn inner_join(&mut self, join: &Join, facts: &TableFacts, core: &mut Core) -> Result<Vec<Expr>, Reason> {
        let left = self.flatten(&join.left, facts, core)?;
        let right = self.flatten(&join.right, facts, core)?;
        for (one, other) in &join.on {
            let one = rewrite(one, join.left.schema(), &left)?;
            let other = rewrite(other, join.right.schema(), &right)?;
            core.equal(one, other);
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

impl Core {
    /// An equality: an edge if each side is of one relation and these differ, a filter otherwise.
    fn equal(&mut self, left: Expr, right: Expr) {
        let (one, other) = (relations(&left), relations(&right));
        if one.len() == 1 && other.len() == 1 && one != other {
            self.edges.push((left, right));
        } else {
            self.filters.push(left.eq(right));
        }
    }
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
    let rewritten = expr
        .clone()
        .unalias_nested()
        .data
        .transform(|expr| match &expr {
            Expr::Column(column) => {
                let index = schema.index_of_column(column)?;
                Ok(Transformed::new(columns[index].clone(), true, TreeNodeRecursion::Jump))
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
    let mut tables: Vec<String> = Vec::new();
    let _ = plan.apply(|plan| {
        if let LogicalPlan::TableScan(scan) = plan {
            tables.push(scan.table_name.table().to_string());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    match tables.is_empty() {
        true => what.to_string(),
        false => format!("{what} over {}", tables.join(" ⋈ ")),
    }
}
