//! Windows over sorted rows: what is scanned, and what is known of each column that comes of it.
//!
//! Rows lie in the order of the sort. For each number of keys by which partitions or peers are told apart there is a
//! *level*: runs of rows that agree in these keys. The kernel that writes the columns finds the first row of a row's
//! run, and the row behind the last one, by comparing ranks of neighbours. Numbers of runs, from 1, come from a scan of
//! the heads of runs, and with them the first row of each run, where a column or a scan asks for them.
//!
//! All frames are ranges of rows between such bounds, so that what is added up over any frame is the difference of two
//! prefix sums, modulo 2^64 or in two halves where that is not enough. Extremes of frames that begin with their
//! partition are scans within partitions, those of others come from a segment tree (a binary tree of all rows, each
//! node the largest of its two; Leis, Kundhikanjana, Kemper and Neumann, *Efficient Processing of Window Functions in
//! Analytical SQL Queries*, VLDB 2015). Where NULLs are passed over, the rows that have a value stand side by side, and
//! a prefix count tells the place of each among them.

use warpcube_gpu::Program;
use warpcube_gpu::prims::{Element, Reduction, ScanKeyedSpec, ScanKind, ScanSpec};

use crate::error::{EngineError, Result, unsupported};
use crate::facts::{Facts, Range, fits_i64, literal};
use crate::ir::{AggregateKind, Frame, FrameBound, Literal, Overflow, Ty, WindowCall, WindowFunction};
use crate::plan::group_values::sum_range;
use crate::plan::input::PipelineInput;
use crate::plan::row_layout::RowLayout;
use crate::plan::topk_rank::{Part, Ranks};

/// Most rows: numbers of runs have 32 bits.
const ROWS_MAX: u64 = u32::MAX as u64;
/// The largest sum that a double holds exactly.
const EXACT: i128 = 1 << 53;

/// Runs of rows that agree in some keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Level {
    /// Whether keys of the tail are among them.
    pub(crate) in_tail: bool,
    /// Bits of the rank, or of the tail, below those of the keys.
    pub(crate) shift: u32,
    /// Whether its runs are numbered.
    pub(crate) is_numbered: bool,
    /// Whether the first row of each numbered run is asked for.
    pub(crate) has_starts: bool,
}

/// What is scanned of each row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScanPlan {
    /// The output of which rows count whose value is not NULL, if there is one.
    pub(crate) output: Option<usize>,
    /// The output that has to be true.
    pub(crate) filter: Option<usize>,
    pub(crate) scanned: Scanned,
}

/// What of an output is scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scanned {
    /// One for each row that counts.
    Ones,
    /// Its value, added up modulo 2^64.
    Value,
    /// The lower 32 bits of it.
    Low,
    /// What is above those.
    High,
    /// Its image in the order of unsigned numbers, within the runs of a level; complemented for the smallest.
    Extreme { smallest: bool, level: Option<usize> },
    /// The same as a segment tree.
    Tree { smallest: bool },
}

/// What the result of an aggregate is computed from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Total {
    /// The rows of the frame.
    Rows,
    /// The rows that count, by this scan.
    Count(usize),
    /// A sum modulo 2^64.
    Sum(usize),
    /// Sums of both halves.
    Halves { low: usize, high: usize },
    /// A scan within partitions.
    Extreme { scan: usize, smallest: bool },
    /// A segment tree.
    Tree { scan: usize, smallest: bool },
}

/// One column.
#[derive(Debug, Clone)]
pub(crate) struct CallPlan {
    pub(crate) call: WindowCall,
    /// The level of its partition and of its peers; none where all rows are one run. That of peers it does not ask for
    /// is none, too.
    pub(crate) partition: Option<usize>,
    pub(crate) peers: Option<usize>,
    /// Of an aggregate.
    pub(crate) total: Option<Total>,
    /// The scan of the rows that count, of an aggregate that is NULL where none does; none where all rows do.
    pub(crate) count: Option<usize>,
    /// The list of the rows that have a value, where NULLs are passed over.
    pub(crate) list: Option<usize>,
}

/// The columns of windows.
#[derive(Debug, Clone)]
pub(crate) struct WindowsPlan {
    pub(crate) levels: Vec<Level>,
    pub(crate) scans: Vec<ScanPlan>,
    /// Rows that have a value, side by side: the scan of their numbers, and the output.
    pub(crate) lists: Vec<(usize, usize)>,
    pub(crate) calls: Vec<CallPlan>,
    /// What is known of the outputs that windows read.
    pub(crate) outputs: Vec<Facts>,
    /// What is known of the columns, and how they lie behind the words of the outputs.
    pub(crate) facts: Vec<Facts>,
    pub(crate) row: RowLayout,
}

impl ScanPlan {
    /// Type of the values.
    pub(crate) fn element(&self) -> Element {
        if self.scanned == Scanned::Ones { Element::U32 } else { Element::U64 }
    }

    /// The scan; none of a tree.
    pub(crate) fn spec(&self) -> Option<ScanSpec> {
        let of = match self.scanned {
            Scanned::Tree { .. } => return None,
            Scanned::Extreme { .. } => Reduction::Largest,
            _ => Reduction::Sum(self.element()),
        };
        Some(ScanSpec { input: self.element(), of, kind: ScanKind::Inclusive })
    }

    /// Leaves of the tree over so many rows, if it is one.
    pub(crate) fn leaves(&self, rows: u64) -> Option<u64> {
        matches!(self.scanned, Scanned::Tree { .. }).then(|| rows.next_power_of_two())
    }

    /// The level within whose runs it is scanned.
    pub(crate) fn level(&self) -> Option<usize> {
        match self.scanned {
            Scanned::Extreme { level, .. } => level,
            _ => None,
        }
    }
}

/// The scan of the heads of runs.
pub(crate) const NUMBERS: ScanSpec =
    ScanSpec { input: Element::U32, of: Reduction::Sum(Element::U32), kind: ScanKind::Inclusive };

/// The scan within the runs of a level.
pub(crate) fn within_runs(scan: ScanSpec) -> ScanKeyedSpec {
    ScanKeyedSpec { key: Element::U32, scan }
}

impl WindowsPlan {
    /// Plans windows over sorted rows, at most so many, with ranks and outputs as given.
    ///
    /// # Errors
    /// Unsupported for what differs from a computation row by row, and for too many rows.
    pub(crate) fn new(
        calls: &[WindowCall],
        (ranks, outputs): (&Ranks, &[Facts]),
        rows: u64,
        input: &PipelineInput,
    ) -> Result<WindowsPlan> {
        if rows > ROWS_MAX {
            return unsupported(format!("windows over {rows} rows, where {ROWS_MAX} are the most"));
        }
        let mut plan = WindowsPlan {
            levels: Vec::new(),
            scans: Vec::new(),
            lists: Vec::new(),
            calls: Vec::new(),
            outputs: outputs.to_vec(),
            facts: Vec::new(),
            row: RowLayout::of_values([]),
        };
        for call in calls {
            plan.call(call, ranks, (rows, input.overflow))?;
        }
        plan.number_runs();
        plan.row = RowLayout::of_values(plan.facts.iter().zip(calls.iter().map(|call| &call.data_type)));
        Ok(plan)
    }

    /// The programs of all scans.
    pub(crate) fn programs(&self) -> Vec<Program> {
        let scans = self.scans.iter().filter_map(|scan| {
            let spec = scan.spec()?;
            Some(if scan.level().is_some() { within_runs(spec).program() } else { spec.program() })
        });
        scans.chain(self.has_numbers().then(|| NUMBERS.program())).collect()
    }

    /// Bytes of scratch memory of all scans over so many rows.
    pub(crate) fn scratch_bytes(&self, rows: u64) -> usize {
        let scans = self.scans.iter().filter_map(|scan| {
            let spec = scan.spec()?;
            Some(if scan.level().is_some() { within_runs(spec).scratch_bytes(rows) } else { spec.scratch_bytes(rows) })
        });
        scans.chain(self.has_numbers().then(|| NUMBERS.scratch_bytes(rows))).max().unwrap_or(0)
    }

    /// The level of the first so many keys.
    fn level(&mut self, ranks: &Ranks, keys: usize) -> Result<Option<usize>> {
        if ranks.parts.last().map_or(0, |part| part.key + 1) < keys {
            return Err(EngineError::Malformed("a window of more keys than the sort has".into()));
        }
        let parts = &ranks.parts[..ranks.parts.partition_point(|part| part.key < keys)];
        // Keys of one value tell no rows apart.
        let some = |parts: &[Part]| parts.iter().any(|part| part.bits > 0);
        let (ranked, behind) = parts.split_at(parts.len().min(ranks.leading));
        let (in_tail, shift) = match (ranked.last().filter(|_| some(ranked)), behind.last().filter(|_| some(behind))) {
            (_, Some(last)) => (true, ranks.row_bits + last.shift),
            (Some(last), None) => (false, ranks.key_shift() + last.shift),
            (None, None) => return Ok(None),
        };
        Ok(Some(index_of(&mut self.levels, Level { in_tail, shift, is_numbered: false, has_starts: false })))
    }

    /// Decides which runs are numbered: those that dense ranks and frames of peers count, and those within which values
    /// are scanned.
    fn number_runs(&mut self) {
        for at in 0..self.levels.len() {
            let is_apart = |bound: FrameBound| matches!(bound, FrameBound::Peers(offset) if offset != 0);
            let mut calls = self.calls.iter().filter(|plan| plan.peers == Some(at)).map(|plan| &plan.call.function);
            let has_starts = calls.clone().any(|function| match function {
                WindowFunction::Nth { frame, .. } | WindowFunction::Aggregate { frame, .. } => {
                    is_apart(frame.start) || is_apart(frame.end)
                }
                _ => false,
            });
            let is_ranked = calls.any(|function| *function == WindowFunction::DenseRank);
            let is_scanned = self.scans.iter().any(|scan| scan.level() == Some(at));
            let level = &mut self.levels[at];
            (level.is_numbered, level.has_starts) = (has_starts || is_ranked || is_scanned, has_starts);
        }
    }

    /// Whether runs of any level are numbered.
    pub(crate) fn has_numbers(&self) -> bool {
        self.levels.iter().any(|level| level.is_numbered)
    }

    /// Whether anything is written for each row between numbers of runs and scans.
    pub(crate) fn has_starts(&self) -> bool {
        self.levels.iter().any(|level| level.has_starts)
            || self.scans.iter().any(|scan| self.scanned_as_is(scan).is_none())
    }

    /// The output that a scan reads as it lies in the columns of the rows: all of its values, of no more than 64 bits.
    pub(crate) fn scanned_as_is(&self, scan: &ScanPlan) -> Option<usize> {
        let is_whole = scan.scanned == Scanned::Value && scan.filter.is_none();
        scan.output.filter(|output| is_whole && !self.outputs[*output].nullable)
    }

    fn scan(&mut self, (output, filter): (Option<usize>, Option<usize>), scanned: Scanned) -> usize {
        index_of(&mut self.scans, ScanPlan { output, filter, scanned })
    }

    fn output(&self, output: usize) -> Result<&Facts> {
        self.outputs.get(output).ok_or_else(|| EngineError::Malformed(format!("a window of output {output}")))
    }

    fn call(&mut self, call: &WindowCall, ranks: &Ranks, by: (u64, Overflow)) -> Result<()> {
        let partition = self.level(ranks, call.partition)?;
        let peers = match call.function.has_peers() {
            true => self.level(ranks, call.order.max(call.partition))?,
            false => None,
        };
        let ty = Ty::of(&call.data_type).ok_or_else(|| EngineError::Malformed("the type of a window".into()))?;
        let (rows, _) = by;
        let numbered = || Facts::new(ty, false, Some((1, rows.max(1).into())));
        let (mut total, mut count) = (None, None);
        let list = match &call.function {
            WindowFunction::Shift { output, skips_nulls: true, .. }
            | WindowFunction::Nth { output, skips_nulls: true, .. }
                if self.output(*output)?.nullable =>
            {
                let scan = self.scan((Some(*output), None), Scanned::Ones);
                Some(index_of(&mut self.lists, (scan, *output)))
            }
            _ => None,
        };
        let facts = match &call.function {
            WindowFunction::RowNumber | WindowFunction::Rank | WindowFunction::DenseRank => numbered(),
            WindowFunction::Tile(0) => return Err(EngineError::Malformed("a partition in no parts".into())),
            WindowFunction::Tile(_) => numbered(),
            WindowFunction::PercentRank | WindowFunction::CumeDist => Facts::new(ty, false, None),
            WindowFunction::Shift { rows: 0, skips_nulls: true, .. } => {
                return Err(EngineError::Malformed("a shift by no rows that passes over NULLs".into()));
            }
            WindowFunction::Shift { output, default, .. } => shifted(self.output(*output)?, *default)?,
            WindowFunction::Nth { output, .. } => Facts { nullable: true, ..self.output(*output)?.clone() },
            WindowFunction::Aggregate { kind, output, filter, frame } => {
                let value = output.map(|output| self.output(output).cloned()).transpose()?;
                // Where no value is NULL and no row is left out, all rows count.
                let counted = output.filter(|_| value.as_ref().is_some_and(|value| value.nullable));
                let all = counted.is_none() && filter.is_none();
                count = (!all).then(|| self.scan((counted, *filter), Scanned::Ones));
                let of = (*kind, value.as_ref());
                let rows_of = (*output, *filter);
                let (facts, computed) = self.aggregate((of, ty), rows_of, (count, partition, frame), by)?;
                total = Some(computed);
                facts
            }
        };
        self.facts.push(facts);
        self.calls.push(CallPlan { call: call.clone(), partition, peers, total, count, list });
        Ok(())
    }

    fn aggregate(
        &mut self,
        ((kind, value), ty): ((AggregateKind, Option<&Facts>), Ty),
        rows_of: (Option<usize>, Option<usize>),
        (count, partition, frame): (Option<usize>, Option<usize>, &Frame),
        (rows, overflow): (u64, Overflow),
    ) -> Result<(Facts, Total)> {
        let missing = || EngineError::Malformed("a window's aggregate of nothing".into());
        match kind {
            AggregateKind::Count => {
                let facts = Facts::new(ty, false, Some((0, rows.into())));
                Ok((facts, count.map_or(Total::Rows, Total::Count)))
            }
            AggregateKind::Sum => {
                let value = value.ok_or_else(missing)?;
                if value.ty.is_float() {
                    return unsupported("a sum of floats over a window");
                }
                if value.is_wide() {
                    return unsupported("a sum over a window of decimals wider than 64 bits");
                }
                let of_sum = if ty.is_float() { Ty::I128 } else { ty };
                let range = sum_range(value.bounds(), rows, of_sum);
                let is_exact = |range: Range| range.is_some_and(|(low, high)| low >= -EXACT && high <= EXACT);
                if ty.is_float() && !is_exact(range) {
                    return unsupported("a sum of integers over a window as a float, which may pass 2^53");
                }
                let fits = fits_i64(range) || ty == Ty::U64 && range.is_some();
                let total = match fits || overflow == Overflow::Wrap && ty != Ty::I128 {
                    true => Total::Sum(self.scan(rows_of, Scanned::Value)),
                    false => {
                        Total::Halves { low: self.scan(rows_of, Scanned::Low), high: self.scan(rows_of, Scanned::High) }
                    }
                };
                let facts = match ty.is_float() {
                    true => Facts::new(ty, true, None),
                    false => Facts::new(ty, true, range),
                };
                Ok((facts, total))
            }
            AggregateKind::Min | AggregateKind::Max => {
                let value = value.ok_or_else(missing)?;
                if value.ty.is_float() || value.is_wide() || value.texts.is_some() {
                    return unsupported("an extreme over a window of floats, wide decimals or strings without codes");
                }
                let smallest = kind == AggregateKind::Min;
                let total = match frame.start {
                    FrameBound::Unbounded => {
                        let scan = self.scan(rows_of, Scanned::Extreme { smallest, level: partition });
                        Total::Extreme { scan, smallest }
                    }
                    _ => Total::Tree { scan: self.scan(rows_of, Scanned::Tree { smallest }), smallest },
                };
                Ok((Facts { ty, nullable: true, ..value.clone() }, total))
            }
            AggregateKind::ExactSum => Err(EngineError::Malformed("an exact sum over a window".into())),
        }
    }
}

/// The value of another row, or a constant.
fn shifted(value: &Facts, default: Literal) -> Result<Facts> {
    let default = literal(default, value.ty)?;
    if default.is_null {
        return Ok(Facts { nullable: true, ..value.clone() });
    }
    if value.dictionary.is_some() || value.texts.is_some() {
        return unsupported("a shifted string with a default");
    }
    let range = value.bounds().zip(default.range).map(|(own, other)| (own.0.min(other.0), own.1.max(other.1)));
    Ok(Facts::new(value.ty, value.nullable, range))
}

/// The position of a value, which is added if it is not there.
fn index_of<T: PartialEq>(all: &mut Vec<T>, one: T) -> usize {
    all.iter().position(|known| *known == one).unwrap_or_else(|| {
        all.push(one);
        all.len() - 1
    })
}
