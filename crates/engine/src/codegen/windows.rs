//! The kernels of windows, a row a thread, over rows that the kernel of the sort has left in order
//! ([`crate::plan::windows`]). Between them run scans (`gpu::prims`):
//!
//! ```text
//! heads of runs ─ scan: numbers of runs ─ first rows of runs, values ─ scans of values ─ columns
//! ```
//!
//! Only the last kernel is always there. Before it come lists of the rows that have a value, and the levels of segment
//! trees. It goes through tiles of rows, a tile a warp, and finds the bounds of their runs (`kernels/windows.cuh`).

use std::fmt::Write;

use crate::arena::{Arena, Region};
use crate::codegen::expr::{Value, c_type, c_type_of};
use crate::codegen::memory::TopMemory;
use crate::codegen::params::{Argument, ParamList};
use crate::codegen::result_rows::StoredRow;
use crate::codegen::window_runs::SortedRows;
use crate::ir::{Frame, FrameBound, Literal, Ty, WindowFunction};
use crate::plan::row_layout::RowLayout;
use crate::plan::top::{ROWS_WORD, TopPlan};
use crate::plan::windows::{CallPlan, Level, ScanPlan, Scanned, Total, WindowsPlan};

/// Names of the kernels.
pub(crate) const HEADS: &str = "window_heads";
pub(crate) const STARTS: &str = "window_starts";
pub(crate) const COLUMNS: &str = "window_columns";
/// What lists rows that have a value, and what makes a level of a segment tree.
pub(crate) const LISTS: &str = "window_lists";
pub(crate) const TREE: &str = "window_tree";

/// Rows of a tile that a lane has where there are few columns; otherwise it has one, and the kernel a quarter of the
/// text.
const SLOTS: usize = 4;
const FEW_COLUMNS: usize = 2;

/// Most rows that an offset counts: more than there are.
const OFFSET_MAX: i64 = 1 << 40;

/// Where windows lie, and what their kernels take.
#[derive(Debug, Clone)]
pub(crate) struct BoundWindows {
    /// A level: `uint32_t` a row, whether a run begins with it, then the number of its run; nothing where runs are not
    /// numbered.
    pub(crate) numbers: Vec<Region>,
    /// A level: `uint32_t` a run, its first row; the number of rows behind the last one. Nothing where nothing asks.
    starts: Vec<Region>,
    /// A scan: 4 or 8 bytes a row. A tree: `uint64_t` a node, the root at 1, the two below node n at 2n and 2n + 1.
    pub(crate) scans: Vec<Region>,
    /// A list: `uint32_t` a row that has a value, its place.
    lists: Vec<Region>,
    /// Scratch memory of the scans.
    pub(crate) scratch: Region,
    pub(crate) heads_params: ParamList,
    pub(crate) starts_params: ParamList,
    pub(crate) columns_params: ParamList,
    pub(crate) lists_params: ParamList,
}

impl BoundWindows {
    /// The windows of so many rows at most, whose kernels are not written yet.
    pub(crate) fn lay_out(arena: &mut Arena, plan: &WindowsPlan, rows: u64) -> BoundWindows {
        let rows_bytes = |bytes: usize| bytes * rows as usize;
        let mut scan = |scan: &ScanPlan| match scan.leaves(rows) {
            // Leaves without a row are the least.
            Some(leaves) => arena.zeroed(16 * leaves as usize),
            None => arena.scratch(rows_bytes(scan.element().bytes())),
        };
        let scans = plan.scans.iter().map(&mut scan).collect();
        let numbers_bytes = |level: &Level| if level.is_numbered { rows_bytes(4) } else { 0 };
        let starts_bytes = |level: &Level| if level.has_starts { rows_bytes(4) + 4 } else { 0 };
        let mut scratch = |bytes: usize| arena.scratch(bytes);
        BoundWindows {
            numbers: plan.levels.iter().map(numbers_bytes).map(&mut scratch).collect(),
            starts: plan.levels.iter().map(starts_bytes).map(&mut scratch).collect(),
            scans,
            lists: plan.lists.iter().map(|_| scratch(rows_bytes(4))).collect(),
            scratch: scratch(plan.scratch_bytes(rows)),
            heads_params: ParamList::default(),
            starts_params: ParamList::default(),
            columns_params: ParamList::default(),
            lists_params: ParamList::default(),
        }
    }

    /// The same with the operands of its kernels, and these as text, of the sort of a pipeline; `control` is the region
    /// of the run's state.
    pub(super) fn written(
        self,
        (top, memory, pipeline): (&TopPlan, &TopMemory, usize),
        plan: &WindowsPlan,
        control: Region,
    ) -> (BoundWindows, String) {
        let windows = &self;
        let (params, body) = (ParamList::default, String::new);
        let kernel = || Kernel { top, memory, pipeline, plan, windows, params: params(), body: body() };
        let (heads_params, heads) = if plan.has_numbers() { kernel().heads() } else { Default::default() };
        let (starts_params, starts) = if plan.has_starts() { kernel().starts() } else { Default::default() };
        let (columns_params, columns) = kernel().columns(control);
        let (lists_params, lists) = if plan.lists.is_empty() { Default::default() } else { kernel().lists() };
        let has_trees = plan.scans.iter().any(|scan| matches!(scan.scanned, Scanned::Tree { .. }));
        let (_, tree) = if has_trees { kernel().tree() } else { Default::default() };
        let source = heads + &starts + &columns + &lists + &tree;
        (BoundWindows { heads_params, starts_params, columns_params, lists_params, ..self }, source)
    }
}

/// A kernel that is written.
struct Kernel<'a> {
    top: &'a TopPlan,
    memory: &'a TopMemory,
    pipeline: usize,
    plan: &'a WindowsPlan,
    windows: &'a BoundWindows,
    params: ParamList,
    /// What is done with row `i`.
    body: String,
}

impl Kernel<'_> {
    fn line(&mut self, line: &str) {
        let _ = writeln!(self.body, "        {line}");
    }

    fn pointer(&mut self, c_type: &str, region: Region) -> String {
        self.params.add(&format!("{c_type}*"), Argument::Region(region))
    }

    fn number(&mut self, number: u64) -> String {
        self.params.add("uint64_t", Argument::U64(number))
    }

    fn signed(&mut self, number: i64) -> String {
        self.params.add("int64_t", Argument::I64(number))
    }

    /// The kernel over as many rows as `count` tells, at most.
    fn finish(self, name: &str, count: &str) -> (ParamList, String) {
        let body = format!(
            "    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < {count}; i += step) {{
{}    }}
",
            self.body
        );
        self.kernel(name, &body)
    }

    /// The kernel of this text.
    fn kernel(self, name: &str, body: &str) -> (ParamList, String) {
        let name = format!("{name}_{}", self.pipeline);
        let declaration = self.params.declaration(&format!("{name}_params"));
        let text = format!("WC_KERNEL({name}, {name}_params, 256, 1) {{\n{body}}}\n");
        (self.params, declaration + &text)
    }

    /// Writes, for each level whose runs are numbered, whether a run begins with the row at a place of the order.
    fn heads(mut self) -> (ParamList, String) {
        let (room, rows) = (self.number(self.top.k), self.rows());
        for (level, numbers) in self.windows.numbers.iter().enumerate() {
            if self.plan.levels[level].is_numbered {
                let sorted = SortedRows { top: self.top, memory: self.memory, levels: &self.plan.levels };
                let same = sorted.same(level, &mut self.params);
                self.line(&same);
                let numbers = self.pointer("uint32_t", *numbers);
                self.line(&format!("{numbers}[i] = i < {rows} && (i == 0 || !same{level}(i - 1, i));"));
            }
        }
        self.finish(HEADS, &room)
    }

    /// Writes the first row of each run, and what is scanned; behind the last row nothing is added.
    fn starts(mut self) -> (ParamList, String) {
        let (room, rows) = (self.number(self.top.k), self.rows());
        self.declare_columns();
        self.line(&format!("const bool is_row = i < {rows};"));
        let levels = self.windows.numbers.iter().zip(&self.windows.starts).zip(&self.plan.levels);
        for ((numbers, starts), _) in levels.filter(|(_, level)| level.has_starts) {
            let (numbers, starts) = (self.pointer("const uint32_t", *numbers), self.pointer("uint32_t", *starts));
            self.line("if (is_row) {");
            self.line(&format!("    const uint32_t number = {numbers}[i];"));
            self.line(&format!("    if (i == 0 || {numbers}[i - 1] != number) {starts}[number - 1] = (uint32_t)i;"));
            self.line(&format!("    if (i + 1 == {rows}) {starts}[number] = (uint32_t)(i + 1);"));
            self.line("}");
        }
        for (scan, region) in self.plan.scans.iter().zip(&self.windows.scans) {
            if self.plan.scanned_as_is(scan).is_some() {
                continue;
            }
            let mut counts = vec!["is_row".to_string()];
            counts.extend(scan.output.and_then(|output| self.valid(output, "i")));
            if let Some(filter) = scan.filter {
                counts.extend(self.valid(filter, "i"));
                counts.push(self.value(filter, "i"));
            }
            let signed = scan.output.is_some_and(|output| is_signed(self.plan.outputs[output].ty));
            let widest = if signed { "(int64_t)" } else { "(uint64_t)" };
            let value = scan.output.map(|output| format!("({widest}{})", self.value(output, "i"))).unwrap_or_default();
            let value = match scan.scanned {
                Scanned::Ones => "1".to_string(),
                Scanned::Value => value,
                Scanned::Low => format!("({value} & 0xffffffff)"),
                // The sign goes with the upper half.
                Scanned::High => format!("({value} >> 32)"),
                Scanned::Extreme { smallest, .. } | Scanned::Tree { smallest } => image(&value, signed, smallest),
            };
            let c_type = scan.element().c_type();
            let mut values = self.pointer(c_type, *region);
            if let Some(leaves) = scan.leaves(self.top.k) {
                values = format!("({values} + {})", self.number(leaves));
            }
            self.line(&format!("{values}[i] = {} ? ({c_type}){value} : ({c_type})0;", counts.join(" && ")));
        }
        self.finish(STARTS, &room)
    }

    /// Writes the places of the rows that have a value.
    fn lists(mut self) -> (ParamList, String) {
        let rows = self.rows();
        self.declare_columns();
        for ((scan, output), list) in self.plan.lists.iter().zip(&self.windows.lists) {
            let numbers = self.pointer("const uint32_t", self.windows.scans[*scan]);
            let (list, valid) = (self.pointer("uint32_t", *list), self.valid(*output, "i"));
            let valid = valid.unwrap_or_else(|| "true".into());
            self.line(&format!("if ({valid}) {list}[{numbers}[i] - 1] = (uint32_t)i;"));
        }
        self.finish(LISTS, &rows)
    }

    /// Writes the nodes of a level of a tree, so many from that number on.
    fn tree(mut self) -> (ParamList, String) {
        let (nodes, count) = (self.params.add("uint64_t*", Argument::U64(0)), self.number(0));
        self.line(&format!("const uint64_t node = {count} + i;"));
        self.line(&format!("const uint64_t left = {nodes}[2 * node], right = {nodes}[2 * node + 1];"));
        self.line(&format!("{nodes}[node] = left > right ? left : right;"));
        self.finish(TREE, &count)
    }

    /// Writes the columns.
    fn columns(mut self, control: Region) -> (ParamList, String) {
        let (count, control) = (self.rows(), self.pointer("uint64_t", control));
        self.declare_columns();
        for (level, numbers) in self.windows.numbers.iter().enumerate() {
            if self.plan.levels[level].is_numbered {
                let numbers = self.pointer("const uint32_t", *numbers);
                self.line(&format!("const uint32_t number{level} = {numbers}[i];"));
            }
        }
        let (layout, first): (&RowLayout, usize) = (&self.plan.row, self.top.row.words());
        let mut stored = StoredRow::of(layout, Some("places".into()));
        self.line(&format!("uint64_t* const out = columns + (uint64_t){first} * places + i;"));
        for (position, call) in self.plan.calls.iter().enumerate() {
            let facts = self.plan.facts[position].clone();
            let (code, valid) = self.call(position, call, ("rows", &control));
            let c_type = c_type_of(&facts);
            self.line(&format!("const {c_type} value{position} = ({c_type})({code});"));
            let value = Value::new(facts, format!("value{position}"), valid);
            stored.value(&value).iter().for_each(|line| self.line(line));
        }
        stored.validity().iter().for_each(|line| self.line(line));
        let slots = if self.plan.calls.len() <= FEW_COLUMNS { SLOTS } else { 1 };
        let sorted = SortedRows { top: self.top, memory: self.memory, levels: &self.plan.levels };
        let text = sorted.over_runs(&self.body, slots, &mut self.params);
        self.kernel(COLUMNS, &format!("    const uint64_t rows = {count};\n{text}"))
    }

    /// The number of rows, which the device knows.
    fn rows(&mut self) -> String {
        let head = self.pointer("const uint64_t", self.memory.output);
        format!("{head}[{ROWS_WORD}]")
    }

    /// Declares the columns of the rows, `columns`, a word after the other with so many `places`.
    fn declare_columns(&mut self) {
        let region = self.memory.columns.expect("windows are of rows that are scanned");
        let (columns, places) = (self.pointer("uint64_t", region), self.number(self.top.places()));
        self.line(&format!("uint64_t* const columns = {columns};"));
        self.line(&format!("const uint64_t places = {places};"));
    }

    /// A word of an output of the row at a place.
    fn word(&self, word: usize, at: &str) -> String {
        format!("columns[(uint64_t){word} * places + (uint64_t)({at})]")
    }

    /// C expression that tells whether an output of a row is not NULL; none if it never is.
    fn valid(&self, output: usize, at: &str) -> Option<String> {
        if !self.plan.outputs[output].nullable {
            return None;
        }
        let bits = self.word(output / 64, at);
        Some(format!("({bits} >> {} & 1) != 0", output % 64))
    }

    /// The value of an output of a row.
    fn value(&self, output: usize, at: &str) -> String {
        let column = &self.top.row.columns[output];
        let (word, wide) = (self.top.row.word_of(column), column.wide);
        let bits = self.word(word, at);
        match self.plan.outputs[output].ty {
            Ty::F64 => format!("__longlong_as_double((int64_t){bits})"),
            Ty::F32 => format!("__int_as_float((int32_t){bits})"),
            Ty::Bool => format!("({bits} != 0)"),
            _ if wide => {
                let high = self.word(word + 1, at);
                format!("((__int128)((unsigned __int128){high} << 64 | {bits}))")
            }
            _ => format!("(({})(int64_t){bits})", c_type_of(&self.plan.outputs[output])),
        }
    }

    /// The first row of the run of row `i` at a level, and the row behind its last one.
    fn run(&self, level: Option<usize>, rows: &str) -> [String; 2] {
        match level {
            Some(level) => [format!("first{level}"), format!("end{level}")],
            None => ["(int64_t)0".into(), format!("(int64_t){rows}")],
        }
    }

    /// Writes what computes a column of row `i`; its value, and what tells whether it is NULL.
    fn call(&mut self, position: usize, plan: &CallPlan, (rows, control): (&str, &str)) -> (String, Option<String>) {
        let [first, end] = self.run(plan.partition, rows);
        let [first_peer, end_peers] = self.run(plan.peers, rows);
        let code = match &plan.call.function {
            WindowFunction::RowNumber => format!("(int64_t)i - {first} + 1"),
            WindowFunction::Rank => format!("{first_peer} - {first} + 1"),
            WindowFunction::DenseRank => match plan.peers {
                Some(level) => format!("number{level} - {} + 1", self.number_at(level, &first)),
                None => "1".into(),
            },
            WindowFunction::PercentRank => {
                let others = format!("({end} - {first} - 1)");
                format!("{others} > 0 ? (double)({first_peer} - {first}) / (double){others} : 0.0")
            }
            WindowFunction::CumeDist => format!("(double)({end_peers} - {first}) / (double)({end} - {first})"),
            WindowFunction::Tile(parts) => {
                let parts = self.number(*parts);
                format!("wc_tile((uint64_t)((int64_t)i - {first}), (uint64_t)({end} - {first}), {parts})")
            }
            WindowFunction::Shift { output, rows: by, default, .. } => {
                let offset = (*by).clamp(-OFFSET_MAX, OFFSET_MAX);
                let at = match plan.list {
                    // Rows that have a value before the row, or up to it.
                    Some(list) => {
                        let behind = if offset > 0 { "i" } else { "i + 1" };
                        let place = self.signed(-offset - i64::from(offset < 0));
                        let number = format!("{} + {place}", self.counted(list, behind));
                        let number = self.defined("int64_t", "number_of", position, &number);
                        let all = self.counted(list, rows);
                        let all = self.defined("int64_t", "all", position, &all);
                        self.listed(list, &number, ("0", &all))
                    }
                    None => format!("(int64_t)i - {}", self.signed(offset)),
                };
                self.line(&format!("const int64_t at{position} = {at};"));
                let is_there = format!("at{position} >= {first} && at{position} < {end}");
                self.line(&format!("const bool there{position} = {is_there};"));
                return self.row_or(position, *output, *default);
            }
            WindowFunction::Nth { output, place, frame, .. } => {
                self.frame(position, plan, frame, rows);
                let bounds = [format!("low{position}"), format!("high{position}")];
                let bounds = match plan.list {
                    Some(list) => ["from", "to"].map(|name| {
                        let bound = if name == "from" { &bounds[0] } else { &bounds[1] };
                        let counted = self.counted(list, bound);
                        self.defined("int64_t", name, position, &counted)
                    }),
                    None => bounds,
                };
                let at = match place {
                    1.. => format!("{} + {}", bounds[0], self.signed((*place).min(OFFSET_MAX) - 1)),
                    _ => format!("{} + {}", bounds[1], self.signed((*place).max(-OFFSET_MAX))),
                };
                let at = match plan.list {
                    Some(list) => {
                        let number = self.defined("int64_t", "number_of", position, &at);
                        self.listed(list, &number, (&bounds[0], &bounds[1]))
                    }
                    None => at,
                };
                self.line(&format!("const int64_t at{position} = {at};"));
                let is_there = format!("at{position} >= low{position} && at{position} < high{position}");
                self.line(&format!("const bool there{position} = {is_there};"));
                return self.row_or(position, *output, Literal::Null);
            }
            WindowFunction::Aggregate { frame, .. } => {
                self.frame(position, plan, frame, rows);
                return self.aggregate(position, plan, control);
            }
        };
        (code, None)
    }

    /// The number of rows of a list before a row.
    fn counted(&mut self, list: usize, row: &str) -> String {
        let numbers = self.pointer("const uint32_t", self.windows.scans[self.plan.lists[list].0]);
        format!("(int64_t)({row} > 0 ? {numbers}[{row} - 1] : 0u)")
    }

    /// The row of a number in a list between two others; −1 outside of these.
    fn listed(&mut self, list: usize, number: &str, (from, to): (&str, &str)) -> String {
        let rows = self.pointer("const uint32_t", self.windows.lists[list]);
        format!("({number} >= {from} && {number} < {to} ? (int64_t){rows}[{number}] : (int64_t)-1)")
    }

    /// An output of the row `at`, if it is there, or a constant.
    fn row_or(&mut self, position: usize, output: usize, default: Literal) -> (String, Option<String>) {
        let (there, at) = (format!("there{position}"), format!("at{position}"));
        let (value, valid) = (self.value(output, &at), self.valid(output, &at).unwrap_or_else(|| "true".into()));
        let facts = self.plan.facts[position].clone();
        let other = match default {
            Literal::Float(number) => self.params.add("double", Argument::F64(number)),
            Literal::Int(number) if facts.is_wide() => {
                let (high, low) = (self.signed((number >> 64) as i64), self.number(number as u64));
                format!("((__int128)((unsigned __int128){high} << 64 | {low}))")
            }
            Literal::Int(number) => self.signed(number as i64),
            Literal::Null | Literal::Argument(_) => {
                let c_type = c_type_of(&facts);
                let (value, valid) = (format!("{there} ? {value} : ({c_type})0"), format!("({there} && {valid})"));
                return (value, Some(self.defined("bool", "valid", position, &valid)));
            }
        };
        let c_type = c_type_of(&facts);
        let valid = facts.nullable.then(|| self.defined("bool", "valid", position, &format!("!{there} || {valid}")));
        (format!("{there} ? ({c_type}){value} : ({c_type}){other}"), valid)
    }

    /// A name for a value of a column.
    fn defined(&mut self, c_type: &str, name: &str, position: usize, code: &str) -> String {
        self.line(&format!("const {c_type} {name}{position} = {code};"));
        format!("{name}{position}")
    }

    /// The number of the run of a row at a level.
    fn number_at(&mut self, level: usize, row: &str) -> String {
        let numbers = self.pointer("const uint32_t", self.windows.numbers[level]);
        format!("(int64_t){numbers}[{row}]")
    }

    /// Declares the first row of the frame, and the row behind its last one, which is no smaller.
    fn frame(&mut self, position: usize, plan: &CallPlan, frame: &Frame, rows: &str) {
        let low = self.bound(plan, frame.start, (true, rows));
        let high = self.bound(plan, frame.end, (false, rows));
        self.line(&format!("const int64_t low{position} = {low};"));
        self.line(&format!("const int64_t end_of{position} = {high};"));
        let behind = format!("end_of{position} > low{position} ? end_of{position} : low{position}");
        self.line(&format!("const int64_t high{position} = {behind};"));
    }

    /// The first row of a frame, or the one behind its last.
    fn bound(&mut self, plan: &CallPlan, bound: FrameBound, (is_start, rows): (bool, &str)) -> String {
        let ([first, end], peers) = (self.run(plan.partition, rows), self.run(plan.peers, rows));
        let own = if is_start { &peers[0] } else { &peers[1] };
        match (bound, plan.peers) {
            (FrameBound::Unbounded, _) => {
                if is_start {
                    first
                } else {
                    end
                }
            }
            (FrameBound::Rows(offset), _) => {
                let offset = self.signed(offset.clamp(-OFFSET_MAX, OFFSET_MAX) + i64::from(!is_start));
                format!("wc_between((int64_t)i + {offset}, {first}, {end})")
            }
            (FrameBound::Peers(0), _) => own.clone(),
            (FrameBound::Peers(offset), None) => {
                if offset < 0 {
                    first
                } else {
                    end
                }
            }
            (FrameBound::Peers(offset), Some(level)) => {
                let offset = self.signed(offset.clamp(-OFFSET_MAX, OFFSET_MAX));
                let (least, most) = (self.number_at(level, &first), self.number_at(level, &format!("{end} - 1")));
                let starts = self.pointer("const uint32_t", self.windows.starts[level]);
                let wanted = format!("((int64_t)number{level} + {offset})");
                let found = if is_start { "- 1" } else { "" };
                format!(
                    "({wanted} < {least} ? {first} : {wanted} > {most} ? {end} : (int64_t){starts}[{wanted} {found}])"
                )
            }
        }
    }

    /// What is added up of the rows of the frame by a scan.
    fn added(&mut self, scan: usize, position: usize) -> String {
        let c_type = self.plan.scans[scan].element().c_type();
        let sums = self.pointer(&format!("const {c_type}"), self.windows.scans[scan]);
        let below = |row: String| format!("({row} > 0 ? {sums}[{row} - 1] : ({c_type})0)");
        format!("({c_type})({} - {})", below(format!("high{position}")), below(format!("low{position}")))
    }

    /// The aggregate of the rows of the frame.
    fn aggregate(&mut self, position: usize, plan: &CallPlan, control: &str) -> (String, Option<String>) {
        let facts = self.plan.facts[position].clone();
        let counted = match plan.count {
            Some(scan) => format!("{} > 0", self.added(scan, position)),
            None => format!("high{position} > low{position}"),
        };
        let total = plan.total.unwrap_or(Total::Rows);
        let code = match total {
            Total::Rows => return (format!("high{position} - low{position}"), None),
            Total::Count(scan) => return (self.added(scan, position), None),
            Total::Sum(scan) => format!("(int64_t){}", self.added(scan, position)),
            Total::Halves { low, high } => {
                let (low, high) = (self.added(low, position), self.added(high, position));
                let whole = format!("(__int128)(int64_t){high} * ((__int128)1 << 32) + (__int128){low}");
                self.defined("__int128", "total", position, &whole)
            }
            Total::Extreme { scan, smallest } | Total::Tree { scan, smallest } => {
                let images = self.pointer("const uint64_t", self.windows.scans[scan]);
                let (low, high) = (format!("low{position}"), format!("high{position}"));
                let image = match self.plan.scans[scan].leaves(self.top.k) {
                    Some(leaves) => format!("wc_largest({images}, {}, {low}, {high})", self.number(leaves)),
                    None => format!("({high} > {low} ? {images}[{high} - 1] : 0ULL)"),
                };
                let image = if smallest { format!("~{image}") } else { image };
                let sign = if is_signed(facts.ty) { " ^ 0x8000000000000000ULL" } else { "" };
                format!("(int64_t)(({image}){sign})")
            }
        };
        let valid = self.defined("bool", "valid", position, &counted);
        if let (Total::Halves { .. }, false) = (total, facts.ty == Ty::I128) {
            let narrow = c_type(facts.ty, false);
            // A run that has stopped has some of the rows.
            let is_whole = format!("{control}[1] == 0 && {control}[3] == 0");
            self.line(&format!("if ({valid} && (__int128)({narrow}){code} != {code}) {{"));
            self.line(&format!("    if ({is_whole}) wc_raise({control}, WC_OVERFLOW);"));
            self.line("}");
        }
        (code, Some(valid))
    }
}

/// Whether values of a type are signed.
fn is_signed(ty: Ty) -> bool {
    matches!(ty, Ty::I8 | Ty::I16 | Ty::I32 | Ty::I64 | Ty::I128)
}

/// The image of a value of 64 bits in the order of unsigned numbers, complemented for the smallest.
fn image(value: &str, signed: bool, smallest: bool) -> String {
    let turned = if smallest { "~" } else { "" };
    let sign = if signed { " ^ 0x8000000000000000ULL" } else { "" };
    format!("({turned}((uint64_t){value}{sign}))")
}
