//! Kernels over sorted rows that know the bounds of each row's runs ([`crate::plan::windows`]): a warp goes through
//! tiles of rows and compares ranks of neighbours (`kernels/windows.cuh`). Nothing is written for runs.

use std::fmt::Write;

use crate::arena::Region;
use crate::codegen::memory::TopMemory;
use crate::codegen::params::{Argument, ParamList};
use crate::plan::top::TopPlan;
use crate::plan::windows::Level;

/// Sorted rows whose runs are asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct SortedRows<'a> {
    pub(super) top: &'a TopPlan,
    pub(super) memory: &'a TopMemory,
    pub(super) levels: &'a [Level],
}

impl SortedRows<'_> {
    /// Text that declares whether two rows agree at a level.
    pub(super) fn same(self, level: usize, params: &mut ParamList) -> String {
        let (ranks, memory) = (&self.top.ranks, self.memory.candidates);
        let c_type = ranks.c_type();
        let (of_rank, is_by_order) = match (self.top.sorts(), self.top.leaves_ranks()) {
            (false, _) => (memory.best[0], false),
            (true, true) => (self.memory.scratch, false),
            (true, false) => (memory.ranks, true),
        };
        let mut pointer = |c_type: &str, region| params.add(&format!("const {c_type}*"), Argument::Region(region));
        let order = is_by_order.then(|| pointer(self.top.number_type(), memory.best[1]));
        let at = |row: &str| order.as_ref().map_or(row.to_string(), |order| format!("{order}[{row}]"));
        let Level { in_tail, shift, .. } = self.levels[level];
        let mut values = |region: Region| {
            let values = pointer(c_type, region);
            ["one", "other"].map(|row| format!("{values}[{}]", at(row)))
        };
        let ([one, other], tails) = (values(of_rank), memory.tails.filter(|_| in_tail).map(values));
        let shift = params.add("uint64_t", Argument::U64(shift.into()));
        let agrees = match tails {
            None => format!("({one} ^ {other}) >> (uint32_t){shift} == 0"),
            Some([tail, last]) => format!("{one} == {other} && ({tail} ^ {last}) >> (uint32_t){shift} == 0"),
        };
        format!("auto same{level} = [&](uint64_t one, uint64_t other) {{ return {agrees}; }};")
    }

    /// The text of a kernel that does with each row `i` of `rows` what `body` says, which may ask for `first…` and
    /// `end…` of a level: the first row of the run, and the one behind its last. A lane has so many rows of a tile.
    pub(super) fn over_runs(self, body: &str, slots: usize, params: &mut ParamList) -> String {
        let (mut same, mut begin, mut tile, mut bounds) = (String::new(), String::new(), String::new(), String::new());
        for level in 0..self.levels.len() {
            let names = [format!("first{level}"), format!("end{level}")];
            let [asks_first, asks_end] = names.each_ref().map(|name| has_name(body, name));
            if !asks_first && !asks_end {
                continue;
            }
            let _ = writeln!(same, "    {}", self.same(level, params));
            let _ = writeln!(begin, "        WcRuns<{slots}> runs{level};");
            if asks_first {
                let _ = writeln!(begin, "        runs{level}.begin(from, same{level});");
            }
            let _ = writeln!(tile, "        runs{level}.tile<{asks_first}, {asks_end}>(tile, rows, same{level});");
            for (name, member, _) in [(&names[0], "firsts", asks_first), (&names[1], "ends", asks_end)]
                .into_iter()
                .filter(|(_, _, is_asked)| *is_asked)
            {
                let _ = writeln!(bounds, "        const int64_t {name} = runs{level}.{member}[slot];");
            }
        }
        format!(
            "    const uint64_t of_block = blockDim.x / 32, warps = gridDim.x * of_block;
    const uint64_t span = wc_window_span(rows, warps), step = warps * span;
{same}    for (uint64_t from = (blockIdx.x * of_block + wc_warp()) * span; from < rows; from += step) {{
{begin}        for (uint64_t tile = from; tile < from + span && tile < rows; tile += 32 * {slots}) {{
{tile}#pragma unroll
        for (uint32_t slot = 0; slot < {slots}; ++slot) {{
        const uint64_t i = tile + 32 * slot + wc_lane();
        if (i >= rows) continue;
{bounds}{body}        }}
        }}
    }}
"
        )
    }
}

/// Whether a text has a name, not as a part of a longer one.
fn has_name(text: &str, name: &str) -> bool {
    let goes_on = |rest: &str| rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
    text.match_indices(name).any(|(at, _)| !goes_on(&text[at + name.len()..]))
}
