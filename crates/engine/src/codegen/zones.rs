//! Vectors that no step needs to look at ([`crate::plan::vectors`]), in kernel source.
//!
//! A warp looks at 32 vectors together, a lane each, that are far apart: those that are left often lie side by side,
//! and all warps are to have a share of them.

use std::fmt::Write;

use warpcube_column::{CHUNK_ROWS, VECTOR_ROWS};

use crate::codegen::ends::ends;
use crate::codegen::filters::{Before, Written};
use crate::codegen::params::{Argument, Counted};
use crate::codegen::pipeline::KernelWriter;
use crate::ir::{Expr, Probe};
use crate::plan::order::Item;
use crate::plan::shared::{MapIndex, SharedTable};
use crate::plan::vectors::{VectorPassing, VectorTest};

/// Vectors of a whole chunk.
const CHUNK_VECTORS: usize = CHUNK_ROWS / VECTOR_ROWS;

/// What is known of vectors before they are loaded.
#[derive(Default)]
pub(super) struct Zones {
    /// The function that tells of a vector whether rows of it may pass, bit 0, and whether all pass a filter, the next
    /// bits; empty if nothing can be told.
    pub(super) text: String,
    /// Steps that a vector may pass as a whole, by position among the dense ones.
    pub(super) filters: Vec<usize>,
}

/// Values that one step lets pass, bounds included, in kernel source.
struct Passing {
    low: Option<String>,
    high: Option<String>,
    /// First key, number of keys and bitmap of a probe whose keys are looked up one by one.
    keys: Option<[String; 3]>,
}

impl Zones {
    /// Whether vectors can be told apart.
    pub(super) fn any(&self) -> bool {
        !self.text.is_empty()
    }

    /// What is known of a vector from the function's answer in `found`.
    pub(super) fn answers(&self) -> String {
        let answer = |filter| format!("        const bool passed{filter} = found >> {} & 1u;\n", filter + 1);
        (0..self.filters.len()).map(answer).collect()
    }

    /// The test before what serves these steps alone, by position among the dense ones: nothing, unless a vector may
    /// pass each of them as a whole.
    pub(super) fn asked_of(&self, steps: &[usize]) -> String {
        let passed: Option<Vec<String>> = steps
            .iter()
            .map(|position| Some(format!("passed{}", self.filters.iter().position(|at| at == position)?)))
            .collect();
        match passed {
            Some(passed) if !passed.is_empty() => format!("if (!({})) ", passed.join(" && ")),
            _ => String::new(),
        }
    }
}

impl KernelWriter<'_> {
    /// What can be told of vectors by the dense steps; `segments` and `chunk_rows` name the scan's parameters.
    pub(super) fn zones(&mut self, segments: &str, chunk_rows: &str) -> Zones {
        let (mut zones, mut tests, mut bounded_columns) = (Zones::default(), String::new(), Vec::new());
        let plan = self.plan;
        for VectorTest { step: position, column, passing, tells_all } in &plan.vectors {
            let planned = &plan.split.dense[*position];
            let Some(Passing { low, high, keys }) = (match (&planned.item, passing) {
                (Item::Filter(expr), VectorPassing::Compared) => self.compared(expr, planned.part),
                (Item::Probe(probe, _), VectorPassing::Spanned { low, few }) => self.spanned(probe, *low, *few),
                _ => None,
            }) else {
                continue;
            };
            let bounds = self.readers[*column].bounds("vector");
            let low = low.as_deref().unwrap_or("(-0x7fffffffffffffffll - 1)");
            let high = high.as_deref().unwrap_or("0x7fffffffffffffffll");
            let _ = writeln!(tests, "        bool all{position} = true;");
            let _ = writeln!(tests, "        const WcBounds bounds{position} = {bounds};");
            let _ = writeln!(tests, "        wc_zone_test(bounds{position}, {low}, {high}, &may, &all{position});");
            bounded_columns.push(*column);
            if let Some([first, count, bits]) = keys {
                let _ = writeln!(
                    tests,
                    "        wc_zone_keys(bounds{position}, {first}, {count}, {bits}, &may, &all{position});"
                );
            }
            if *tells_all {
                zones.filters.push(*position);
            }
        }
        if tests.is_empty() {
            return zones;
        }
        let answers: String =
            zones.filters.iter().enumerate().map(|(bit, at)| format!(" | (uint32_t)all{at} << {}", bit + 1)).collect();
        bounded_columns.sort_unstable();
        bounded_columns.dedup();
        let pointers: String = bounded_columns.iter().map(|column| self.readers[*column].pointers()).collect();
        zones.text = format!(
            "    auto zone = [&](uint32_t chunk, uint32_t vector) {{
        const uint64_t* const pointers = {segments} + (uint64_t)chunk * {};
        const uint32_t rows_here = wc_load_cached({chunk_rows} + chunk);
        (void)rows_here;
{pointers}        bool may = true;
{tests}        return (uint32_t)may{answers};
    }};
",
            self.input.columns.len() * 2
        );
        zones
    }

    /// The loop over the vectors that a warp has to look at, in place of tickets, up to where a vector's chunk, first
    /// row and rows are known; and its end.
    pub(super) fn vectors_apart(
        &mut self,
        zones: &Zones,
        (control, chunks, segments): (&str, &str, &str),
    ) -> (String, &'static str) {
        let first_vectors = self.params.add("const uint32_t*", Argument::Chunk(self.operands.scan.first_vectors, 4));
        let vectors = self.params.add("uint64_t", Argument::Count(Counted::Vectors));
        let (text, answers, ahead) = (&zones.text, zones.answers(), self.next_vector(segments));
        if self.resumes() {
            return self.resumed_vectors_apart(zones, control, chunks, (&first_vectors, &vectors, &ahead));
        }
        let stopped = self.has_stopped(control);
        let head = format!(
            "{text}    const uint32_t warps = blocks * (blockDim.x / 32);
    bool stopped = {stopped};
    // A lane looks at every `warps`th vector; those that may have rows are worked on by the warp, one after the other.
    for (uint64_t round = wc_warp() * blocks + block; !stopped && round < {vectors}; round += 32 * (uint64_t)warps) {{
    const uint64_t own = round + lane * (uint64_t)warps;
    uint32_t own_chunk = 0, own_vector = 0, own_answer = 0;
    if (own < {vectors}) {{
        own_chunk = wc_chunk_of({first_vectors}, {chunks}, own, {CHUNK_VECTORS});
        own_vector = (uint32_t)own - wc_load_cached({first_vectors} + own_chunk);
        own_answer = zone(own_chunk, own_vector);
    }}
    uint32_t left = __ballot_sync(WC_FULL_MASK, own_answer & 1u);
    for (; !stopped && left != 0; left &= left - 1) {{
        const uint32_t from = __ffs(left) - 1, answer = wc_ask({control}, lane);
        const uint32_t chunk = __shfl_sync(WC_FULL_MASK, own_chunk, from);
        const uint32_t found = __shfl_sync(WC_FULL_MASK, own_answer, from);
        const uint32_t ticket_rows = 1024, begin = ticket_rows * __shfl_sync(WC_FULL_MASK, own_vector, from);
        (void)found;
{answers}{ahead}"
        );
        (head, "        stopped = __any_sync(WC_FULL_MASK, answer != 0);\n    }\n    }\n")
    }

    /// The same of a scan that resumes: the vectors that are left of a round that an earlier launch has begun come
    /// first.
    fn resumed_vectors_apart(
        &mut self,
        zones: &Zones,
        control: &str,
        chunks: &str,
        (first_vectors, vectors, ahead): (&str, &str, &str),
    ) -> (String, &'static str) {
        let (text, answers, state) = (&zones.text, zones.answers(), self.stop_state(control, vectors));
        let head = format!(
            "{text}{state}    const uint32_t warps = blocks * (blockDim.x / 32);
    bool resumed = state[WC_NEXT] != 0;
    uint64_t round = resumed ? state[WC_NEXT] - 1 : own_state;
    uint32_t left = 0;
    while (!stopped && round < {vectors}) {{
    const uint64_t own = round + lane * (uint64_t)warps;
    uint32_t own_chunk = 0, own_vector = 0, own_answer = 0;
    if (own < {vectors}) {{
        own_chunk = wc_chunk_of({first_vectors}, {chunks}, own, {CHUNK_VECTORS});
        own_vector = (uint32_t)own - wc_load_cached({first_vectors} + own_chunk);
        own_answer = zone(own_chunk, own_vector);
    }}
    left = __ballot_sync(WC_FULL_MASK, own_answer & 1u);
    if (resumed) left = state[WC_VECTORS];
    resumed = false;
    while (left != 0) {{
        const uint32_t from = __ffs(left) - 1, answer = wc_ask_room({control}, lane);
        const uint32_t chunk = __shfl_sync(WC_FULL_MASK, own_chunk, from);
        const uint32_t found = __shfl_sync(WC_FULL_MASK, own_answer, from);
        const uint32_t ticket_rows = 1024, begin = ticket_rows * __shfl_sync(WC_FULL_MASK, own_vector, from);
        (void)found;
{answers}{ahead}"
        );
        let foot = "        again = stopped;
        if (stopped) break;
        left &= left - 1;
        stopped = __any_sync(WC_FULL_MASK, answer != 0);
        if (stopped) break;
    }
    if (!stopped) round += 32 * (uint64_t)warps;
    }
    if (leaves && lane == 0) {
        state[WC_NEXT] = 1 + (uint32_t)(round < 0xfffffffeu ? round : 0xfffffffeu);
        state[WC_CURRENT] = again;
        state[WC_VECTORS] = left;
    }
";
        (head, foot)
    }

    /// Asks for the warp's next vector while it works on this one, a lane a column: what is worked on next lies far
    /// away, so that nothing else would bring it nearer.
    fn next_vector(&self, segments: &str) -> String {
        let vectors =
            self.plan.split.loaded.iter().filter_map(|column| Some((column, self.readers[*column].vector_bytes()?)));
        let mut asked = String::new();
        for (lane, (column, bytes)) in vectors.enumerate() {
            let address = format!("(const char*)next[{}] + (uint64_t)next_vector * {bytes}", column * 2);
            let _ = writeln!(asked, "            if (lane == {lane}) wc_prefetch({address}, {bytes});");
        }
        if asked.is_empty() {
            return asked;
        }
        let pointers = self.input.columns.len() * 2;
        format!(
            "        const uint32_t others = left & (left - 1);
        if (others != 0) {{
            const uint32_t behind = __ffs(others) - 1;
            const uint32_t next_vector = __shfl_sync(WC_FULL_MASK, own_vector, behind);
            const uint32_t next_chunk = __shfl_sync(WC_FULL_MASK, own_chunk, behind);
            const uint64_t* const next = {segments} + (uint64_t)next_chunk * {pointers};
{asked}        }}
"
        )
    }

    /// The values that a comparison with a constant lets pass.
    fn compared(&mut self, expr: &Expr, part: usize) -> Option<Passing> {
        let before = Before::of(self.params, self.arena);
        let ends = ends(expr, self.params)?;
        self.filters.push(before.site(part, Written::Ends, ends.text(), (self.params, self.arena)));
        Some(Passing { low: ends.low, high: ends.high, keys: None })
    }

    /// The keys that a probe finds, whose ends are known in shared memory, and each of them where vectors have `few`
    /// values. The first place of the table stands for `low`.
    fn spanned(&mut self, probe: &Probe, low: i128, few: bool) -> Option<Passing> {
        let at = |staged: &&SharedTable| staged.build == probe.build && staged.places == MapIndex::Keys;
        let staged = self.plan.shared.tables.iter().find(at)?;
        let low = format!("(int64_t){}", self.params.add("uint64_t", Argument::U64(low as i64 as u64)));
        let (first, past) = staged.span();
        let bitmap = self.operands.tables.get(probe.build)?.as_ref()?.bitmap()?;
        let bits = self.params.add("uint64_t", Argument::U64(bitmap.bytes() as u64 * 8));
        Some(Passing {
            low: Some(format!("{low} + {first}")),
            high: Some(format!("{low} + {past} - 1")),
            keys: few.then(|| [low, bits, staged.name()]),
        })
    }
}
