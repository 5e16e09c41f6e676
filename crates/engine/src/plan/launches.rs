//! Launches: pipelines that do not depend on each other run side by side in one kernel.
//!
//! The kernel of a launch group gives its first blocks to its first pipeline, the next ones to the next. The tables of
//! a star join are built in one launch that way, and a launch costs about as much as building a small table.

use crate::ir::{Fragment, Source, Step};

/// Pipelines launched together, by position in the fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LaunchGroup {
    /// Kernel name.
    pub(crate) name: String,
    /// Positions in ascending order.
    pub(crate) members: Vec<usize>,
}

/// Most branches of a union in one launch: the parameters of a kernel are limited, and each has tens of them.
const BRANCHES_MAX: usize = 16;

/// The level of each pipeline: above those of all tables it probes and of the groups it scans, the root's above all.
/// Branches of a union are of one level, or of several that follow each other where one launch has no room for all.
pub(crate) fn levels(fragment: &Fragment) -> Vec<usize> {
    let mut levels: Vec<usize> = Vec::with_capacity(fragment.pipelines.len());
    for (index, pipeline) in fragment.pipelines.iter().enumerate() {
        let below = pipeline.steps.iter().filter_map(|step| match step {
            Step::Probe(probe) => Some(levels[probe.build] + 1),
            Step::Filter(_) | Step::Limit { .. } => None,
        });
        let scanned = match pipeline.source {
            Source::Output(index) => Some(levels[index] + 1),
            Source::Table(_) => None,
        };
        levels.push(below.chain(scanned).max().unwrap_or(0));
        let branches = fragment.branches(index);
        if let Some(level) = levels.get(branches.clone()).and_then(|branches| branches.iter().copied().max()) {
            lay_out(&mut levels[branches], level);
        }
    }
    // The root reads what every other pipeline leaves behind, also what it does not probe.
    let root = fragment.branches(levels.len().saturating_sub(1)).start;
    if let Some((others, root)) = levels.split_at_mut_checked(root) {
        lay_out(root, others.iter().max().map_or(0, |last| last + 1));
    }
    levels
}

/// Gives branches their levels, from this one on.
fn lay_out(branches: &mut [usize], level: usize) {
    branches.iter_mut().enumerate().for_each(|(number, branch)| *branch = level + number / BRANCHES_MAX);
}

/// Groups pipelines: each runs in a launch group after those of all that it reads, and shares it with pipelines of
/// the same block size. `blocks` are the threads of a block of each pipeline. The root of a top-k is by itself.
pub(crate) fn launch_groups(fragment: &Fragment, blocks: impl Iterator<Item = u32>) -> Vec<LaunchGroup> {
    let levels = levels(fragment);
    let mut launch_groups: Vec<(usize, u32, Vec<usize>)> = Vec::new();
    for (index, (level, block)) in levels.iter().zip(blocks).enumerate() {
        let same = |group: &&mut (usize, u32, Vec<usize>)| group.0 == *level && group.1 == block;
        match launch_groups.iter_mut().find(same) {
            Some((_, _, members)) => members.push(index),
            None => launch_groups.push((*level, block, vec![index])),
        }
    }
    launch_groups.sort_by_key(|(level, _, _)| *level);
    let name = |position: usize| format!("launch_group_{position}");
    let groups = launch_groups.into_iter().enumerate();
    groups.map(|(position, (_, _, members))| LaunchGroup { name: name(position), members }).collect()
}
