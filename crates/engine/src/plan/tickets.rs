//! How a scan is cut into launches, and each of these into tickets, which warps draw.
//!
//! A launch scans a range of chunks: segments, tickets and vectors of these are its operands. What it adds to outlives
//! it, so that a scan may be one launch or several.

use std::ops::Range;

use warpcube_column::VECTOR_ROWS;

use crate::plan::input::PipelineInput;

/// Rows of the largest ticket; offsets within a ticket are 16 bits wide.
const TICKET_ROWS_MAX: u64 = 64 << 10;
/// Rows that large tickets are multiples of: some steps of any scan, worked on in turn.
const TICKET_ROWS_STEP: u64 = 4 << 10;
/// How much smaller the small tickets are.
const SMALLER: u64 = 4;
/// Warps a multiprocessor that tickets are cut for.
const WARPS_PER_MULTIPROCESSOR: u64 = 32;

/// The tickets of a launch, chunk by chunk.
#[derive(Debug, Clone)]
pub(crate) struct Tickets {
    /// The chunks that it scans.
    pub(crate) chunks: Range<usize>,
    /// Number of tickets.
    pub(crate) count: u32,
    /// First ticket of each chunk.
    pub(crate) firsts: Vec<u32>,
    /// Rows of each chunk's tickets.
    pub(crate) rows: Vec<u32>,
    /// First vector of each chunk, and number of vectors.
    pub(crate) first_vectors: Vec<u32>,
    pub(crate) vectors: u32,
}

/// The chunks of each launch of a scan. Strings without codes are known by their chunk in the table: they are scanned
/// by one launch.
pub(crate) fn ranges(input: &PipelineInput) -> Vec<Range<usize>> {
    let chunks = input.chunk_rows.len();
    let has_places = input.columns.iter().any(|column| column.is_bytes);
    let most = match input.tuning.launch_chunks as usize {
        0 => chunks,
        _ if has_places => chunks,
        most => most,
    };
    let firsts = (0..chunks.max(1)).step_by(most.max(1));
    firsts.map(|first| first..(first + most).min(chunks)).collect()
}

impl Tickets {
    /// Large tickets keep the counter cool, and those of the last chunks are smaller, so that warps end together. Small
    /// tables have one for each warp, of `least` rows or more.
    pub(crate) fn of(input: &PipelineInput, least: u64) -> Vec<Tickets> {
        let (tuning, info) = (input.tuning, input.info);
        let (scanned, warps) = (input.rows, u64::from(info.multiprocessors) * WARPS_PER_MULTIPROCESSOR);
        let rows_min = tuning.step_rows_max();
        let wanted = scanned / (warps * tuning.tickets_per_warp);
        let step = if wanted < 4 * TICKET_ROWS_STEP { rows_min } else { rows_min.max(TICKET_ROWS_STEP) };
        let large = wanted.next_multiple_of(step).clamp(rows_min, TICKET_ROWS_MAX);
        let small = (large / SMALLER).next_multiple_of(rows_min).min(large);
        let of_warp = scanned.div_ceil(warps).next_multiple_of(least);
        let (large, small) = if of_warp < rows_min { (of_warp, of_warp) } else { (large, small) };
        let mut before = 0.0;
        let mut launch = |chunks: Range<usize>| {
            let mut tickets = Tickets {
                chunks: chunks.clone(),
                count: 0,
                firsts: Vec::with_capacity(chunks.len()),
                rows: Vec::with_capacity(chunks.len()),
                first_vectors: Vec::with_capacity(chunks.len()),
                vectors: 0,
            };
            for chunk_rows in &input.chunk_rows[chunks] {
                let of_chunk = if before < (1.0 - tuning.small_tickets) * scanned as f64 { large } else { small };
                tickets.rows.push(of_chunk as u32);
                before += f64::from(*chunk_rows);
                tickets.firsts.push(tickets.count);
                tickets.count += u64::from(*chunk_rows).div_ceil(of_chunk) as u32;
                tickets.first_vectors.push(tickets.vectors);
                tickets.vectors += chunk_rows.div_ceil(VECTOR_ROWS as u32);
            }
            tickets
        };
        ranges(input).into_iter().map(&mut launch).collect()
    }
}
