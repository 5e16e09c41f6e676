//! The end of a pipeline: rows enter a join table, go into accumulators, or are left as they are.

use std::sync::Arc;

use crate::error::{EngineError, Result};
use crate::facts::Facts;
use crate::ir::{Expr, Sink};
use crate::plan::groups::{Adding, Grouping, GroupsPlan};
use crate::plan::input::{Branch, PipelineInput};
use crate::plan::rows::{self, ListPlan, ResultPlan};
use crate::plan::run_plan::RunPlan;
use crate::plan::split::Split;
use crate::plan::table::{Keep, TablePlan};
use crate::plan::top::{self, TopPlan};
use crate::plan::{grouping, tables};

/// What a sink leaves.
#[derive(Debug, Clone)]
pub(crate) enum SinkPlan {
    /// A table.
    Table(Arc<TablePlan>),
    /// Groups, and how this pipeline adds to each of their cells.
    Groups(Arc<GroupsPlan>, Vec<Adding>),
    /// The first rows by an order.
    TopK(Arc<TopPlan>),
    /// Rows of a result.
    Rows(Arc<ResultPlan>),
    /// Rows that another pipeline scans.
    List(Arc<ListPlan>),
}

impl SinkPlan {
    /// Plans the sink of a pipeline.
    ///
    /// # Errors
    /// What no sink holds.
    pub(crate) fn of(input: &PipelineInput, registers: &[Option<Facts>], split: &Split) -> Result<SinkPlan> {
        Ok(match &input.pipeline.sink {
            Sink::Build { keys, payload } => {
                let keys: Vec<&Expr> = keys.iter().collect();
                let values = payload.iter().map(|value| Ok((value, Keep::Only)));
                SinkPlan::Table(Arc::new(tables::plan(input, registers, split, &keys, values.collect())?))
            }
            Sink::Aggregate { groups, aggregates } if input.probed => {
                let keys: Vec<&Expr> = groups.iter().map(|(key, _)| key).collect();
                let values = aggregates.iter().map(tables::kept_of);
                SinkPlan::Table(Arc::new(tables::plan(input, registers, split, &keys, values.collect())?))
            }
            Sink::Aggregate { groups, aggregates } => {
                let known = input.branch.and_then(|branch| branch.groups).cloned();
                let plan = || grouping::plan(input, (groups, aggregates), registers, split).map(Arc::new);
                let plan = known.map_or_else(plan, Ok)?;
                let adding = grouping::adding(input, &plan, split);
                SinkPlan::Groups(plan, adding)
            }
            Sink::TopK(top) => SinkPlan::TopK(Arc::new(top::plan(input, top, registers, split)?)),
            Sink::Rows { columns, .. } if input.scanned => {
                let (columns, registers) = match input.branch {
                    Some(Branch { union, .. }) => (&union.groups, union.columns.as_slice()),
                    None => (columns, registers),
                };
                let columns: Vec<&Expr> = columns.iter().map(|(expr, _)| expr).collect();
                SinkPlan::List(Arc::new(rows::list(input, &columns, registers)?))
            }
            Sink::Rows { .. } if input.branch.is_some() => {
                return Err(EngineError::Malformed("a union of rows that nothing scans".into()));
            }
            Sink::Rows { columns, limit } => {
                SinkPlan::Rows(Arc::new(rows::result(input, (columns, *limit), registers)?))
            }
        })
    }

    /// How rows are added up before they meet the table, if they are.
    pub(crate) fn runs(&self) -> Option<&RunPlan> {
        match self {
            SinkPlan::Table(table) => table.runs.as_ref(),
            SinkPlan::Groups(groups, _) => groups.runs.as_ref(),
            SinkPlan::TopK(_) | SinkPlan::Rows(_) | SinkPlan::List(_) => None,
        }
    }

    /// Whether a row may find no room.
    pub(crate) fn grows(&self) -> bool {
        match self {
            SinkPlan::Table(table) => table.grows,
            SinkPlan::Groups(groups, _) => groups.grows,
            SinkPlan::TopK(top) => top.grows,
            SinkPlan::Rows(rows) => rows.grows,
            SinkPlan::List(list) => list.grows,
        }
    }

    /// Matches past which its sums may be wrong; none if they are right for any number.
    pub(crate) fn matches_max(&self) -> Option<u64> {
        if let SinkPlan::Groups(groups, _) = self { groups.cells.matches_max } else { None }
    }

    /// Shared memory a warp for private cells or for runs, in bytes.
    pub(crate) fn warp_bytes(&self) -> usize {
        match self {
            SinkPlan::Table(table) => table.runs.as_ref().map_or(0, RunPlan::warp_bytes),
            SinkPlan::Groups(groups, _) => groups.warp_bytes(),
            _ => 0,
        }
    }

    /// Shared memory a block for the sums of its warps, in bytes, once nothing else lies there any more.
    pub(crate) fn warp_sum_bytes(&self) -> usize {
        if let SinkPlan::Groups(groups, _) = self { groups.warp_sum_bytes() } else { 0 }
    }

    /// Shared memory a block for its cells, in bytes.
    pub(crate) fn block_bytes(&self) -> usize {
        if let SinkPlan::Groups(groups, _) = self { groups.block_bytes() } else { 0 }
    }

    /// Whether all rows go into one group.
    pub(crate) fn is_single(&self) -> bool {
        matches!(self, SinkPlan::Groups(groups, _) if groups.grouping == Grouping::Single)
    }
}
