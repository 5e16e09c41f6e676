//! How fast a column's segments are decoded to memory, all others' work left out.

use std::time::Instant;

use serde_json::json;
use warpcube_column::{CHUNK_ROWS, Constant, PLAIN_LIBRARY, ResidentColumn, Storage, View, decoding_library};
use warpcube_gpu::{Device, GpuError, LaunchShape, Params, Program, Work};

use crate::report::Case;
use crate::stats::{Sample, repeat};
use crate::suite::Failure;
use crate::timing::timed;

/// Threads of a block.
const BLOCK: u32 = 256;
/// Blocks a multiprocessor, which registers have to allow.
const BLOCKS: u32 = 4;
/// Values of a lane's step.
const SLOTS: usize = 16;
/// Rows of a warp's step.
const STEP_ROWS: usize = 32 * SLOTS;
/// Steps of a chunk.
const CHUNK_STEPS: usize = CHUNK_ROWS / STEP_ROWS;

/// The kernel, around the column's view. Inputs: addresses of segments and their rows, `chunks` of each. Output: values
/// in chunks of [`CHUNK_ROWS`] rows. Mapping: a warp a step; blocks that go on to further steps are slower by 7 % on an
/// H200 where most of the bytes are written. Bytes: segments once, values once.
fn text(view: &View, storage: Storage, stored: Storage, lookup: bool) -> String {
    let (c_type, code, name) = (storage.c_name(), stored.c_name(), &view.c_type);
    let words = view.constants.iter().enumerate();
    let members: String = words.clone().map(|(at, constant)| format!(" {} constant{at};", constant.c_type())).collect();
    let arguments: String = words.map(|(at, _)| format!(", p.constant{at}")).collect();
    let looked_up = if lookup {
        format!(
            "    {c_type} found[{SLOTS}];
#pragma unroll
    for (int k = 0; k < {SLOTS}; ++k) found[k] = wc_load_cached(p.lookup + own[k]);
"
        )
    } else {
        format!("    {c_type} (&found)[{SLOTS}] = own;\n")
    };
    format!(
        "struct DecodeParams {{
    const uint64_t* segments; const uint64_t* rows; uint64_t chunks; {c_type}* values;
    const {c_type}* lookup;{members}
}};

WC_KERNEL(decode, DecodeParams, {BLOCK}, {BLOCKS}) {{
    const uint32_t lane = wc_lane(), at = blockIdx.x * (blockDim.x / 32) + wc_warp(), chunk = at / {CHUNK_STEPS};
    if (chunk >= p.chunks) return;
    const uint32_t base = at % {CHUNK_STEPS} * {STEP_ROWS}, rows = (uint32_t)wc_load_cached(p.rows + chunk);
    // A chunk may have no row for its last steps.
    if (base >= rows) return;
    const {name} view((const char*)wc_load_cached(p.segments + chunk), rows{arguments});
    typename {name}::template Step<{SLOTS}> step;
    view.fetch(step, base, lane);
    {code} own[{SLOTS}];
    view.decode(own, step, base, lane);
{looked_up}    wc_store_slots<{SLOTS}>(p.values + (uint64_t)chunk * {CHUNK_ROWS} + base, found, lane);
}}\n"
    )
}

/// The same stores, of numbers that need no load.
const FILL: &str = "struct FillParams { uint64_t steps; uint32_t* values; };

WC_KERNEL(fill, FillParams, 256, 4) {
    const uint32_t lane = wc_lane(), warps = gridDim.x * (blockDim.x / 32);
    for (uint64_t at = blockIdx.x * (blockDim.x / 32) + wc_warp(); at < p.steps; at += warps) {
        uint32_t own[16];
#pragma unroll
        for (int k = 0; k < 16; ++k) own[k] = (uint32_t)at + k;
        wc_store_slots<16>(p.values + at * 512, own, lane);
    }
}
";

/// The limits that decoding is compared with: `fill` writes as many numbers of 4 bytes as rows that are decoded and
/// reads nothing, `copy` is the driver's copy of as many.
pub(super) fn ceilings(device: &Device, rows: u64, runs: u32) -> Result<[Case; 2], GpuError> {
    let of = |name: &str, time: Sample, bytes: u64| {
        let speed = bytes as f64 / time.ms / 1e6;
        Case::new(name, json!({"device_ms": time.ms, "spread": time.spread, "gb_per_s": speed}))
    };
    let steps = rows / STEP_ROWS as u64;
    let bytes = steps * STEP_ROWS as u64 * 4;
    Ok([of("fill", fill(device, steps, runs)?, bytes), of("copy", copy(device, bytes, runs)?, 2 * bytes)])
}

/// Times of `fill`.
fn fill(device: &Device, steps: u64, runs: u32) -> Result<Sample, GpuError> {
    let program = Program::new("fill", format!("{PLAIN_LIBRARY}{FILL}"));
    let kernel = device.compile(&program)?.kernel("fill")?;
    let values = device.buffer(steps as usize * STEP_ROWS * 4, "numbers")?;
    let shape = LaunchShape { grid: device.info().multiprocessors * BLOCKS, block: BLOCK, shared_bytes: 0 };
    let params = Params::new().u64(steps).buffer(&values);
    let launch = |work: &mut Work| work.launch(&kernel, shape, &params, false);
    timed(device, &mut device.stream()?, runs, &[&values], || Ok(()), launch)
}

/// Times of a copy, by the host's clock over some that follow each other.
fn copy(device: &Device, bytes: u64, runs: u32) -> Result<Sample, GpuError> {
    const COPIES: u32 = 20;
    let mut stream = device.stream()?;
    let (from, to) = (device.buffer(bytes as usize, "numbers")?, device.buffer(bytes as usize, "numbers")?);
    repeat(runs, || {
        stream.synchronize()?;
        let start = Instant::now();
        for _ in 0..COPIES {
            stream.copy(&to, 0, &from, 0, bytes as usize)?;
        }
        stream.synchronize()?;
        Ok(start.elapsed().as_secs_f64() * 1e3 / f64::from(COPIES))
    })
}

/// Decodes a column again and again: times, and gigabytes read and written a second.
pub(super) fn decode(
    device: &Device,
    case: &str,
    column: &ResidentColumn,
    runs: u32,
    expected: i64,
) -> Result<Case, Failure> {
    let (storage, segments) = (column.storage(), column.segments());
    let stored = column.encoding().stored_as(storage);
    let view = column.encoding().view(stored.c_name());
    let text = text(&view, storage, stored, column.lookup().is_some());
    let program = Program::new("decode", format!("{PLAIN_LIBRARY}{}{text}", decoding_library(&text).concat()));
    let kernel = device.compile(&program)?.kernel("decode")?;
    let mut stream = device.stream()?;
    let addresses: Vec<u64> = segments.iter().map(|segment| segment.values().pointer().word()).collect();
    let rows: Vec<u64> = segments.iter().map(|segment| segment.rows().into()).collect();
    let tables = [addresses, rows].map(|table| table.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
    let values = device.buffer(segments.len() * CHUNK_ROWS * storage.width(), "decoded values")?;
    let buffers = [device.buffer(tables[0].len(), "addresses")?, device.buffer(tables[1].len(), "rows")?];
    for (buffer, table) in buffers.iter().zip(&tables) {
        stream.upload(buffer, 0, table)?;
    }
    let params = Params::new().buffer(&buffers[0]).buffer(&buffers[1]).u64(segments.len() as u64);
    let params = params.buffer(&values);
    let params = match column.lookup() {
        Some(lookup) => params.buffer(lookup),
        None => params.null(),
    };
    let params = view.constants.iter().fold(params, |params, constant| match constant {
        Constant::Word(value) => params.u64(*value),
        Constant::Float(value) => params.f64(*value),
    });
    let shape =
        LaunchShape { grid: (segments.len() * CHUNK_STEPS) as u32 / (BLOCK / 32), block: BLOCK, shared_bytes: 0 };
    let used: Vec<_> = buffers.iter().chain([&values]).chain(column.lookup()).collect();
    let launch = |work: &mut Work| work.launch(&kernel, shape, &params, false);
    let time = timed(device, &mut stream, runs, &used, || Ok(()), launch)?;
    let count = column.facts().statistics.rows as usize;
    let read: usize = segments.iter().map(|segment| segment.values().bytes()).sum();
    let speed = (read + count * storage.width()) as f64 / time.ms / 1e6;
    let has_nulls = column.facts().statistics.nulls > 0;
    let mut decoded = vec![0u8; values.bytes()];
    stream.download(&values, 0, &mut decoded)?;
    if !has_nulls {
        let rows: Vec<usize> = segments.iter().map(|segment| segment.rows() as usize).collect();
        let found = sum(&decoded, storage, &rows);
        if found != expected {
            return Err(format!("expected a sum of {expected}, found {found}").into());
        }
    }
    let figures = json!({"device_ms": time.ms, "spread": time.spread, "gb_per_s": speed});
    let case = Case::new(case, figures);
    Ok(if has_nulls { case } else { case.verified(true) })
}

/// The sum of decoded values, of doubles that of their hundredths.
fn sum(bytes: &[u8], storage: Storage, rows: &[usize]) -> i64 {
    let width = storage.width();
    let value = |bytes: &[u8]| match *bytes {
        [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e, f, g, h] => (f64::from_le_bytes([a, b, c, d, e, f, g, h]) * 100.0).round() as i64,
        _ => 0,
    };
    let chunk = |(chunk, rows): (&[u8], &usize)| chunk[..rows * width].chunks_exact(width).map(value).sum::<i64>();
    let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
    std::thread::scope(|scope| {
        let chunks = || bytes.chunks(CHUNK_ROWS * width).zip(rows);
        let part = |thread: usize| scope.spawn(move || chunks().skip(thread).step_by(threads).map(chunk).sum::<i64>());
        let parts: Vec<_> = (0..threads).map(part).collect();
        parts.into_iter().map(|part| part.join().expect("no panic in a sum")).sum()
    })
}
