//! Scans that stop where a row finds no room, in kernel source (`stops.cuh`).
//!
//! A warp that has stopped leaves its state; the next launch of the kernel goes on from there, over a sink that has
//! grown ([`crate::exec::growth`]). What is left of a step is kept by its mode: where rows are worked on in place the
//! slots of each lane whose rows have not entered, otherwise the queue. A queue hands 32 rows at a time to the lanes;
//! where some of these find no room, all 32 stay in the queue, and the lanes that have entered theirs are remembered,
//! or, where rows have several matches, how many times all lanes have taken a match each.

use std::fmt::Write;

use crate::codegen::params::Argument;
use crate::codegen::pipeline::KernelWriter;

impl KernelWriter<'_> {
    /// Whether the scan resumes.
    pub(super) fn resumes(&self) -> bool {
        self.operands.scan.stop.is_some()
    }

    /// The condition under which a scan does nothing, because one that was launched before has stopped.
    pub(super) fn has_stopped(&self, control: &str) -> String {
        match self.input.behind || self.resumes() {
            true => format!("wc_has_stopped({control}, lane)"),
            false => "false".into(),
        }
    }

    /// Declares what a scan that resumes knows of its warp.
    pub(super) fn stop_state(&mut self, control: &str, work: &str) -> String {
        let Some(stop) = self.operands.scan.stop else { return String::new() };
        let states = self.params.add("uint32_t*", Argument::Launch(stop.states, stop.launch_bytes[0]));
        let rows = self.params.add("uint32_t*", Argument::Launch(stop.rows, stop.launch_bytes[1]));
        let stopped = self.has_stopped(control);
        let mut text = format!(
            "    const uint32_t own_state = wc_warp() * blocks + block;
    uint32_t* const state = {states} + own_state * WC_STATE_WORDS;
    uint32_t* const kept = {rows} + (uint64_t)own_state * {};
    bool stopped = {stopped};
    const bool leaves = !stopped && {work} != 0;
    // In a step that an earlier launch has begun.
    bool again = state[WC_CURRENT] != 0;
    uint32_t unplaced = 0;
",
            stop.row_words
        );
        if !self.plan.split.in_place {
            text.push_str("    uint32_t owing_lanes = WC_FULL_MASK;\n");
        }
        if self.plan.split.multiplies {
            text.push_str("    uint32_t calls = 0, skipped_calls = 0;\n");
        }
        text
    }

    /// The first row of the steps of a ticket or vector, and the rows that its queue has.
    pub(super) fn steps_begin(&self) -> String {
        let (in_place, multiplies) = (self.plan.split.in_place, self.plan.split.multiplies);
        let mut text = String::new();
        if self.resumes() {
            let left = if in_place { "kept[lane]" } else { "0" };
            let _ = write!(
                text,
                "        const uint32_t first = again ? state[WC_BASE] : begin;
        uint32_t entering = again ? {left} : WC_FULL_MASK;
"
            );
        }
        if !in_place {
            let queued = if self.resumes() { "again ? state[WC_QUEUED] : 0" } else { "0" };
            let _ = writeln!(text, "        uint32_t queued = {queued};");
        }
        if self.resumes() && !in_place {
            let calls = if multiplies { "            skipped_calls = state[WC_CALL];\n" } else { "" };
            let _ = write!(
                text,
                "        if (again) {{
            owing_lanes = state[WC_LANES];
{calls}            for (uint32_t at = lane; at < queued; at += 32) queue[at] = ((const uint16_t*)(kept + 32))[at];
            __syncwarp(WC_FULL_MASK);
        }}
"
            );
        }
        text
    }

    /// Of a step that an earlier launch has begun, only rows that are left are alive; those in the queue are there.
    pub(super) fn step_again(&self) -> &'static str {
        match self.resumes() {
            true => "            alive &= entering;\n            entering = WC_FULL_MASK;\n",
            false => "",
        }
    }

    /// Leaves a step in which a row has found no room.
    pub(super) fn step_stop(&self) -> String {
        if !self.resumes() {
            return String::new();
        }
        if self.plan.split.in_place {
            return "            if (__any_sync(WC_FULL_MASK, unplaced != 0)) {
                kept[lane] = unplaced;
                if (lane == 0) state[WC_BASE] = base;
                stopped = true;
                break;
            }
"
            .into();
        }
        let calls = if self.plan.split.multiplies { " state[WC_CALL] = skipped_calls;" } else { "" };
        format!(
            "            if (stopped) {{
                for (uint32_t at = lane; at < queued; at += 32) ((uint16_t*)(kept + 32))[at] = queue[at];
                if (lane == 0) {{
                    state[WC_BASE] = base;
                    state[WC_QUEUED] = queued;
                    state[WC_LANES] = owing_lanes;{calls}
                }}
                break;
            }}
"
        )
    }

    /// Ends 32 rows of the queue: all stay there if one has found no room.
    pub(super) fn round_stop(&self) -> String {
        if !self.resumes() {
            return String::new();
        }
        let calls = if self.plan.split.multiplies { " skipped_calls = 0;" } else { "" };
        format!(
            "                const uint32_t failed = __ballot_sync(WC_FULL_MASK, unplaced != 0);
                if (failed != 0) {{
                    queued += take;
                    owing_lanes = failed;
                    stopped = true;
                    break;
                }}
                owing_lanes = WC_FULL_MASK;{calls}
"
        )
    }
}
