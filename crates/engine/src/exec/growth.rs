//! What pipelines leave outlives a launch: where a sink has no room for a row its scan stops, the fragment is bound
//! anew with more room for that sink, entries are moved, and the run goes on where warps have stopped
//! ([`crate::codegen::stops`]).
//!
//! Launch groups before the one that has stopped are done, and so are members of this one that do not stop. What lies
//! behind did nothing and runs from its start. A warp finds its state by its place in the grid: where the grid of the
//! group is another one, as that of kernels that were compiled with more effort meanwhile, the run begins anew.

use std::collections::BTreeSet;

use warpcube_gpu::{Device, DeviceBuffer, Kernel, LaunchShape, Params, Program, Stream};

use crate::arena::Region;
use crate::codegen::library::with_library;
use crate::codegen::memory::{
    BoundGroups, BoundList, BoundRows, BoundTable, FULL_OFFSET, HEAD_WORDS, Index, MATCHES_OFFSET,
};
use crate::codegen::sink::BoundSink;
use crate::codegen::stop_memory::StopMemory;
use crate::error::Result;
use crate::exec::bind::BoundFragment;
use crate::exec::phase::{BLOCK, blocks};
use crate::plan::table::Numbering;

/// The kernels that move entries.
const GROWTH: &str = include_str!("../../kernels/growth.cuh");

/// Where a run has stopped.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    /// The launch group.
    pub(crate) group: usize,
    /// The pipelines of it whose sinks have no room, each the first one with the sink.
    pub(crate) full: BTreeSet<usize>,
}

impl Stop {
    /// Reads it from the head of the control region; none if no pipeline has told that it has no room.
    pub(crate) fn of(bound: &BoundFragment, control: &[u8]) -> Option<Stop> {
        let is_full = |pipeline: &usize| {
            let byte = control.get(FULL_OFFSET + pipeline / 8).filter(|_| FULL_OFFSET + pipeline / 8 < MATCHES_OFFSET);
            byte.is_some_and(|byte| byte >> (pipeline % 8) & 1 != 0)
        };
        bound.launch_groups.iter().enumerate().find_map(|(group, launch)| {
            let full = launch.members.iter().filter(|member| is_full(member));
            let full: BTreeSet<usize> = full.map(|member| bound.pipelines[*member].first).collect();
            (!full.is_empty()).then_some(Stop { group, full })
        })
    }
}

/// Where a region's values begin: the region, and bytes from its start.
type At = (Region, usize);

/// What brings a part of one arena to another.
#[derive(Debug, Clone)]
enum Move {
    /// So many bytes as they are.
    Bytes(At, At, usize),
    /// A number of rows, of which so many had room.
    Count(At, At, u64),
    /// The keys of a table of so many slots, with their words if they have several, to a table of as many as given,
    /// with this seed. The old table then holds the new slots.
    Keys { from: [Region; 2], slots: u64, to: [Region; 2], grown: u64, seed: u64, words: usize },
    /// The groups of a table of so many slots of as many words as given, to one with as many slots, with this seed.
    Groups { from: Region, slots: u64, to: Region, grown: u64, seed: u64, layout: SlotLayout },
    /// A value of some bytes of each entry of a table whose keys were moved.
    Column { slots: (Region, u64), from: At, to: At, width: u64 },
    /// The entries that so many rows have.
    Rows { slots: Region, from: Region, to: Region, rows: u64 },
}

/// What slots of groups have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct SlotLayout {
    /// Words of a key; none if a key plus one is the mark of its slot.
    key: usize,
    /// Words before the cells.
    first_cell: usize,
    /// All words; none for tables whose keys lie apart.
    words: usize,
}

/// Moves of what is left by the pipelines up to a launch group; none where plans differ by more than room.
pub(crate) struct Moves(Vec<Move>);

impl Moves {
    /// The moves from one binding of a fragment to another with more room.
    pub(crate) fn between(old: &BoundFragment, new: &BoundFragment, stop: &Stop) -> Option<Moves> {
        let matches = Move::Bytes((old.control, MATCHES_OFFSET), (new.control, MATCHES_OFFSET), 8);
        let mut moves = Moves(vec![matches]);
        let mut moved = BTreeSet::new();
        for (group, launch) in old.launch_groups.iter().enumerate().take(stop.group + 1) {
            if new.launch_groups.get(group)?.members != launch.members {
                return None;
            }
            for index in &launch.members {
                let (from, to) = (old.pipelines.get(*index)?, new.pipelines.get(*index)?);
                if from.source != to.source {
                    return None;
                }
                if moved.insert(from.first) {
                    moves.sink(&from.sink, &to.sink, group < stop.group)?;
                }
                if let (true, Some(from), Some(to)) = (group == stop.group, from.stop, to.stop) {
                    moves.states(from, to)?;
                }
            }
        }
        Some(moves)
    }

    fn sink(&mut self, from: &BoundSink, to: &BoundSink, is_done: bool) -> Option<()> {
        match (from, to) {
            (BoundSink::Table(from), BoundSink::Table(to)) => self.table(from, to, is_done),
            (BoundSink::Groups(from), BoundSink::Groups(to)) => self.groups(from, to),
            (BoundSink::List(from), BoundSink::List(to)) => self.list(from, to),
            (BoundSink::Rows(from), BoundSink::Rows(to)) => self.rows(from, to),
            _ => None,
        }
    }

    /// A region of the same size.
    fn whole(&mut self, from: Region, to: Region) -> Option<()> {
        let bytes = from.bytes();
        (bytes == to.bytes()).then(|| self.0.push(Move::Bytes((from, 0), (to, 0), bytes)))
    }

    /// A region whose values begin a larger one.
    fn begin(&mut self, from: Region, to: Region) -> Option<()> {
        (from.bytes() <= to.bytes()).then(|| self.0.push(Move::Bytes((from, 0), (to, 0), from.bytes())))
    }

    fn states(&mut self, from: StopMemory, to: StopMemory) -> Option<()> {
        [(from.counters, to.counters), (from.states, to.states), (from.rows, to.rows)]
            .into_iter()
            .try_for_each(|(from, to)| self.whole(from, to))
    }

    fn table(&mut self, from: &BoundTable, to: &BoundTable, is_done: bool) -> Option<()> {
        let (old, new) = (&from.memory, &to.memory);
        let stays = from.places == to.places && from.seed == to.seed;
        let slots = match (old.index, new.index) {
            _ if !stays && is_done => return None,
            (Index::Bitmap(from), Index::Bitmap(to)) => self.whole(from, to).map(|()| None)?,
            (Index::Keys(from), Index::Keys(to)) if stays => self.whole(from, to).map(|()| None)?,
            (Index::Wide { states, words }, Index::Wide { states: to, words: to_words }) if stays => {
                self.whole(states, to)?;
                self.whole(words, to_words).map(|()| None)?
            }
            (Index::Keys(old), Index::Keys(new)) => Some(self.keys([old, old], [new, new], (from, to))),
            (Index::Wide { states, words }, Index::Wide { states: new, words: new_words }) => {
                Some(self.keys([states, words], [new, new_words], (from, to)))
            }
            _ => return None,
        };
        let slots = slots.map(|slots| (slots, from.places));
        let column = |moves: &mut Moves, old: Region, new: Region, width: u64| match slots {
            None => moves.whole(old, new),
            Some(slots) => {
                moves.0.push(Move::Column { slots, from: (old, 0), to: (new, 0), width });
                Some(())
            }
        };
        let matches = from.matches.as_ref().zip(old.matches).zip(new.matches);
        if let Some(((plan, old), new)) = matches {
            column(self, old.counts, new.counts, 4)?;
            match slots {
                None => self.begin(old.entries, new.entries)?,
                Some((slots, _)) => {
                    self.0.push(Move::Rows { slots, from: old.entries, to: new.entries, rows: plan.rows });
                }
            }
            self.begin(old.ranks, new.ranks)?;
            if matches!(plan.numbering, Numbering::Counted) {
                self.0.push(Move::Count((old.numbers, 0), (new.numbers, 0), plan.rows));
            }
            // Rows are laid side by side once all are there.
            if is_done {
                self.whole(old.firsts, new.firsts)?;
                self.whole(old.order, new.order)?;
                self.whole(old.total, new.total)?;
            }
        }
        for ((payload, old), new) in from.payload.iter().zip(&old.payload).zip(&new.payload) {
            match matches.is_some() {
                true => self.begin(*old, *new)?,
                false => column(self, *old, *new, payload.width)?,
            }
        }
        match (old.ends, new.ends) {
            (None, None) => Some(()),
            (Some(old), Some(new)) if stays => {
                self.whole(old.seen, new.seen)?;
                self.whole(old.cells, new.cells)
            }
            _ => None,
        }
    }

    fn keys(&mut self, from: [Region; 2], to: [Region; 2], (old, new): (&BoundTable, &BoundTable)) -> Region {
        let (grown, seed) = (new.places, new.seed);
        let words = if new.pack.is_wide() { new.pack.words } else { 0 };
        self.0.push(Move::Keys { from, slots: old.places, to, grown, seed, words });
        from[0]
    }

    fn groups(&mut self, from: &BoundGroups, to: &BoundGroups) -> Option<()> {
        if from.cell_count != to.cell_count || from.first_cell() != to.first_cell() {
            return None;
        }
        let (old, new) = (&from.memory, &to.memory);
        if from.places == to.places && from.seed == to.seed {
            self.whole(old.seen, new.seen)?;
            if let Some((old, new)) = old.cells.zip(new.cells) {
                self.whole(old, new)?;
            }
            if let Some((old, new)) = old.ordered.zip(new.ordered) {
                self.whole(old.seen, new.seen)?;
                self.whole(old.cells, new.cells)?;
                self.whole(old.counter, new.counter)?;
            }
            return Some(());
        }
        let words = from.slot_words().filter(|words| from.grows && to.slot_words() == Some(*words))?;
        let layout = SlotLayout { key: to.first_cell() - 1, first_cell: to.first_cell(), words };
        let (slots, grown, seed) = (from.places, to.places, to.seed);
        self.0.push(Move::Groups { from: old.seen, slots, to: new.seen, grown, seed, layout });
        Some(())
    }

    fn list(&mut self, from: &BoundList, to: &BoundList) -> Option<()> {
        self.begin(from.memory.seen, to.memory.seen)?;
        if let Some((old, new)) = from.memory.words.zip(to.memory.words) {
            let (of_old, of_new) = (8 * from.places as usize, 8 * to.places as usize);
            let word = |word: usize| Move::Bytes((old, word * of_old), (new, word * of_new), of_old);
            self.0.extend((0..from.pack.words).map(word));
        }
        self.0.push(Move::Count((from.memory.count, 0), (to.memory.count, 0), from.places));
        Some(())
    }

    fn rows(&mut self, from: &BoundRows, to: &BoundRows) -> Option<()> {
        let (head, rows) = (8 * HEAD_WORDS, 8 * from.pack.words * from.capacity as usize);
        self.0.push(Move::Bytes((from.memory, head), (to.memory, head), rows));
        self.0.push(Move::Count((from.memory, 0), (to.memory, 0), from.capacity));
        Some(())
    }

    /// The programs of the kernels that move.
    pub(crate) fn programs(&self) -> Vec<Program> {
        let layout = |one: &Move| match one {
            Move::Bytes(..) => None,
            Move::Keys { words, .. } => Some(apart(*words)),
            Move::Groups { layout, .. } => Some(*layout),
            Move::Count(..) | Move::Column { .. } | Move::Rows { .. } => Some(apart(0)),
        };
        let layouts: BTreeSet<SlotLayout> = self.0.iter().filter_map(layout).collect();
        layouts.into_iter().map(program).collect()
    }

    /// Submits the moves; their programs are compiled, and constants and zeros of the new arena are there.
    pub(crate) fn submit(
        &self,
        device: &Device,
        stream: &mut Stream,
        (old, from): (&BoundFragment, &DeviceBuffer),
        (new, to): (&BoundFragment, &DeviceBuffer),
    ) -> Result<()> {
        let at = |(region, distance): At| old.arena.offset(region) + distance;
        let at_new = |(region, distance): At| new.arena.offset(region) + distance;
        let kernel =
            |layout: SlotLayout, name: &str| -> Result<Kernel> { Ok(device.compile(&program(layout))?.kernel(name)?) };
        let launch = |stream: &mut Stream, kernel: Kernel, threads: u64, params: Params| {
            let grid = threads.div_ceil(BLOCK.into()).clamp(1, blocks(device.info()).into()) as u32;
            stream.launch(&kernel, LaunchShape { grid, block: BLOCK, shared_bytes: 0 }, &params)
        };
        for one in &self.0 {
            match one {
                Move::Bytes(source, target, bytes) => {
                    stream.copy(to, at_new(*target), from, at(*source), *bytes)?;
                }
                Move::Count(source, target, room) => {
                    let params = Params::new().buffer_at(from, at(*source)).u64(*room);
                    launch(stream, kernel(apart(0), "grow_count")?, 1, params.buffer_at(to, at_new(*target)))?;
                }
                Move::Keys { from: [keys, key_words], slots, to: [new_keys, new_words], grown, seed, words } => {
                    let params = Params::new()
                        .buffer_at(from, at((*keys, 0)))
                        .buffer_at(from, at((*key_words, 0)))
                        .u64(*slots)
                        .buffer_at(to, at_new((*new_keys, 0)))
                        .buffer_at(to, at_new((*new_words, 0)))
                        .u64(grown - 1)
                        .u64(*seed)
                        .buffer_at(to, new.arena.offset(new.control));
                    launch(stream, kernel(apart(*words), "grow_keys")?, *slots, params)?;
                }
                Move::Groups { from: groups, slots, to: target, grown, seed, layout } => {
                    let params = Params::new()
                        .buffer_at(from, at((*groups, 0)))
                        .u64(*slots)
                        .buffer_at(to, at_new((*target, 0)))
                        .u64(grown - 1)
                        .u64(*seed)
                        .buffer_at(to, new.arena.offset(new.control));
                    launch(stream, kernel(*layout, "grow_groups")?, *slots, params)?;
                }
                Move::Column { slots: (slots, count), from: source, to: target, width } => {
                    let params = Params::new().buffer_at(from, at((*slots, 0))).u64(*count);
                    let params = params.buffer_at(from, at(*source)).buffer_at(to, at_new(*target)).u64(*width);
                    launch(stream, kernel(apart(0), "grow_column")?, *count, params)?;
                }
                Move::Rows { slots, from: source, to: target, rows } => {
                    let params = Params::new().buffer_at(from, at((*slots, 0))).u64(*rows);
                    let params = params.buffer_at(from, at((*source, 0))).buffer_at(to, at_new((*target, 0)));
                    launch(stream, kernel(apart(0), "grow_rows")?, *rows, params)?;
                }
            }
        }
        Ok(())
    }
}

/// The layout of tables whose keys lie apart.
fn apart(key: usize) -> SlotLayout {
    SlotLayout { key, first_cell: 0, words: 0 }
}

/// The program that moves entries of tables of a layout.
fn program(SlotLayout { key, first_cell, words }: SlotLayout) -> Program {
    let defines = [("KEY_WORDS", key), ("FIRST_CELL", first_cell), ("SLOT_WORDS", words)];
    let defines: String = defines.iter().map(|(name, value)| format!("#define WC_{name} {value}\n")).collect();
    with_library("growth", defines + GROWTH)
}
