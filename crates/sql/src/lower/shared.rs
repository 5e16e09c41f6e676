//! Shared tables within one part for the device: one pipeline leaves their rows, and all readers scan them.
//!
//! ```text
//! Aggregate: sum(a.n)                      groups of c  ←  scan t
//!   Join: a.k = b.k                        table 1      ←  scan groups of c
//!     TableScan: c (a reader)        →     the result   ←  scan groups of c, probe table 1
//!     TableScan: c (a reader)
//! ```
//!
//! A part may have a shared table to itself if it has all readers of it: other parts would not see the same rows. A
//! table that has the same rows each time is copied where the part has some of its readers alone, so that the part
//! stays on the device; sums of floats differ from run to run in their last bits, and are not copied.
//!
//! Groups are scanned where they were accumulated. Any other table is a list of rows. The first rows of an order that
//! another operator reads are left by a pipeline of their own, too.

use arrow::datatypes::FieldRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::{Expr, LogicalPlan, Sort, SortExpr, TableScan};
use warpcube_engine::{OrderKey, Sink, TopK};

use super::calls::as_function;
use super::columns::{ColumnId, RelationId, renumber, rewrite, text};
use super::expr::Translator;
use super::graph::{Core, Graph, InnerOrder, InnerRows, InnerWindows, Relation};
use super::tables::TableFacts;
use super::tree::Tree;
use super::writer::Writer;
use super::{Reason, reducers};
use crate::shared::{Shared, SharedTable};
use crate::values::FloatSums;
use crate::walk::PlanWalk;

/// Most first rows that are found on the device, those that an OFFSET skips included.
pub(super) const ROWS_MAX: usize = 1 << 20;

impl Graph {
    /// Adds what a reader of a shared table scans to `core`; the result has an expression for each of its columns.
    pub(super) fn shared(
        &mut self,
        scan: &TableScan,
        table: &SharedTable,
        facts: &TableFacts,
        core: &mut Core,
    ) -> Result<Vec<Expr>, Reason> {
        let known = facts.shared.tables.iter().find(|known| known.id == table.id);
        let known = known.filter(|_| !facts.apart).ok_or("a table that is computed once, for several readers")?;
        if scan.fetch.is_some() && !self.is_limited {
            return Err("a scan with a limit".into());
        }
        let is_within = facts.shared.within.borrow().contains(&table.id);
        let all = match is_within {
            true => self.rows_of(known, facts, core)?,
            false if known.must || sums_floats(&known.plan, facts)? => {
                return Err("a table that is computed once, for several readers".into());
            }
            false => self.flatten(&known.plan, facts, core)?,
        };
        // Its filters stand above it.
        Ok(match &scan.projection {
            Some(projection) => projection.iter().map(|column| all[*column].clone()).collect(),
            None => all,
        })
    }

    fn rows_of(&mut self, table: &Shared, facts: &TableFacts, core: &mut Core) -> Result<Vec<Expr>, Reason> {
        let (mut graph, mut own) = (Graph::new(facts.options.clone()), Core::default());
        let outputs = graph.flatten(&table.plan, facts, &mut own)?;
        let is_alone = own.members.len() == 1 && own.edges.is_empty() && own.hanging.is_empty() && own.limit.is_none();
        let groups = own.members.first().copied().filter(|member| {
            is_alone && matches!(graph.relation(*member), Relation::Groups(grouped) if grouped.shared.is_none())
        });
        if let Some(member) = groups
            && let Relation::Groups(mut grouped) = graph.take(member)
        {
            grouped.shared = Some(table.id);
            let relation = self.add(Relation::Groups(grouped), core);
            core.filters.extend(own.filters.iter().map(|filter| renumber(filter, member, relation)));
            return Ok(outputs.iter().map(|output| renumber(output, member, relation)).collect());
        }
        let fields = table.plan.schema().fields();
        Ok(self.inner_rows(InnerRows::of(graph, own, outputs, fields, Some(table.id)), fields, core))
    }

    /// Adds the first rows of an order to `core`, of which so many are found and some of these left out; the result has
    /// an expression for each of their columns.
    pub(super) fn first_rows(
        &mut self,
        sort: &Sort,
        (rows, skip): (u64, u64),
        facts: &TableFacts,
        core: &mut Core,
    ) -> Result<Vec<Expr>, Reason> {
        if rows > ROWS_MAX as u64 {
            return Err(format!("the first {rows} rows of an order, where {ROWS_MAX} are the most"));
        }
        let (mut graph, mut own) = (Graph::new(facts.options.clone()), Core::default());
        let mut outputs = graph.flatten(&sort.input, facts, &mut own)?;
        own.without_limit("an order")?;
        let (schema, fields) = (sort.input.schema(), sort.input.schema().fields());
        // A top-k knows rows by their numbers, which those of a join get in a list.
        if own.multiplies() {
            let rows = InnerRows::of(graph, own, outputs, fields, None);
            (graph, own) = (Graph::new(facts.options.clone()), Core::default());
            outputs = graph.inner_rows(rows, fields, &mut own);
        }
        let key = |key: &SortExpr| Ok::<_, Reason>(key.with_expr(rewrite(&key.expr, schema, &outputs)?));
        let keys = sort.expr.iter().map(key).collect::<Result<_, _>>()?;
        let order = InnerOrder { keys, rows, skip, algorithm: facts.topk };
        let inner = InnerRows::of(graph, own, outputs, fields, None);
        Ok(self.inner_rows(InnerRows { order: Some(order), ..inner }, fields, core))
    }
}

impl InnerRows {
    /// All rows of a core; `fields` are their columns.
    pub(super) fn of(
        mut graph: Graph,
        mut core: Core,
        outputs: Vec<Expr>,
        fields: &[FieldRef],
        id: Option<usize>,
    ) -> InnerRows {
        reducers::reduce(&mut graph, &mut core);
        let types = fields.iter().map(|field| field.data_type().clone()).collect();
        InnerRows { id, graph, core, outputs, types, order: None, windows: None, others: Vec::new() }
    }

    /// The rows of a union, by those of each branch; none if there are no branches.
    pub(super) fn united(branches: Vec<InnerRows>) -> Option<InnerRows> {
        let mut branches = branches.into_iter();
        let first = branches.next()?;
        Some(InnerRows { others: branches.collect(), ..first })
    }

    /// The sink that leaves them.
    fn sink(&self, translator: &Translator) -> Result<Sink, Reason> {
        let arguments = self.windows.iter().flat_map(|windows| &windows.arguments).map(|(expr, ty)| (expr, ty));
        let columns = self.outputs.iter().zip(&self.types).chain(arguments);
        let columns = columns.map(|(expr, ty)| Ok((translator.translate(expr)?, ty.clone())));
        let columns = columns.collect::<Result<Vec<_>, Reason>>()?;
        let key = |key: &SortExpr| {
            let expr = translator.translate(&key.expr)?;
            Ok(OrderKey { expr, descending: !key.asc, nulls_first: key.nulls_first })
        };
        let keys = self.keys().map(key).collect::<Result<_, Reason>>()?;
        let outputs = columns;
        Ok(match (&self.order, &self.windows) {
            (None, None) => Sink::Rows { columns: outputs, limit: None },
            (Some(InnerOrder { rows, skip, algorithm, .. }), _) => {
                let (k, windows) = (Some(*rows), Vec::new());
                Sink::TopK(TopK { keys, k, skip: *skip, outputs, windows, first: None, algorithm: *algorithm })
            }
            (None, Some(windows)) => {
                let (first, windows) = (windows.first, windows.calls.clone());
                Sink::TopK(TopK { keys, k: None, skip: 0, outputs, windows, first, algorithm: None })
            }
        })
    }

    /// The keys of its order.
    fn keys(&self) -> impl Iterator<Item = &SortExpr> {
        let of_windows = self.windows.iter().flat_map(|windows| &windows.keys).map(|key| &key.key);
        self.order.iter().flat_map(|order| &order.keys).chain(of_windows)
    }

    /// The expressions that its sink reads.
    fn reads(&self) -> Vec<Expr> {
        let keys = self.keys().map(|key| &key.expr);
        let arguments = self.windows.iter().flat_map(|windows| &windows.arguments).map(|(expr, _)| expr);
        self.outputs.iter().chain(arguments).chain(keys).cloned().collect()
    }
}

impl Writer<'_, '_> {
    /// Writes the pipelines of rows, once; `translator` gets registers for their columns.
    pub(super) fn inner(
        &mut self,
        relation: RelationId,
        rows: &InnerRows,
        translator: &mut Translator,
    ) -> Result<usize, Reason> {
        let known = rows.id.and_then(|id| self.written.shared.get(&id)).map(|(pipeline, _)| *pipeline);
        let pipeline = match known {
            Some(known) => known,
            None => {
                let mut branches = Vec::with_capacity(1 + rows.others.len());
                for rows in std::iter::once(rows).chain(&rows.others) {
                    let reads = rows.reads();
                    let mut tree = Tree::plan(&rows.graph, &rows.core, &reads)?;
                    // Arguments are numbered in one list.
                    tree.arguments = self.tree.arguments.take();
                    let mut writer = Writer { tree: &tree, written: std::mem::take(&mut self.written) };
                    let root = writer.root(&reads, |translator| rows.sink(translator));
                    self.written = writer.written;
                    self.tree.arguments.replace(tree.arguments);
                    branches.push(root?);
                }
                self.written.union(branches)
            }
        };
        self.written.shared.extend(rows.id.map(|id| (id, (pipeline, Vec::new()))));
        for position in 0..rows.types.len() {
            translator.add(ColumnId { relation, position });
        }
        let Some(InnerWindows { arguments, calls, finish, .. }) = &rows.windows else { return Ok(pipeline) };
        (0..arguments.len() + calls.len()).for_each(|_| _ = translator.unnamed());
        let outputs = rows.types.len() + arguments.len();
        for (number, finish) in finish.iter().enumerate() {
            let position = rows.types.len() + number;
            translator.compute(ColumnId { relation, position }, finish.over_registers(outputs));
        }
        Ok(pipeline)
    }
}

/// Whether a plan adds up floats, in the order in which rows come.
fn sums_floats(plan: &LogicalPlan, facts: &TableFacts) -> Result<bool, Reason> {
    if facts.float_sums == FloatSums::Exact {
        return Ok(false);
    }
    let mut found = false;
    let walked = plan.apply_nested(|plan| {
        if let LogicalPlan::Aggregate(aggregate) = plan {
            let types = aggregate.schema.fields().iter().skip(aggregate.group_expr.len());
            for (call, field) in aggregate.aggr_expr.iter().zip(types) {
                let is_extreme = as_function(call).is_ok_and(|call| matches!(call.func.name(), "min" | "max"));
                found |= field.data_type().is_floating() && !is_extreme;
            }
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walked.map_err(text)?;
    Ok(found)
}
