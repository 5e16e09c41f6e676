//! The input of an aggregation as scans, equi-joins, filters and aggregations below it.
//!
//! Projections, aliases and filters dissolve: every expression is rewritten over *base columns*, which name a scan by
//! number (`#2.p_brand1`). Inner joins of one [`Core`] may be taken in any order; an outer, semi or anti join hangs a
//! core of its own on the one it preserves.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, TableReference, plan_datafusion_err};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, FetchType, Limit, LogicalPlan, Operator, SkipType};
use warpcube_engine::JoinKind;

use super::Reason;
use super::aggregate::Grouped;
use super::shared::InnerRows;
use super::tables::{TableFacts, TableInfo};
use crate::shared::SharedTable;
use crate::syntax::TableOfWith;
use crate::walk::Walk;

/// Rows that a pipeline scans.
#[derive(Debug)]
pub(crate) enum Relation {
    /// Those of a table.
    Table(Arc<TableInfo>),
    /// The groups of an aggregation below.
    Groups(Box<Grouped>),
    /// Rows that a pipeline of their own leaves: those of a shared table, or the first ones by an order.
    Inner(Box<InnerRows>),
    /// No rows: the one column of a mark join, which tells whether a row of the core that it hangs on has a match.
    Mark,
}

impl Relation {
    /// Rows, as far as they are known; of groups a guess.
    pub(crate) fn rows(&self) -> u64 {
        match self {
            Relation::Table(table) => table.rows.unwrap_or(0),
            Relation::Mark => 0,
            Relation::Inner(rows) => rows.rows(),
            Relation::Groups(grouped) if grouped.group_count() == 0 => 1,
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
    /// Outer, semi, anti and mark joins, and inner joins with what has a limit.
    pub(crate) hanging: Vec<Hanging>,
    /// Of the rows that all of this leaves, how many go on.
    pub(crate) limit: Option<RowLimit>,
}

/// A limit without an order: any rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowLimit {
    /// Rows that are left out first.
    pub(crate) skip: u64,
    /// Rows that go on.
    pub(crate) rows: u64,
}

/// A join that keeps the rows of the core it hangs on.
#[derive(Debug)]
pub(crate) struct Hanging {
    /// Left, semi, anti, mark or, if its core has a limit, inner.
    pub(crate) kind: JoinKind,
    /// Equalities: an expression of the core it hangs on, one of its own.
    pub(crate) on: Vec<(Expr, Expr)>,
    /// Its own relations.
    pub(crate) core: Core,
    /// For semi, anti and mark joins: a comparison that holds for a match as well.
    pub(crate) compared: Option<Compared>,
    /// Another condition over both sides: a row of its own for which it is not true is no match.
    pub(crate) residual: Option<Expr>,
    /// The relation that stands for the mark of a mark join.
    pub(crate) mark: Option<usize>,
}

/// A comparison of a row with rows of a join's inner side, which holds for one of them if it does for their smallest
/// or their largest value.
#[derive(Debug, Clone)]
pub(crate) struct Compared {
    /// An expression of the core that the join hangs on.
    pub(crate) kept: Expr,
    /// `<>`, `<`, `<=`, `>` or `>=`.
    pub(crate) op: Operator,
    /// An expression of the inner side, of the same type.
    pub(crate) own: Expr,
}

/// The column of a mark.
const MARK: &str = "mark";

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
    /// Whether a limit stands above what is flattened, of which scans have a hint.
    is_limited: bool,
}

impl Graph {
    /// A graph of no relations.
    pub(crate) fn new(options: Arc<ConfigOptions>) -> Graph {
        Graph { relations: Vec::new(), schema: DFSchema::empty(), options, is_limited: false }
    }

    /// Rows of the largest relation.
    pub(super) fn rows_max(&self) -> u64 {
        self.relations.iter().map(Relation::rows).max().unwrap_or(0)
    }

    /// Whether a limit stands above what is flattened.
    pub(super) fn is_limited(&self) -> bool {
        self.is_limited
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

    /// Adds the relation of a mark; the result is its number.
    pub(super) fn add_mark(&mut self) -> Result<usize, Reason> {
        let schema = Schema::new(vec![Field::new(MARK, DataType::Boolean, false)]);
        self.add(Relation::Mark, &schema, &mut Core::default())
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
                if scan.fetch.is_some() && !self.is_limited {
                    return Err("a scan with a limit".into());
                }
                if let Some(table) = SharedTable::of(scan) {
                    return self.shared(scan, &table, facts, core);
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
                core.without_limit("a filter")?;
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
            LogicalPlan::Sort(sort) => match sort.fetch {
                None => self.flatten(&sort.input, facts, core),
                Some(fetch) if facts.apart || fetch == 0 => Err("its input has first rows".into()),
                Some(fetch) => self.first_rows(sort, (fetch as u64, 0), facts, core),
            },
            LogicalPlan::Limit(limit) => self.limit(limit, facts, core),
            other => Err(format!("its input has a {}", kind_of(other))),
        }
    }

    fn limit(&mut self, limit: &Limit, facts: &TableFacts, core: &mut Core) -> Result<Vec<Expr>, Reason> {
        let (Ok(FetchType::Literal(fetch)), Ok(SkipType::Literal(skip))) =
            (limit.get_fetch_type(), limit.get_skip_type())
        else {
            return Err("its input has a limit that is computed".into());
        };
        let (skip, rows) = (skip as u64, fetch.map_or(u64::MAX, |rows| rows as u64));
        if let LogicalPlan::Sort(sort) = source_of(&limit.input) {
            // The rows of an order, not any.
            let (Some(fetch), true) = (sort.fetch, std::ptr::eq(source_of(&limit.input), limit.input.as_ref())) else {
                return Err("its input has a limit above an order".into());
            };
            let found = rows.saturating_add(skip).min(fetch as u64);
            if facts.apart || found <= skip {
                return Err("its input has first rows".into());
            }
            return self.first_rows(sort, (found, skip), facts, core);
        }
        if !core.members.is_empty() {
            return Err("its input has a limit beside other joins".into());
        }
        let before = std::mem::replace(&mut self.is_limited, true);
        let columns = self.flatten(&limit.input, facts, core);
        self.is_limited = before;
        core.limit = Some(match core.limit {
            None => RowLimit { skip, rows },
            Some(below) => {
                RowLimit { skip: below.skip.saturating_add(skip), rows: below.rows.saturating_sub(skip).min(rows) }
            }
        });
        columns
    }
}

impl Hanging {
    /// The relations of the core it hangs on that it reads.
    pub(crate) fn kept(&self) -> BTreeSet<usize> {
        let mut own = BTreeSet::new();
        self.core.all_members(&mut |relation| _ = own.insert(relation));
        let both = self.residual.iter().flat_map(relations).filter(|relation| !own.contains(relation));
        let compared = self.compared.iter().map(|compared| &compared.kept);
        self.on.iter().map(|(kept, _)| kept).chain(compared).flat_map(relations).chain(both).collect()
    }
}

impl Core {
    /// Refuses to put an operator above a limit.
    pub(super) fn without_limit(&self, what: &str) -> Result<(), Reason> {
        self.limit.map_or(Ok(()), |_| Err(format!("its input has {what} above a limit")))
    }

    /// An equality: an edge if one side is of one relation and the other of different ones, a filter otherwise.
    pub(super) fn equal(&mut self, left: Expr, right: Expr) {
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

/// The column of the mark that a relation stands for.
pub(super) fn mark_column(relation: usize) -> Expr {
    base_column(relation, MARK)
}

/// The relation of a base column.
pub(crate) fn relation_of(column: &Column) -> Option<usize> {
    column.relation.as_ref()?.table().strip_prefix('#')?.parse().ok()
}

/// An expression with the base columns of one relation as those of another.
pub(crate) fn renumber(expr: &Expr, from: usize, to: usize) -> Expr {
    let renumbered = expr.clone().transform_up(|expr| match &expr {
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
pub(super) fn rewrite_over<'a, const PLANS: usize>(
    expr: &Expr,
    plans: [(&'a DFSchema, &'a [Expr]); PLANS],
) -> Result<Expr, Reason> {
    let rewritten = expr
        .clone()
        .unalias_nested()
        .data
        .transform_up(|expr| match &expr {
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
        .transform_up(|expr| match &expr {
            Expr::Column(column) => {
                let base = base_column(relation, &column.name);
                Ok(Transformed::new(base, true, TreeNodeRecursion::Jump))
            }
            _ => Ok(Transformed::no(expr)),
        })
        .map_err(text)?;
    Ok(rewritten.data)
}

pub(super) fn text(error: datafusion::error::DataFusionError) -> Reason {
    error.strip_backtrace()
}

fn kind_of(plan: &LogicalPlan) -> String {
    let line = plan.display().to_string();
    let end = line.find([':', ' ', '(']).unwrap_or(line.len());
    line[..end].to_string()
}

/// What a plan projects and filters.
pub(super) fn source_of(plan: &LogicalPlan) -> &LogicalPlan {
    match plan {
        LogicalPlan::Projection(projection) => source_of(&projection.input),
        LogicalPlan::Filter(filter) => source_of(&filter.input),
        LogicalPlan::SubqueryAlias(alias) => source_of(&alias.input),
        source => source,
    }
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
        let name = scan.table_name.table();
        return TableOfWith::of(name).map_or(name, |table| table.name).to_string();
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

impl Core {
    /// The relation that probes the others: the largest, of equally large ones the first.
    pub(super) fn root(&self, graph: &Graph) -> Option<usize> {
        let rows = |relation: &usize| graph.relations[*relation].rows();
        self.members.iter().copied().rev().max_by_key(rows)
    }

    /// Calls `visit` for every relation of the core and of what hangs on it.
    pub(super) fn all_members(&self, visit: &mut impl FnMut(usize)) {
        self.members.iter().copied().for_each(&mut *visit);
        self.hanging.iter().for_each(|hanging| hanging.all_members(visit));
    }
}

impl Hanging {
    /// Calls `visit` for every relation of its core and of what hangs on that, and for that of its mark.
    pub(super) fn all_members(&self, visit: &mut impl FnMut(usize)) {
        self.core.all_members(visit);
        self.mark.into_iter().for_each(visit);
    }
}
