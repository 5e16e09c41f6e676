//! Strings of single rows of a column that is bytes, to the host.

use std::sync::LazyLock;

use arrow::array::StringArray;
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use warpcube_gpu::{Device, LaunchShape, Params, Program, Stream};

use super::kernels::{PLAIN_LIBRARY, decoding_library};
use super::segment::ResidentColumn;
use crate::error::{ColumnError, Result};
use crate::units::CHUNK_ROWS;

/// Purpose: gathers the strings of rows.
/// Inputs: addresses u64 and rows u32 `[chunks]` of segments; places u64 `[count]`, chunk * 2^20 + row. `text_sources`
/// writes the address u64 and the length u32 of each string, one thread a string; the host adds lengths up.
/// `text_copies` copies strings to their targets, one warp a string.
/// Bytes: 20 a string, then each string's bytes twice. Valid for any number of strings.
const SOURCE: &str = r"
struct TextSources {
    const uint64_t* segments;
    const uint32_t* chunk_rows;
    const uint64_t* places;
    uint64_t* sources;
    uint32_t* lengths;
    uint64_t count;
};

WC_KERNEL(text_sources, TextSources, 256, 1) {
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < p.count; i += step) {
        const uint32_t chunk = (uint32_t)(p.places[i] >> 20), row = (uint32_t)p.places[i] & 0xfffffu;
        const WcTexts texts((const char*)p.segments[chunk], p.chunk_rows[chunk]);
        const WcText text = texts.get(row);
        p.sources[i] = (uint64_t)text.bytes;
        p.lengths[i] = text.length;
    }
}

struct TextCopies {
    const uint64_t* sources;
    const uint32_t* lengths;
    const uint64_t* targets;
    char* text;
    uint64_t first;
    uint64_t end;
};

WC_KERNEL(text_copies, TextCopies, 256, 1) {
    const uint64_t step = (uint64_t)gridDim.x * (blockDim.x / 32);
    for (uint64_t i = p.first + (uint64_t)blockIdx.x * (blockDim.x / 32) + wc_warp(); i < p.end; i += step) {
        const char* const source = (const char*)p.sources[i];
        char* const target = p.text + (p.targets[i] - p.targets[p.first]);
        for (uint32_t at = wc_lane(); at < p.lengths[i]; at += 32) target[at] = source[at];
    }
}
";

const BLOCK: u32 = 256;
/// Bytes of strings that are copied at a time, unless one is longer.
const BATCH_BYTES: u64 = 16 << 20;

const _: () = assert!(CHUNK_ROWS == 1 << 20, "places have 20 bits for the row");

/// The program of the kernels.
pub fn program_of_texts() -> Program {
    static PROGRAM: LazyLock<Program> = LazyLock::new(|| {
        Program::new("texts", format!("{PLAIN_LIBRARY}{}{SOURCE}", decoding_library(SOURCE).concat()))
    });
    PROGRAM.clone()
}

impl ResidentColumn {
    /// The strings of rows of a column that is bytes. A place is the chunk times [`CHUNK_ROWS`] and the row in it;
    /// `None` gives NULL.
    ///
    /// # Errors
    /// [`ColumnError::Unsupported`] if the strings take 2 GiB or more; errors of the device.
    pub fn strings_at(&self, device: &Device, stream: &mut Stream, places: &[Option<u64>]) -> Result<StringArray> {
        let valid: Vec<u64> = places.iter().flatten().copied().collect();
        let mut text = Vec::new();
        let mut lengths = vec![0u32; valid.len()];
        if !valid.is_empty() {
            self.gather(device, stream, &valid, &mut lengths, &mut text)?;
        }
        let (mut ends, mut next) = (vec![0i32], lengths.into_iter());
        for place in places {
            let length = if place.is_some() { next.next().unwrap_or(0) } else { 0 };
            // `gather` refuses strings that 31 bits cannot count.
            ends.push(ends[ends.len() - 1] + length as i32);
        }
        let nulls = NullBuffer::from_iter(places.iter().map(Option::is_some));
        let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
        StringArray::try_new(offsets, Buffer::from_vec(text), Some(nulls))
            .map_err(|error| ColumnError::source(format!("column '{}': {error}", self.name())))
    }

    fn gather(
        &self,
        device: &Device,
        stream: &mut Stream,
        places: &[u64],
        lengths: &mut [u32],
        text: &mut Vec<u8>,
    ) -> Result<()> {
        let module = device.compile(&program_of_texts())?;
        let (sources_of, copies) = (module.kernel("text_sources")?, module.kernel("text_copies")?);
        let count = places.len() as u64;
        let segments: Vec<u64> = self.segments().iter().map(|segment| segment.values().pointer().word()).collect();
        let chunk_rows: Vec<u32> = self.segments().iter().map(|segment| segment.rows()).collect();
        let mut uploaded = |bytes: &[u8]| -> Result<_> {
            let buffer = device.buffer(bytes.len(), "places of strings")?;
            stream.upload(&buffer, 0, bytes)?;
            Ok(buffer)
        };
        let segments = uploaded(bytemuck::cast_slice(&segments))?;
        let chunk_rows = uploaded(bytemuck::cast_slice(&chunk_rows))?;
        let places = uploaded(bytemuck::cast_slice(places))?;
        let sources = device.buffer(8 * lengths.len(), "addresses of strings")?;
        let sizes = device.buffer(4 * lengths.len(), "lengths of strings")?;
        let shape = |threads: u64| {
            let most = u64::from(device.info().multiprocessors * 8);
            LaunchShape { grid: threads.div_ceil(BLOCK.into()).clamp(1, most) as u32, block: BLOCK, shared_bytes: 0 }
        };
        let params = Params::new().buffer(&segments).buffer(&chunk_rows).buffer(&places);
        let params = params.buffer(&sources).buffer(&sizes).u64(count);
        // The kernel reads the segments by address.
        let params = self.segments().iter().fold(params, |params, segment| params.keep(segment.values()));
        stream.launch(&sources_of, shape(count), &params)?;
        stream.download(&sizes, 0, bytemuck::cast_slice_mut(lengths))?;
        let mut targets = Vec::with_capacity(lengths.len() + 1);
        targets.push(0u64);
        lengths.iter().for_each(|length| targets.push(targets[targets.len() - 1] + u64::from(*length)));
        if targets[lengths.len()] > i32::MAX as u64 {
            return Err(ColumnError::unsupported(self.name(), "the strings of a result take 2 GiB or more"));
        }
        let target_of = device.buffer(8 * targets.len(), "targets of strings")?;
        stream.upload(&target_of, 0, bytemuck::cast_slice(&targets))?;
        text.resize(targets[lengths.len()] as usize, 0);
        let mut first = 0;
        while first < lengths.len() {
            let within = targets[first + 1..].partition_point(|end| end - targets[first] <= BATCH_BYTES);
            let end = first + within.max(1);
            let range = targets[first] as usize..targets[end] as usize;
            let batch = device.buffer(range.len().max(1), "strings of a result")?;
            let params = Params::new().buffer(&sources).buffer(&sizes).buffer(&target_of).buffer(&batch);
            let params = params.u64(first as u64).u64(end as u64);
            let params = self.segments().iter().fold(params, |params, segment| params.keep(segment.values()));
            stream.launch(&copies, shape(32 * (end - first) as u64), &params)?;
            stream.download(&batch, 0, &mut text[range])?;
            first = end;
        }
        Ok(())
    }
}
