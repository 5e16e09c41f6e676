//! The input of an aggregation as scans, equi-joins, filters and aggregations below it.
//!
//! Projections, aliases and filters dissolve: every expression is rewritten over base columns ([`super::columns`]).
//! Inner joins of one [`Core`] may be taken in any order; an outer, semi or anti join hangs a core of its own on the
//! one it preserves. Plans become graphs in [`super::flatten`] and [`super::joins`].

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, SortExpr};
use warpcube_engine::{FirstOfPartitions, JoinKind, TopKAlgorithm, WindowCall};

use super::Reason;
use super::columns::{BaseColumn, ColumnId, RelationId, relations};
use super::finish::Finish;
use super::grouping_sets::Sets;
use super::tables::TableInfo;
use crate::values::FloatSums;

/// Rows that a pipeline scans.
#[derive(Debug)]
pub(crate) enum Relation {
    /// Those of a table.
    Table(Arc<TableInfo>),
    /// The groups of an aggregation below.
    Groups(Box<Grouped>),
    /// Rows that a pipeline of their own leaves: those of a shared table, of a union, the first ones by an order, or
    /// those of windows.
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
            Relation::Groups(grouped) if grouped.group_count == 0 => 1,
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
    pub(crate) members: Vec<RelationId>,
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
    pub(crate) mark: Option<RelationId>,
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

/// Rows a group that are taken for the size of groups of which nothing is known.
const ROWS_PER_GROUP: u64 = 2;

/// All relations of an aggregation's input.
#[derive(Debug)]
pub(crate) struct Graph {
    /// By number.
    relations: Vec<Relation>,
    /// The session's settings.
    pub(super) options: Arc<ConfigOptions>,
    /// Whether a limit stands above what is flattened, of which scans have a hint.
    pub(super) is_limited: bool,
}

/// An aggregation of rows over base columns of graphs of their own.
#[derive(Debug)]
pub(crate) struct Grouped {
    /// The branches of UNION ALL; one if there is none.
    pub(super) inputs: Vec<Input>,
    /// Arrow types of its outputs: groups, then calls.
    pub(super) types: Vec<DataType>,
    /// Number of its group expressions.
    pub(super) group_count: usize,
    /// Its grouping sets, whose number is the last group expression.
    pub(super) sets: Option<Sets>,
    pub(super) float_sums: FloatSums,
    /// The shared table whose groups they are, if they are those of one.
    pub(super) shared: Option<usize>,
}

/// What an aggregation reads, or a branch of it.
#[derive(Debug)]
pub(crate) struct Input {
    /// Its relations.
    pub(super) graph: Graph,
    /// How they are joined.
    pub(super) core: Core,
    /// Group expressions.
    pub(super) groups: Vec<Expr>,
    pub(super) calls: Vec<Expr>,
    /// The value whose distinct ones calls take, if some do.
    pub(super) value: Option<Expr>,
}

/// Rows that a pipeline of their own leaves, over base columns of a graph of their own.
#[derive(Debug)]
pub(crate) struct InnerRows {
    /// The shared table that they are, if they are one.
    pub(super) id: Option<usize>,
    pub(super) graph: Graph,
    pub(super) core: Core,
    /// Its columns.
    pub(super) outputs: Vec<Expr>,
    pub(super) types: Vec<DataType>,
    /// The order of which they are the first rows; all of them if there is none.
    pub(super) order: Option<InnerOrder>,
    /// What windows add to the rows.
    pub(super) windows: Option<InnerWindows>,
    /// Further rows of the same types, of which all together are a union; these have neither an order nor windows.
    pub(super) others: Vec<InnerRows>,
}

/// Columns that windows add to the rows of a sort.
#[derive(Debug, Default)]
pub(super) struct InnerWindows {
    /// The sort.
    pub(super) keys: Vec<WindowKey>,
    /// What windows read, behind the columns of the rows, with its types.
    pub(super) arguments: Vec<(Expr, DataType)>,
    pub(super) calls: Vec<WindowCall>,
    /// How each column is made of the calls.
    pub(super) finish: Vec<Finish>,
    /// The rows that are wanted, where filters tell.
    pub(super) first: Option<FirstOfPartitions>,
}

/// A key of a sort that windows share.
#[derive(Debug)]
pub(super) struct WindowKey {
    pub(super) key: SortExpr,
    /// Whether it is of partitions alone so far, for which no direction matters.
    pub(super) turns: bool,
}

/// An order whose first rows another operator reads.
#[derive(Debug)]
pub(crate) struct InnerOrder {
    pub(super) keys: Vec<SortExpr>,
    /// Rows that are found, and how many of them are left out.
    pub(super) rows: u64,
    pub(super) skip: u64,
    /// The algorithm that was asked for.
    pub(super) algorithm: Option<TopKAlgorithm>,
}

impl InnerRows {
    /// Rows, as far as they are known.
    pub(super) fn rows(&self) -> u64 {
        let all = self.others.iter().map(InnerRows::rows).fold(self.graph.rows_max(), u64::saturating_add);
        self.order.as_ref().map_or(all, |order| all.min(order.rows - order.skip))
    }
}

impl Graph {
    /// A graph of no relations.
    pub(super) fn new(options: Arc<ConfigOptions>) -> Graph {
        Graph { relations: Vec::new(), options, is_limited: false }
    }

    /// A relation.
    pub(super) fn relation(&self, id: RelationId) -> &Relation {
        &self.relations[id.0]
    }

    /// The same, to be changed.
    pub(super) fn relation_mut(&mut self, id: RelationId) -> &mut Relation {
        &mut self.relations[id.0]
    }

    /// All relations.
    pub(super) fn relations(&self) -> impl Iterator<Item = &Relation> {
        self.relations.iter()
    }

    /// The aggregations whose groups are relations.
    pub(super) fn aggregations(&mut self) -> impl Iterator<Item = &mut Grouped> {
        self.relations.iter_mut().filter_map(|relation| match relation {
            Relation::Groups(grouped) => Some(grouped.as_mut()),
            _ => None,
        })
    }

    /// The aggregation whose groups a relation is.
    pub(super) fn aggregation(&mut self, id: RelationId) -> Option<&mut Grouped> {
        match &mut self.relations[id.0] {
            Relation::Groups(grouped) => Some(grouped),
            _ => None,
        }
    }

    /// Takes a relation out of a graph that is not used any more.
    pub(super) fn take(&mut self, id: RelationId) -> Relation {
        std::mem::replace(&mut self.relations[id.0], Relation::Mark)
    }

    /// Rows of the largest relation.
    pub(super) fn rows_max(&self) -> u64 {
        self.relations.iter().map(Relation::rows).max().unwrap_or(0)
    }

    /// The number of the next relation.
    pub(super) fn next(&self) -> RelationId {
        RelationId(self.relations.len())
    }

    /// Adds rows that a pipeline of their own leaves; the result has an expression for each of their columns.
    pub(super) fn inner_rows(&mut self, rows: InnerRows, fields: &[FieldRef], core: &mut Core) -> Vec<Expr> {
        let relation = self.add(Relation::Inner(Box::new(rows)), core);
        BaseColumn::all(relation, fields)
    }

    /// Adds a relation; the result is its number.
    pub(super) fn add(&mut self, relation: Relation, core: &mut Core) -> RelationId {
        let id = self.next();
        self.relations.push(relation);
        core.members.push(id);
        id
    }

    /// Adds the relation of a mark; the result is its number.
    pub(super) fn add_mark(&mut self) -> RelationId {
        self.add(Relation::Mark, &mut Core::default())
    }
}

/// The column of the mark that a relation stands for.
pub(super) fn mark_column(relation: RelationId) -> Expr {
    BaseColumn::expr(relation, 0, Arc::new(Field::new("mark", DataType::Boolean, false)))
}

/// The number of the column of a mark.
pub(super) fn mark_id(relation: RelationId) -> ColumnId {
    ColumnId { relation, position: 0 }
}

impl Hanging {
    /// The relations of the core it hangs on that it reads.
    pub(crate) fn kept(&self) -> BTreeSet<RelationId> {
        let mut own = BTreeSet::new();
        self.core.all_members(&mut |relation| _ = own.insert(relation));
        let both = self.residual.iter().flat_map(relations).filter(|relation| !own.contains(relation));
        let compared = self.compared.iter().map(|compared| &compared.kept);
        self.on.iter().map(|(kept, _)| kept).chain(compared).flat_map(relations).chain(both).collect()
    }

    /// Calls `visit` for every relation of its core and of what hangs on that, and for that of its mark.
    pub(super) fn all_members(&self, visit: &mut impl FnMut(RelationId)) {
        self.core.all_members(visit);
        self.mark.into_iter().for_each(visit);
    }
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

impl Core {
    /// Refuses to put an operator above a limit.
    pub(super) fn without_limit(&self, what: &str) -> Result<(), Reason> {
        self.limit.map_or(Ok(()), |_| Err(format!("its input has {what} above a limit")))
    }

    /// Its only relation, where nothing is done with the rows of that.
    pub(super) fn alone(&self) -> Option<RelationId> {
        let is_alone = self.filters.is_empty() && self.hanging.is_empty() && self.limit.is_none();
        match self.members[..] {
            [one] if is_alone => Some(one),
            _ => None,
        }
    }

    /// Whether a row of one of its relations may become several.
    pub(super) fn multiplies(&self) -> bool {
        let joins = |hanging: &Hanging| matches!(hanging.kind, JoinKind::Inner | JoinKind::Left);
        self.members.len() > 1 || self.hanging.iter().any(joins)
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

    /// The relation that probes the others: the largest, of equally large ones the first.
    pub(super) fn root(&self, graph: &Graph) -> Option<RelationId> {
        let rows = |relation: &RelationId| graph.relation(*relation).rows();
        self.members.iter().copied().rev().max_by_key(rows)
    }

    /// Calls `visit` for every relation of the core and of what hangs on it.
    pub(super) fn all_members(&self, visit: &mut impl FnMut(RelationId)) {
        self.members.iter().copied().for_each(&mut *visit);
        self.hanging.iter().for_each(|hanging| hanging.all_members(visit));
    }
}
