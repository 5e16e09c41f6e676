//! Rows that become entries of a join table.

use crate::codegen::aggregate::CellText;
use crate::codegen::keys::Packed;
use crate::codegen::memory::{BoundTable, Index, MatchesMemory};
use crate::codegen::params::Argument;
use crate::codegen::rows::RowWriter;
use crate::codegen::runs::{RUN_KEY, WHOLE_RUN};
use crate::codegen::tables::{WIDE_NULL, hash_table, wide_table};
use crate::error::Result;
use crate::ir::Expr;
use crate::plan::cells::CellOp;
use crate::plan::table::{Keep, MatchesPlan, Numbering, PayloadColumn, Unique};

/// Writes what one row does that enters a table; where keys are to be unique, others are told.
pub(super) fn build_row(rows: &mut RowWriter, keys: &[&Expr], payload: &[&Expr], table: &BoundTable) -> Result<()> {
    let (unique, runs) = (table.unique, table.runs.as_ref());
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
    // No slot is free near the key's.
    let lost = rows.no_room();
    let long_run = |slot| format!("if ({slot} == ~0ULL) {lost}");
    let matches = table.matches.as_ref().zip(table.memory.matches);
    if let Some((plan, matches)) = matches {
        number(rows, plan, matches);
    }
    let entry = match table.memory.index {
        Index::Bitmap(bitmap) => {
            let bits = rows.with_emitter(|emitter| emitter.params.add("uint32_t*", Argument::Region(bitmap)));
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
        Index::Keys(keys) => {
            let target = rows.with_emitter(|emitter| hash_table(emitter, keys, table.places, table.seed));
            rows.line("bool is_new;");
            let packed = packed.word();
            rows.line(&format!("const uint64_t entry = wc_table_enter({target}, {packed}, &is_new);"));
            rows.line(&long_run("entry"));
            duplicate(rows, "!is_new");
            "entry".to_string()
        }
        Index::Wide { states, words } => {
            let target = rows.with_emitter(|emitter| {
                let at = (states, Argument::Region(words));
                wide_table(emitter, at, (table.places, table.seed))
            });
            rows.line(&format!("const uint64_t key[] = {{{}}};", packed.list()));
            rows.line("bool is_new;");
            rows.line(&format!("const uint64_t entry = wc_wide_enter({target}, key, &is_new);"));
            rows.line(&long_run("entry"));
            duplicate(rows, "!is_new");
            "entry".to_string()
        }
    };
    let entry = match matches {
        None => entry,
        Some((_, matches)) => {
            let mut region = |c_type: &str, region| {
                rows.with_emitter(|emitter| emitter.params.add(&format!("{c_type}*"), Argument::Region(region)))
            };
            let [counts, ranks, entries] =
                [matches.counts, matches.ranks, matches.entries].map(|of| region("uint32_t", of));
            rows.line(&format!("{ranks}[number] = wc_fetch_add({counts} + {entry}, (uint32_t)1);"));
            rows.line(&format!("{entries}[number] = (uint32_t){entry} + 1;"));
            "number".to_string()
        }
    };
    if let Some((slots, ends)) = table.ends.zip(table.memory.ends) {
        enter_whole(rows, table, &extremes);
        let target = rows.with_emitter(|emitter| hash_table(emitter, ends.seen, slots, table.seed));
        let cells = rows.with_emitter(|emitter| emitter.params.add("uint64_t*", Argument::Region(ends.cells)));
        rows.line(&format!("bool is_new;\nconst uint64_t end = wc_table_enter({target}, {RUN_KEY}, &is_new);"));
        rows.line(&long_run("end"));
        for (index, cell) in extremes.drain(..).enumerate() {
            rows.line(&format!("wc_max({cells} + {} + end, (uint64_t){});", index as u64 * slots, cell.value));
        }
        runs.into_iter().for_each(|runs| runs.end(rows));
        return Ok(());
    }
    let mut extremes = extremes.into_iter();
    for ((expr, column), region) in payload.iter().zip(&table.payload).zip(&table.memory.payload) {
        let c_type = format!("{}*", column.c_type);
        let target = rows.with_emitter(|emitter| emitter.params.add(&c_type, Argument::Region(*region)));
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
        } else if column.is_wide() {
            value.code.clone()
        } else {
            let offset = Argument::I64(column.offset());
            let offset = rows.with_emitter(|emitter| emitter.params.add("int64_t", offset));
            column.image(&value.code, &offset)
        };
        let code = match &value.valid {
            Some(valid) if column.facts.ty.is_float() => format!("{valid} ? {code} : wc_nan_null()"),
            Some(valid) if column.is_wide() => format!("{valid} ? (__int128){code} : {WIDE_NULL}"),
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
fn number(rows: &mut RowWriter, plan: &MatchesPlan, matches: MatchesMemory) {
    match plan.numbering {
        Numbering::Scanned(_) => {
            let first_rows = Argument::Chunk(matches.numbers, 8);
            let first_rows = rows.with_emitter(|emitter| emitter.params.add("const uint64_t*", first_rows));
            rows.line(&format!("const uint64_t number = wc_load_cached({first_rows} + chunk) + row;"));
        }
        Numbering::Counted => {
            let counter = Argument::Region(matches.numbers);
            let counter = rows.with_emitter(|emitter| emitter.params.add("uint64_t*", counter));
            let most = rows.with_emitter(|emitter| emitter.params.add("uint64_t", Argument::U64(plan.rows)));
            rows.line(&format!("const uint64_t number = wc_fetch_add({counter}, (uint64_t)1);"));
            let full = rows.no_room();
            rows.line(&format!("if (number >= {most}) {full}"));
        }
    }
}

/// Writes what enters a run that is all there is of its key: nothing else writes these entries.
fn enter_whole(rows: &mut RowWriter, table: &BoundTable, totals: &[CellText]) {
    rows.line(WHOLE_RUN);
    for ((column, region), total) in table.payload.iter().zip(&table.memory.payload).zip(totals) {
        let c_type = format!("{}*", column.c_type);
        let target = rows.with_emitter(|emitter| emitter.params.add(&c_type, Argument::Region(*region)));
        rows.line(&format!("{target}[{RUN_KEY}] = ({}){};", column.c_type, total.value));
    }
    rows.line("return;\n}");
}

/// What a row raises the entries of its key to, if those are of extremes: either all or none are.
fn extremes(rows: &mut RowWriter, payload: &[&Expr], table: &BoundTable) -> Result<Vec<CellText>> {
    let are_extremes = |(_, column): &(&&Expr, &PayloadColumn)| column.keep != Keep::Only;
    let cell = |(expr, column): (&&Expr, &PayloadColumn)| {
        let value = rows.emit(expr)?;
        let offset = Argument::I64(column.offset());
        let offset = rows.with_emitter(|emitter| emitter.params.add("int64_t", offset));
        let image = column.image(&value.code, &offset);
        Ok(CellText { op: CellOp::Max, value: image, condition: value.valid.clone() })
    };
    payload.iter().zip(&table.payload).filter(are_extremes).map(cell).collect()
}

impl PayloadColumn {
    /// The image of a value: what is stored, or raises what is stored.
    pub(crate) fn image(&self, code: &str, offset: &str) -> String {
        match self.keep {
            Keep::Least => format!("({})((uint64_t){offset} - (uint64_t){code})", self.c_type),
            _ => format!("({})((uint64_t)(int64_t){code} - (uint64_t){offset})", self.c_type),
        }
    }

    /// The value of an image.
    pub(crate) fn value(&self, stored: &str, offset: &str) -> String {
        match self.keep {
            Keep::Least => format!("((uint64_t){offset} - (uint64_t){stored})"),
            _ => format!("((int64_t)((uint64_t)(int64_t){stored} + (uint64_t){offset}))"),
        }
    }
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
