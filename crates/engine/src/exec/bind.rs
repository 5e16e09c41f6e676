//! From a fragment and the columns it runs over to generated kernels and an arena.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use warpcube_column::format::Encoding;
use warpcube_column::{
    ColumnLayout, Relation, ResidentColumn, RowCount, Storage, Traits, VECTOR_ROWS, program_of_texts,
};
use warpcube_gpu::{DeviceBuffer, DeviceInfo, DevicePtr, Effort, Program};

use crate::arena::{Arena, Pointer, Zone};
use crate::codegen::build::Unique;
use crate::codegen::group_values::{GroupValue, column_facts, is_group};
use crate::codegen::input::{Branch, Control, PipelineInput, TICKETS_OFFSET, TICKETS_STRIDE, rows_out};
use crate::codegen::launch_group::{LaunchGroup, launch_groups};
use crate::codegen::library::with_library;
use crate::codegen::list::BoundList;
use crate::codegen::pipeline::{BoundPipeline, ScanZones, generate};
use crate::codegen::result_rows::BoundRows;
use crate::codegen::sink::{BoundGroups, BoundSink, Grouping};
use crate::codegen::topk::BoundTop;
use crate::error::{EngineError, Result, unsupported};
use crate::facts::{Facts, Texts};
use crate::format::in_bytes;
use crate::ir::{Fragment, Pipeline, Probe, Sink, Source, Step, Ty};
use crate::plan::bytes::over_bytes;
use crate::plan::dependencies::determined_keys;
use crate::plan::listed::with_list;
use crate::plan::order;
use crate::plan::table::BuiltTable;
use crate::plan::union::{Member, Union};
use crate::tuning::Tuning;

/// The kernel that gathers the groups there are.
const COMPACT: &str = include_str!("../../kernels/compact.cuh");
/// The kernels behind a build whose rows may have several matches.
const MATCHES: &str = include_str!("../../kernels/matches.cuh");
/// The kernel behind a build whose runs end in another table.
const RUN_ENDS: &str = include_str!("../../kernels/run_ends.cuh");
/// Rows of the largest ticket; offsets within a ticket are 16 bits wide.
const TICKET_ROWS_MAX: u64 = 64 << 10;
/// Rows that large tickets are multiples of: some steps of any scan, worked on in turn.
const TICKET_ROWS_STEP: u64 = 4 << 10;
/// How much smaller the small tickets are.
const SMALLER: u64 = 4;
/// Warps a multiprocessor that tickets are cut for.
const WARPS_PER_MULTIPROCESSOR: u64 = 32;
/// Rows of a chunk of a group table that is scanned, as many as a segment has.
const GROUP_CHUNK_ROWS: u64 = 1 << 20;
/// Group tables up to this size are downloaded whole.
pub(crate) const WHOLE_DOWNLOAD_BYTES: usize = 64 << 10;

/// A fragment ready to run on one device.
#[derive(Debug, Clone)]
pub(crate) struct BoundFragment {
    pub(crate) pipelines: Vec<BoundPipeline>,
    /// Pipelines of the fragment as it was lowered: one more that binding has added is a part of the last.
    pub(crate) shown: usize,
    /// Launches in order.
    pub(crate) launch_groups: Vec<LaunchGroup>,
    pub(crate) arena: Arena,
    pub(crate) control: Zone,
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
    /// Whether the filters of its pipelines are those of the fragment, so that other constants can take their places.
    pub(crate) takes_constants: bool,
    pub(crate) root: Root,
}

/// What the last pipeline leaves behind.
#[derive(Debug, Clone)]
pub(crate) enum Root {
    /// Groups, and where compacted ones go; `None` if the group table is downloaded whole.
    Groups(Box<BoundGroups>, Option<Compacted>),
    /// The first rows by an order.
    TopK(Box<BoundTop>),
    /// Rows.
    Rows(BoundRows),
}

/// Output of the compaction kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compacted {
    /// `uint64_t` error, flags, count, then for each group key and cells.
    pub(crate) zone: Zone,
    /// Most groups there is room for.
    pub(crate) capacity: u64,
}

/// Sizes that may have to grow when a run finds them too small, and the seed of hashes that may have to be another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Guesses {
    /// Slots of a hashed group table.
    pub(crate) group_slots: u64,
    /// Whether exact sums of floats keep limbs for every finite value.
    pub(crate) whole_sums: bool,
    /// Whether join tables have room for all rows that are scanned, and not only for those that are expected to pass.
    pub(crate) whole_tables: bool,
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
    let mut takes_constants = shown == fragment.pipelines.len();
    let fragment = fragment.as_ref();
    let mut arena = Arena::new(info.emulated);
    let control_bytes = TICKETS_OFFSET + TICKETS_STRIDE * fragment.pipelines.len();
    let control = arena.zeroed(control_bytes);
    let mut built: Vec<Option<BuiltTable>> = vec![None; fragment.pipelines.len()];
    let mut pipelines = Vec::new();
    let mut root = None;
    let mut groups: Vec<Option<BoundGroups>> = vec![None; fragment.pipelines.len()];
    let mut lists: Vec<Option<BoundList>> = vec![None; fragment.pipelines.len()];
    let (mut ready, mut union) = (Vec::new(), None);
    for index in 0..fragment.pipelines.len() {
        let branches = fragment.branches(index);
        if branches.start == index {
            let known = (&built[..], &groups[..], &lists[..]);
            let members = branches.clone().map(|index| Ready::of(fragment, index, tables, (known, guesses.several)));
            ready = members.collect::<Result<Vec<_>>>()?;
            union = match ready.len() {
                1 => None,
                _ => Some(Union::of(&ready.iter().map(Ready::member).collect::<Vec<_>>(), fragment.overflow)?),
            };
        }
        let number = index - branches.start;
        let Some(Ready { scanned, pipeline, rows, .. }) = ready.get(number) else {
            return Err(malformed(index, "is the end of an empty union"));
        };
        let has_filters = fragment.pipelines[index].steps.iter().any(|step| matches!(step, Step::Filter(_)));
        takes_constants &= !has_filters || matches!(pipeline, Cow::Borrowed(_));
        let rows = *rows;
        let first = groups[branches.start].clone();
        let branch = union.as_ref().map(|union| Branch { union, number, groups: first.as_ref() });
        let input = PipelineInput {
            index,
            pipeline,
            layouts: &scanned.layouts,
            distinct: &scanned.distinct,
            distinct_counts: &scanned.distinct_counts,
            traits: &scanned.traits,
            columns: &scanned.columns,
            values: &scanned.values,
            rows,
            chunk_rows: &scanned.chunks,
            skips: rows >= tuning.skip_rows,
            tables: &built,
            unique: unique(fragment, index, guesses.several),
            several: guesses.several.checked_shr(index as u32).unwrap_or(0) & 1 != 0,
            scanned: fragment.pipelines.iter().any(|other| other.source == Source::Groups(branches.end - 1)),
            branch,
            info,
            shared_limit: info.shared_memory_per_block,
            control: Control { zone: control },
            group_slots: guesses.group_slots,
            seed: guesses.seed,
            whole_sums: guesses.whole_sums,
            whole_tables: guesses.whole_tables,
            failed_thresholds: guesses.failed_thresholds,
            many_sorted: guesses.many_sorted,
            overflow: fragment.overflow,
            tuning,
        };
        let bound = generate(&input, |arena, least| lay_out_scan(arena, scanned, info, tuning, least), &mut arena)?;
        if bound.shared_bytes as usize > info.shared_memory_per_block {
            let (wanted, most) = (in_bytes(bound.shared_bytes.into()), in_bytes(info.shared_memory_per_block as u64));
            return unsupported(format!("a kernel that takes {wanted} of shared memory, where a block has {most}"));
        }
        match &bound.sink {
            BoundSink::Table(table) => built[index] = Some(table.clone()),
            BoundSink::Groups(bound) => {
                groups[index] = Some(bound.clone());
                root = Some(Root::Groups(Box::new(bound.clone()), None));
            }
            BoundSink::TopK(bound) => root = Some(Root::TopK(bound.clone())),
            BoundSink::Rows(bound) => root = Some(Root::Rows(bound.clone())),
            BoundSink::List(bound) => lists[index] = Some(bound.clone()),
        }
        pipelines.push(bound);
    }
    let mut root = root.ok_or_else(|| EngineError::Malformed("a fragment without a result".into()))?;
    let last = fragment.pipelines.last().map(|pipeline| &pipeline.sink);
    if !matches!(last, Some(Sink::Aggregate { .. } | Sink::TopK(_) | Sink::Rows { .. })) {
        return Err(EngineError::Malformed("the root of a fragment gives no rows".into()));
    }
    let last_block = match &root {
        Root::TopK(top) => top.last_block(),
        _ => None,
    };
    let launch_groups = launch_groups(fragment, &pipelines, last_block);
    if let Some(wanted) = launch_groups.iter().map(|group| group.params_bytes(&pipelines)).max()
        && wanted > info.params_bytes_max
    {
        let most = info.params_bytes_max;
        return unsupported(format!("a kernel with {wanted} bytes of parameters, where the device takes {most}"));
    }
    // What runs behind the launch groups.
    let finish = match &mut root {
        Root::Groups(groups, compacted) => {
            *compacted = lay_out_result(&mut arena, groups);
            compacted.map(|_| ("compact", COMPACT.to_string()))
        }
        Root::TopK(top) if top.last_block().is_none() => Some(("top", top.source.clone())),
        Root::TopK(_) | Root::Rows(_) => None,
    };
    let has_matches = pipelines.iter().any(|pipeline| pipeline.matches().is_some());
    let has_ends = pipelines.iter().any(|pipeline| pipeline.table_with_ends().is_some());
    let builds = if has_matches { MATCHES } else { "" }.to_string() + if has_ends { RUN_ENDS } else { "" };
    let builds = (!builds.is_empty()).then_some(("behind_builds", builds));
    let others: Vec<_> = finish.into_iter().chain(builds).collect();
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
        takes_constants,
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
            Root::TopK(top) => top.columns.iter().any(|column| column.texts.is_some()),
            Root::Rows(rows) => rows.texts.iter().any(Option::is_some),
        };
        let own = self.top().map(|top| top.programs(info)).unwrap_or_default();
        own.into_iter().chain(gives_texts.then(program_of_texts)).collect()
    }
}

/// A program a launch group, then those that `others` name.
fn parts_of(bound: &BoundFragment, others: Vec<(&'static str, String)>, tuning: &Tuning) -> Vec<Program> {
    let pipelines = &bound.pipelines;
    let group = |group: &LaunchGroup| {
        let members: String = group.members.iter().map(|index| &*pipelines[*index].source).collect();
        let last_block = bound.top().filter(|_| group.last_block.is_some()).map_or("", |top| &top.source);
        let source = members + last_block + &group.source(pipelines);
        let builds = group.members.iter().all(|index| matches!(pipelines[*index].sink, BoundSink::Table(_)));
        let effort = if tuning.quick_builds && builds { Effort::Less } else { Effort::Full };
        let program = with_library(group.name.clone(), source);
        if effort == Effort::Full { program } else { program.with_effort(effort) }
    };
    let others = others.into_iter().map(|(name, text)| with_library(name, text));
    bound.launch_groups.iter().map(group).chain(others).collect()
}

fn lay_out_result(arena: &mut Arena, groups: &BoundGroups) -> Option<Compacted> {
    let whole = groups.seen.bytes() + groups.cells.bytes();
    if groups.grouping != Grouping::Hashed && groups.copies == 1 && whole <= WHOLE_DOWNLOAD_BYTES {
        return None;
    }
    let row_bytes = 8 * (groups.pack.words + groups.cell_count);
    let capacity = groups.places;
    let zone = arena.result(24, 24 + row_bytes * capacity as usize);
    Some(Compacted { zone, capacity })
}

/// Whether the keys of a pipeline's table are to be unique: where a probe takes payload or multiplies rows, until they
/// are known to come several times.
fn unique(fragment: &Fragment, build: usize, several: u32) -> Unique {
    if !matches!(fragment.pipelines[build].sink, Sink::Build { .. }) {
        return Unique::No;
    }
    let probes = fragment.pipelines.iter().flat_map(|pipeline| &pipeline.steps).filter_map(|step| match step {
        Step::Probe(probe) if probe.build == build => Some(probe),
        _ => None,
    });
    let joins: Vec<_> = probes.filter(|probe| probe.has_payload()).collect();
    match (joins.is_empty(), 1u32.checked_shl(build as u32)) {
        (true, _) => Unique::No,
        (_, Some(bit)) if joins.iter().all(|probe| !probe.unique) => {
            if several & bit != 0 {
                Unique::No
            } else {
                Unique::Guessed(build)
            }
        }
        _ => Unique::Always,
    }
}

/// What is bound of the pipelines before one: tables, groups and lists.
type Known<'a> = (&'a [Option<BuiltTable>], &'a [Option<BoundGroups>], &'a [Option<BoundList>]);

/// A pipeline whose tables and groups are bound.
struct Ready<'a> {
    scanned: Scanned<'a>,
    /// As it is written: over the columns of groups, with tests of strings in the place of functions.
    pipeline: Cow<'a, Pipeline>,
    registers: Vec<Option<Facts>>,
    /// Rows of its scan.
    rows: u64,
    /// Most rows that come to its sink.
    rows_out: u64,
}

impl<'a> Ready<'a> {
    fn of(
        fragment: &'a Fragment,
        index: usize,
        tables: &'a [Relation],
        ((built, groups, lists), several): (Known<'_>, u32),
    ) -> Result<Ready<'a>> {
        let pipeline = fragment.pipelines.get(index).ok_or_else(|| malformed(index, "is not there"))?;
        let scanned = match pipeline.source {
            Source::Table(table) => {
                let relation = tables.get(table).ok_or_else(|| malformed(index, &format!("scans table {table}")))?;
                Scanned::of_table(table, relation)?
            }
            Source::Groups(of) => match (groups.get(of), lists.get(of)) {
                (Some(Some(groups)), _) => Scanned::of_groups(groups),
                (_, Some(Some(list))) => Scanned::of_list(list),
                _ => return Err(malformed(index, &format!("scans groups {of}"))),
            },
        };
        let mut pipeline = match pipeline.source {
            Source::Table(_) => Cow::Borrowed(pipeline),
            Source::Groups(_) => Cow::Owned(over_groups(pipeline, scanned.columns.len())),
        };
        let values = scanned.values.iter().map(|value| &value.facts);
        let columns: Vec<Facts> = scanned.columns.iter().chain(values).cloned().collect();
        let registers = order::registers(&pipeline, &columns, built)?;
        if registers.iter().flatten().any(|facts| facts.texts.is_some()) {
            let is_unique = |probe: &Probe| unique(fragment, probe.build, several) != Unique::No;
            pipeline = Cow::Owned(over_bytes(&pipeline, &registers, &determined_keys(fragment, index, &is_unique))?);
        }
        let rows = scanned.rows();
        let rows_out = rows_out(&pipeline, rows, built);
        Ok(Ready { scanned, pipeline, registers, rows, rows_out })
    }

    fn member(&self) -> Member<'_> {
        let Ready { scanned, pipeline, registers, rows, rows_out } = self;
        let distinct_counts = &scanned.distinct_counts;
        Member { sink: &pipeline.sink, registers, distinct_counts, rows: *rows, rows_out: *rows_out }
    }
}

/// What is known of the values of a column: its table, and its position there.
fn facts(resident: &ResidentColumn, (table, column): (usize, usize)) -> Facts {
    let statistics = &resident.facts().statistics;
    let ty = Ty::of(&resident.facts().data_type).expect("resident columns have a storage");
    // A column without valid values is bounded by anything; the empty guess keeps domains small.
    let range = match ty.is_float() {
        true => None,
        false => Some(statistics.integers.unwrap_or((0, 0))),
    };
    let is_bytes = matches!(resident.encoding(), Encoding::Bytes(_));
    Facts {
        magnitude: statistics.floats.map(|(low, high)| low.abs().max(high.abs())),
        dictionary: resident.facts().dictionary.clone(),
        is_bytes,
        texts: is_bytes.then_some(Texts { table, column, chunks: resident.segments().len() }),
        ..Facts::new(ty, resident.facts().is_nullable(), range)
    }
}

/// A pipeline that scans groups, over the `columns` of their table: its registers come behind those, and places
/// without a group are left out.
fn over_groups(pipeline: &Pipeline, columns: usize) -> Pipeline {
    let mut pipeline = pipeline.shifted(columns);
    pipeline.steps.insert(0, Step::Filter(is_group()));
    pipeline
}

fn malformed(pipeline: usize, what: &str) -> EngineError {
    EngineError::Malformed(format!("pipeline {pipeline} {what}"))
}

/// What a pipeline scans: columns cut into the same chunks.
struct Scanned<'pin> {
    /// Rows of each chunk.
    chunks: Vec<u32>,
    columns: Vec<Facts>,
    layouts: Vec<ColumnLayout>,
    distinct: Vec<Option<Arc<[i128]>>>,
    /// Number of distinct values of each column, where it is known or was estimated.
    distinct_counts: Vec<Option<u64>>,
    /// Runs and order of each column, where they are known.
    traits: Vec<Option<Traits>>,
    /// Addresses: for each chunk, each column's values and validity.
    pointers: Vec<Pointer<'pin>>,
    /// What the columns of a group table stand for.
    values: Vec<GroupValue>,
}

impl<'pin> Scanned<'pin> {
    /// A table of the fragment, by its number.
    fn of_table(number: usize, table: &'pin Relation) -> Result<Scanned<'pin>> {
        let RowCount::Known(_) = table.rows else {
            return unsupported("a relation whose rows only the device has counted");
        };
        let mut pointers = Vec::with_capacity(2 * table.chunks.len() * table.columns.len());
        for chunk in 0..table.chunks.len() {
            for column in &table.columns {
                let segment = &column.segments()[chunk];
                pointers.push(Pointer::Address(segment.values().pointer()));
                pointers.push(Pointer::Address(segment.validity().map_or(DevicePtr::NULL, DeviceBuffer::pointer)));
            }
        }
        Ok(Scanned {
            chunks: table.chunks.to_vec(),
            columns: table.columns.iter().enumerate().map(|(at, column)| facts(column, (number, at))).collect(),
            layouts: table.columns.iter().map(|column| ColumnLayout::of(column)).collect(),
            distinct: table.columns.iter().map(|column| column.distinct_integers().cloned()).collect(),
            distinct_counts: table.columns.iter().map(|column| column.facts().distinct()).collect(),
            traits: table.columns.iter().map(|column| column.facts().traits).collect(),
            pointers,
            values: Vec::new(),
        })
    }

    /// The table of groups: keys, then cells, as plain columns with a row a place.
    fn of_groups(groups: &BoundGroups) -> Scanned<'pin> {
        let columns = column_facts(groups);
        let (mut chunks, mut pointers) = (Vec::new(), Vec::new());
        let ordered = groups.ordered.map(|ordered| (ordered.seen, ordered.cells, ordered.places));
        for (seen, cells, places) in std::iter::once((groups.seen, groups.cells, groups.places)).chain(ordered) {
            let mut first = 0;
            while first < places {
                let rows = (places - first).min(GROUP_CHUNK_ROWS);
                let column = |cell: usize| Pointer::Within(cells, 8 * (cell * places as usize + first as usize));
                let keys = Pointer::Within(seen, 8 * first as usize);
                let words = groups.word_columns.map_or(0..0, |_| 0..groups.pack.words);
                let words = words.filter_map(|word| {
                    let distance = 8 * (word * places as usize + first as usize);
                    Some(Pointer::Within(groups.word_columns?, distance))
                });
                for values in std::iter::once(keys).chain(words).chain((0..groups.cell_count).map(column)) {
                    pointers.extend([values, Pointer::Address(DevicePtr::NULL)]);
                }
                chunks.push(rows as u32);
                first += rows;
            }
        }
        Scanned::of_words(chunks, columns, pointers, groups.values.clone().unwrap_or_default())
    }

    /// A list: where there are rows, then their words.
    fn of_list(list: &BoundList) -> Scanned<'pin> {
        let (mut chunks, mut pointers, mut first) = (Vec::new(), Vec::new(), 0);
        while first < list.places {
            let rows = (list.places - first).min(GROUP_CHUNK_ROWS);
            pointers.extend(list.columns_at(first).flat_map(|values| [values, Pointer::Address(DevicePtr::NULL)]));
            chunks.push(rows as u32);
            first += rows;
        }
        Scanned::of_words(chunks, list.column_facts(), pointers, list.values())
    }

    /// Plain columns of 8 bytes a row that an earlier pipeline writes, and what they stand for.
    fn of_words(
        chunks: Vec<u32>,
        columns: Vec<Facts>,
        pointers: Vec<Pointer<'pin>>,
        values: Vec<GroupValue>,
    ) -> Scanned<'pin> {
        let storage = |facts: &Facts| if facts.ty.is_float() { Storage::F64 } else { Storage::U64 };
        Scanned {
            chunks,
            layouts: columns.iter().map(|facts| ColumnLayout::plain(storage(facts))).collect(),
            distinct: vec![None; columns.len()],
            distinct_counts: vec![None; columns.len()],
            traits: vec![None; columns.len()],
            columns,
            pointers,
            values,
        }
    }

    fn rows(&self) -> u64 {
        self.chunks.iter().map(|rows| u64::from(*rows)).sum()
    }
}

/// Cuts a scan into tickets: large ones keep the counter cool, and those of the last chunks are smaller, so that
/// warps end together. Small tables have one for each warp, of `least` rows or more.
fn lay_out_scan(arena: &mut Arena, table: &Scanned<'_>, info: &DeviceInfo, tuning: &Tuning, least: u64) -> ScanZones {
    let (table_rows, warps) = (table.rows(), u64::from(info.multiprocessors) * WARPS_PER_MULTIPROCESSOR);
    let rows_min = tuning.step_rows_max();
    let wanted = table_rows / (warps * tuning.tickets_per_warp);
    let step = if wanted < 4 * TICKET_ROWS_STEP { rows_min } else { rows_min.max(TICKET_ROWS_STEP) };
    let large = wanted.next_multiple_of(step).clamp(rows_min, TICKET_ROWS_MAX);
    let small = (large / SMALLER).next_multiple_of(rows_min).min(large);
    let of_warp = table_rows.div_ceil(warps).next_multiple_of(least);
    let (large, small) = if of_warp < rows_min { (of_warp, of_warp) } else { (large, small) };
    let mut first = Vec::<u32>::with_capacity(table.chunks.len());
    let (mut vectors, mut first_vectors) = (0u32, Vec::<u32>::new());
    let (mut tickets, mut ticket_rows, mut before) = (0u32, Vec::<u32>::new(), 0.0);
    for chunk_rows in &table.chunks {
        let of_chunk = if before < (1.0 - tuning.small_tickets) * table_rows as f64 { large } else { small };
        ticket_rows.push(of_chunk as u32);
        before += f64::from(*chunk_rows);
        first.push(tickets);
        tickets += u64::from(*chunk_rows).div_ceil(of_chunk) as u32;
        first_vectors.push(vectors);
        vectors += chunk_rows.div_ceil(VECTOR_ROWS as u32);
    }
    ScanZones {
        segments: arena.pointers(&table.pointers),
        first_tickets: arena.constant(bytemuck::cast_slice(&first)),
        chunk_rows: arena.constant(bytemuck::cast_slice(&table.chunks)),
        ticket_rows: arena.constant(bytemuck::cast_slice(&ticket_rows)),
        chunks: table.chunks.len() as u32,
        tickets,
        first_vectors: arena.constant(bytemuck::cast_slice(&first_vectors)),
        vectors,
    }
}
