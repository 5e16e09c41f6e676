//! Sort of relations: the order of rows by several keys, each ascending or descending with NULLs first or last, stable.
//!
//! The bits of all keys, with a bit for NULL above those of a key that has NULLs, make one number a row, which is cut
//! into words of 64 bits. Words are sorted with row numbers from the lowest on ([`RadixSort`]); each further word is
//! made in the order so far. A single key without NULLs of up to 64 bits is sorted as it is. Result: row numbers, by
//! which columns are gathered; where such a key is all that is wanted, the keys alone.

use std::fmt::Write;

use super::radix_sort::{self, RadixOrder, RadixSort, RadixTuning, Records};
use super::{DeviceSlice, Element, KEYS, OrderedBits, Queue, check_element, check_length, check_scratch};
use crate::backend::{DeviceInfo, LaunchShape};
use crate::buffer::{DeviceBuffer, PART_BYTES_MIN};
use crate::device::{Device, Kernel};
use crate::error::{GpuError, Result};
use crate::launch::Params;
use crate::program::Program;

const KERNELS: &str = include_str!("../../kernels/prims/sort.cuh");

/// Bits of a word.
const WORD_BITS: u32 = 64;
/// Threads of a block that makes words, and blocks a multiprocessor.
const BLOCK: u32 = 256;
const BLOCKS: u32 = 8;

/// Where rows go that have no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Nulls {
    /// There are none.
    Absent,
    /// Before all values.
    First,
    /// Behind all values.
    Last,
}

/// One key of a sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SortColumn {
    /// Type of the values.
    pub element: Element,
    /// Bits that values have at most; fewer than those of the type for codes and other small unsigned integers alone.
    pub bits: u32,
    /// The lowest of them, so many, that do not count: what a key of its type carries below the number it is sorted by.
    pub below: u32,
    /// Whether large values come first.
    pub descending: bool,
    /// Where NULLs go.
    pub nulls: Nulls,
}

impl SortColumn {
    /// A key of all values of a type, ascending and without NULLs.
    pub fn of(element: Element) -> SortColumn {
        SortColumn { element, bits: element.bytes() as u32 * 8, below: 0, descending: false, nulls: Nulls::Absent }
    }

    /// Refuses bits that values of the type do not have, or need.
    fn check(&self) -> Result<()> {
        let all = self.element.bytes() as u32 * 8;
        let unsigned = matches!(self.element, Element::U8 | Element::U32 | Element::U64 | Element::U128);
        let SortColumn { element, bits, below, .. } = *self;
        if (bits == all || unsigned && bits < all) && below < bits && (unsigned || below == 0) {
            return Ok(());
        }
        Err(GpuError::Contract(format!("sort: bits {below}..{bits} of a key of {element}, whose values have {all}")))
    }
}

/// The operands of one key.
#[derive(Debug, Clone, Copy)]
pub struct SortKey<'a> {
    /// The values.
    pub values: &'a DeviceSlice,
    /// A byte a row, zero for NULL, where the key has NULLs.
    pub valid: Option<&'a DeviceSlice>,
}

/// Bits of one column in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    column: usize,
    /// The first bit of the value; none for the bit of NULL.
    from: Option<u32>,
    bits: u32,
    /// Where it begins in the word.
    at: u32,
}

/// Pieces of each word, the lowest word first.
fn words(columns: &[SortColumn]) -> Vec<Vec<Piece>> {
    let mut words: Vec<Vec<Piece>> = Vec::new();
    let mut used = 0;
    let mut add = |column: usize, from: Option<u32>, bits: u32| {
        let mut done = 0;
        while done < bits {
            let at = used % WORD_BITS;
            if at == 0 {
                words.push(Vec::new());
            }
            let part = (bits - done).min(WORD_BITS - at);
            let piece = Piece { column, from: from.map(|from| from + done), bits: part, at };
            words.last_mut().expect("a word was begun").push(piece);
            (done, used) = (done + part, used + part);
        }
    };
    for (number, column) in columns.iter().enumerate().rev() {
        add(number, Some(column.below), column.bits - column.below);
        if column.nulls != Nulls::Absent {
            add(number, None, 1);
        }
    }
    words
}

/// Bits that a word has.
fn word_bits(pieces: &[Piece]) -> u32 {
    pieces.last().map_or(0, |piece| piece.at + piece.bits)
}

/// Columns of a word, each once.
fn word_columns(pieces: &[Piece]) -> Vec<usize> {
    let mut columns: Vec<usize> = pieces.iter().map(|piece| piece.column).collect();
    columns.dedup();
    columns
}

/// The kernel that makes a word.
fn word_kernel(number: usize, columns: &[SortColumn], pieces: &[Piece], row: Element) -> String {
    let row = row.c_type();
    let mut members = String::new();
    let mut body = String::new();
    for column in word_columns(pieces) {
        let SortColumn { element, descending, nulls, .. } = columns[column];
        let element = element.c_type();
        let nullable = nulls != Nulls::Absent;
        let _ = write!(members, " const {element}* values{column};");
        let guard = if nullable {
            let _ = write!(members, " const uint8_t* valid{column};");
            format!("if (p.valid{column}[row] != 0) ")
        } else {
            String::new()
        };
        let mut null = String::new();
        let _ = writeln!(body, "        {guard}{{\n            const {element} key = p.values{column}[row];");
        for piece in pieces.iter().filter(|piece| piece.column == column) {
            let at = piece.at;
            match piece.from {
                Some(from) => {
                    let mask = u64::MAX >> (WORD_BITS - piece.bits);
                    let _ = writeln!(
                        body,
                        "            word |= sort_piece<{element}>(key, {descending}, {from}, {mask}ull) << {at};"
                    );
                }
                None if nulls == Nulls::First => {
                    let _ = writeln!(body, "            word |= (uint64_t)1 << {at};");
                }
                None => null = format!(" else {{\n            word |= (uint64_t)1 << {at};\n        }}"),
            }
        }
        let _ = writeln!(body, "        }}{null}");
    }
    format!(
        "struct SortWord{number}Params {{ const {row}* order; uint64_t* words; uint64_t rows;{members} }};
WC_KERNEL(sort_word{number}, SortWord{number}Params, {BLOCK}, 4) {{
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t at = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; at < p.rows; at += step) {{
        const uint64_t row = p.order == nullptr ? at : p.order[at];
        uint64_t word = 0;
{body}        p.words[at] = word;
    }}
}}
"
    )
}

/// The program of all words.
fn program(columns: &[SortColumn], words: &[Vec<Piece>], row: Element) -> Program {
    let kernels: String =
        words.iter().enumerate().map(|(number, pieces)| word_kernel(number, columns, pieces, row)).collect();
    Program::new("sort_words", format!("{KEYS}{KERNELS}{kernels}"))
}

/// A sort by the keys of some columns.
#[derive(Clone)]
pub struct Sort {
    columns: Vec<SortColumn>,
    row: Option<Element>,
    /// Pieces and kernel of each word, the lowest first; none where the key is sorted as it is.
    words: Vec<(Vec<Piece>, Kernel)>,
    radix: RadixSort,
    multiprocessors: u32,
}

/// Where the parts of the scratch memory begin, in bytes.
struct Scratch {
    keys: [usize; 2],
    rows: usize,
    radix: usize,
    bytes: usize,
}

/// What a sort is made for, before its kernels are compiled.
#[derive(Debug, Clone)]
pub struct SortSpec {
    /// Its keys, the most significant first.
    pub columns: Vec<SortColumn>,
    /// Type of row numbers; none if they are not wanted, of one key that is sorted as it is.
    pub row: Option<Element>,
}

impl SortSpec {
    /// Whether the one key is sorted as it is: the sort leaves its values in order where scratch memory begins.
    pub fn leaves_keys(&self) -> bool {
        is_direct(&self.columns)
    }

    /// Type of the words that are sorted: that of a key which is sorted as it is.
    fn key(&self) -> Element {
        if is_direct(&self.columns) { self.columns[0].element } else { Element::U64 }
    }

    fn tuning(&self, info: &DeviceInfo) -> RadixTuning {
        RadixTuning::of(info.shared_memory_per_block, self.key(), self.row)
    }

    /// What [`Sort::new`] compiles, for callers that compile it beside other programs.
    pub fn programs(&self, info: &DeviceInfo) -> Vec<Program> {
        let radix = radix_sort::program(self.key(), self.row, &self.tuning(info));
        let pieces = if is_direct(&self.columns) { Vec::new() } else { words(&self.columns) };
        let words = self.row.filter(|_| !pieces.is_empty()).map(|row| program(&self.columns, &pieces, row));
        words.into_iter().chain([radix]).collect()
    }

    /// Scratch memory for `rows` rows in bytes, as [`Sort::scratch_bytes`] of a sort made for it.
    pub fn scratch_bytes(&self, info: &DeviceInfo, rows: u64) -> usize {
        let key = self.key();
        Scratch::new(rows, key, self.row, self.tuning(info).scratch_bytes(key, rows)).bytes
    }
}

/// Whether the only key is sorted as it is.
fn is_direct(columns: &[SortColumn]) -> bool {
    columns.len() == 1 && columns[0].nulls == Nulls::Absent && columns[0].element.bytes() <= 8
}

impl Scratch {
    fn new(rows: u64, key: Element, row: Option<Element>, radix_bytes: usize) -> Scratch {
        let aligned = |bytes: usize| bytes.next_multiple_of(PART_BYTES_MIN);
        let words = aligned(rows as usize * key.bytes());
        let radix = 2 * words + aligned(rows as usize * row.map_or(0, Element::bytes));
        Scratch { keys: [0, words], rows: 2 * words, radix, bytes: radix + radix_bytes }
    }
}

impl Sort {
    /// Compiles a sort by columns, the most significant first; `row` is the type of row numbers, `U32` or `U64`, or
    /// none.
    ///
    /// # Errors
    /// [`GpuError::Contract`] without columns, for bits that a type does not have, other types of row numbers, and none
    /// where keys are not sorted as they are; those of [`Device::compile`].
    pub fn new(device: &Device, columns: &[SortColumn], row: Option<Element>) -> Result<Sort> {
        Sort::with_tuning(device, columns, row, |key| RadixTuning::of(device.info().shared_memory_per_block, key, row))
    }

    /// The same, cut as told for each type of keys.
    ///
    /// # Errors
    /// As [`Sort::new`].
    pub fn with_tuning(
        device: &Device,
        columns: &[SortColumn],
        row: Option<Element>,
        tuning: impl Fn(Element) -> RadixTuning,
    ) -> Result<Sort> {
        if columns.is_empty() || !matches!(row, None | Some(Element::U32 | Element::U64)) {
            let row = row.map_or_else(|| "no type".to_string(), |row| row.to_string());
            let message = format!("sort: {} keys, row numbers of {row}: at least one key, u32 or u64", columns.len());
            return Err(GpuError::Contract(message));
        }
        if row.is_none() && !is_direct(columns) {
            return Err(GpuError::Contract("sort: keys that are not sorted as they are, without row numbers".into()));
        }
        columns.iter().try_for_each(SortColumn::check)?;
        let columns = columns.to_vec();
        let direct = is_direct(&columns);
        let pieces = if direct { Vec::new() } else { words(&columns) };
        let mut words = Vec::new();
        if let Some(row) = row.filter(|_| !direct) {
            let module = device.compile(&program(&columns, &pieces, row))?;
            for (number, pieces) in pieces.into_iter().enumerate() {
                words.push((pieces, module.kernel(&format!("sort_word{number}"))?));
            }
        }
        let key = if direct { columns[0].element } else { Element::U64 };
        let radix = RadixSort::with_tuning(device, key, row, tuning(key))?;
        Ok(Sort { columns, row, words, radix, multiprocessors: device.info().multiprocessors })
    }

    /// Type of row numbers, if it gives some.
    pub fn row(&self) -> Option<Element> {
        self.row
    }

    fn scratch(&self, rows: u64) -> Scratch {
        Scratch::new(rows, self.radix.key(), self.row, self.radix.scratch_bytes(rows))
    }

    /// Bytes of scratch memory for `rows` rows: two words and a row number a row, and those of the radix sort.
    pub fn scratch_bytes(&self, rows: u64) -> usize {
        self.scratch(rows).bytes
    }

    /// Writes the row numbers in the order of the keys to `rows`, if the sort gives some.
    ///
    /// # Errors
    /// [`GpuError::Contract`] for other keys than the sort was made for, other lengths, more rows than row numbers tell
    /// apart, or too little scratch memory; those of a launch.
    pub fn launch(
        &self,
        queue: &mut impl Queue,
        keys: &[SortKey<'_>],
        rows: Option<&DeviceSlice>,
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        self.launch_with(queue, keys, (None, rows), scratch)
    }

    /// The same with `values` that stand in place of row numbers, if any: they are written to `rows` in the order of a
    /// key that is sorted as it is.
    ///
    /// # Errors
    /// As [`Sort::launch`], and [`GpuError::Contract`] for values beside other keys.
    pub fn launch_with(
        &self,
        queue: &mut impl Queue,
        keys: &[SortKey<'_>],
        (values, rows): (Option<&DeviceSlice>, Option<&DeviceSlice>),
        scratch: &DeviceBuffer,
    ) -> Result<()> {
        let len = self.check(keys, (values, rows))?;
        if values.is_some() && !self.words.is_empty() {
            return Err(GpuError::Contract("sort: values in place of the row numbers of keys that make words".into()));
        }
        let parts = self.scratch(len);
        check_scratch("sort", scratch, parts.bytes)?;
        if len == 0 {
            return Ok(());
        }
        let key = self.radix.key();
        let place = |at, element| DeviceSlice::new(scratch, at, element, len);
        let (words, other) = (place(parts.keys[0], key)?, place(parts.keys[1], key)?);
        let other_rows = self.row.map(|row| place(parts.rows, row)).transpose()?;
        let other = Records { keys: &other, values: other_rows.as_ref() };
        let sorted = Records { keys: &words, values: rows };
        let radix = scratch.part(parts.radix, parts.bytes - parts.radix)?;
        if self.words.is_empty() {
            let SortColumn { bits, below, descending, .. } = self.columns[0];
            let input = Records { keys: keys[0].values, values };
            let order = RadixOrder { bits: below..bits, descending };
            return self.radix.launch(queue, input, sorted, other, &order, &radix);
        }
        for (number, (pieces, kernel)) in self.words.iter().enumerate() {
            let order = rows.filter(|_| number > 0);
            let params = order.map_or_else(|| Params::new().null(), |order| Params::new().slice(order));
            let mut params = params.slice(&words).u64(len);
            for column in word_columns(pieces) {
                params = params.slice(keys[column].values);
                if let Some(valid) = keys[column].valid {
                    params = params.slice(valid);
                }
            }
            let grid = len.div_ceil(BLOCK.into()).min(u64::from(self.multiprocessors * BLOCKS)) as u32;
            queue.launch(kernel, LaunchShape { grid, block: BLOCK, shared_bytes: 0 }, &params)?;
            let order = RadixOrder { bits: 0..word_bits(pieces), descending: false };
            if number == 0 {
                self.radix.launch_numbering(queue, sorted, other, &order, &radix)?;
            } else {
                self.radix.launch_in_place(queue, sorted, other, &order, &radix)?;
            }
        }
        Ok(())
    }

    /// Checks the operands; the number of rows.
    fn check(&self, keys: &[SortKey<'_>], (values, rows): (Option<&DeviceSlice>, Option<&DeviceSlice>)) -> Result<u64> {
        if keys.len() != self.columns.len() {
            let message = format!("sort: {} keys, and {} are needed", keys.len(), self.columns.len());
            return Err(GpuError::Contract(message));
        }
        let len = match (rows, self.row) {
            (Some(rows), Some(row)) => {
                check_element("sort", "the row numbers", rows, row)?;
                if values.is_none() {
                    check_rows(row, rows.len())?;
                }
                rows.len()
            }
            (None, None) => keys[0].values.len(),
            (Some(_), None) => return Err(GpuError::Contract("sort: row numbers of a sort that has none".into())),
            (None, Some(_)) => return Err(GpuError::Contract("sort: no place for row numbers".into())),
        };
        for (number, (key, column)) in keys.iter().zip(&self.columns).enumerate() {
            check_element("sort", &format!("key {number}"), key.values, column.element)?;
            check_length("sort", &format!("key {number}"), key.values, len)?;
            match (key.valid, column.nulls) {
                (None, Nulls::Absent) => {}
                (Some(valid), Nulls::First | Nulls::Last) => {
                    check_element("sort", &format!("the validity of key {number}"), valid, Element::U8)?;
                    check_length("sort", &format!("the validity of key {number}"), valid, len)?;
                }
                (valid, nulls) => {
                    let given = if valid.is_some() { "validity" } else { "no validity" };
                    return Err(GpuError::Contract(format!("sort: key {number} has {given}, its NULLs are {nulls:?}")));
                }
            }
        }
        Ok(len)
    }
}

/// Refuses more rows than row numbers of a type tell apart.
fn check_rows(row: Element, rows: u64) -> Result<()> {
    if row == Element::U32 && rows > 1 << 32 {
        return Err(GpuError::Contract(format!(
            "sort: the numbers of {rows} rows do not fit into row numbers of {row}"
        )));
    }
    Ok(())
}

/// The numbers of rows in the order of a sort; `keys` has the ordered bits of each column's values, none for NULL.
pub fn reference(columns: &[SortColumn], keys: &[Vec<Option<OrderedBits>>]) -> Vec<u64> {
    let place = |column: usize, row: u64| {
        let SortColumn { below, descending, nulls, .. } = columns[column];
        let value = keys[column][row as usize].map(|bits| bits >> below);
        let behind = value.is_none() == (nulls == Nulls::Last);
        (behind, value.map(|bits| if descending { !bits } else { bits }))
    };
    let mut rows: Vec<u64> = (0..keys.first().map_or(0, Vec::len) as u64).collect();
    rows.sort_by(|a, b| {
        let columns = 0..columns.len();
        columns
            .map(|column| place(column, *a).cmp(&place(column, *b)))
            .find(|order| order.is_ne())
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prims::gpu_programs::compile_for_gpus;

    fn columns() -> [SortColumn; 3] {
        let code = SortColumn { bits: 20, ..SortColumn::of(Element::U32) };
        let wide = SortColumn { descending: true, nulls: Nulls::Last, ..SortColumn::of(Element::I128) };
        [SortColumn { nulls: Nulls::First, ..SortColumn::of(Element::F64) }, wide, code]
    }

    #[test]
    fn keys_are_cut_into_words() {
        let words = words(&columns());
        let piece = |column, from, bits, at| Piece { column, from, bits, at };
        assert_eq!(words[0], [piece(2, Some(0), 20, 0), piece(1, Some(0), 44, 20)]);
        assert_eq!(words[1], [piece(1, Some(44), 64, 0)]);
        let null = piece(1, None, 1, 20);
        assert_eq!(words[2], [piece(1, Some(108), 20, 0), null, piece(0, Some(0), 43, 21)]);
        assert_eq!(words[3], [piece(0, Some(43), 21, 0), piece(0, None, 1, 21)]);
        assert_eq!(words.iter().map(|word| word_bits(word)).collect::<Vec<_>>(), [64, 64, 64, 22]);
    }

    #[test]
    fn rows_past_their_numbers_are_refused() {
        assert!(check_rows(Element::U32, 1 << 32).is_ok() && check_rows(Element::U64, 1 << 33).is_ok());
        let Err(GpuError::Contract(message)) = check_rows(Element::U32, (1 << 32) + 1) else { panic!("not refused") };
        assert!(message.contains("4294967297") && message.contains("u32"), "{message}");
    }

    #[test]
    fn kernels_compile_for_gpus() {
        compile_for_gpus(&program(&columns(), &words(&columns()), Element::U32));
    }
}
