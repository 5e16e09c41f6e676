//! Which steps of a pipeline run on whole vectors, which a row at a time, and which columns are loaded for them.

use warpcube_column::{GROUP_SLOTS, TILE_SLOTS};

use crate::error::Result;
use crate::ir::Sink;
use crate::plan::blocks::LARGE_WARPS;
use crate::plan::bounds::drops_vectors;
use crate::plan::estimate::surviving_lines;
use crate::plan::input::PipelineInput;
use crate::plan::order::{Item, Planned};
use crate::plan::split::{Split, is_asked_later};
use crate::plan::table::{TableLayout, table};
use crate::plan::{runs, weight};

/// Decides which steps run on whole vectors and which columns are loaded for them.
pub(crate) fn split(planned: Vec<Planned>, input: &PipelineInput) -> Result<Split> {
    let width = |column: usize| input.columns[column].layout.bytes();
    let lines = |share: f64, column: usize| surviving_lines(share, input.columns[column].layout.gathered_bytes());
    let tuning = input.tuning;
    let (mut dense, mut rows, mut certain) = (Vec::new(), Vec::new(), Vec::new());
    let mut loaded = Vec::<usize>::new();
    // The share of vectors that are not ruled out as a whole, and that of rows that are left in those.
    let (mut scanned, mut share) = (1.0f64, 1.0f64);
    let vector_registers = |loaded: &[usize]| {
        loaded.iter().map(|column| input.columns[*column].layout.register_bytes()).sum::<f64>() as usize
    };
    // Columns of strings without codes that whole vectors are tested by, and bytes of those a row of the scan.
    let (mut texts, mut text_bytes) = (Vec::<usize>::new(), 0.0);
    for planned in planned {
        let mut new: Vec<usize> = Vec::new();
        let mut read: Vec<usize> = Vec::new();
        let mut eligible = !planned.fallible && rows.is_empty() && weight::of_item(&planned.item) <= weight::HEAVY;
        planned.item.registers(&mut |register| {
            if register >= input.columns.len() {
                eligible = false;
            } else if input.columns[register].is_bytes {
                read.push(register);
            } else if !loaded.contains(&register) && !new.contains(&register) {
                new.push(register);
            }
        });
        if let Item::Probe(probe, _) = &planned.item {
            let table = table(input.tables, probe)?;
            let is_direct = table.layout == TableLayout::Direct;
            eligible &= is_direct && !probe.kind.keeps_rows() && (table.matches.is_none() || !planned.joins());
            eligible &= probe.residual.is_none();
        }
        // Few rows of a warp are left: those of a queue are tested by full warps.
        eligible &= read.is_empty() || share >= tuning.in_place;
        let least =
            if planned.is_weak(tuning) && read.is_empty() { tuning.eager_lines_weak } else { tuning.eager_lines };
        eligible &= new.iter().all(|column| lines(share, *column) >= least);
        let with_new: Vec<usize> = loaded.iter().chain(&new).copied().collect();
        eligible &= vector_registers(&with_new) <= tuning.vector_registers;
        if planned.certain {
            // Its key is read where payload is asked for.
            if eligible && planned.gives_registers() {
                loaded = with_new;
            }
            certain.push(planned);
        } else if eligible {
            loaded = with_new;
            read.retain(|column| !texts.contains(column));
            text_bytes += read.iter().map(|column| lines(share, *column) * width(*column)).sum::<f64>() * scanned;
            texts.append(&mut read);
            match input.skips && drops_vectors(&planned.item, input.columns) {
                true => scanned *= planned.share,
                false => share *= planned.share,
            }
            dense.push(planned);
        } else {
            rows.push(planned);
        }
    }
    let single = matches!(&input.pipeline.sink, Sink::Aggregate { groups, .. } if groups.is_empty());
    // Rows that are only added up are not worth a queue if what is added is there, or read whole anyway.
    let summed = single && rows.is_empty() && {
        let mut added = Vec::new();
        input.pipeline.sink.registers(&mut |register| input.read_by(register, &mut |column| added.push(column)));
        added.retain(|register| !loaded.contains(register));
        added.sort_unstable();
        added.dedup();
        let read_whole = |column: usize| {
            let is_value = column < input.columns.len() && !input.columns[column].is_bytes;
            is_value && lines(share, column) >= tuning.eager_lines
        };
        let all: Vec<usize> = loaded.iter().chain(&added).copied().collect();
        added.iter().all(|register| read_whole(*register)) && vector_registers(&all) <= tuning.vector_registers
    };
    let of_rows = rows.iter().map(|planned| weight::of_item(&planned.item));
    let weight = of_rows.sum::<usize>() + weight::of_sink(&input.pipeline.sink);
    // The matches of rows are shared out among all lanes of a warp, which come together where the queue is drained.
    let multiplies = input.multiplies();
    // Rows of a queue have lost their order.
    let in_place_least = if runs::are_likely(input, share) { tuning.in_place_runs } else { tuning.in_place };
    let in_place = (summed || share >= in_place_least) && weight <= weight::HEAVY && !multiplies;
    let percent = |share: f64| format!("{:.3} %", 100.0 * share);
    let why = match in_place {
        _ if multiplies => "rows have several matches".to_string(),
        true if summed => "rows are only added up".to_string(),
        true => format!("{} of the rows are left, {} or more", percent(share), percent(in_place_least)),
        false if weight > weight::HEAVY => format!("a row takes {weight} operations, more than {}", weight::HEAVY),
        false => format!("{} of the rows are left, fewer than {}", percent(share), percent(in_place_least)),
    };
    let mut wanted: Vec<usize> = Vec::new();
    let mut left = share;
    for planned in &rows {
        planned.item.registers(&mut |register| input.read_by(register, &mut |column| wanted.push(column)));
        if in_place && left >= in_place_least {
            eager(&wanted, &mut loaded, input, &vector_registers);
        }
        left *= planned.share;
    }
    input.pipeline.sink.registers(&mut |register| input.read_by(register, &mut |column| wanted.push(column)));
    if in_place && (summed || left >= in_place_least) {
        eager(&wanted, &mut loaded, input, &vector_registers);
    }
    let is_again = |column: &usize| is_asked_later(dense.iter().chain(&certain), *column, &wanted);
    let has_again = !in_place && share >= tuning.again_rows;
    let again = if has_again { loaded.iter().copied().filter(is_again).collect() } else { Vec::new() };
    let rows_scanned = scanned * input.rows as f64;
    let whole: f64 = loaded.iter().map(|column| width(*column) * rows_scanned).sum();
    let is_read = |register: &usize| loaded.contains(register) || texts.contains(register);
    wanted.retain(|register| *register < input.columns.len() && !is_read(register));
    wanted.sort_unstable();
    wanted.dedup();
    let gathered: f64 = wanted.iter().map(|column| lines(share, *column) * width(*column)).sum::<f64>() * rows_scanned;
    let bytes = whole + gathered + text_bytes * input.rows as f64;
    let packed = loaded.iter().any(|column| input.columns[*column].layout.is_packed());
    let slots = match vector_registers(&loaded) {
        0..=2 if packed && single && in_place => tuning.slots_narrow,
        0..=7 => tuning.slots_one,
        8..=11 => tuning.slots_two,
        12..=27 => tuning.slots_some,
        _ => tuning.slots_many,
    };
    if tuning.filters_first {
        dense.sort_by_key(|planned| matches!(planned.item, Item::Probe(_, _)));
    }
    let slots = if in_place && !single { slots.min(tuning.slots_in_place) } else { slots };
    // All places of few groups are looked at at once.
    let lanes = input.info.multiprocessors as u64 * LARGE_WARPS as u64 * 32;
    let has_few_groups = input.pipeline.source.table().is_none() && input.rows <= lanes * tuning.slots_many as u64;
    let slots = if has_few_groups { slots.min(tuning.slots_many) } else { slots };
    let slots = if packed { slots.max(GROUP_SLOTS) } else { slots };
    let tiled = loaded.iter().any(|column| input.columns[*column].layout.is_tiled());
    let has_room = (single || !in_place) && vector_registers(&loaded) <= tuning.tile_registers;
    let slots = if tiled && has_room { slots.max(TILE_SLOTS) } else { slots };
    // The vectors of several steps share as many registers as those of two long ones take.
    let step_bytes =
        loaded.iter().map(|column| input.columns[*column].layout.register_bytes()).sum::<f64>() * slots as f64;
    // Views wait for memory when they decode: steps in turn would repeat much text for little.
    let viewed = loaded.iter().any(|column| input.columns[*column].layout.is_viewed());
    let ahead = match in_place && single && tuning.prefetch && !loaded.is_empty() && !viewed {
        true => ((tuning.ahead_bytes / step_bytes.max(1.0)) as usize).min(tuning.steps_ahead),
        false => 1,
    };
    let unrolled = dense.iter().map(|planned| weight::of_item(&planned.item)).sum::<usize>();
    let unrolled = unrolled + if in_place { weight } else { 0 };
    let least = if packed { GROUP_SLOTS } else { tuning.slots_many };
    let (slots, ahead) = weight::bounded(unrolled, slots, ahead, least);
    Ok(Split { dense, certain, rows, loaded, again, in_place, multiplies, packed, slots, ahead, bytes, why })
}

/// Adds the columns among `wanted` to those loaded whole, as far as registers reach.
fn eager(
    wanted: &[usize],
    loaded: &mut Vec<usize>,
    input: &PipelineInput,
    vector_registers: &impl Fn(&[usize]) -> usize,
) {
    let is_value = |register: &usize| input.columns.get(*register).is_some_and(|column| !column.is_bytes);
    for register in wanted.iter().copied().filter(is_value) {
        if !loaded.contains(&register) {
            loaded.push(register);
            if vector_registers(loaded) > input.tuning.vector_registers {
                loaded.pop();
            }
        }
    }
}
