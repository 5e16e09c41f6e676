//! Rows that become entries of a join table.

use crate::arena::{Arena, Zone};
use crate::codegen::aggregate::Cell;
use crate::codegen::expr::Emitter;
use crate::codegen::input::PipelineInput;
use crate::codegen::keys::Packed;
use crate::codegen::params::Argument;
use crate::codegen::pipeline::Split;
use crate::codegen::rows::RowWriter;
use crate::codegen::runs::{RUN_KEY, RunPlan, WHOLE_RUN, WholeRuns, end_slots, raised};
use crate::codegen::sink::SinkPlan;
use crate::error::Result;
use crate::facts::{Facts, analyse};
use crate::ir::{Expr, Sink};
use crate::plan::keys::KeyPack;
use crate::plan::table::{BuiltTable, Keep, Matches, Numbering, Numbers, PayloadColumn, TableLayout};

/// Lays out a table of these keys: of rows' values, or of extremes.
pub(super) fn plan<'a>(
    input: &PipelineInput<'a>,
    registers: &[Option<Facts>],
    split: &Split,
    (keys, values): (&'a [Expr], &'a [Expr]),
    arena: &mut Arena,
) -> Result<SinkPlan<'a>> {
    let are_extremes = matches!(input.pipeline.sink, Sink::Extremes { .. });
    let kept: &[Keep] = if are_extremes { &[Keep::Least, Keep::Most] } else { &[Keep::Only] };
    let (key_values, _) = analyse(&keys.iter().collect::<Vec<_>>(), registers, input.overflow)?;
    let (known, _) = analyse(&values.iter().collect::<Vec<_>>(), registers, input.overflow)?;
    let columns = |value: Facts| kept.iter().map(move |keep| (value.clone(), *keep));
    let payload_values: Vec<(Facts, Keep)> = known.into_iter().flat_map(columns).collect();
    let payload = values.iter().flat_map(|value| kept.iter().map(move |_| value)).collect();
    let share = split.rows.iter().chain(&split.dense).map(|planned| planned.share).product();
    // Of rows that several matches multiply, only an upper bound is known: there is room for a guess.
    let (multiplies, most) = (input.multiplies(), input.rows_out());
    let guessed = most.min(input.group_slots);
    let numbering = if multiplies { Numbering::Counted(guessed) } else { Numbering::Scanned(input.chunk_rows) };
    let several = input.several.then_some(numbering);
    let runs = match are_extremes {
        true => RunPlan::of_extremes(input, split, (keys, &KeyPack::of_join(&key_values)?), &payload_values, share)?,
        false => None,
    };
    let ends = runs.as_ref().filter(|runs| runs.whole == WholeRuns::Stored).map(|_| end_slots(input, split));
    let room = if input.whole_tables || multiplies { 1.0 } else { share };
    let rows = (if multiplies { guessed } else { input.rows }, share, room);
    let limits = (input.tuning.direct_bytes, input.info.memory_bytes);
    let how = (several, input.seed, ends);
    let mut table = BuiltTable::lay_out(arena, &key_values, &payload_values, rows, limits, how)?;
    table.preaggregates = runs.is_some();
    table.grows = multiplies && guessed < most;
    Ok(SinkPlan::Build { keys, payload, table, unique: input.unique, runs })
}

/// Writes what one row does that enters a table; where keys are to be `unique`, others are told.
pub(super) fn build_row(
    rows: &mut RowWriter,
    keys: &[Expr],
    payload: &[&Expr],
    table: &BuiltTable,
    (unique, runs): (Unique, Option<&RunPlan>),
) -> Result<()> {
    let keys = keys.iter().map(|key| rows.emit(key)).collect::<Result<Vec<_>>>()?;
    for key in &keys {
        if let Some(valid) = &key.valid {
            rows.line(&format!("if (!{valid}) return;"));
        }
    }
    let mut packed = rows.with_emitter(|emitter| table.pack.emit(emitter, &keys));
    let mut extremes = extremes(rows, payload, table)?;
    if let Some(runs) = runs {
        extremes = runs.begin(rows, packed.word(), &extremes, None);
        packed = Packed { words: vec![RUN_KEY.into()], inside: "true".into() };
    }
    let duplicate = |rows: &mut RowWriter, condition: &str| {
        if unique != Unique::No {
            let flags = rows.flags();
            rows.line(&format!("if ({condition}) {};", tell_duplicate(&flags, unique)));
        }
    };
    let flags = rows.flags();
    // No slot is free near the key's.
    let lost = if table.grows { "WC_TABLE_FULL" } else { "WC_LONG_RUN" };
    let long_run = |slot| format!("if ({slot} == ~0ULL) {{ atomicOr({flags}, (uint32_t){lost}); return; }}");
    if let Some(matches) = &table.matches {
        number(rows, matches, &flags);
    }
    let entry = match &table.layout {
        TableLayout::Direct { bitmap } => {
            let bits = rows.with_emitter(|emitter| emitter.params.add("uint32_t*", Argument::Zone(*bitmap)));
            let packed = packed.word().to_string();
            rows.line(&format!("const uint32_t bit = 1u << ({packed} & 31u);"));
            if unique != Unique::No {
                // Told at the end: nobody waits for an answer before the next row's bit is set.
                rows.line(&format!("repeated |= wc_fetch_or({bits} + ({packed} >> 5), bit) & bit;"));
            } else {
                // Where a key may come often, most rows find its bit set.
                rows.line(&format!("uint32_t* const word = {bits} + ({packed} >> 5);"));
                rows.line("if ((wc_load_relaxed(word) & bit) == 0) wc_or(word, bit);");
            }
            packed
        }
        TableLayout::Hash { keys, mask, seed } => {
            let target = rows.with_emitter(|emitter| hash_table(emitter, *keys, *mask, *seed));
            rows.line("bool is_new;");
            let packed = packed.word();
            rows.line(&format!("const uint64_t entry = wc_table_enter({target}, {packed}, &is_new);"));
            rows.line(&long_run("entry"));
            duplicate(rows, "!is_new");
            "entry".to_string()
        }
        TableLayout::Wide { states, words, mask, seed } => {
            let target = rows.with_emitter(|emitter| wide_table(emitter, (*states, *words), *mask, *seed));
            rows.line(&format!("const uint64_t key[] = {{{}}};", packed.list()));
            rows.line("bool is_new;");
            rows.line(&format!("const uint64_t entry = wc_wide_enter({target}, key, &is_new);"));
            rows.line(&long_run("entry"));
            duplicate(rows, "!is_new");
            "entry".to_string()
        }
    };
    let entry = match &table.matches {
        None => entry,
        Some(matches) => {
            let mut zone = |c_type: &str, zone| {
                rows.with_emitter(|emitter| emitter.params.add(&format!("{c_type}*"), Argument::Zone(zone)))
            };
            let [counts, ranks, entries] =
                [matches.counts, matches.ranks, matches.entries].map(|of| zone("uint32_t", of));
            rows.line(&format!("{ranks}[number] = wc_fetch_add({counts} + {entry}, (uint32_t)1);"));
            rows.line(&format!("{entries}[number] = (uint32_t){entry} + 1;"));
            "number".to_string()
        }
    };
    if let Some(ends) = &table.ends {
        enter_whole(rows, table, &extremes);
        let target = rows.with_emitter(|emitter| hash_table(emitter, ends.seen, ends.slots - 1, ends.seed));
        let cells = rows.with_emitter(|emitter| emitter.params.add("uint64_t*", Argument::Zone(ends.cells)));
        rows.line(&format!("bool is_new;\nconst uint64_t end = wc_table_enter({target}, {RUN_KEY}, &is_new);"));
        rows.line(&long_run("end"));
        for (index, cell) in extremes.drain(..).enumerate() {
            rows.line(&format!("wc_max({cells} + {} + end, (uint64_t){});", index as u64 * ends.slots, cell.value));
        }
        runs.into_iter().for_each(|runs| runs.end(rows));
        return Ok(());
    }
    let mut extremes = extremes.into_iter();
    for (expr, column) in payload.iter().zip(&table.payload) {
        let target = rows
            .with_emitter(|emitter| emitter.params.add(&format!("{}*", column.c_type), Argument::Zone(column.zone)));
        if let Some(cell) = extremes.next() {
            let test = cell.condition.map_or_else(String::new, |condition| format!("if ({condition}) "));
            rows.line(&format!("{test}atomicMax({target} + {entry}, ({}){});", column.c_type, cell.value));
            continue;
        }
        let value = rows.emit(expr)?;
        let code = if column.facts.ty.is_float() {
            match column.facts.nullable {
                true => format!("wc_one_nan((double){})", value.code),
                false => value.code.clone(),
            }
        } else {
            let offset = Argument::I64(column.offset());
            let offset = rows.with_emitter(|emitter| emitter.params.add("int64_t", offset));
            column.image(&value.code, &offset)
        };
        let code = match &value.valid {
            Some(valid) if column.facts.ty.is_float() => format!("{valid} ? {code} : wc_nan_null()"),
            Some(valid) => format!("{valid} ? {code} : ({})0", column.c_type),
            None => code,
        };
        rows.line(&format!("{target}[{entry}] = {code};"));
    }
    if let Some(runs) = runs {
        runs.end(rows);
    }
    Ok(())
}

/// Writes the number of a row among those that enter; there may be no room for it.
fn number(rows: &mut RowWriter, matches: &Matches, flags: &str) {
    let mut zone = |c_type: &str, zone| rows.with_emitter(|emitter| emitter.params.add(c_type, Argument::Zone(zone)));
    match matches.numbers {
        Numbers::Scanned { first_rows } => {
            let first_rows = zone("const uint64_t*", first_rows);
            rows.line(&format!("const uint64_t number = wc_load_cached({first_rows} + chunk) + row;"));
        }
        Numbers::Counted { counter } => {
            let counter = zone("uint64_t*", counter);
            let most = rows.with_emitter(|emitter| emitter.params.add("uint64_t", Argument::U64(matches.rows)));
            rows.line(&format!("const uint64_t number = wc_fetch_add({counter}, (uint64_t)1);"));
            rows.line(&format!("if (number >= {most}) {{ atomicOr({flags}, (uint32_t)WC_TABLE_FULL); return; }}"));
        }
    }
}

/// Writes what enters a run that is all there is of its key: nothing else writes these entries.
fn enter_whole(rows: &mut RowWriter, table: &BuiltTable, totals: &[Cell]) {
    rows.line(WHOLE_RUN);
    for (column, total) in table.payload.iter().zip(totals) {
        let target = rows
            .with_emitter(|emitter| emitter.params.add(&format!("{}*", column.c_type), Argument::Zone(column.zone)));
        rows.line(&format!("{target}[{RUN_KEY}] = ({}){};", column.c_type, total.value));
    }
    rows.line("return;\n}");
}

/// What a row raises the entries of its key to, if those are of extremes: either all or none are.
fn extremes(rows: &mut RowWriter, payload: &[&Expr], table: &BuiltTable) -> Result<Vec<Cell>> {
    let are_extremes = |(_, column): &(&&Expr, &PayloadColumn)| column.keep != Keep::Only;
    let cell = |(expr, column): (&&Expr, &PayloadColumn)| {
        let value = rows.emit(expr)?;
        let offset = Argument::I64(column.offset());
        let offset = rows.with_emitter(|emitter| emitter.params.add("int64_t", offset));
        Ok(raised(column.c_type, column.image(&value.code, &offset), value.valid.clone()))
    };
    payload.iter().zip(&table.payload).filter(are_extremes).map(cell).collect()
}

/// Whether a table's keys are to be unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unique {
    /// They may come several times.
    No,
    /// A table with several rows for a key is refused.
    Always,
    /// A table with several rows for a key is built again with room for them: that of this pipeline.
    Guessed(usize),
}

/// The statement that tells of a key that has come again: a flag, and above the flags the pipeline whose guess it was.
pub(super) fn tell_duplicate(flags: &str, unique: Unique) -> String {
    match unique {
        Unique::Guessed(pipeline) => {
            format!(
                "{{ atomicOr({flags} + 1, {}u); atomicOr({flags}, (uint32_t)WC_DUPLICATE_KEY); }}",
                1u32 << pipeline
            )
        }
        _ => format!("atomicOr({flags}, (uint32_t)WC_DUPLICATE_KEY)"),
    }
}

/// Pointer, mask and seed of a table of keys of one word, as arguments of a call.
pub(super) fn hash_table(emitter: &mut Emitter, keys: Zone, mask: u64, seed: u64) -> String {
    let keys = emitter.params.add("uint64_t*", Argument::Zone(keys));
    let mask = emitter.params.add("uint64_t", Argument::U64(mask));
    let seed = emitter.params.add("uint64_t", Argument::U64(seed));
    format!("{keys}, {mask}, {seed}")
}

/// Pointers to states and words, mask and seed of a table of keys of several words, as arguments of a call.
pub(super) fn wide_table(emitter: &mut Emitter, (states, words): (Zone, Zone), mask: u64, seed: u64) -> String {
    let states = emitter.params.add("uint64_t*", Argument::Zone(states));
    let words = emitter.params.add("uint64_t*", Argument::Zone(words));
    let mask = emitter.params.add("uint64_t", Argument::U64(mask));
    let seed = emitter.params.add("uint64_t", Argument::U64(seed));
    format!("{states}, {words}, {mask}, {seed}")
}
