//! Semi-joins below aggregations and join tables: groups and entries that no row of a join can match are not formed.
//!
//! ```text
//! SELECT … FROM part, (SELECT l_partkey, avg(l_quantity) … FROM lineitem GROUP BY l_partkey)
//! WHERE p_partkey = l_partkey AND p_brand = 'Brand#23'
//! ```
//!
//! The join reads the groups of one brand's parts alone, so that `lineitem` is filtered by a semi-join with those parts
//! before it is grouped. The semi-join compares group keys with a key of a filtered table that they equal: directly,
//! through other tables, or through the join that the aggregation hangs on. All rows of a group have its keys, so that
//! a group keeps all of its rows or none. An aggregation below the aggregation is filtered in turn.
//!
//! Rows that are left out raise no errors: a SUM that leaves its type in a group without a match goes unseen, as behind
//! any filter that is pushed down.
//!
//! A join table is filtered in the same way where the largest table of the join meets it and a filtered table by one
//! key:
//!
//! ```text
//! SELECT … FROM lineitem, partsupp, part
//! WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey AND l_partkey = p_partkey AND p_name LIKE '%green%'
//! ```
//!
//! The table of `partsupp` keeps the entries of green parts alone, a twentieth: it is built and probed in the cache.
//!
//! Source: semi-join reducers, Bernstein and Chiu, *Using Semi-Joins to Solve Relational Queries*, JACM 1981; through
//! aggregations as magic sets, Mumick et al., *Magic is Relevant*, SIGMOD 1990.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use warpcube_engine::JoinKind;

use super::columns::{BaseColumn, RelationId, columns, relations, renumber, replace};
use super::expr::contains_subquery;
use super::first_of_partitions;
use super::graph::{Core, Graph, Grouped, Hanging, Input, Relation};
use super::tables::TableInfo;
use super::ties::Ties;

/// Largest share of its rows that a reducer leaves by estimate. A single bound of a range may leave all of them.
const SHARE_MAX: f64 = 0.3;
/// Rows of an aggregation's input for each row that is scanned for its reducer, at least.
const ROWS_PER_SCANNED: u64 = 2;

/// A filtered table of whose rows only the keys are asked for.
#[derive(Debug, Clone)]
struct Reducer {
    table: Arc<TableInfo>,
    /// Its number in the graph it comes from.
    relation: RelationId,
    filters: Vec<Expr>,
    /// Semi-joins with tables that filter it in turn: equalities of an expression of its own and one of theirs.
    below: Vec<(Vec<(Expr, Expr)>, Reducer)>,
}

/// A reducer of an input of an aggregation.
struct Found {
    /// The aggregation.
    relation: RelationId,
    /// Which of its inputs.
    input: usize,
    /// Equalities of an expression of its groups and one of the reducer's table.
    on: Vec<(Expr, Expr)>,
    reducer: Reducer,
}

/// A core with the equalities that hold for each of its rows that counts.
struct Scope<'a> {
    graph: &'a Graph,
    core: &'a Core,
    ties: Ties<'a>,
    /// The join by which it hangs on another core.
    above: Option<(&'a Scope<'a>, &'a Hanging)>,
}

/// An expression of a table that equals another one, and the core of the table.
struct Equal<'a> {
    core: &'a Core,
    relation: RelationId,
    expr: &'a Expr,
}

/// Filters the join tables of `core`, the aggregations that it joins, and those below them, by what they are joined
/// with, and the sorts of windows by what numbers of rows are filtered by.
pub(super) fn reduce(graph: &mut Graph, core: &mut Core) {
    first_of_partitions::find(graph, core);
    reduce_tables(graph, core);
    if !graph.relations().any(|relation| matches!(relation, Relation::Groups(_))) {
        return;
    }
    let mut found = Vec::new();
    Scope::new(graph, core, None).find(&mut found);
    for Found { relation, input, on, reducer } in found {
        let Some(grouped) = graph.aggregation(relation) else { continue };
        reducer.hang_on(&mut grouped.inputs[input], &on);
    }
    for grouped in graph.aggregations() {
        for Input { graph, core, .. } in &mut grouped.inputs {
            reduce(graph, core);
        }
    }
}

/// Filters tables of the core that its largest relation probes with a key that it probes a filtered table with.
///
/// Both hang on the largest relation, so that neither is probed while the other's table is built.
fn reduce_tables(graph: &mut Graph, core: &mut Core) {
    let Some(root) = core.root(graph) else { return };
    let mut found = Vec::new();
    let ties = Ties::of(core);
    let is_table = |relation: &RelationId| *relation != root && matches!(graph.relation(*relation), Relation::Table(_));
    for filtering in core.members.iter().copied().filter(is_table) {
        let mut of_filtering: Vec<(RelationId, (Expr, Expr))> = Vec::new();
        let mut tied = Vec::new();
        for class in ties.classes.iter().filter(|class| class.iter().any(|(owner, _)| *owner == root)) {
            let Some((_, key)) = class.iter().find(|(owner, _)| *owner == filtering) else { continue };
            tied.extend(class.iter().map(|(_, expr)| *expr));
            let others = class.iter().filter(|(owner, _)| *owner != filtering && is_table(owner));
            of_filtering.extend(others.map(|(owner, expr)| (*owner, ((*expr).clone(), (*key).clone()))));
        }
        let Some((reducer, share)) = Reducer::of(graph, core, filtering, &tied, &mut vec![filtering, root]) else {
            continue;
        };
        let filtered: BTreeSet<RelationId> = of_filtering.iter().map(|(owner, _)| *owner).collect();
        for relation in filtered {
            let pays = reducer.rows().saturating_mul(ROWS_PER_SCANNED) <= graph.relation(relation).rows();
            if share <= SHARE_MAX && pays {
                let on = of_filtering.iter().filter(|(owner, _)| *owner == relation).map(|(_, on)| on.clone());
                found.push((on.collect::<Vec<_>>(), reducer.clone()));
            }
        }
    }
    for (on, reducer) in found {
        let hanging = reducer.semi_join(on, graph);
        core.hanging.push(hanging);
    }
}

impl<'a> Scope<'a> {
    fn new(graph: &'a Graph, core: &'a Core, above: Option<(&'a Scope<'a>, &'a Hanging)>) -> Scope<'a> {
        Scope { graph, core, ties: Ties::of(core), above }
    }

    /// Finds the reducers of the core's aggregations and of those that hang on it.
    fn find(&self, found: &mut Vec<Found>) {
        for member in &self.core.members {
            let Relation::Groups(grouped) = self.graph.relation(*member) else { continue };
            // Other readers may read groups that have no match here; sets without a key have rows of all its values.
            if grouped.shared.is_some() || grouped.sets.is_some() {
                continue;
            }
            self.find_of(*member, grouped, found);
        }
        for hanging in &self.core.hanging {
            // Another choice of rows would pass a limit if some were left out before.
            let above = hanging.core.limit.map_or(Some((self, hanging)), |_| None);
            Scope::new(self.graph, &hanging.core, above).find(found);
        }
    }

    fn find_of(&self, member: RelationId, grouped: &Grouped, found: &mut Vec<Found>) {
        let mut equal: Vec<(&Expr, Equal)> = Vec::new();
        for key in self.keys_of(member, grouped) {
            self.equal(key, None, &mut |other| equal.push((key, other)));
        }
        let tied: Vec<&Expr> = equal.iter().map(|(_, other)| other.expr).collect();
        let tables: BTreeSet<RelationId> = equal.iter().map(|(_, other)| other.relation).collect();
        for table in tables {
            let mut of_table = equal.iter().filter(|(_, other)| other.relation == table).peekable();
            let Some((_, Equal { core, .. })) = of_table.peek() else { continue };
            let Some((reducer, share)) = Reducer::of(self.graph, core, table, &tied, &mut vec![table]) else {
                continue;
            };
            let on: Vec<(Expr, Expr)> = of_table.map(|(key, other)| ((*key).clone(), other.expr.clone())).collect();
            if share > SHARE_MAX {
                continue;
            }
            // A group without a match may lose the rows of one branch of a union and keep others: nobody reads it.
            for (number, input) in grouped.inputs.iter().enumerate().filter(|(_, input)| input.core.limit.is_none()) {
                let pays = reducer.rows().saturating_mul(ROWS_PER_SCANNED) <= input.graph.rows_max();
                if pays && !reducer.is_there(input, &on) {
                    found.push(Found { relation: member, input: number, on: on.clone(), reducer: reducer.clone() });
                }
            }
        }
    }

    /// What is joined with an aggregation and computed from its group keys alone.
    fn keys_of(&self, member: RelationId, grouped: &Grouped) -> Vec<&'a Expr> {
        let tied = self.ties.classes.iter().flatten().map(|(_, expr)| *expr);
        let hung = self.core.hanging.iter().flat_map(|hanging| &hanging.on).map(|(kept, _)| kept);
        let above = self.above.iter().flat_map(|(_, hanging)| &hanging.on).map(|(_, own)| own);
        let mut keys: Vec<&Expr> = Vec::new();
        for expr in tied.chain(hung).chain(above) {
            let read = columns(expr);
            let is_key = |column: &BaseColumn| column.id.position < grouped.group_count;
            let of_keys = relations(expr).into_iter().eq([member]) && read.iter().all(is_key);
            // Floats that are equal may differ in what is computed from them.
            let is_float = |column: &BaseColumn| column.field.data_type().is_floating();
            let exact = BaseColumn::of(expr).is_some() || !read.iter().any(is_float);
            if of_keys && exact && !keys.contains(&expr) {
                keys.push(expr);
            }
        }
        keys
    }

    /// Calls `visit` with the expressions of tables that equal `expr`; not with those of what hangs here as `from`.
    fn equal(&self, expr: &'a Expr, from: Option<&Hanging>, visit: &mut impl FnMut(Equal<'a>)) {
        let class = self.ties.classes.iter().find(|class| class.iter().any(|(_, other)| *other == expr));
        let mut class: Vec<&'a Expr> = class.into_iter().flatten().map(|(_, other)| *other).collect();
        if class.is_empty() {
            class.push(expr);
        }
        for expr in class {
            if let Some(relation) = self.core.table_of(self.graph, expr) {
                visit(Equal { core: self.core, relation, expr });
            }
            let others = self.core.hanging.iter().filter(|other| from.is_none_or(|from| !std::ptr::eq(*other, from)));
            for hanging in others.filter(|hanging| hanging.needs_match()) {
                let scope = Scope::new(self.graph, &hanging.core, None);
                hanging.on.iter().filter(|(kept, _)| kept == expr).for_each(|(_, own)| scope.equal(own, None, visit));
            }
            if let Some((above, hanging)) = self.above {
                let own = hanging.on.iter().filter(|(_, own)| own == expr);
                own.for_each(|(kept, _)| above.equal(kept, Some(hanging), visit));
            }
        }
    }
}

impl Hanging {
    /// Whether rows of the core it hangs on need a match.
    fn needs_match(&self) -> bool {
        self.kind == JoinKind::Semi
    }
}

impl Core {
    /// The member that an expression is of alone, if it is a table.
    fn table_of(&self, graph: &Graph, expr: &Expr) -> Option<RelationId> {
        let [only] = relations(expr).into_iter().collect::<Vec<_>>()[..] else { return None };
        let is_table = self.members.contains(&only) && matches!(graph.relation(only), Relation::Table(_));
        is_table.then_some(only)
    }
}

impl Reducer {
    /// A table of a core with its filters, and the share of its rows that they leave; none without a count of rows.
    ///
    /// Tables that it is joined with filter it in turn, if they have fewer rows and are joined by none of the `tied`
    /// expressions, which have reducers of their own; `visited` are tables that are not looked at again.
    fn of(
        graph: &Graph,
        core: &Core,
        relation: RelationId,
        tied: &[&Expr],
        visited: &mut Vec<RelationId>,
    ) -> Option<(Reducer, f64)> {
        let Relation::Table(table) = graph.relation(relation) else { return None };
        let rows = table.rows?;
        let is_own = |filter: &&Expr| relations(filter).into_iter().eq([relation]);
        let repeats = |filter: &&Expr| !contains_subquery(filter) && !filter.is_volatile();
        let filters: Vec<Expr> = core.filters.iter().filter(is_own).filter(repeats).cloned().collect();
        let mut share: f64 = filters.iter().map(share).product();
        let mut below = Vec::new();
        let mut add = |on: Vec<(Expr, Expr)>, of: Option<(Reducer, f64)>| {
            let Some((reducer, of_below)) = of.filter(|(_, share)| *share <= SHARE_MAX) else { return };
            if reducer.rows() < rows {
                share *= of_below;
                below.push((on, reducer));
            }
        };
        let joins = |expr: &Expr| relations(expr).into_iter().eq([relation]) && !tied.contains(&expr);
        let ties = Ties::of(core);
        for other in core.members.iter().copied() {
            let mut on = Vec::new();
            for class in &ties.classes {
                let of = |wanted: RelationId| class.iter().find(|(owner, _)| *owner == wanted).map(|(_, expr)| *expr);
                if let (Some(own), Some(theirs)) = (of(relation).filter(|own| joins(own)), of(other)) {
                    on.push((own.clone(), theirs.clone()));
                }
            }
            if !on.is_empty() && !visited.contains(&other) {
                visited.push(other);
                add(on, Reducer::of(graph, core, other, tied, visited));
            }
        }
        for hanging in core.hanging.iter().filter(|hanging| hanging.needs_match()) {
            let on: Vec<(Expr, Expr)> = hanging.on.iter().filter(|(kept, _)| joins(kept)).cloned().collect();
            let owners: BTreeSet<Option<RelationId>> =
                on.iter().map(|(_, own)| hanging.core.table_of(graph, own)).collect();
            let [Some(other)] = owners.into_iter().collect::<Vec<_>>()[..] else { continue };
            visited.push(other);
            add(on, Reducer::of(graph, &hanging.core, other, tied, visited));
        }
        Some((Reducer { table: table.clone(), relation, filters, below }, share))
    }

    /// Rows that are scanned for it.
    fn rows(&self) -> u64 {
        let below = self.below.iter().map(|(_, reducer)| reducer.rows()).sum::<u64>();
        self.table.rows.unwrap_or(0).saturating_add(below)
    }

    /// Whether the aggregation is joined with the table under the same filters already.
    fn is_there(&self, input: &Input, on: &[(Expr, Expr)]) -> bool {
        let there = |relation: RelationId| {
            let Relation::Table(table) = input.graph.relation(relation) else { return false };
            let moved = |expr: &Expr| renumber(expr, self.relation, relation);
            let is_equal = |(key, own): &(Expr, Expr)| {
                let (key, own) = (input.over_input(key), moved(own));
                let in_one = |class: &Vec<(RelationId, &Expr)>| {
                    [&key, &own].iter().all(|one| class.iter().any(|(_, expr)| expr == one))
                };
                key == own || Ties::of(&input.core).classes.iter().any(in_one)
            };
            table.is_same(&self.table)
                && self.filters.iter().all(|filter| input.core.filters.contains(&moved(filter)))
                && on.iter().all(is_equal)
        };
        self.below.is_empty() && input.core.members.iter().copied().any(there)
    }

    /// Hangs a semi-join on an aggregation's input.
    fn hang_on(self, input: &mut Input, on: &[(Expr, Expr)]) {
        let on = on.iter().map(|(key, own)| (input.over_input(key), own.clone())).collect();
        let hanging = self.semi_join(on, &mut input.graph);
        input.core.hanging.push(hanging);
    }

    /// A semi-join with it; its tables become relations of `graph`.
    fn semi_join(self, on: Vec<(Expr, Expr)>, graph: &mut Graph) -> Hanging {
        let mut core = Core::default();
        let relation = graph.add(Relation::Table(self.table), &mut core);
        let moved = |expr: &Expr| renumber(expr, self.relation, relation);
        core.filters = self.filters.iter().map(moved).collect();
        for (on, below) in self.below {
            let on = on.iter().map(|(own, theirs)| (moved(own), theirs.clone())).collect();
            let hanging = below.semi_join(on, graph);
            core.hanging.push(hanging);
        }
        let on = on.into_iter().map(|(kept, own)| (kept, moved(&own))).collect();
        Hanging { kind: JoinKind::Semi, on, core, compared: None, residual: None, mark: None }
    }
}

impl Input {
    /// An expression of the group keys as one over its input.
    fn over_input(&self, expr: &Expr) -> Expr {
        replace(expr, |column| self.groups.get(column.id.position).cloned())
    }
}

/// The share of rows for which a filter holds, by its form alone: what System R takes where nothing is known of values
/// (Selinger et al., *Access Path Selection in a Relational Database Management System*, SIGMOD 1979).
fn share(filter: &Expr) -> f64 {
    const EQUAL: f64 = 0.1;
    const BOUND: f64 = 1.0 / 3.0;
    const RANGE: f64 = 0.25;
    const UNKNOWN: f64 = 0.5;
    let not = |negated: bool, share: f64| if negated { 1.0 - share } else { share };
    match filter {
        Expr::Alias(alias) => share(&alias.expr),
        Expr::Literal(ScalarValue::Boolean(value), _) => f64::from(u8::from(*value == Some(true))),
        Expr::Not(inner) | Expr::IsNotTrue(inner) => 1.0 - share(inner),
        Expr::IsTrue(inner) => share(inner),
        Expr::IsNull(_) => EQUAL,
        Expr::IsNotNull(_) => 1.0 - EQUAL,
        Expr::Like(like) => not(like.negated, RANGE),
        Expr::Between(between) => not(between.negated, RANGE),
        Expr::InList(list) => not(list.negated, (EQUAL * list.list.len() as f64).min(1.0)),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And => share(left) * share(right),
            Operator::Or => (share(left) + share(right)).min(1.0),
            // Columns of one row are equal as often as not.
            _ if !relations(left).is_empty() && !relations(right).is_empty() => UNKNOWN,
            Operator::Eq | Operator::IsNotDistinctFrom => EQUAL,
            Operator::NotEq | Operator::IsDistinctFrom => 1.0 - EQUAL,
            Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => BOUND,
            _ => UNKNOWN,
        },
        _ => UNKNOWN,
    }
}
