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
//! Groups are scanned where they were accumulated. Any other table is a list of rows.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan};
use warpcube_engine::Sink;

use super::calls::as_function;
use super::columns::{BaseColumn, ColumnId, RelationId, renumber, text};
use super::expr::Translator;
use super::graph::{Core, Graph, Relation, SharedRows};
use super::tables::TableFacts;
use super::tree::Tree;
use super::writer::Writer;
use super::{Reason, reducers};
use crate::shared::{Shared, SharedTable};
use crate::values::FloatSums;
use crate::walk::PlanWalk;

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
        reducers::reduce(&mut graph, &mut own);
        let fields = table.plan.schema().fields();
        let types: Vec<DataType> = fields.iter().map(|field| field.data_type().clone()).collect();
        let rows = SharedRows { id: table.id, graph, core: own, outputs, types };
        let relation = self.add(Relation::Shared(Box::new(rows)), core);
        Ok(BaseColumn::all(relation, fields))
    }
}

impl Writer<'_, '_> {
    /// Writes the pipelines of a shared table, once; `translator` gets registers for its columns.
    pub(super) fn shared(
        &mut self,
        relation: RelationId,
        rows: &SharedRows,
        translator: &mut Translator,
    ) -> Result<usize, Reason> {
        let known = self.written.shared.get(&rows.id).map(|(pipeline, _)| *pipeline);
        let pipeline = match known {
            Some(known) => known,
            None => {
                let mut tree = Tree::plan(&rows.graph, &rows.core, &rows.outputs)?;
                // Arguments are numbered in one list.
                tree.arguments = self.tree.arguments.take();
                let mut writer = Writer { tree: &tree, written: std::mem::take(&mut self.written) };
                let root = writer.root(&rows.outputs, |translator| {
                    let columns = rows.outputs.iter().zip(&rows.types);
                    let columns = columns.map(|(expr, ty)| Ok((translator.translate(expr)?, ty.clone())));
                    Ok(Sink::Rows { columns: columns.collect::<Result<_, Reason>>()?, limit: None })
                });
                self.written = writer.written;
                self.tree.arguments.replace(tree.arguments);
                self.push(root?)
            }
        };
        self.written.shared.insert(rows.id, (pipeline, Vec::new()));
        for position in 0..rows.types.len() {
            translator.add(ColumnId { relation, position });
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
