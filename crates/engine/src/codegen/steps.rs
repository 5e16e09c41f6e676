//! The loops of a kernel over the steps of a ticket: loads ahead of work, and where the rows that are left go.

use std::fmt::Write;

use crate::codegen::memory::TICKETS_OFFSET;
use crate::codegen::params::{Argument, Counted};
use crate::codegen::partials::Partials;
use crate::codegen::pipeline::KernelWriter;
use crate::codegen::stop_memory::TICKETS_STRIDE;

/// The test whether a slot's row is left.
const ALIVE: &str = "if (alive >> k & 1u) ";

impl KernelWriter<'_> {
    /// The loop over a warp's tickets, up to where a ticket's chunk, first row and rows are known; and its end.
    pub(super) fn tickets(&mut self, control: &str, chunks: &str) -> (String, &'static str) {
        if self.resumes() {
            return self.resumed_tickets(control, chunks);
        }
        let scan = self.operands.scan;
        let first_tickets = self.params.add("const uint32_t*", Argument::Chunk(scan.first_tickets, 4));
        let tickets = self.params.add("uint64_t", Argument::Count(Counted::Tickets));
        let ticket_rows = self.params.add("const uint32_t*", Argument::Chunk(scan.ticket_rows, 4));
        let counter = TICKETS_OFFSET + TICKETS_STRIDE * self.input.index;
        let own = match self.input.behind {
            true => format!("{} ? 0xffffffffu : wc_warp() * blocks + block", self.has_stopped(control)),
            false => "wc_warp() * blocks + block".into(),
        };
        let head = format!(
            "    uint32_t* const ticket_counter = (uint32_t*)((char*){control} + {counter});
    // Each warp has a first ticket of its own, neighbours being far apart; the next one comes while one is worked on.
    const uint32_t warps = blocks * (blockDim.x / 32);
    uint32_t ticket = {own};
    while (ticket < (uint32_t){tickets}) {{
        const uint32_t draw = wc_draw({control}, ticket_counter, lane);
        const uint32_t chunk = wc_find_chunk({first_tickets}, (uint32_t){chunks}, ticket, lane);
        const uint32_t ticket_rows = wc_load_cached({ticket_rows} + chunk);
        const uint32_t begin = (ticket - wc_load_cached({first_tickets} + chunk)) * ticket_rows;
"
        );
        let foot = "        const uint32_t number = wc_drawn(draw, lane);
        ticket = number < 0xffffffffu - warps ? warps + number : 0xffffffffu;
    }
";
        (head, foot)
    }

    /// The same of a scan that resumes: a ticket that an earlier launch has begun comes first.
    fn resumed_tickets(&mut self, control: &str, chunks: &str) -> (String, &'static str) {
        let scan = self.operands.scan;
        let first_tickets = self.params.add("const uint32_t*", Argument::Chunk(scan.first_tickets, 4));
        let tickets = self.params.add("uint64_t", Argument::Count(Counted::Tickets));
        let ticket_rows = self.params.add("const uint32_t*", Argument::Chunk(scan.ticket_rows, 4));
        let counters = scan.stop.map(|stop| stop.counters).expect("a scan that resumes has states");
        let counter = self.params.add("uint32_t*", Argument::Launch(counters, TICKETS_STRIDE));
        let state = self.stop_state(control, &tickets);
        let head = format!(
            "{state}    const uint32_t warps = blocks * (blockDim.x / 32);
    uint32_t next = state[WC_NEXT] != 0 ? state[WC_NEXT] - 1 : own_state;
    uint32_t ticket = stopped ? 0xffffffffu : again ? state[WC_CURRENT] - 1 : next;
    while (ticket < (uint32_t){tickets}) {{
        // The number behind a ticket that was begun was drawn then.
        const uint32_t draw = again ? 0 : wc_draw_room({control}, {counter}, lane);
        const uint32_t chunk = wc_find_chunk({first_tickets}, (uint32_t){chunks}, ticket, lane);
        const uint32_t ticket_rows = wc_load_cached({ticket_rows} + chunk);
        const uint32_t begin = (ticket - wc_load_cached({first_tickets} + chunk)) * ticket_rows;
"
        );
        let foot = "        if (!again) {
            const uint32_t number = __shfl_sync(WC_FULL_MASK, draw, 0);
            next = number < 0xfffffffeu - warps ? warps + number : 0xfffffffeu;
        }
        again = false;
        if (stopped) break;
        ticket = next;
        if (__any_sync(WC_FULL_MASK, lane != 0 && draw != 0)) break;
    }
    if (leaves && lane == 0) {
        state[WC_NEXT] = 1 + next;
        state[WC_CURRENT] = stopped ? 1 + ticket : 0;
    }
";
        (head, foot)
    }

    /// Loads the vectors of the step at `base` into `<prefix><column>`.
    fn vector_loads(&self, prefix: &str, base: &str, declare: bool) -> String {
        let mut text = String::new();
        for column in &self.plan.split.loaded {
            if declare {
                text.push_str(&self.readers[*column].declaration(prefix, self.plan.split.slots));
            }
            let again = self.plan.split.again.contains(column);
            text.push_str(&self.readers[*column].load(prefix, base, self.plan.split.slots, again));
        }
        text
    }

    /// Text before the loop over steps, which begins at row `first`, at the head of its body, and at its foot.
    pub(super) fn step_loads(&self, first: &str) -> (String, String, String) {
        if !self.plan.prefetch {
            return (String::new(), self.vector_loads("d", "base", true), String::new());
        }
        // While a step is worked on, the next one's vectors are on their way.
        let (step, slots) = (self.plan.split.slots * 32, self.plan.split.slots);
        let (mut head, mut foot) = (String::new(), String::new());
        for reader in self.plan.split.loaded.iter().map(|column| &self.readers[*column]) {
            head.push_str(&reader.declaration("e", slots));
            foot.push_str(&reader.move_step("e", "d", slots));
        }
        // The last step loads itself again, from a cache: a choice for each register would take longer.
        let loads = self.vector_loads("e", "next", false);
        let _ =
            writeln!(head, "            const uint32_t next = end - base > {step} ? base + {step} : base;\n{loads}");
        (self.vector_loads("d", first, true), head, foot)
    }

    /// The loop over whole steps that are worked on in turn: while one is, the vectors of the others are on their way,
    /// each into registers of its own. Leaves the first row behind them in `first`.
    pub(super) fn turns(&self, tests: &str, partials: &Partials) -> String {
        let (ahead, slots) = (self.plan.split.ahead, self.plan.split.slots);
        let (step, round) = (slots * 32, slots * 32 * ahead);
        let readers = || self.plan.split.loaded.iter().map(|column| &self.readers[*column]);
        let mut text = format!("        uint32_t first = begin;\n        if (end - begin >= {round}) {{\n");
        for turn in 0..ahead {
            for reader in readers() {
                text.push_str(&reader.declaration(&format!("r{turn}"), slots));
                text.push_str(&reader.load(&format!("r{turn}"), &format!("(begin + {})", turn * step), slots, false));
            }
        }
        let _ = writeln!(
            text,
            "            for (;; first += {round}) {{\n            const bool more = end - first >= {};",
            2 * round
        );
        for turn in 0..ahead {
            let (from, to) = (format!("r{turn}"), "d".to_string());
            let names: String = readers().map(|reader| reader.alias(&from, &to)).collect();
            let next: String =
                readers().map(|reader| reader.load(&from, &format!("(base + {round})"), slots, false)).collect();
            let full = format!("{}u", (1u64 << slots) - 1);
            let (alive, process, fold) = match tests.is_empty() {
                true => (String::new(), self.each(""), partials.fold(&full)),
                false => {
                    (format!("            uint32_t alive = {full};\n{tests}"), self.each(ALIVE), partials.fold("alive"))
                }
            };
            let _ = writeln!(
                text,
                "            {{
            const uint32_t base = first + {};
{names}{alive}{process}{fold}            if (more) {{
{next}            }}
            }}",
                turn * step
            );
        }
        let _ = writeln!(
            text,
            "            if (!more) {{\n                first += {round};\n                break;\n            }}\n\
             \x20           }}\n        }}"
        );
        text
    }

    /// Hands the rows of a step to `process`, those for which `test` holds.
    fn each(&self, test: &str) -> String {
        let mut arguments = String::new();
        for column in &self.plan.split.loaded {
            let _ = write!(arguments, ", {}", self.readers[*column].value("d"));
            if self.input.columns[*column].nullable {
                let _ = write!(arguments, ", (bool)(dn{column} >> k & 1u)");
            }
        }
        if self.plan.by_runs() {
            arguments.push_str(", (uint32_t)k");
        }
        format!(
            "#pragma unroll
            for (int k = 0; k < {}; ++k) {{
                {test}process(base + wc_slot_row(k, lane){arguments});
            }}
",
            self.plan.split.slots
        )
    }

    /// Hands surviving rows to `process`, in place or through the queue.
    pub(super) fn drain(&self, fold: &str) -> String {
        let slots = self.plan.split.slots;
        let step = slots * 32;
        if self.plan.split.in_place {
            let tested = self.each(ALIVE);
            if let Some(runs) = self.plan.sink.runs() {
                return format!("{}{tested}            enter_runs();\n", runs.clear());
            }
            let process = match self.plan.whole_steps {
                true => format!(
                    "            if (end - base >= {step}) {{\n{}            }} else {{\n{tested}            }}\n",
                    self.each("")
                ),
                false => tested,
            };
            return process + fold;
        }
        debug_assert!(self.plan.shared.queue_entries >= step + 32);
        let process = match self.plan.split.multiplies {
            true if self.resumes() => {
                "calls = 0;\n                \
                 process(lane < take ? begin + queue[queued + lane] : begin, lane < take)"
            }
            true => "process(lane < take ? begin + queue[queued + lane] : begin, lane < take)",
            false if self.resumes() => {
                "if (lane < take && (owing_lanes >> lane & 1u)) process(begin + queue[queued + lane])"
            }
            false => "if (lane < take) process(begin + queue[queued + lane])",
        };
        let round_stop = self.round_stop();
        format!(
            "            if (__any_sync(WC_FULL_MASK, alive != 0)) {{
                uint32_t found;
                uint32_t at = queued + wc_warp_prefix(__popc(alive), &found);
                while (alive != 0) {{
                    const uint32_t slot = __ffs(alive) - 1;
                    alive &= alive - 1;
                    queue[at++] = (uint16_t)(base - begin + wc_slot_row(slot, lane));
                }}
                queued += found;
                __syncwarp(WC_FULL_MASK);
            }}
            const bool last = end - base <= {step};
            while (queued >= 32 || (last && queued > 0)) {{
                const uint32_t take = queued < 32 ? queued : 32;
                queued -= take;
                {process};
                __syncwarp(WC_FULL_MASK);
{round_stop}            }}
"
        )
    }
}
