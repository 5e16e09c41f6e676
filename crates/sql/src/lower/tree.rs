//! A join graph arranged as a tree, of which pipelines are written ([`super::writer`]).
//!
//! The relation with the most rows is the probe root. Every other relation becomes a join table that is probed by the
//! relation it is tied to: in a snowflake, a dimension of a dimension is joined while the dimension's own table is
//! built. Equalities beyond the tree and conditions over several relations become filters where all they read has
//! come together. Columns travel upward as payload of the tables between where they are stored and where they are read.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::common::ScalarValue;
use datafusion::logical_expr::Expr;
use warpcube_engine::JoinKind;

use super::Reason;
use super::arguments::{Argument, ArgumentList};
use super::columns::{BaseColumn, RelationId, columns, relations};
use super::graph::{Compared, Core, Graph, Hanging, RowLimit};
use super::ties::Ties;

/// A relation in its place.
#[derive(Debug)]
pub(super) struct Node {
    parent: Option<RelationId>,
    pub(super) kind: JoinKind,
    /// Keys of its table over its own columns, and of its probe over its parent's.
    pub(super) own_keys: Vec<Expr>,
    pub(super) probe_keys: Vec<Expr>,
    pub(super) filters: Vec<Expr>,
    /// A comparison that holds for a match, of its parent's columns with its own.
    pub(super) compared: Option<Compared>,
    /// A further condition of a match, over columns of both.
    pub(super) residual: Option<Expr>,
    /// The relation of its mark, which its parent gives.
    pub(super) mark: Option<RelationId>,
    /// Of the rows that filters and tables below it leave, how many go on.
    pub(super) limit: Option<RowLimit>,
    /// Columns that travel upward, its own and those of tables below it.
    pub(super) payload: BTreeSet<BaseColumn>,
}

impl Node {
    /// Whether its parent reads columns of it where it probes its table.
    fn takes_payload(&self) -> bool {
        matches!(self.kind, JoinKind::Inner | JoinKind::Left) || self.residual.is_some()
    }

    /// The columns of its table that its parent reads.
    pub(super) fn columns_of_table(&self) -> impl Iterator<Item = &BaseColumn> {
        let is_mark = |column: &&BaseColumn| self.mark == Some(column.id.relation);
        self.payload.iter().filter(|_| self.takes_payload()).filter(move |column| !is_mark(column))
    }
}

/// Keys of a join table and of its probe, pair by pair.
#[derive(Debug, Default)]
struct Keys {
    own: Vec<Expr>,
    probe: Vec<Expr>,
    compared: Option<Compared>,
    residual: Option<Expr>,
    mark: Option<RelationId>,
}

/// Why a core has no tree below one of its members.
const TIED_BY_HANGING: &str = "a table that is tied by columns of an outer join's inner side alone";

/// The tree, by relation number.
pub(crate) struct Tree<'a> {
    pub(super) graph: &'a Graph,
    pub(super) nodes: BTreeMap<RelationId, Node>,
    /// Relations in the order they were placed: probe keys read only what was placed before.
    placed: Vec<RelationId>,
    pub(super) root: RelationId,
    /// Where marks come from: the relation at the root of what hangs, by the relation of its mark.
    marks: BTreeMap<RelationId, RelationId>,
    /// Parameters and scalar subqueries that expressions read.
    pub(super) arguments: ArgumentList,
}

impl<'a> Tree<'a> {
    /// Arranges a core; `sink` are the expressions read at the root.
    pub(crate) fn plan(graph: &'a Graph, core: &Core, sink: &[Expr]) -> Result<Tree<'a>, Reason> {
        let largest = core.root(graph).ok_or("no table is read")?;
        let others = core.members.iter().copied().filter(|member| *member != largest);
        for root in std::iter::once(largest).chain(others) {
            let (nodes, placed, marks, arguments) = Default::default();
            let mut tree = Tree { graph, nodes, placed, root, marks, arguments };
            match tree.arrange(core, root, None) {
                // From what the outer join hangs on, the other table is reached by its key.
                Err(reason) if reason == TIED_BY_HANGING => {}
                arranged => {
                    arranged?;
                    tree.carry(sink);
                    return Ok(tree);
                }
            }
        }
        Err(TIED_BY_HANGING.into())
    }

    /// Adds the relations of a core below its root, then its filters, then what hangs on it.
    fn arrange(
        &mut self,
        core: &Core,
        root: RelationId,
        above: Option<(RelationId, JoinKind, Keys)>,
    ) -> Result<(), Reason> {
        let (parent, kind, keys) = match above {
            Some((parent, kind, keys)) => (Some(parent), kind, keys),
            None => (None, JoinKind::Inner, Keys::default()),
        };
        self.insert(root, parent, kind, keys);
        let mut waiting: Vec<RelationId> = core.members.iter().copied().filter(|member| *member != root).collect();
        let mut hanging: Vec<&Hanging> = core.hanging.iter().collect();
        let mut placed = vec![root];
        // Columns of a hanging core are read from above its join only: they count as its parent's.
        let mut lifted: BTreeMap<RelationId, RelationId> = BTreeMap::new();
        let mut ties = Ties::of(core);
        self.equal_at(root, &ties);
        loop {
            if let Some((position, owners)) = ties.next(&waiting, &placed) {
                let relation = waiting.remove(position);
                let (own, probe) = ties.take(relation, &placed).into_iter().unzip();
                let parent = self.meeting_point(&owners, &lifted, root);
                self.insert(relation, Some(parent), JoinKind::Inner, Keys { own, probe, ..Keys::default() });
                self.equal_at(relation, &ties);
                placed.push(relation);
            } else if let Some(position) =
                hanging.iter().position(|one| one.kept().is_subset(&placed.iter().copied().collect()))
            {
                let hanging = hanging.remove(position);
                let parent = match hanging.kind {
                    JoinKind::Inner | JoinKind::Left => root,
                    _ => self.meeting_point(&hanging.kept(), &lifted, root),
                };
                let (probe, own) = hanging.on.iter().cloned().unzip();
                let (compared, residual) = (hanging.compared.clone(), hanging.residual.clone());
                let keys = Keys { own, probe, compared, residual, mark: hanging.mark };
                let own_root = self.root_of(hanging)?;
                self.arrange(&hanging.core, own_root, Some((parent, hanging.kind, keys)))?;
                self.marks.extend(hanging.mark.map(|mark| (mark, own_root)));
                hanging.all_members(&mut |relation| {
                    lifted.insert(relation, parent);
                    placed.push(relation);
                });
            } else if !waiting.is_empty() && ties.wait_for_hanging(core, &placed) {
                return Err(TIED_BY_HANGING.into());
            } else if let Some(relation) = waiting.pop() {
                // Tied by no equality: each row has all of its rows as matches.
                let one = || vec![Expr::Literal(ScalarValue::Int64(Some(1)), None)];
                self.insert(
                    relation,
                    Some(root),
                    JoinKind::Inner,
                    Keys { own: one(), probe: one(), ..Keys::default() },
                );
                placed.push(relation);
            } else {
                break;
            }
        }
        if !hanging.is_empty() {
            return Err("an outer, semi or anti join whose conditions read what is not there".into());
        }
        let equalities = ties.others.into_iter().map(|(left, right)| left.clone().eq(right.clone()));
        for filter in equalities.chain(core.filters.iter().cloned()) {
            let place = self.meeting_point(&relations(&filter), &lifted, root);
            self.nodes.get_mut(&place).expect("meeting points are nodes").filters.push(filter);
        }
        self.nodes.get_mut(&root).expect("it was placed first").limit = core.limit;
        Ok(())
    }

    /// Filters a relation by the equalities among its own expressions.
    fn equal_at(&mut self, relation: RelationId, ties: &Ties) {
        let node = self.nodes.get_mut(&relation).expect("it was just placed");
        for class in &ties.classes {
            let mut own = class.iter().filter(|(owner, _)| *owner == relation).map(|(_, expr)| *expr);
            if let Some(first) = own.next() {
                node.filters.extend(own.map(|other| first.clone().eq(other.clone())));
            }
        }
    }

    /// The relation at which a hanging core comes together.
    ///
    /// The keys of an outer join are best unique, which only the table they are of can promise. Of semi and anti joins
    /// the largest table is scanned, so that the others, probed by it, have the better chance of unique keys.
    fn root_of(&self, hanging: &Hanging) -> Result<RelationId, Reason> {
        let tied: BTreeSet<RelationId> = hanging.on.iter().flat_map(|(_, own)| relations(own)).collect();
        let members = || hanging.core.members.iter().copied();
        if !tied.is_empty() && !tied.iter().any(|relation| hanging.core.members.contains(relation)) {
            return Err("an outer, semi or anti join whose inner side is tied by no column of its own".into());
        }
        let rows = |relation: &RelationId| self.graph.relation(*relation).rows();
        let size = |relation: &RelationId| (rows(relation), tied.contains(relation));
        let is_unique = hanging.kind == JoinKind::Left && !tied.is_empty();
        let candidates = members().filter(|relation| !is_unique || tied.contains(relation));
        candidates.rev().max_by_key(size).ok_or_else(|| "a join with a side that reads no table".into())
    }

    fn insert(&mut self, relation: RelationId, parent: Option<RelationId>, kind: JoinKind, keys: Keys) {
        let Keys { own: own_keys, probe: probe_keys, compared, residual, mark } = keys;
        let (filters, limit, payload) = Default::default();
        let node = Node { parent, kind, own_keys, probe_keys, filters, compared, residual, mark, limit, payload };
        self.nodes.insert(relation, node);
        self.placed.push(relation);
    }

    /// The lowest node at which all of `read` come together; `root` for none.
    fn meeting_point(
        &self,
        read: &BTreeSet<RelationId>,
        lifted: &BTreeMap<RelationId, RelationId>,
        root: RelationId,
    ) -> RelationId {
        let mut paths = read.iter().map(|relation| self.path(*lifted.get(relation).unwrap_or(relation)));
        let Some(first) = paths.next() else { return root };
        let others: Vec<Vec<RelationId>> = paths.collect();
        let meets = |node: &RelationId| others.iter().all(|path| path.contains(node));
        first.into_iter().find(meets).unwrap_or(root)
    }

    /// A node and all above it.
    fn path(&self, relation: RelationId) -> Vec<RelationId> {
        std::iter::successors(Some(relation), |node| self.nodes[node].parent).collect()
    }

    /// The relations whose tables a node probes.
    pub(super) fn children(&self, node: RelationId) -> Vec<RelationId> {
        self.placed.iter().copied().filter(|relation| self.nodes[relation].parent == Some(node)).collect()
    }

    /// Marks the payload that has to travel for what each node reads.
    fn carry(&mut self, sink: &[Expr]) {
        let mut uses: Vec<(RelationId, BaseColumn)> = Vec::new();
        for (relation, node) in &self.nodes {
            let compared = node.compared.iter();
            let own = node.filters.iter().chain(&node.own_keys).chain(compared.clone().map(|compared| &compared.own));
            uses.extend(own.flat_map(columns).map(|column| (*relation, column)));
            if let Some(parent) = node.parent {
                let kept = node.probe_keys.iter().chain(compared.map(|compared| &compared.kept)).chain(&node.residual);
                uses.extend(kept.flat_map(columns).map(|column| (parent, column)));
            }
        }
        uses.extend(sink.iter().flat_map(columns).map(|column| (self.root, column)));
        for (reader, column) in uses {
            let relation = column.id.relation;
            let mut at = self.marks.get(&relation).copied().unwrap_or(relation);
            while at != reader {
                let node = self.nodes.get_mut(&at).expect("base columns name nodes");
                node.payload.insert(column.clone());
                match node.parent {
                    Some(parent) => at = parent,
                    None => break,
                }
            }
        }
    }

    /// What the pipelines take, by position.
    pub(super) fn into_arguments(self) -> Vec<Argument> {
        self.arguments.into_inner()
    }
}
