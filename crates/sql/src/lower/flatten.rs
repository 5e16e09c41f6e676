//! Plans as graphs: what projects, filters and names dissolves into expressions over base columns.

use arrow::datatypes::SchemaRef;
use datafusion::common::JoinType;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, FetchType, Limit, LogicalPlan, SkipType};

use super::columns::{BaseColumn, rewrite, text};
use super::graph::{Core, Graph, Grouped, InnerRows, Relation, RowLimit, source_of};
use super::tables::TableFacts;
use super::{Reason, unions};
use crate::shared::SharedTable;
use crate::walk::Walk;

impl Graph {
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
                let relation = self.add(Relation::Table(table.clone()), core);
                let all = BaseColumn::all(relation, schema.fields());
                for filter in scan.filters.iter().flat_map(split_conjunction) {
                    core.filters.push(rewrite_by_name(filter, &schema, &all)?);
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
                let relation = self.add(Relation::Groups(Box::new(grouped)), core);
                Ok(BaseColumn::all(relation, aggregate.schema.fields()))
            }
            LogicalPlan::Union(_) if !facts.apart => self.union(plan, facts, core),
            LogicalPlan::Join(join) if join.join_type == JoinType::Full && !facts.apart => {
                self.union(plan, facts, core)
            }
            LogicalPlan::Join(join) => self.join(join, facts, core),
            LogicalPlan::Window(window) if !facts.apart => self.windows(window, facts, core),
            LogicalPlan::Sort(sort) => match sort.fetch {
                None => self.flatten(&sort.input, facts, core),
                Some(fetch) if facts.apart || fetch == 0 => Err("its input has first rows".into()),
                Some(fetch) => self.first_rows(sort, (fetch as u64, 0), facts, core),
            },
            LogicalPlan::Limit(limit) => self.limit(limit, facts, core),
            other => Err(format!("its input has a {}", kind_of(other))),
        }
    }

    /// Adds the rows of a union, as pipelines of their own leave them.
    fn union(&mut self, plan: &LogicalPlan, facts: &TableFacts, core: &mut Core) -> Result<Vec<Expr>, Reason> {
        let (mut all, fields) = (Vec::new(), plan.schema().fields());
        for branch in unions::branches(plan)?.unwrap_or_default() {
            let (mut graph, mut own) = (Graph::new(facts.options.clone()), Core::default());
            let outputs = graph.flatten(&branch, facts, &mut own)?;
            own.without_limit("a union")?;
            all.push(InnerRows::of(graph, own, outputs, fields, None));
        }
        let rows = InnerRows::united(all).ok_or("a union without branches")?;
        Ok(self.inner_rows(rows, fields, core))
    }

    fn limit(&mut self, limit: &Limit, facts: &TableFacts, core: &mut Core) -> Result<Vec<Expr>, Reason> {
        if lets_one_row_pass(limit) {
            return self.flatten(&limit.input, facts, core);
        }
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

/// Whether a limit does nothing: below it is one row, and it lets a first row pass. DataFusion pushes the limit of a
/// cross join into both sides.
pub(super) fn lets_one_row_pass(limit: &Limit) -> bool {
    let (fetch, skip) = (limit.get_fetch_type(), limit.get_skip_type());
    let is_one = matches!(source_of(&limit.input), LogicalPlan::Aggregate(one) if one.group_expr.is_empty());
    is_one && matches!((fetch, skip), (Ok(FetchType::Literal(Some(1..) | None)), Ok(SkipType::Literal(0))))
}

/// A filter of a scan, whose columns are named without regard to the projection.
fn rewrite_by_name(expr: &Expr, schema: &SchemaRef, columns: &[Expr]) -> Result<Expr, Reason> {
    let rewritten = expr
        .clone()
        .unalias_nested()
        .data
        .transform_up(|expr| match &expr {
            Expr::Column(column) => {
                let base = columns[schema.index_of(&column.name)?].clone();
                Ok(Transformed::new(base, true, TreeNodeRecursion::Jump))
            }
            _ => Ok(Transformed::no(expr)),
        })
        .map_err(text)?;
    Ok(rewritten.data)
}

fn kind_of(plan: &LogicalPlan) -> String {
    let line = plan.display().to_string();
    let end = line.find([':', ' ', '(']).unwrap_or(line.len());
    line[..end].to_string()
}
