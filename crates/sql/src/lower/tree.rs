//! From a join graph to pipelines.
//!
//! The relation with the most rows is the probe root. Every other relation becomes a join table that is probed by the
//! relation it is tied to: in a snowflake, a dimension of a dimension is joined while the dimension's own table is
//! built. Equalities beyond the tree and conditions over several relations become filters where all they read has
//! come together. Columns travel upward as payload of the tables between where they are stored and where they are read.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::{Expr, Operator, Subquery};
use warpcube_engine::{
    AggregateCall, AggregateKind, BinaryOp, Expr as Device, Fragment, FragmentTable, JoinKind, Overflow, Pipeline,
    Probe, Sink, Source, Step, UnaryOp,
};

use super::Reason;
use super::aggregate::{Finish, Grouped};
use super::expr::{Translator, contains_subquery};
use super::graph::{
    Compared, Core, Graph, Hanging, Relation, RowLimit, base_column, columns, mark_column, output_name, relation_of,
    relations, renumber,
};
use super::tables::TableInfo;
use super::ties::Ties;
use super::unions::are_alike;

/// A relation in its place.
#[derive(Debug)]
struct Node {
    parent: Option<usize>,
    kind: JoinKind,
    /// Keys of its table over its own columns, and of its probe over its parent's.
    own_keys: Vec<Expr>,
    probe_keys: Vec<Expr>,
    filters: Vec<Expr>,
    /// A comparison that holds for a match, of its parent's columns with its own.
    compared: Option<Compared>,
    /// A further condition of a match, over columns of both.
    residual: Option<Expr>,
    /// The relation of its mark, which its parent gives.
    mark: Option<usize>,
    /// Of the rows that filters and tables below it leave, how many go on.
    limit: Option<RowLimit>,
    /// Columns that travel upward, its own and those of tables below it.
    payload: BTreeSet<Column>,
}

impl Node {
    /// Whether its parent reads columns of it where it probes its table.
    fn takes_payload(&self) -> bool {
        matches!(self.kind, JoinKind::Inner | JoinKind::Left) || self.residual.is_some()
    }

    /// The columns of its table that its parent reads.
    fn columns_of_table(&self) -> impl Iterator<Item = &Column> {
        let is_mark = |column: &&Column| self.mark.is_some() && relation_of(column) == self.mark;
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
    mark: Option<usize>,
}

/// Why a core has no tree below one of its members.
const TIED_BY_HANGING: &str = "a table that is tied by columns of an outer join's inner side alone";

/// The tree, by relation number.
pub(crate) struct Tree<'a> {
    graph: &'a Graph,
    nodes: BTreeMap<usize, Node>,
    /// Relations in the order they were placed: probe keys read only what was placed before.
    placed: Vec<usize>,
    root: usize,
    /// Where marks come from: the relation at the root of what hangs, by the relation of its mark.
    marks: BTreeMap<usize, usize>,
    /// Scalar subqueries that expressions read.
    pub(super) arguments: RefCell<Vec<Subquery>>,
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
    fn arrange(&mut self, core: &Core, root: usize, above: Option<(usize, JoinKind, Keys)>) -> Result<(), Reason> {
        let (parent, kind, keys) = match above {
            Some((parent, kind, keys)) => (Some(parent), kind, keys),
            None => (None, JoinKind::Inner, Keys::default()),
        };
        self.insert(root, parent, kind, keys);
        let mut waiting: Vec<usize> = core.members.iter().copied().filter(|member| *member != root).collect();
        let mut hanging: Vec<&Hanging> = core.hanging.iter().collect();
        let mut placed = vec![root];
        // Columns of a hanging core are read from above its join only: they count as its parent's.
        let mut lifted: BTreeMap<usize, usize> = BTreeMap::new();
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
    fn equal_at(&mut self, relation: usize, ties: &Ties) {
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
    fn root_of(&self, hanging: &Hanging) -> Result<usize, Reason> {
        let tied: BTreeSet<usize> = hanging.on.iter().flat_map(|(_, own)| relations(own)).collect();
        let members = || hanging.core.members.iter().copied();
        if !tied.is_empty() && !tied.iter().any(|relation| hanging.core.members.contains(relation)) {
            return Err("an outer, semi or anti join whose inner side is tied by no column of its own".into());
        }
        let rows = |relation: &usize| self.graph.relations[*relation].rows();
        let size = |relation: &usize| (rows(relation), tied.contains(relation));
        let is_unique = hanging.kind == JoinKind::Left && !tied.is_empty();
        let candidates = members().filter(|relation| !is_unique || tied.contains(relation));
        candidates.rev().max_by_key(size).ok_or_else(|| "a join with a side that reads no table".into())
    }

    fn insert(&mut self, relation: usize, parent: Option<usize>, kind: JoinKind, keys: Keys) {
        let Keys { own: own_keys, probe: probe_keys, compared, residual, mark } = keys;
        let (filters, limit, payload) = Default::default();
        let node = Node { parent, kind, own_keys, probe_keys, filters, compared, residual, mark, limit, payload };
        self.nodes.insert(relation, node);
        self.placed.push(relation);
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
        self.placed.iter().copied().filter(|relation| self.nodes[relation].parent == Some(node)).collect()
    }

    /// Marks the payload that has to travel for what each node reads.
    fn carry(&mut self, sink: &[Expr]) {
        let mut uses: Vec<(usize, Column)> = Vec::new();
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
            let Some(relation) = relation_of(&column) else { continue };
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

    /// The scalar subqueries whose values the pipelines take, by position.
    pub(crate) fn into_arguments(self) -> Vec<Subquery> {
        self.arguments.into_inner()
    }

    /// The pipelines, builds first; `make_sink` translates the root's sink.
    pub(crate) fn pipelines(
        &self,
        sink: &[Expr],
        make_sink: impl FnOnce(&mut Translator) -> Result<Sink, Reason>,
    ) -> Result<(Fragment, Vec<Arc<TableInfo>>), Reason> {
        let mut writer = Writer { tree: self, written: Written::default() };
        let root = writer.root(sink, make_sink)?;
        writer.push(root);
        Ok(writer.written.fragment())
    }
}

/// Pipelines in dependency order, and the tables that they scan.
#[derive(Default)]
pub(super) struct Written {
    pipelines: Vec<Pipeline>,
    unions: Vec<Range<usize>>,
    tables: Vec<FragmentTable>,
    infos: Vec<Arc<TableInfo>>,
    /// Join tables that another join may probe as well, with the pipelines that build them.
    built: Vec<(Built, usize)>,
    /// Shared tables by id: the pipeline that leaves their rows, and how outputs are made of them if they are groups.
    pub(super) shared: BTreeMap<usize, (usize, Vec<Finish>)>,
}

/// What a join table is made of. The table's own columns are of relation [`OWN`].
#[derive(PartialEq)]
struct Built {
    /// Identity and version of the table that is scanned.
    table: (String, String),
    filters: Vec<Expr>,
    keys: Vec<Expr>,
    payload: Vec<Expr>,
    /// Join tables that are probed, with their kind and the keys.
    probes: Vec<(usize, JoinKind, Vec<Expr>)>,
}

/// The number of a relation whatever its graph numbers it.
const OWN: usize = usize::MAX;

impl Written {
    fn fragment(self) -> (Fragment, Vec<Arc<TableInfo>>) {
        let Written { pipelines, unions, tables, infos, .. } = self;
        (Fragment { tables, pipelines, unions, result: Vec::new(), overflow: Overflow::default() }, infos)
    }

    /// Writes an aggregation with all below it; branches of a union are the last pipelines, side by side. The result
    /// tells how each output is made from groups and aggregates.
    fn aggregation(&mut self, grouped: &Grouped, arguments: &RefCell<Vec<Subquery>>) -> Result<Vec<Finish>, Reason> {
        let (mut branches, mut finish) = (Vec::new(), Vec::<Vec<Finish>>::new());
        for input in &grouped.inputs {
            let reads = input.reads()?;
            let mut tree = Tree::plan(&input.graph, &input.core, &reads)?;
            // Subqueries are numbered in one list.
            tree.arguments = RefCell::new(arguments.take());
            let mut writer = Writer { tree: &tree, written: std::mem::take(self) };
            let branch = writer.root(&reads, |translator| {
                let (sink, of_outputs) = grouped.sink(input, translator)?;
                finish.push(of_outputs);
                Ok(sink)
            });
            *self = writer.written;
            arguments.replace(tree.into_arguments());
            branches.push(branch?);
        }
        let of_outputs = finish.pop().ok_or("an aggregation without input")?;
        if finish.iter().any(|other| *other != of_outputs) || !branches.iter().all(|one| are_alike(one, &branches[0])) {
            return Err("a union whose branches are aggregated in several ways".into());
        }
        let first = self.pipelines.len();
        if branches.len() > 1 {
            self.unions.push(first..first + branches.len());
        }
        self.pipelines.extend(branches);
        Ok(of_outputs)
    }
}

/// An aggregation as a fragment of its own.
pub(crate) struct Aggregation {
    /// Device work.
    pub(crate) fragment: Fragment,
    /// The table behind each of the fragment's tables.
    pub(crate) tables: Vec<Arc<TableInfo>>,
    /// Scalar subqueries whose values the fragment takes.
    pub(crate) arguments: Vec<Subquery>,
    /// How each output is made.
    pub(crate) finish: Vec<Finish>,
}

impl Aggregation {
    /// Arranges and writes an aggregation.
    pub(crate) fn of(grouped: &Grouped) -> Result<Aggregation, Reason> {
        let (mut written, arguments) = (Written::default(), RefCell::default());
        let finish = written.aggregation(grouped, &arguments)?;
        let (fragment, tables) = written.fragment();
        Ok(Aggregation { fragment, tables, arguments: arguments.into_inner(), finish })
    }
}

/// Whether the comparison holds for any row of a key, whose smallest and largest value are the next registers.
fn any_compared(compared: &Compared, translator: &mut Translator) -> Result<Device, Reason> {
    let kept = translator.translate(&compared.kept)?;
    let (least, most) = (translator.unnamed(), translator.unnamed());
    let with = |op, extreme| Device::binary(op, kept.clone(), extreme);
    let any = match compared.op {
        Operator::NotEq => Device::binary(BinaryOp::Or, with(BinaryOp::Ne, least), with(BinaryOp::Ne, most)),
        Operator::Lt => with(BinaryOp::Lt, most),
        Operator::LtEq => with(BinaryOp::Le, most),
        Operator::Gt => with(BinaryOp::Gt, least),
        Operator::GtEq => with(BinaryOp::Ge, least),
        other => return Err(format!("a join by {other}")),
    };
    Ok(Device::Unary(UnaryOp::IsTrue, Box::new(any)))
}

/// Writes the pipelines of a tree.
pub(super) struct Writer<'a, 'g> {
    pub(super) tree: &'a Tree<'g>,
    pub(super) written: Written,
}

impl<'a> Writer<'a, '_> {
    /// The root's pipeline; all others are written.
    pub(super) fn root(
        &mut self,
        sink: &[Expr],
        make_sink: impl FnOnce(&mut Translator) -> Result<Sink, Reason>,
    ) -> Result<Pipeline, Reason> {
        let builds = self.builds(self.tree.root)?;
        let (steps, source, mut translator) = self.steps(self.tree.root, &builds, sink)?;
        let sink = make_sink(&mut translator)?;
        Ok(Pipeline { source, steps, sink })
    }

    /// Writes the pipelines of an aggregation whose groups are scanned; `translator` gets registers for their values.
    fn groups(&mut self, relation: usize, grouped: &Grouped, translator: &mut Translator) -> Result<usize, Reason> {
        let known = grouped.shared.and_then(|id| self.written.shared.get(&id).cloned());
        let (of_aggregation, finish) = match known {
            Some(known) => known,
            None => {
                let finish = self.written.aggregation(grouped, &self.tree.arguments)?;
                (self.written.pipelines.len() - 1, finish)
            }
        };
        self.written.shared.extend(grouped.shared.map(|id| (id, (of_aggregation, finish.clone()))));
        if let Sink::Aggregate { groups, aggregates } = &self.written.pipelines[of_aggregation].sink {
            (0..groups.len() + aggregates.len()).for_each(|_| _ = translator.unnamed());
        }
        for (position, finish) in finish.iter().enumerate() {
            let Expr::Column(column) = base_column(relation, &output_name(position)) else { continue };
            // What only the host computes may not be read at all.
            translator.compute(column, finish.over_registers(grouped.group_count()));
        }
        Ok(of_aggregation)
    }

    /// Writes the pipelines of a node's children; the result is their tables.
    fn builds(&mut self, relation: usize) -> Result<Vec<usize>, Reason> {
        self.tree.children(relation).into_iter().map(|child| self.build(child)).collect()
    }

    /// The steps of a node whose children's tables are `builds`, its source, and its registers.
    fn steps(
        &mut self,
        relation: usize,
        builds: &[usize],
        sink: &[Expr],
    ) -> Result<(Vec<Step>, Source, Translator<'a>), Reason> {
        let tree = self.tree;
        let node = &tree.nodes[&relation];
        let children = tree.children(relation);
        let probed = children.iter().map(|child| &tree.nodes[child]);
        let probe_keys = probed.clone().flat_map(|child| &child.probe_keys);
        let compared = probed.clone().filter_map(|child| child.compared.as_ref()).map(|compared| &compared.kept);
        let of_both = probed.filter_map(|child| child.residual.as_ref());
        let own_compared = node.compared.iter().map(|compared| &compared.own);
        let read = node
            .filters
            .iter()
            .chain(&node.own_keys)
            .chain(own_compared)
            .chain(probe_keys)
            .chain(compared)
            .chain(of_both)
            .chain(sink);
        let own: BTreeSet<Column> = read
            .flat_map(columns)
            .chain(node.payload.iter().cloned())
            .filter(|column| relation_of(column) == Some(relation))
            .collect();
        let mut translator = Translator::new(&tree.graph.schema, &tree.graph.options, &tree.arguments);
        let source = match &tree.graph.relations[relation] {
            Relation::Table(info) => Source::Table(self.table(info, &own, &mut translator)?),
            Relation::Groups(grouped) => Source::Output(self.groups(relation, grouped, &mut translator)?),
            Relation::Inner(rows) => Source::Output(self.inner(relation, rows, &mut translator)?),
            Relation::Mark => return Err("a mark without a join".into()),
        };
        let is_own = |filter: &&Expr| relations(filter).iter().all(|read| *read == relation);
        let mut steps = Vec::new();
        for filter in node.filters.iter().filter(is_own) {
            steps.push(Step::Filter(translator.translate(filter)?));
        }
        for (child, build) in children.iter().zip(builds.iter().copied()) {
            let child = &tree.nodes[child];
            let keys = child.probe_keys.iter().map(|key| translator.translate(key)).collect::<Result<_, _>>()?;
            let mark = child.mark.map(mark_column);
            if let Some(compared) = &child.compared {
                let probe = Probe { build, keys, kind: JoinKind::Left, unique: true, residual: None };
                steps.push(Step::Probe(probe));
                let any = any_compared(compared, &mut translator)?;
                match (mark, child.kind) {
                    (Some(Expr::Column(mark)), _) => translator.compute(mark, Ok(any)),
                    (_, JoinKind::Anti) => steps.push(Step::Filter(Device::Unary(UnaryOp::Not, Box::new(any)))),
                    _ => steps.push(Step::Filter(any)),
                }
                continue;
            }
            child.columns_of_table().for_each(|column| translator.add(column.clone()));
            if let Some(Expr::Column(mark)) = mark {
                translator.add(mark);
            }
            let residual = child.residual.as_ref().map(|residual| translator.translate(residual)).transpose()?;
            steps.push(Step::Probe(Probe { build, keys, kind: child.kind, unique: false, residual }));
        }
        for filter in node.filters.iter().filter(|filter| !is_own(filter)) {
            steps.push(Step::Filter(translator.translate(filter)?));
        }
        steps.extend(node.limit.map(|RowLimit { skip, rows }| Step::Limit { skip, rows }));
        Ok((steps, source, translator))
    }

    /// Adds a table of the fragment with these columns, and their registers.
    fn table(
        &mut self,
        info: &Arc<TableInfo>,
        columns: &BTreeSet<Column>,
        translator: &mut Translator,
    ) -> Result<usize, Reason> {
        let schema = info.provider.schema();
        let mut positions = Vec::with_capacity(columns.len());
        for column in columns {
            let position = schema.index_of(&column.name).map_err(|error| error.to_string())?;
            let data_type = schema.field(position).data_type();
            if warpcube_column::Storage::of(data_type).is_none() {
                return Err(format!("column '{}' has type {data_type}", column.name));
            }
            positions.push(position);
            translator.add(column.clone());
        }
        let written = &mut self.written;
        written.tables.push(FragmentTable { name: info.name.clone(), columns: positions });
        written.infos.push(info.clone());
        Ok(written.tables.len() - 1)
    }

    fn build(&mut self, relation: usize) -> Result<usize, Reason> {
        let builds = self.builds(relation)?;
        let built = self.built(relation, &builds);
        let known = self.written.built.iter().find(|(known, _)| Some(known) == built.as_ref());
        if let Some((_, pipeline)) = known {
            return Ok(*pipeline);
        }
        let (steps, source, translator) = self.steps(relation, &builds, &[])?;
        let node = &self.tree.nodes[&relation];
        let keys = node.own_keys.iter().map(|key| translator.translate(key)).collect::<Result<_, _>>()?;
        if let Some(compared) = &node.compared {
            let (own, data_type) = (translator.translate(&compared.own)?, translator.data_type(&compared.own)?);
            let types = node.own_keys.iter().map(|key| translator.data_type(key)).collect::<Result<Vec<_>, _>>()?;
            let groups = std::iter::zip::<Vec<Device>, _>(keys, types).collect();
            let extreme = |kind| {
                let (argument, data_type) = (Some(own.clone()), data_type.clone());
                AggregateCall { kind, argument, filter: None, data_type }
            };
            let aggregates = vec![extreme(AggregateKind::Min), extreme(AggregateKind::Max)];
            return Ok(self.push(Pipeline { source, steps, sink: Sink::Aggregate { groups, aggregates } }));
        }
        let columns = node.columns_of_table().map(|column| Expr::Column(column.clone()));
        let payload = columns.map(|column| translator.translate(&column)).collect::<Result<_, _>>()?;
        let pipeline = self.push(Pipeline { source, steps, sink: Sink::Build { keys, payload } });
        self.written.built.extend(built.map(|built| (built, pipeline)));
        Ok(pipeline)
    }

    /// What the join table of a node is made of, whose children's tables are `builds`; none where that has values of
    /// other tables, which other graphs number in another way.
    fn built(&self, relation: usize, builds: &[usize]) -> Option<Built> {
        let node = &self.tree.nodes[&relation];
        let Relation::Table(info) = &self.tree.graph.relations[relation] else { return None };
        let children: Vec<&Node> = self.tree.children(relation).iter().map(|child| &self.tree.nodes[child]).collect();
        let is_apart = node.compared.is_some()
            || node.limit.is_some()
            || children.iter().any(|child| child.compared.is_some() || child.residual.is_some());
        let payload: Vec<Expr> = node.columns_of_table().cloned().map(Expr::Column).collect();
        let probe_keys = children.iter().flat_map(|child| &child.probe_keys);
        let mut exprs = node.filters.iter().chain(&node.own_keys).chain(&payload).chain(probe_keys);
        let is_own = |expr: &Expr| relations(expr).iter().all(|read| *read == relation) && !contains_subquery(expr);
        if is_apart || !exprs.all(is_own) {
            return None;
        }
        let own = |expr: &Expr| renumber(expr, relation, OWN);
        let all = |exprs: &[Expr]| exprs.iter().map(own).collect();
        let probes = children.iter().zip(builds);
        Some(Built {
            table: (info.key.clone(), info.version.clone()),
            filters: all(&node.filters),
            keys: all(&node.own_keys),
            payload: all(&payload),
            probes: probes.map(|(child, build)| (*build, child.kind, all(&child.probe_keys))).collect(),
        })
    }

    pub(super) fn push(&mut self, pipeline: Pipeline) -> usize {
        self.written.pipelines.push(pipeline);
        self.written.pipelines.len() - 1
    }
}
