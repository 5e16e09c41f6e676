//! From a join graph to pipelines.
//!
//! The relation with the most rows is the probe root. Every other relation becomes a join table that is probed by the
//! relation it is tied to: in a snowflake, a dimension of a dimension is joined while the dimension's own table is
//! built. Equalities beyond the tree and conditions over several relations become filters where all they read has
//! come together. Columns travel upward as payload of the tables between where they are stored and where they are read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::logical_expr::Expr;
use warpcube_engine::{Fragment, FragmentTable, JoinKind, Pipeline, Probe, Sink, Step};

use super::Reason;
use super::expr::Translator;
use super::graph::{Core, Graph, columns, relation_of, relations};
use super::tables::TableInfo;

/// A relation in its place.
#[derive(Debug)]
struct Node {
    parent: Option<usize>,
    kind: JoinKind,
    /// Keys of its table over its own columns, and of its probe over its parent's.
    own_keys: Vec<Expr>,
    probe_keys: Vec<Expr>,
    filters: Vec<Expr>,
    /// Columns that travel upward, its own and those of tables below it.
    payload: BTreeSet<Column>,
}

/// Keys of a join table and of its probe, pair by pair.
#[derive(Debug, Default)]
struct Keys {
    own: Vec<Expr>,
    probe: Vec<Expr>,
}

/// The tree, by relation number.
pub(crate) struct Tree<'a> {
    graph: &'a Graph,
    nodes: BTreeMap<usize, Node>,
    root: usize,
}

impl<'a> Tree<'a> {
    /// Arranges a core; `sink` are the expressions read at the root.
    pub(crate) fn plan(graph: &'a Graph, core: &Core, sink: &[Expr]) -> Result<Tree<'a>, Reason> {
        let rows = |relation: &usize| graph.relations[*relation].table.rows.unwrap_or(0);
        // Of equally large relations the first stays the root, whatever the order of a map would be.
        let root = core.members.iter().copied().rev().max_by_key(rows).ok_or("no table is read")?;
        let mut tree = Tree { graph, nodes: BTreeMap::new(), root };
        tree.arrange(core, root, None)?;
        tree.carry(sink);
        Ok(tree)
    }

    /// Adds the relations of a core below its root, then its filters, then what hangs on it.
    fn arrange(&mut self, core: &Core, root: usize, above: Option<(usize, JoinKind, Keys)>) -> Result<(), Reason> {
        let (parent, kind, keys) = match above {
            Some((parent, kind, keys)) => (Some(parent), kind, keys),
            None => (None, JoinKind::Inner, Keys::default()),
        };
        self.insert(root, parent, kind, keys);
        let mut waiting: Vec<usize> = core.members.iter().copied().filter(|member| *member != root).collect();
        let mut placed: BTreeSet<usize> = [root].into();
        let mut used = vec![false; core.edges.len()];
        while !waiting.is_empty() {
            let (position, owners) = next(&waiting, &placed, core, root)
                .ok_or("a cross join: a table is tied to the others by no equality")?;
            let relation = waiting.remove(position);
            let mut keys = Keys::default();
            for (edge, used) in core.edges.iter().zip(&mut used) {
                if let Some((own, other)) = oriented(edge, relation, &placed) {
                    *used = true;
                    keys.own.push(own.clone());
                    keys.probe.push(other.clone());
                }
            }
            let parent = if owners.len() == 1 { *owners.first().expect("one owner") } else { root };
            self.insert(relation, Some(parent), JoinKind::Inner, keys);
            placed.insert(relation);
        }
        // Columns of a hanging core are read from above its join only: they count as its parent's.
        let mut lifted: BTreeMap<usize, usize> = BTreeMap::new();
        for hanging in &core.hanging {
            let own: BTreeSet<usize> = hanging.on.iter().flat_map(|(_, own)| relations(own)).collect();
            let read: BTreeSet<usize> = hanging.on.iter().flat_map(|(kept, _)| relations(kept)).collect();
            let mut own = own.into_iter();
            let (Some(own_root), None) = (own.next(), own.next()) else {
                return Err("an outer, semi or anti join whose inner side is not tied by one table".into());
            };
            let parent = match hanging.kind {
                JoinKind::Left => root,
                _ => self.meeting_point(&read, &lifted, root),
            };
            let (probe, own) = hanging.on.iter().cloned().unzip();
            self.arrange(&hanging.core, own_root, Some((parent, hanging.kind, Keys { own, probe })))?;
            hanging.core.all_members(&mut |relation| {
                lifted.insert(relation, parent);
            });
        }
        let unused = core.edges.iter().zip(&used).filter(|(_, used)| !**used);
        let equalities = unused.map(|((left, right), _)| left.clone().eq(right.clone()));
        for filter in equalities.chain(core.filters.iter().cloned()) {
            let place = self.meeting_point(&relations(&filter), &lifted, root);
            self.nodes.get_mut(&place).expect("meeting points are nodes").filters.push(filter);
        }
        Ok(())
    }

    fn insert(&mut self, relation: usize, parent: Option<usize>, kind: JoinKind, keys: Keys) {
        let (own_keys, probe_keys) = (keys.own, keys.probe);
        let node = Node { parent, kind, own_keys, probe_keys, filters: Vec::new(), payload: BTreeSet::new() };
        self.nodes.insert(relation, node);
    }

    /// The lowest node at which all of `read` come together; `root` for none.
    fn meeting_point(&self, read: &BTreeSet<usize>, lifted: &BTreeMap<usize, usize>, root: usize) -> usize {
        let mut paths = read.iter().map(|relation| self.path(*lifted.get(relation).unwrap_or(relation)));
        let Some(first) = paths.next() else { return root };
        let others: Vec<Vec<usize>> = paths.collect();
        let meets = |node: &usize| others.iter().all(|path| path.contains(node));
        first.into_iter().find(meets).unwrap_or(root)
    }

    /// A node and all above it.
    fn path(&self, relation: usize) -> Vec<usize> {
        std::iter::successors(Some(relation), |node| self.nodes[node].parent).collect()
    }

    fn children(&self, node: usize) -> Vec<usize> {
        self.nodes.iter().filter(|(_, child)| child.parent == Some(node)).map(|(relation, _)| *relation).collect()
    }

    /// Marks the payload that has to travel for what each node reads.
    fn carry(&mut self, sink: &[Expr]) {
        let mut uses: Vec<(usize, Column)> = Vec::new();
        for (relation, node) in &self.nodes {
            let own = node.filters.iter().chain(&node.own_keys);
            uses.extend(own.flat_map(columns).map(|column| (*relation, column)));
            if let Some(parent) = node.parent {
                uses.extend(node.probe_keys.iter().flat_map(columns).map(|column| (parent, column)));
            }
        }
        uses.extend(sink.iter().flat_map(columns).map(|column| (self.root, column)));
        for (reader, column) in uses {
            let Some(mut at) = relation_of(&column) else { continue };
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

    /// The pipelines, builds first; `make_sink` translates the root's sink.
    pub(crate) fn pipelines(
        &self,
        sink: &[Expr],
        make_sink: impl FnOnce(&mut Translator) -> Result<Sink, Reason>,
    ) -> Result<(Fragment, Vec<Arc<TableInfo>>), Reason> {
        let mut writer = Writer { tree: self, pipelines: Vec::new(), tables: Vec::new(), infos: Vec::new() };
        let (steps, table, mut translator) = writer.steps(self.root, sink)?;
        let sink = make_sink(&mut translator)?;
        writer.pipelines.push(Pipeline { table, steps, sink });
        Ok((Fragment { tables: writer.tables, pipelines: writer.pipelines }, writer.infos))
    }
}

impl Core {
    /// Calls `visit` for every relation of the core and of what hangs on it.
    fn all_members(&self, visit: &mut impl FnMut(usize)) {
        self.members.iter().copied().for_each(&mut *visit);
        self.hanging.iter().for_each(|hanging| hanging.core.all_members(visit));
    }
}

/// The position of the waiting relation to place next, tied to the fewest placed ones, with those.
fn next(waiting: &[usize], placed: &BTreeSet<usize>, core: &Core, root: usize) -> Option<(usize, BTreeSet<usize>)> {
    let owners = |relation: usize| -> BTreeSet<usize> {
        let edges = core.edges.iter().filter_map(|edge| oriented(edge, relation, placed));
        edges.flat_map(|(_, other)| relations(other)).collect()
    };
    let tied = waiting.iter().enumerate().map(|(position, relation)| (position, owners(*relation)));
    let tied = tied.filter(|(_, owners)| !owners.is_empty());
    tied.min_by_key(|(_, owners)| (owners.len(), !owners.contains(&root)))
}

/// An edge between `relation` and a placed one as (its side, the other side).
fn oriented<'e>(
    (left, right): &'e (Expr, Expr),
    relation: usize,
    placed: &BTreeSet<usize>,
) -> Option<(&'e Expr, &'e Expr)> {
    let only = |expr: &Expr| relations(expr).into_iter().next();
    match (only(left), only(right)) {
        (Some(one), Some(other)) if one == relation && placed.contains(&other) => Some((left, right)),
        (Some(other), Some(one)) if one == relation && placed.contains(&other) => Some((right, left)),
        _ => None,
    }
}

/// Writes pipelines in dependency order.
struct Writer<'a, 'g> {
    tree: &'a Tree<'g>,
    pipelines: Vec<Pipeline>,
    tables: Vec<FragmentTable>,
    infos: Vec<Arc<TableInfo>>,
}

impl<'a> Writer<'a, '_> {
    /// The steps of a node after the pipelines of its children were written, its table, and its registers.
    fn steps(&mut self, relation: usize, sink: &[Expr]) -> Result<(Vec<Step>, usize, Translator<'a>), Reason> {
        let tree = self.tree;
        let node = &tree.nodes[&relation];
        let children = tree.children(relation);
        let mut builds = Vec::with_capacity(children.len());
        for child in &children {
            builds.push(self.build(*child)?);
        }
        let probe_keys = || children.iter().flat_map(|child| &tree.nodes[child].probe_keys);
        let read = node.filters.iter().chain(&node.own_keys).chain(probe_keys()).chain(sink);
        let own: BTreeSet<Column> = read
            .flat_map(columns)
            .chain(node.payload.iter().cloned())
            .filter(|column| relation_of(column) == Some(relation))
            .collect();
        let info = &tree.graph.relations[relation].table;
        let schema = info.provider.schema();
        let mut translator = Translator::new(&tree.graph.schema);
        let mut positions = Vec::with_capacity(own.len());
        for column in &own {
            let position = schema.index_of(&column.name).map_err(|error| error.to_string())?;
            let data_type = schema.field(position).data_type();
            if warpcube_column::Storage::of(data_type).is_none() {
                return Err(format!("column '{}' has type {data_type}", column.name));
            }
            positions.push(position);
            translator.add(column.clone());
        }
        let table = self.tables.len();
        self.tables.push(FragmentTable { name: info.name.clone(), columns: positions });
        self.infos.push(info.clone());
        let is_own = |filter: &&Expr| relations(filter).iter().all(|read| *read == relation);
        let mut steps = Vec::new();
        for filter in node.filters.iter().filter(is_own) {
            steps.push(Step::Filter(translator.translate(filter)?));
        }
        for (child, build) in children.iter().zip(builds) {
            let child = &tree.nodes[child];
            let keys = child.probe_keys.iter().map(|key| translator.translate(key)).collect::<Result<_, _>>()?;
            steps.push(Step::Probe(Probe { build, keys, kind: child.kind }));
            if matches!(child.kind, JoinKind::Inner | JoinKind::Left) {
                child.payload.iter().for_each(|column| translator.add(column.clone()));
            }
        }
        for filter in node.filters.iter().filter(|filter| !is_own(filter)) {
            steps.push(Step::Filter(translator.translate(filter)?));
        }
        Ok((steps, table, translator))
    }

    fn build(&mut self, relation: usize) -> Result<usize, Reason> {
        let (steps, table, translator) = self.steps(relation, &[])?;
        let node = &self.tree.nodes[&relation];
        let keys = node.own_keys.iter().map(|key| translator.translate(key)).collect::<Result<_, _>>()?;
        let payload = match node.kind {
            JoinKind::Semi | JoinKind::Anti => Vec::new(),
            _ => {
                let columns = node.payload.iter().map(|column| Expr::Column(column.clone()));
                columns.map(|column| translator.translate(&column)).collect::<Result<_, _>>()?
            }
        };
        self.pipelines.push(Pipeline { table, steps, sink: Sink::Build { keys, payload } });
        Ok(self.pipelines.len() - 1)
    }
}
