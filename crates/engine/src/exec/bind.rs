//! From a fragment and the columns it runs over to generated kernels and an arena.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use warpcube_column::{Relation, program_of_texts};
use warpcube_gpu::{DeviceInfo, Effort, Program};

use crate::arena::{Arena, Region};
use crate::codegen::computed::{self, ComputedKernel};
use crate::codegen::library::with_library;
use crate::codegen::memory::{
    BoundGroups, BoundRows, Control, Operands, PIPELINES_MAX, ScanMemory, TICKETS_OFFSET, TableMemory,
};
use crate::codegen::pipeline::{BoundPipeline, generate};
use crate::codegen::sink::BoundSink;
use crate::codegen::stop_memory::TICKETS_STRIDE;
use crate::codegen::topk::BoundTop;
use crate::error::{EngineError, Result, unsupported};
use crate::exec::view;
use crate::ir::{Fragment, Overflow, Probe, Source};
use crate::plan::bytes::over_bytes;
use crate::plan::dependencies::{determined_keys, determined_order};
use crate::plan::groups::Grouping;
use crate::plan::growth::Growth;
use crate::plan::input::{Branch, PipelineInput, limit};
use crate::plan::launches::{LaunchGroup, launch_groups, levels};
use crate::plan::listed::with_list;
use crate::plan::pipeline::plan;
use crate::plan::ready::{Ready, malformed, unique};
use crate::plan::table::{TablePlan, Tables, Unique};
use crate::plan::union::Union;
use crate::plan::unread::without_unread;
use crate::tuning::Tuning;

/// The kernel that gathers the groups there are.
const COMPACT: &str = include_str!("../../kernels/compact.cuh");
/// The kernels behind a build whose rows may have several matches.
const MATCHES: &str = include_str!("../../kernels/matches.cuh");
/// The kernel behind a build whose runs end in another table.
const RUN_ENDS: &str = include_str!("../../kernels/run_ends.cuh");

/// A fragment ready to run on one device.
#[derive(Debug, Clone)]
pub(crate) struct BoundFragment {
    pub(crate) pipelines: Vec<BoundPipeline>,
    /// Pipelines of the fragment as it was lowered: one more that binding has added is a part of the last.
    pub(crate) shown: usize,
    /// Launches in order.
    pub(crate) launch_groups: Vec<LaunchGroup>,
    pub(crate) arena: Arena,
    pub(crate) control: Region,
    /// Source of the kernels that belong to no pipeline.
    behind: String,
    /// Cached result of [`BoundFragment::program`].
    program: OnceLock<Arc<Program>>,
    /// What is compiled: a program a launch group, side by side, then the one that gathers groups or a top-k's rows,
    /// and those that run behind builds. NVRTC takes some tenths of a second for a large kernel; for the emulated
    /// device, whose compiler starts slowly, all kernels are one program.
    pub(crate) parts: Vec<Program>,
    /// Whether any join has several matches for a row; the kernels behind builds are the last part's.
    pub(crate) has_matches: bool,
    /// Whether the runs of any table end in another one.
    pub(crate) has_ends: bool,
    pub(crate) root: Root,
}

/// What the last pipeline leaves behind.
#[derive(Debug, Clone)]
pub(crate) enum Root {
    /// Groups, and where gathered ones go; `None` if the group table is downloaded whole.
    Groups(Box<BoundGroups>, Option<Box<Gathered>>),
    /// The first rows by an order.
    TopK(Box<BoundTop>),
    /// Rows.
    Rows(BoundRows),
}

/// Output of the kernel behind groups.
#[derive(Debug, Clone)]
pub(crate) struct Gathered {
    /// `uint64_t` error, flags, count, then for each group key and cells, or what is computed of them.
    pub(crate) region: Region,
    /// Most groups there is room for.
    pub(crate) capacity: u64,
    /// Words of a row.
    pub(crate) row_words: usize,
    /// The kernel that computes columns of groups; none if they come as they are.
    pub(crate) computed: Option<ComputedKernel>,
}

/// Sizes that may have to grow when a run finds them too small, and the seed of hashes that may have to be another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Guesses {
    /// Slots of a hashed group table, and rows of a guessed number, before anything has grown.
    pub(crate) group_slots: u64,
    /// How often the room of each sink has grown.
    pub(crate) growth: Growth,
    /// Whether exact sums of floats keep limbs for every finite value.
    pub(crate) whole_sums: bool,
    /// What hashes of keys are seeded with.
    pub(crate) seed: u64,
    /// Thresholds of a top-k that have failed.
    pub(crate) failed_thresholds: u32,
    /// A bit a pipeline whose table has several rows for a key.
    pub(crate) several: u32,
    /// Whether more groups are sorted than one block sorts.
    pub(crate) many_sorted: bool,
}

/// Binds a fragment to its tables, one [`Relation`] for each of `fragment.tables`.
pub(crate) fn bind(
    fragment: &Fragment,
    tables: &[Relation],
    info: &DeviceInfo,
    guesses: Guesses,
    tuning: &Tuning,
) -> Result<BoundFragment> {
    let shown = fragment.pipelines.len();
    let fragment = with_list(fragment, guesses.several);
    let fragment = without_unread(&fragment);
    let fragment = fragment.as_ref();
    let mut arena = Arena::new(info.emulated);
    if fragment.pipelines.len() > PIPELINES_MAX {
        return unsupported(format!("{} pipelines, more than {PIPELINES_MAX}", fragment.pipelines.len()));
    }
    let control_bytes = TICKETS_OFFSET + TICKETS_STRIDE * fragment.pipelines.len();
    let control = arena.zeroed(control_bytes);
    let mut built: Vec<Option<Arc<TablePlan>>> = vec![None; fragment.pipelines.len()];
    let mut memory: Vec<Option<TableMemory>> = vec![None; fragment.pipelines.len()];
    let mut pipelines: Vec<BoundPipeline> = Vec::new();
    let (mut all, mut union, levels) = (Vec::new(), None, levels(fragment));
    for index in 0..fragment.pipelines.len() {
        let branches = fragment.branches(index);
        if branches.start == index {
            let known = (&built[..], &pipelines[..]);
            let members = branches.clone().map(|index| ready(fragment, index, tables, (known, guesses.several)));
            all = members.collect::<Result<Vec<_>>>()?;
            union = match all.len() {
                1 => None,
                _ => Some(Union::of(&all.iter().map(Ready::member).collect::<Vec<_>>(), fragment.overflow)?),
            };
        }
        let number = index - branches.start;
        let Some(Ready { scanned, pipeline, registers, rows, .. }) = all.get(number) else {
            return Err(malformed(index, "is the end of an empty union"));
        };
        let rows = *rows;
        let is_unique = |probe: &Probe| unique(fragment, probe.build, guesses.several) != Unique::No;
        // Registers of what scans an output stand behind those of its columns.
        let shift = if pipeline.source.table().is_some() { 0 } else { scanned.columns.len() };
        let is_float = |register: usize| {
            let facts = registers.get(register + shift).and_then(Option::as_ref);
            facts.is_none_or(|facts| facts.ty.is_float())
        };
        let determined = determined_order(fragment, index, &is_unique, &is_float);
        let first = pipelines.get(branches.start);
        let groups = first.and_then(BoundPipeline::groups).map(|groups| &groups.plan);
        let branch = union.as_ref().map(|union| Branch { union, number, groups });
        let input = PipelineInput {
            index,
            pipeline,
            columns: &scanned.columns,
            values: &scanned.values,
            rows,
            chunk_rows: &scanned.chunks,
            skips: rows >= tuning.skip_rows,
            tables: &built,
            unique: unique(fragment, index, guesses.several),
            several: guesses.several.checked_shr(index as u32).unwrap_or(0) & 1 != 0,
            determined: &determined,
            result: if branches.end == fragment.pipelines.len() { &fragment.result } else { &[] },
            scanned: fragment.pipelines.iter().any(|other| other.source == Source::Output(branches.end - 1)),
            has_limit: branches.clone().any(|branch| limit(&fragment.pipelines[branch]).is_some()),
            probed: fragment.is_probed(index),
            branch,
            info,
            shared_limit: info.shared_memory_per_block,
            group_slots: guesses.group_slots,
            growth: guesses.growth.times(branches.start),
            behind: is_behind(&pipelines, &levels, index),
            seed: guesses.seed,
            whole_sums: guesses.whole_sums,
            failed_thresholds: guesses.failed_thresholds,
            many_sorted: guesses.many_sorted,
            overflow: fragment.overflow,
            tuning,
        };
        let plan = Arc::new(plan(&input)?);
        let sink = BoundSink::lay_out(&mut arena, &plan.sink, (index, first.map(|first| &first.sink)));
        let scan = ScanMemory::lay_out(&mut arena, &input, &plan, scanned);
        let operands = Operands { control: Control { region: control }, tables: &memory, scan: &scan };
        let bound = generate(&input, plan, operands, sink, &mut arena)?;
        if let Some(table) = bound.table() {
            built[index] = Some(table.plan.clone());
            memory[index] = Some(table.memory.clone());
        }
        pipelines.push(bound);
    }
    let mut root = match pipelines.last().map(|root| &root.sink) {
        Some(BoundSink::Groups(groups)) => Root::Groups(Box::new(groups.clone()), None),
        Some(BoundSink::TopK(top)) => Root::TopK(top.clone()),
        Some(BoundSink::Rows(rows)) => Root::Rows(rows.clone()),
        _ => return Err(EngineError::Malformed("the root of a fragment gives no rows".into())),
    };
    let launch_groups = launch_groups(fragment, pipelines.iter().map(|pipeline| pipeline.plan.shared.block));
    if let Some(wanted) = launch_groups.iter().map(|group| group.params_bytes(&pipelines)).max()
        && wanted > info.params_bytes_max
    {
        let most = info.params_bytes_max;
        return unsupported(format!("a kernel with {wanted} bytes of parameters, where the device takes {most}"));
    }
    // What runs behind the launch groups.
    let finish = match &mut root {
        Root::Groups(groups, gathered) => {
            let by = (fragment.overflow, tuning);
            *gathered = lay_out_result(&mut arena, groups, Control { region: control }, by)?.map(Box::new);
            gathered.as_ref().map(|gathered| match &gathered.computed {
                None => ("compact".to_string(), COMPACT.to_string()),
                Some(kernel) => (computed::COMPUTE.to_string(), kernel.source.clone()),
            })
        }
        Root::TopK(top) if top.last_block().is_none() => Some(("top".to_string(), top.source.clone())),
        Root::TopK(_) | Root::Rows(_) => None,
    };
    let has_matches = pipelines.iter().filter_map(BoundPipeline::table).any(|table| table.matches.is_some());
    let has_ends = pipelines.iter().filter_map(BoundPipeline::table).any(|table| table.ends.is_some());
    let builds = if has_matches { MATCHES } else { "" }.to_string() + if has_ends { RUN_ENDS } else { "" };
    let builds = (!builds.is_empty()).then_some(("behind_builds".to_string(), builds));
    let scanned = scanned_tops(&pipelines).map(|(index, top)| (format!("top_{index}"), top.source.clone()));
    let others: Vec<_> = finish.into_iter().chain(scanned).chain(builds).collect();
    let behind = others.iter().map(|(_, text)| text.as_str()).collect();
    let (parts, program) = (Vec::new(), OnceLock::new());
    let mut bound = BoundFragment {
        pipelines,
        shown,
        launch_groups,
        arena,
        control,
        behind,
        program,
        parts,
        has_matches,
        has_ends,
        root,
    };
    bound.parts = match info.emulated {
        true => vec![bound.program().as_ref().clone()],
        false => parts_of(&bound, others, tuning),
    };
    Ok(bound)
}

impl BoundFragment {
    /// All kernels as one program.
    pub(crate) fn program(&self) -> &Arc<Program> {
        self.program.get_or_init(|| {
            let mut source: String = self.pipelines.iter().map(|pipeline| &*pipeline.source).collect();
            source.extend(self.top().filter(|top| top.last_block().is_some()).map(|top| top.source.as_str()));
            source.extend(self.launch_groups.iter().map(|group| group.source(&self.pipelines)));
            Arc::new(with_library("fragment", source + &self.behind))
        })
    }

    /// The top-k at its root, if there is one.
    pub(crate) fn top(&self) -> Option<&BoundTop> {
        match &self.root {
            Root::Groups(_, _) | Root::Rows(_) => None,
            Root::TopK(top) => Some(top),
        }
    }

    /// Programs that it shares with others, beside its own.
    pub(crate) fn shared_programs(&self, info: &DeviceInfo) -> Vec<Program> {
        let gives_texts = match &self.root {
            Root::Groups(groups, _) => groups.texts.iter().any(Option::is_some),
            Root::TopK(top) => top.row.has_texts(),
            Root::Rows(rows) => rows.texts.iter().any(Option::is_some),
        };
        let tops = self.top().into_iter().chain(scanned_tops(&self.pipelines).map(|(_, top)| top));
        let own = tops.flat_map(|top| top.programs(info));
        own.chain(gives_texts.then(program_of_texts)).collect()
    }
}

/// First rows that other pipelines scan, with the pipelines that leave them.
pub(crate) fn scanned_tops(pipelines: &[BoundPipeline]) -> impl Iterator<Item = (usize, &BoundTop)> {
    pipelines.iter().enumerate().filter_map(|(index, pipeline)| match &pipeline.sink {
        BoundSink::TopK(top) if top.values.is_some() => Some((index, &**top)),
        _ => None,
    })
}

/// A program a launch group, then those that `others` name.
fn parts_of(bound: &BoundFragment, others: Vec<(String, String)>, tuning: &Tuning) -> Vec<Program> {
    let pipelines = &bound.pipelines;
    let group = |group: &LaunchGroup| {
        let members: String = group.members.iter().map(|index| &*pipelines[*index].source).collect();
        let last_block = bound.top().filter(|_| group.last_block(pipelines).is_some()).map_or("", |top| &top.source);
        let source = members + last_block + &group.source(pipelines);
        let builds = group.members.iter().all(|index| matches!(pipelines[*index].sink, BoundSink::Table(_)));
        let effort = if tuning.quick_builds && builds { Effort::Less } else { Effort::Full };
        let program = with_library(group.name.clone(), source);
        if effort == Effort::Full { program } else { program.with_effort(effort) }
    };
    let others = others.into_iter().map(|(name, text)| with_library(name, text));
    bound.launch_groups.iter().map(group).chain(others).collect()
}

/// The result of groups, and the kernel that computes its columns; none where the group table is downloaded whole.
fn lay_out_result(
    arena: &mut Arena,
    groups: &BoundGroups,
    control: Control,
    (overflow, tuning): (Overflow, &Tuning),
) -> Result<Option<Gathered>> {
    let capacity = groups.places;
    let mut region = |row_words: usize| arena.result(24, 24 + 8 * row_words * capacity as usize);
    if let Some(plan) = &groups.computed {
        let row_words = plan.row.words();
        let region = region(row_words);
        let kernel = groups.compute(plan, (control, region), arena, overflow)?;
        return Ok(Some(Gathered { region, capacity, row_words, computed: Some(kernel) }));
    }
    let whole = groups.memory.bytes();
    if groups.grouping != Grouping::Hashed && groups.copies == 1 && whole <= tuning.whole_download_bytes {
        return Ok(None);
    }
    let row_words = groups.pack.words + groups.cell_count;
    Ok(Some(Gathered { region: region(row_words), capacity, row_words, computed: None }))
}

/// Whether a pipeline that is launched before this one may stop without room: one of those bound so far that resumes,
/// or any that is not bound yet.
fn is_behind(bound: &[BoundPipeline], levels: &[usize], index: usize) -> bool {
    let before = levels.iter().enumerate().filter(|(_, level)| **level < levels[index]);
    let mut before = before.map(|(other, _)| other);
    before.any(|other| bound.get(other).is_none_or(|bound| bound.plan.resumes))
}

/// What is known of the pipelines before one: the plans of tables, and what all leave.
type Known<'a> = (&'a Tables, &'a [BoundPipeline]);

/// A pipeline whose tables and groups are bound.
fn ready<'a>(
    fragment: &'a Fragment,
    index: usize,
    tables: &'a [Relation],
    ((built, before), several): (Known<'_>, u32),
) -> Result<Ready<'a>> {
    let left = |of: usize| {
        let view = match before.get(of).map(|pipeline| &pipeline.sink) {
            Some(BoundSink::Groups(groups)) => view::of_groups(groups),
            Some(BoundSink::List(list)) => view::of_list(list),
            Some(BoundSink::TopK(top)) => view::of_first_rows(top),
            _ => return Err(malformed(index, &format!("scans groups {of}"))),
        };
        let rows = view.rows();
        Ok((view, rows))
    };
    let mut ready = Ready::of(fragment, index, (tables, built), left)?;
    if ready.has_texts() {
        let is_unique = |probe: &Probe| unique(fragment, probe.build, several) != Unique::No;
        let determined = determined_keys(fragment, index, &is_unique);
        ready.pipeline = Cow::Owned(over_bytes(&ready.pipeline, &ready.registers, &determined)?);
    }
    Ok(ready)
}
