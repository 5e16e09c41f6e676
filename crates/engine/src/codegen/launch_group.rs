//! The kernel of a launch group ([`crate::plan::launches`]): its members' functions, each with blocks of its own.

use crate::codegen::pipeline::BoundPipeline;
use crate::codegen::sink::BoundSink;
use crate::codegen::topk::{GATHER, LastBlock};
use crate::plan::launches::LaunchGroup;

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
            let members = self.members.iter().map(|index| &bound[*index].plan);
            members.filter(|plan| plan.by_runs() || !by_runs).map(|plan| plan.shared.min_blocks).min()
        };
        let min_blocks = blocks(true).or_else(|| blocks(false)).unwrap_or(1);
        let block = bound[first].plan.shared.block;
        if self.last_block(bound).is_some() {
            members.push_str(&format!("{GATHER}_params last; "));
            body.push_str(&format!("    {GATHER}(p.last, gridDim.x);\n"));
        }
        let params = format!("{name}_params");
        format!("struct {params} {{ {members}}};\nWC_KERNEL({name}, {params}, {block}, {min_blocks}) {{\n{body}}}\n")
    }

    /// Size of the parameter struct in bytes.
    pub(crate) fn params_bytes(&self, bound: &[BoundPipeline]) -> usize {
        let members: usize = self.members.iter().map(|index| bound[*index].params.arguments().count()).sum();
        8 * (members + self.members.len() - 1 + self.last_block(bound).map_or(0, |last| last.params))
    }

    /// Dynamic shared memory of a block in bytes.
    pub(crate) fn shared_bytes(&self, bound: &[BoundPipeline]) -> u32 {
        let scans = self.members.iter().map(|index| bound[*index].plan.shared.bytes as u32);
        scans.chain(self.last_block(bound).map(|last| last.shared_bytes)).max().unwrap_or(0)
    }

    /// Launches of the kernel: those of the member that has most.
    pub(crate) fn launches(&self, bound: &[BoundPipeline]) -> usize {
        self.members.iter().map(|index| bound[*index].plan.tickets.len()).max().unwrap_or(1)
    }

    /// What the last of its blocks does at its end, where a member is a top-k of few candidates.
    pub(crate) fn last_block(&self, bound: &[BoundPipeline]) -> Option<LastBlock> {
        self.members.iter().find_map(|index| match &bound[*index].sink {
            BoundSink::TopK(top) => top.last_block(),
            _ => None,
        })
    }
}
