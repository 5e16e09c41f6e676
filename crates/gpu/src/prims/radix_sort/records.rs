//! What sorts by digits share: records of keys and payload, the order of keys, and how their kernels are cut into
//! blocks.

use std::ops::Range;

use crate::error::{GpuError, Result};
use crate::launch::Params;
use crate::prims::{DeviceSlice, Element, Key, OrderedBits, check_element, check_length};

/// Ranks and places of one tile.
pub(crate) const TILE: &str = include_str!("../../../kernels/prims/radix_tile.cuh");
/// The loop over all elements of a slice.
pub(crate) const EACH_KEY: &str = include_str!("../../../kernels/prims/each_key.cuh");

/// Bins of a digit, `SORT_BINS` of the kernels.
pub(crate) const BINS: usize = 256;
/// The most bits of a digit.
pub(super) const DIGIT_BITS: u32 = 8;
/// Bytes of shared memory behind the exchange and the counters: places of bins, partial sums, the next tile.
pub(crate) const TILE_TABLE_BYTES: u32 = BINS as u32 * 8 + 128;
/// Rows that a launch of a pass has to stay below: descriptors keep counts in 30 bits.
pub(super) const PORTION_ROWS_MAX: u64 = 1 << 30;

/// How a radix sort is cut into blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RadixTuning {
    /// Threads of a block of a pass, a multiple of 32 of at least 256.
    pub threads: u32,
    /// Rows of a thread.
    pub items: u32,
    /// Blocks a multiprocessor, which bounds registers.
    pub blocks: u32,
    /// Threads of a block that counts digits.
    pub count_threads: u32,
    /// Counters of one bin in a block that counts digits, a power of two up to 32.
    pub count_columns: u32,
    /// Rows of a launch at most, less than 2^30.
    pub portion_rows: u64,
}

impl RadixTuning {
    /// The tuning for a device whose blocks have so much shared memory. Runs of keys that go to one bin grow with
    /// tiles, so tiles are large, of 512 threads that NVRTC 13.0 compiles to 64 registers for sm_90 with four spilled
    /// words at most. On an H200 (2026-11-25) 2^28 u32 keys take 4.89 ms.
    pub fn of(shared_bytes: usize, key: Element, payload: Option<Element>) -> RadixTuning {
        let items = match (key.bytes(), payload.map_or(0, Element::bytes)) {
            (..=4, 0) => 23,
            (..=4, ..=4) => 19,
            (..=4, ..=8) => 13,
            (..=8, ..=4) => 15,
            (..=8, ..=8) => 13,
            _ => 7,
        };
        let columns = |count: u32| count as usize * key.bytes() * BINS * 4;
        let mut count_columns = 32;
        while count_columns > 1 && columns(count_columns) > shared_bytes.min(128 << 10) {
            count_columns /= 2;
        }
        let portion_rows = PORTION_ROWS_MAX - 1;
        RadixTuning { threads: 512, items, blocks: 2, count_threads: 1024, count_columns, portion_rows }
    }

    /// Rows of a tile.
    pub(crate) fn tile(&self) -> u64 {
        u64::from(self.threads) * u64::from(self.items)
    }

    /// Bytes of shared memory of a tile whose widest operand has so many bytes.
    pub(crate) fn tile_shared_bytes(&self, widest: usize) -> u32 {
        let exchange = (self.tile() as u32 * widest as u32).next_multiple_of(16);
        exchange + self.threads / 32 * BINS as u32 * 4 + TILE_TABLE_BYTES
    }

    /// The types and the tuning, as macros of the kernels.
    pub(crate) fn definitions(&self, key: Element, payload: Option<Element>) -> String {
        let RadixTuning { threads, items, blocks, count_threads, count_columns, .. } = self;
        let payload = payload.map(|payload| format!("#define WC_SORT_PAYLOAD {}\n", payload_type(payload.bytes())));
        format!(
            "#define WC_SORT_KEY {}\n{}#define WC_SORT_THREADS {threads}\n#define WC_SORT_ITEMS {items}\n\
             #define WC_SORT_BLOCKS {blocks}\n#define WC_SORT_COUNT_THREADS {count_threads}\n\
             #define WC_SORT_COLUMNS {count_columns}\n",
            key.c_type(),
            payload.unwrap_or_default(),
        )
    }
}

/// Type that moves payload of so many bytes.
pub(crate) fn payload_type(bytes: usize) -> &'static str {
    match bytes {
        1 => "uint8_t",
        4 => "uint32_t",
        8 => "uint64_t",
        _ => "uint128_t",
    }
}

/// Keys and the payload beside them.
#[derive(Debug, Clone, Copy)]
pub struct Records<'a> {
    /// The keys.
    pub keys: &'a DeviceSlice,
    /// As many elements of payload.
    pub values: Option<&'a DeviceSlice>,
}

/// The order of a sort.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RadixOrder {
    /// The bits of the keys' ordered bits that count, from the lowest on; keys equal in them keep their order.
    pub bits: Range<u32>,
    /// Whether the largest key comes first.
    pub descending: bool,
}

impl RadixOrder {
    /// All bits of a type of keys.
    pub fn of(key: Element, descending: bool) -> RadixOrder {
        RadixOrder { bits: 0..key.bytes() as u32 * 8, descending }
    }

    /// Passes over the data, and the bits of a digit.
    pub fn passes(&self) -> (u32, u32) {
        let bits = self.bits.end - self.bits.start;
        let passes = bits.div_ceil(DIGIT_BITS);
        (passes, bits.div_ceil(passes.max(1)))
    }

    /// Refuses bits that keys do not have.
    pub(crate) fn check(&self, operation: &str, key: Element) -> Result<()> {
        let Range { start, end } = self.bits;
        let bits = key.bytes() as u32 * 8;
        if start <= end && end <= bits {
            return Ok(());
        }
        Err(GpuError::Contract(format!("{operation}: bits {start}..{end} of keys of {key}, which have {bits}")))
    }

    /// The members `SortDigits` of parameter structs.
    pub(crate) fn digits(&self, params: Params) -> Params {
        let (passes, width) = self.passes();
        let params = params.u64(self.bits.start.into()).u64(self.bits.end.into());
        params.u64(width.into()).u64(passes.into()).u64(self.descending.into())
    }
}

/// The members `SortPlaces` of parameter structs.
pub(crate) fn places(params: Params, places: [Records<'_>; 3]) -> Params {
    let params = places.iter().fold(params, |params, place| params.slice(place.keys));
    places.iter().fold(params, |params, place| match place.values {
        Some(values) => params.slice(values),
        None => params.null(),
    })
}

/// Refuses records of other types or lengths. Without payload `numbered` records stand for the numbers of rows.
pub(crate) fn check_records(
    operation: &str,
    role: &str,
    records: Records<'_>,
    key: Element,
    payload: Option<Element>,
    rows: u64,
    numbered: bool,
) -> Result<()> {
    check_element(operation, &format!("{role} keys"), records.keys, key)?;
    check_length(operation, &format!("{role} keys"), records.keys, rows)?;
    match (records.values, payload) {
        (Some(values), Some(payload)) => {
            check_element(operation, &format!("{role} payload"), values, payload)?;
            check_length(operation, &format!("{role} payload"), values, rows)
        }
        (None, None) => Ok(()),
        (None, Some(payload)) if numbered => {
            let bits = payload.bytes() * 8;
            if bits < 64 && rows > 1 << bits {
                let message = format!("{operation}: the numbers of {rows} rows do not fit into payload of {payload}");
                return Err(GpuError::Contract(message));
            }
            Ok(())
        }
        (None, Some(payload)) => Err(GpuError::Contract(format!("{operation}: {role} has no payload of {payload}"))),
        (Some(_), None) => {
            Err(GpuError::Contract(format!("{operation}: {role} has payload, and keys alone are sorted")))
        }
    }
}

/// How the output of a sort lies to its input, `FORM_` of the kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Elsewhere.
    Apart,
    /// In the same place.
    InPlace,
    /// Keys in the same place, payload is written alone.
    Numbering,
    /// Elsewhere, and the input is the other place, which passes may overwrite.
    FromOther,
}

/// The numbers of rows in the order of a sort.
pub fn reference<K: Key>(keys: &[K], order: &RadixOrder) -> Vec<u64> {
    let bits = order.bits.end - order.bits.start;
    let mask = OrderedBits::MAX.checked_shr(OrderedBits::BITS - bits).unwrap_or(0);
    let flip = if order.descending { mask } else { 0 };
    let digits =
        |row: &u64| (keys[*row as usize].ordered_bits().checked_shr(order.bits.start).unwrap_or(0) & mask) ^ flip;
    let mut rows: Vec<u64> = (0..keys.len() as u64).collect();
    rows.sort_by_key(digits);
    rows
}
