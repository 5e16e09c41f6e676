//! Pipelines of a tree of relations.
//!
//! Each relation but the root becomes a join table, which the pipeline of its parent probes; builds come first.
//! Branches of a union are written side by side, groups and shared tables once for all that scan them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use datafusion::logical_expr::{Expr, Operator};
use warpcube_engine::{
    AggregateCall, AggregateKind, BinaryOp, Expr as Device, Fragment, FragmentTable, JoinKind, Overflow, Pipeline,
    Probe, Sink, Source, Step, UnaryOp,
};

use super::Reason;
use super::arguments::{Argument, ArgumentList};
use super::columns::{BaseColumn, ColumnId, RelationId, columns, data_type, relations, renumber};
use super::expr::{Translator, contains_subquery};
use super::finish::Finish;
use super::graph::{Compared, Grouped, Relation, RowLimit, mark_id};
use super::tables::TableInfo;
use super::tree::{Node, Tree};

impl Tree<'_> {
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
    pub(super) pipelines: Vec<Pipeline>,
    pub(super) unions: Vec<Range<usize>>,
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
const OWN: RelationId = RelationId(usize::MAX);

impl Written {
    fn fragment(self) -> (Fragment, Vec<Arc<TableInfo>>) {
        let Written { pipelines, unions, tables, infos, .. } = self;
        (Fragment { tables, pipelines, unions, result: Vec::new(), overflow: Overflow::default() }, infos)
    }

    /// Adds pipelines that leave the same groups or rows; the last one stands for all.
    pub(super) fn union(&mut self, branches: Vec<Pipeline>) -> usize {
        let first = self.pipelines.len();
        if branches.len() > 1 {
            self.unions.push(first..first + branches.len());
        }
        self.pipelines.extend(branches);
        self.pipelines.len() - 1
    }

    /// Writes an aggregation with all below it; branches of a union are the last pipelines, side by side. The result
    /// tells how each output is made from groups and aggregates.
    fn aggregation(&mut self, grouped: &Grouped, arguments: &ArgumentList) -> Result<Vec<Finish>, Reason> {
        let (mut branches, mut finish, mut over) = (Vec::new(), Vec::<Vec<Finish>>::new(), None);
        for input in &grouped.inputs {
            let reads = input.reads()?;
            let mut tree = Tree::plan(&input.graph, &input.core, &reads)?;
            // Arguments are numbered in one list.
            tree.arguments = arguments.take();
            let mut writer = Writer { tree: &tree, written: std::mem::take(self) };
            let branch = writer.root(&reads, |translator| {
                let ends = grouped.ends(input, translator)?;
                finish.push(ends.finish);
                over = ends.over;
                Ok(ends.sink)
            });
            *self = writer.written;
            arguments.replace(tree.arguments);
            branches.push(branch?);
        }
        let of_outputs = finish.pop().ok_or("an aggregation without input")?;
        if finish.iter().any(|other| *other != of_outputs) || !branches.iter().all(|one| are_alike(one, &branches[0])) {
            return Err("a union whose branches are aggregated in several ways".into());
        }
        self.union(branches);
        match (&grouped.sets, over) {
            (Some(sets), over) => sets.write(&mut self.pipelines, &mut self.unions, &grouped.types, over.as_ref())?,
            (None, Some(over)) => {
                let source = Source::Output(self.pipelines.len() - 1);
                let groups = grouped.types[..grouped.group_count].iter().cloned().enumerate();
                let groups = groups.map(|(key, data_type)| (Device::Reg(key), data_type)).collect();
                let sink = Sink::Aggregate { groups, aggregates: over.behind(grouped.group_count) };
                self.pipelines.push(Pipeline { source, steps: Vec::new(), sink });
            }
            (None, None) => {}
        }
        Ok(of_outputs)
    }
}

/// An aggregation as a fragment of its own.
pub(crate) struct Aggregation {
    /// Device work.
    pub(crate) fragment: Fragment,
    /// The table behind each of the fragment's tables.
    pub(crate) tables: Vec<Arc<TableInfo>>,
    /// What the fragment takes before it is bound.
    pub(crate) arguments: Vec<Argument>,
    /// How each output is made.
    pub(crate) finish: Vec<Finish>,
}

impl Aggregation {
    /// Arranges and writes an aggregation.
    pub(crate) fn of(grouped: &Grouped) -> Result<Aggregation, Reason> {
        let (mut written, arguments) = (Written::default(), ArgumentList::default());
        let finish = written.aggregation(grouped, &arguments)?;
        let (fragment, tables) = written.fragment();
        Ok(Aggregation { fragment, tables, arguments: arguments.into_inner(), finish })
    }
}

/// Whether two pipelines end in the same aggregates.
fn are_alike(one: &Pipeline, other: &Pipeline) -> bool {
    let calls = |pipeline: &Pipeline| match &pipeline.sink {
        Sink::Aggregate { aggregates, .. } => {
            aggregates.iter().map(|call| (call.kind, call.data_type.clone())).collect::<Vec<_>>()
        }
        _ => Vec::new(),
    };
    calls(one) == calls(other)
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
    fn groups(
        &mut self,
        relation: RelationId,
        grouped: &Grouped,
        translator: &mut Translator,
    ) -> Result<usize, Reason> {
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
            // What only the host computes may not be read at all.
            let value = finish.over_registers(grouped.group_count);
            translator.compute(ColumnId { relation, position }, value);
        }
        Ok(of_aggregation)
    }

    /// Writes the pipelines of a node's children; the result is their tables.
    fn builds(&mut self, relation: RelationId) -> Result<Vec<usize>, Reason> {
        self.tree.children(relation).into_iter().map(|child| self.build(child)).collect()
    }

    /// The steps of a node whose children's tables are `builds`, its source, and its registers.
    fn steps(
        &mut self,
        relation: RelationId,
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
        let own: BTreeSet<BaseColumn> = read
            .flat_map(columns)
            .chain(node.payload.iter().cloned())
            .filter(|column| column.id.relation == relation)
            .collect();
        let mut translator = Translator::new(&tree.graph.options, &tree.arguments);
        let source = match tree.graph.relation(relation) {
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
            let mark = child.mark.map(mark_id);
            if let Some(compared) = &child.compared {
                let probe = Probe { build, keys, kind: JoinKind::Left, unique: true, residual: None };
                steps.push(Step::Probe(probe));
                let any = any_compared(compared, &mut translator)?;
                match (mark, child.kind) {
                    (Some(mark), _) => translator.compute(mark, Ok(any)),
                    (_, JoinKind::Anti) => steps.push(Step::Filter(Device::Unary(UnaryOp::Not, Box::new(any)))),
                    _ => steps.push(Step::Filter(any)),
                }
                continue;
            }
            child.columns_of_table().for_each(|column| translator.add(column.id));
            mark.into_iter().for_each(|mark| translator.add(mark));
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
        columns: &BTreeSet<BaseColumn>,
        translator: &mut Translator,
    ) -> Result<usize, Reason> {
        let mut positions = Vec::with_capacity(columns.len());
        for BaseColumn { id, field } in columns {
            if warpcube_column::Storage::of(field.data_type()).is_none() {
                return Err(format!("column '{}' has type {}", field.name(), field.data_type()));
            }
            positions.push(id.position);
            translator.add(*id);
        }
        let written = &mut self.written;
        written.tables.push(FragmentTable { name: info.name.clone(), columns: positions });
        written.infos.push(info.clone());
        Ok(written.tables.len() - 1)
    }

    fn build(&mut self, relation: RelationId) -> Result<usize, Reason> {
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
            let types = node.own_keys.iter().map(data_type).collect::<Result<Vec<_>, _>>()?;
            let (own, data_type) = (translator.translate(&compared.own)?, data_type(&compared.own)?);
            let groups = std::iter::zip::<Vec<Device>, _>(keys, types).collect();
            let extreme = |kind| {
                let (argument, data_type) = (Some(own.clone()), data_type.clone());
                AggregateCall { kind, argument, filter: None, data_type, unites: false }
            };
            let aggregates = vec![extreme(AggregateKind::Min), extreme(AggregateKind::Max)];
            return Ok(self.push(Pipeline { source, steps, sink: Sink::Aggregate { groups, aggregates } }));
        }
        let columns = node.columns_of_table().cloned().map(Expr::from);
        let payload = columns.map(|column| translator.translate(&column)).collect::<Result<_, _>>()?;
        let pipeline = self.push(Pipeline { source, steps, sink: Sink::Build { keys, payload } });
        self.written.built.extend(built.map(|built| (built, pipeline)));
        Ok(pipeline)
    }

    /// What the join table of a node is made of, whose children's tables are `builds`; none where that has values of
    /// other tables, which other graphs number in another way.
    fn built(&self, relation: RelationId, builds: &[usize]) -> Option<Built> {
        let node = &self.tree.nodes[&relation];
        let Relation::Table(info) = self.tree.graph.relation(relation) else { return None };
        let children: Vec<&Node> = self.tree.children(relation).iter().map(|child| &self.tree.nodes[child]).collect();
        let is_apart = node.compared.is_some()
            || node.limit.is_some()
            || children.iter().any(|child| child.compared.is_some() || child.residual.is_some());
        let payload: Vec<Expr> = node.columns_of_table().cloned().map(Expr::from).collect();
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
