//! Launches: pipelines that do not depend on each other run side by side in one kernel.
//!
//! The kernel of a launch group gives its first blocks to its first pipeline, the next ones to the next. The tables of
//! a star join are built in one launch that way, and a launch costs about as much as building a small table.

use crate::codegen::pipeline::BoundPipeline;
use crate::codegen::topk::GATHER;
use crate::ir::{Fragment, Source, Step};

/// Pipelines launched together, by position in the fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LaunchGroup {
    /// Kernel name.
    pub(crate) name: String,
    /// Positions in ascending order.
    pub(crate) members: Vec<usize>,
    /// What the last of its blocks does at its end, where the root is a top-k of few candidates.
    pub(crate) last_block: Option<LastBlock>,
}

/// Parameters and shared memory of the last block of a scan that sorts the candidates of a top-k.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastBlock {
    /// Number of parameters.
    pub(crate) params: usize,
    /// Dynamic shared memory in bytes.
    pub(crate) shared_bytes: u32,
}

/// The level of each pipeline: above those of all tables it probes and of the groups it scans, the root's above all.
/// Branches of a union are of one level.
pub(crate) fn levels(fragment: &Fragment) -> Vec<usize> {
    let mut levels: Vec<usize> = Vec::with_capacity(fragment.pipelines.len());
    for (index, pipeline) in fragment.pipelines.iter().enumerate() {
        let below = pipeline.steps.iter().filter_map(|step| match step {
            Step::Probe(probe) => Some(levels[probe.build] + 1),
            Step::Filter(_) | Step::Limit { .. } => None,
        });
        let scanned = match pipeline.source {
            Source::Groups(index) => Some(levels[index] + 1),
            Source::Table(_) => None,
        };
        levels.push(below.chain(scanned).max().unwrap_or(0));
        let branches = fragment.branches(index);
        if let Some(level) = levels.get(branches.clone()).and_then(|branches| branches.iter().copied().max()) {
            levels[branches].fill(level);
        }
    }
    // The root reads what every other pipeline leaves behind, also what it does not probe.
    let last = levels.iter().max().copied().unwrap_or(0);
    let root = fragment.branches(levels.len().saturating_sub(1)).start;
    if let Some((others, root)) = levels.split_at_mut_checked(root) {
        root.fill(last + usize::from(others.contains(&last)));
    }
    levels
}

/// Groups pipelines: each runs in a launch group after those of all that it reads, and shares it with pipelines of
/// the same block size. The root of a top-k is by itself.
pub(crate) fn launch_groups(
    fragment: &Fragment,
    bound: &[BoundPipeline],
    last_block: Option<LastBlock>,
) -> Vec<LaunchGroup> {
    let levels = levels(fragment);
    let mut launch_groups: Vec<(usize, u32, Vec<usize>)> = Vec::new();
    for (index, (level, pipeline)) in levels.iter().zip(bound).enumerate() {
        let same = |group: &&mut (usize, u32, Vec<usize>)| group.0 == *level && group.1 == pipeline.block;
        match launch_groups.iter_mut().find(same) {
            Some((_, _, members)) => members.push(index),
            None => launch_groups.push((*level, pipeline.block, vec![index])),
        }
    }
    launch_groups.sort_by_key(|(level, _, _)| *level);
    let name = |position: usize| format!("launch_group_{position}");
    let groups = launch_groups.into_iter().enumerate();
    let groups =
        groups.map(|(position, (_, _, members))| LaunchGroup { name: name(position), members, last_block: None });
    let mut groups: Vec<LaunchGroup> = groups.collect();
    if let Some(root) = groups.last_mut() {
        root.last_block = last_block;
    }
    groups
}

impl LaunchGroup {
    /// The group's parameter struct and kernel: the members' structs, then the first block of each but the first. The
    /// kernel may be launched early.
    pub(crate) fn source(&self, bound: &[BoundPipeline]) -> String {
        let (name, first) = (&self.name, self.members[0]);
        let mut members = String::new();
        let mut body = String::from("    wc_wait_previous();\n    wc_start_next();\n");
        for (position, index) in self.members.iter().enumerate() {
            members.push_str(&format!("Params{index} a{index}; "));
            let from = if position == 0 { "0u".into() } else { format!("(uint32_t)p.first{index}") };
            let next = self.members.get(position + 1);
            let to = next.map_or("gridDim.x".into(), |next| format!("(uint32_t)p.first{next}"));
            let call = format!("{}(p.a{index}, blockIdx.x - {from}, {to} - {from});", bound[*index].name);
            match next {
                Some(_) => body.push_str(&format!("    if (blockIdx.x < {to}) {{ {call} return; }}\n")),
                None => body.push_str(&format!("    {call}\n")),
            }
        }
        for index in self.members.iter().skip(1) {
            members.push_str(&format!("uint64_t first{index}; "));
        }
        // Scans that add up rows by runs are those that take long.
        let blocks = |by_runs: bool| {
            let members = self.members.iter().map(|index| &bound[*index]).filter(|member| member.by_runs || !by_runs);
            members.map(|member| member.min_blocks).min()
        };
        let min_blocks = blocks(true).or_else(|| blocks(false)).unwrap_or(1);
        let block = bound[first].block;
        if self.last_block.is_some() {
            members.push_str(&format!("{GATHER}_params last; "));
            body.push_str(&format!("    {GATHER}(p.last, gridDim.x);\n"));
        }
        let params = format!("{name}_params");
        format!("struct {params} {{ {members}}};\nWC_KERNEL({name}, {params}, {block}, {min_blocks}) {{\n{body}}}\n")
    }

    /// Size of the parameter struct in bytes.
    pub(crate) fn params_bytes(&self, bound: &[BoundPipeline]) -> usize {
        let members: usize = self.members.iter().map(|index| bound[*index].params.arguments().count()).sum();
        8 * (members + self.members.len() - 1 + self.last_block.map_or(0, |last| last.params))
    }

    /// Dynamic shared memory of a block in bytes.
    pub(crate) fn shared_bytes(&self, bound: &[BoundPipeline]) -> u32 {
        let scans = self.members.iter().map(|index| bound[*index].shared_bytes);
        scans.chain(self.last_block.map(|last| last.shared_bytes)).max().unwrap_or(0)
    }
}
