//! What decisions about a pipeline rest on.

use std::sync::Arc;

use arrow::datatypes::DataType;
use warpcube_gpu::DeviceInfo;

use crate::ir::{Expr, JoinKind, Overflow, Pipeline, Step};
use crate::plan::group_values::GroupValue;
use crate::plan::groups::GroupsPlan;
use crate::plan::growth::grown;
use crate::plan::table::{MatchesPlan, Tables, Unique};
use crate::plan::union::Union;
use crate::plan::view::ColumnView;
use crate::tuning::Tuning;

/// A pipeline over columns, with all that is known of them and guessed.
pub(crate) struct PipelineInput<'a> {
    /// Position in the fragment.
    pub(crate) index: usize,
    /// The pipeline.
    pub(crate) pipeline: &'a Pipeline,
    /// The columns of the scan.
    pub(crate) columns: &'a [ColumnView<'a>],
    /// Where groups are scanned, what their columns stand for: registers behind those of the columns.
    pub(crate) values: &'a [GroupValue],
    /// Rows of the scanned table, and of each of its chunks; most rows if the device alone knows how many there are.
    pub(crate) rows: u64,
    pub(crate) chunk_rows: &'a [u32],
    /// Tables planned so far, by pipeline.
    pub(crate) tables: &'a Tables,
    /// Whether vectors are left out whose bounds tell that they have no row.
    pub(crate) skips: bool,
    /// Whether the keys of the table this pipeline builds are to be unique.
    pub(crate) unique: Unique,
    /// Whether they come several times.
    pub(crate) several: bool,
    /// Whether the groups it leaves are scanned by another pipeline.
    pub(crate) scanned: bool,
    /// Positions of the keys of its order that those before them determine.
    pub(crate) determined: &'a [usize],
    /// What the result has for columns, if these are expressions over the groups it leaves.
    pub(crate) result: &'a [(Expr, DataType)],
    /// Whether a limit lets only some of its rows pass, or of those of another branch of its union.
    pub(crate) has_limit: bool,
    /// Whether its table or groups are probed.
    pub(crate) probed: bool,
    /// The union that it is a branch of.
    pub(crate) branch: Option<Branch<'a>>,
    /// The device.
    pub(crate) info: &'a DeviceInfo,
    /// Shared memory a block may use, in bytes.
    pub(crate) shared_limit: usize,
    /// Slots of a hashed group table, and rows of a guessed number, before anything has grown.
    pub(crate) group_slots: u64,
    /// How often the room of its sink has grown.
    pub(crate) growth: u32,
    /// Whether a pipeline that is launched before may have stopped without room: this one then does nothing.
    pub(crate) behind: bool,
    /// What hashes of keys are seeded with.
    pub(crate) seed: u64,
    /// Whether exact sums of floats keep limbs for every finite value.
    pub(crate) whole_sums: bool,
    /// Thresholds of a top-k that have failed.
    pub(crate) failed_thresholds: u32,
    /// Whether more groups are sorted than one block sorts.
    pub(crate) many_sorted: bool,
    /// What integers do that overflow.
    pub(crate) overflow: Overflow,
    /// What does not change results.
    pub(crate) tuning: &'a Tuning,
}

/// A branch of a union.
#[derive(Clone, Copy)]
pub(crate) struct Branch<'a> {
    /// The union.
    pub(crate) union: &'a Union,
    /// Number of the branch.
    pub(crate) number: usize,
    /// The groups of all branches, once the first was planned.
    pub(crate) groups: Option<&'a Arc<GroupsPlan>>,
}

/// Tables in which a row of a pipeline may have several matches.
fn multipliers<'a>(pipeline: &Pipeline, tables: &'a Tables) -> impl Iterator<Item = &'a MatchesPlan> {
    let probes = pipeline.steps.iter().filter_map(|step| match step {
        Step::Probe(probe) if matches!(probe.kind, JoinKind::Inner | JoinKind::Left) => Some(probe),
        _ => None,
    });
    probes.filter_map(|probe| tables.get(probe.build)?.as_ref()?.matches.as_ref())
}

/// Most rows that come to the sink of a pipeline whose scan has so many.
pub(crate) fn rows_out(pipeline: &Pipeline, rows: u64, tables: &Tables) -> u64 {
    let most = i64::MAX as u64;
    let all =
        multipliers(pipeline, tables).fold(rows, |rows, matches| rows.saturating_mul(matches.rows.max(1)).min(most));
    limit(pipeline).map_or(all, |limit| limit.min(all))
}

/// Most rows that come to the sink of a pipeline and are none of a join with several matches; none if there is no such
/// join.
pub(crate) fn unmatched_rows(pipeline: &Pipeline, tables: &Tables) -> Option<u64> {
    multipliers(pipeline, tables).next().map(|_| 0)
}

/// Rows that a limit lets pass.
pub(crate) fn limit(pipeline: &Pipeline) -> Option<u64> {
    pipeline.steps.iter().find_map(|step| match step {
        Step::Limit { rows, .. } => Some(*rows),
        Step::Filter(_) | Step::Probe(_) => None,
    })
}

impl PipelineInput<'_> {
    /// Whether a row may come to the sink several times.
    pub(crate) fn multiplies(&self) -> bool {
        multipliers(self.pipeline, self.tables).next().is_some()
    }

    /// Whether rows of the scan may not come to the sink, or the device alone knows how many there are.
    pub(crate) fn may_lack_rows(&self) -> bool {
        self.pipeline.source.table().is_none() || !self.pipeline.steps.is_empty()
    }

    /// Most rows that come to the sink, those of all branches of a union.
    pub(crate) fn rows_out(&self) -> u64 {
        match self.branch {
            Some(branch) => branch.union.rows_out,
            None => rows_out(self.pipeline, self.rows, self.tables),
        }
    }

    /// Most rows that come to the sink and are none of a join with several matches, those of all branches of a union;
    /// none if there is no such join.
    pub(crate) fn unmatched_rows(&self) -> Option<u64> {
        match self.branch {
            Some(branch) => branch.union.unmatched_rows,
            None => unmatched_rows(self.pipeline, self.tables),
        }
    }

    /// Rows that a sink has room for at first where their number is guessed: all that a limit lets pass, of which none
    /// would be known again by a scan that goes on.
    pub(crate) fn rows_at_first(&self) -> u64 {
        if self.has_limit { u64::MAX } else { self.group_slots }
    }

    /// The same after the room has grown.
    pub(crate) fn guessed_rows(&self) -> u64 {
        grown(self.rows_at_first(), self.growth)
    }

    /// What the hashes of the sink's table are seeded with: another number each time that it has grown, because a table
    /// that is large enough is too full only for keys that collide.
    pub(crate) fn table_seed(&self) -> u64 {
        self.seed ^ u64::from(self.growth).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// Whether reading a register can raise an error: a sum of the scanned groups that may leave its type.
    pub(crate) fn is_fallible(&self, register: usize) -> bool {
        let value = register.checked_sub(self.columns.len()).and_then(|value| self.values.get(value));
        value.is_some_and(GroupValue::is_fallible)
    }

    /// Calls `visit` for the columns that a register is computed from, or the register if it is a column or payload.
    pub(crate) fn read_by(&self, register: usize, visit: &mut impl FnMut(usize)) {
        match register.checked_sub(self.columns.len()).and_then(|value| self.values.get(value)) {
            Some(value) => value.columns(visit),
            None => visit(register),
        }
    }
}
