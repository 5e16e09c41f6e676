//! The pass over facts: sums by classes. `kernels/gather_classes.cuh` has the arithmetic; the loop over a relation's
//! chunks is written here for the encodings of its columns.

use warpcube_column::{ColumnLayout, ColumnReader, Constant, PLAIN_LIBRARY, Relation, decoding_library};
use warpcube_gpu::{Device, DeviceBuffer, LaunchShape, Params, Program, Stream};

use super::classes::{Classes, NO_CLASS};
use super::contract::DeviceError;
use crate::facts::KeyLayout;

/// Threads of a block.
const THREADS: u32 = 256;
/// Blocks on a multiprocessor.
const BLOCKS: u32 = 4;
/// Slots of a step: rows of a lane.
const SLOTS: usize = 16;
/// Rows of a ticket.
const TICKET_ROWS: u32 = 8_192;
/// Words of classes that lie in shared memory; more are read through the caches.
const SHARED_WORDS_MAX: usize = 8_192;

/// A pass over facts.
pub(super) struct Gather<'a> {
    /// The facts: keys of one or two words, then the measure.
    pub(super) relation: &'a Relation,
    pub(super) layout: &'a KeyLayout,
    pub(super) classes: &'a [Classes],
    /// Distance of classes of each dimension in the result.
    pub(super) strides: &'a [u64],
}

/// What a pass writes: a word of 64 bits and a byte for each place.
pub(super) struct Sums {
    pub(super) sums: DeviceBuffer,
    pub(super) filled: DeviceBuffer,
}

impl Gather<'_> {
    /// Dimensions that the pass has to look at.
    fn dimensions(&self) -> Vec<usize> {
        (0..self.classes.len()).filter(|dimension| !self.classes[*dimension].is_trivial()).collect()
    }

    /// The words that the kernel looks up, dimension by dimension.
    fn words(&self) -> Vec<u32> {
        let word = |stride: u64| move |class: &u32| if *class == NO_CLASS { NO_CLASS } else { *class * stride as u32 };
        self.dimensions()
            .into_iter()
            .flat_map(|dimension| self.classes[dimension].of_base.iter().map(word(self.strides[dimension])))
            .collect()
    }

    /// Launches the pass; `out` is zero.
    pub(super) fn launch(&self, device: &Device, stream: &mut Stream, out: &Sums) -> Result<(), DeviceError> {
        let words = self.words();
        let shared = if words.len() <= SHARED_WORDS_MAX { words.len() } else { 0 };
        let (program, constants) = self.program(shared > 0);
        let kernel = device.compile(&program)?.kernel("wc_cube_gather")?;
        let classes = uploaded(device, stream, bytemuck::cast_slice(&words), "classes of base elements")?;
        let segments = self.segments();
        let segments = uploaded(device, stream, &segments, "addresses of facts")?;
        let rows: Vec<u8> = self.relation.chunks.iter().flat_map(|rows| rows.to_le_bytes()).collect();
        let rows = uploaded(device, stream, &rows, "rows of chunks")?;
        let counter = device.buffer(size_of::<u64>(), "a ticket counter")?;
        stream.fill(&counter, 0, 0, size_of::<u64>())?;
        let chunk_rows = self.relation.chunks.iter().copied().max().unwrap_or(0);
        let tickets_a_chunk = u64::from(chunk_rows.div_ceil(TICKET_ROWS)).max(1);
        let tickets = tickets_a_chunk * self.relation.chunks.len() as u64;
        let params = Params::new().buffer(&segments).buffer(&rows).buffer(&counter).buffer(&classes);
        let params = params.buffer(&out.sums).buffer(&out.filled);
        let params = params.u64(tickets).u64(tickets_a_chunk).u64(words.len() as u64);
        let params = constants.iter().fold(params, |params, constant| match constant {
            Constant::Word(word) => params.u64(*word),
            Constant::Float(value) => params.f64(*value),
        });
        let grid = (device.info().multiprocessors * BLOCKS).min(tickets.min(1 << 20) as u32).max(1);
        let shape = LaunchShape { grid, block: THREADS, shared_bytes: (shared * size_of::<u32>()) as u32 };
        let keeps = self
            .relation
            .columns
            .iter()
            .flat_map(|column| column.segments())
            .flat_map(|segment| [Some(segment.values()), segment.validity()].into_iter().flatten());
        let params = keeps.fold(params, |params, buffer| params.keep(buffer));
        stream.launch(&kernel, shape, &params)?;
        Ok(())
    }

    /// Addresses of values and validity, column by column, chunk by chunk.
    fn segments(&self) -> Vec<u8> {
        let chunk = |chunk: usize| {
            self.relation.columns.iter().flat_map(move |column| {
                let segment = &column.segments()[chunk];
                [segment.values().address(), segment.validity().map_or(0, DeviceBuffer::address)]
            })
        };
        (0..self.relation.chunks.len()).flat_map(chunk).flat_map(u64::to_le_bytes).collect()
    }

    fn program(&self, shared: bool) -> (Program, Vec<Constant>) {
        let mut constants: Vec<Constant> = Vec::new();
        let mut fields = String::new();
        let readers: Vec<ColumnReader> = self
            .relation
            .columns
            .iter()
            .enumerate()
            .map(|(number, column)| {
                let nullable = column.segments().iter().any(|segment| segment.validity().is_some());
                ColumnReader::new(number, ColumnLayout::of(column), nullable, |c_type, constant| {
                    let name = format!("c{}", constants.len());
                    fields.push_str(&format!("    {c_type} {name};\n"));
                    constants.push(constant);
                    format!("p.{name}")
                })
            })
            .collect();
        let all = |text: &dyn Fn(&ColumnReader) -> String| readers.iter().map(text).collect::<String>();
        let Some((measure, keys)) = readers.split_last() else { unreachable!("facts have keys and a measure") };
        let key = |reader: &ColumnReader| format!("(uint64_t)({})", reader.value("d"));
        let key = match keys {
            [low] => key(low),
            _ => format!("(unsigned __int128){} << 64 | {}", key(&keys[1]), key(&keys[0])),
        };
        let key_type = if keys.len() == 1 { "uint64_t" } else { "unsigned __int128" };
        let valid = if measure.is_nullable() { format!("dn{} >> k & 1u", keys.len()) } else { "1u".into() };
        let (mut places, mut at) = (String::new(), 0);
        for dimension in self.dimensions() {
            let (shift, mask) = (self.layout.shift(dimension), self.layout.coordinate_max(dimension));
            let load = if shared { "classes" } else { "p.classes" };
            places.push_str(&format!(
                "                    {{ const uint32_t word = {load}[{at} + ((uint32_t)(key >> {shift}) & {mask}u)];\n\
                 \x20                     place = word == WC_CUBE_NONE || place == WC_CUBE_NONE\n\
                 \x20                         ? WC_CUBE_NONE\n\
                 \x20                         : place + word; }}\n"
            ));
            at += self.classes[dimension].of_base.len();
        }
        let text = format!(
            "struct GatherParams {{
    const uint64_t* segments;
    const uint32_t* chunk_rows;
    uint32_t* counter;
    const uint32_t* classes;
    uint64_t* sums;
    uint8_t* filled;
    uint64_t tickets;
    uint64_t tickets_a_chunk;
    uint64_t words;
{fields}}};
WC_KERNEL(wc_cube_gather, GatherParams, {THREADS}, {BLOCKS}) {{
    const uint32_t lane = wc_lane();
    {stage}CubeRun run;
    run.place = WC_CUBE_NONE;
    run.sum = CubeSum::none();
    for (;;) {{
        uint32_t ticket = 0;
        if (lane == 0) ticket = wc_count(p.counter);
        ticket = __shfl_sync(WC_FULL_MASK, ticket, 0);
        if (ticket >= p.tickets) break;
        const uint32_t chunk = ticket / (uint32_t)p.tickets_a_chunk;
        const uint32_t begin = ticket % (uint32_t)p.tickets_a_chunk * {TICKET_ROWS}u;
        const uint32_t rows_here = wc_load_cached(p.chunk_rows + chunk);
        if (begin >= rows_here) continue;
        const uint32_t end = rows_here - begin < {TICKET_ROWS}u ? rows_here : begin + {TICKET_ROWS}u;
        const uint64_t* const pointers = p.segments + (uint64_t)chunk * {columns};
{pointers}        for (uint32_t base = begin; base < end; base += {step}) {{
{declarations}{loads}{decoded}            for (int group = 0; group < {SLOTS} / 4; ++group) {{
                uint32_t places[4];
                int64_t values[4];
                for (int i = 0; i < 4; ++i) {{
                    const int k = 4 * group + i;
                    const {key_type} key = {key};
                    uint32_t place = base + wc_slot_row(k, lane) < end && ({valid}) ? 0u : WC_CUBE_NONE;
                    if (place == 0u) {{
{places}                    }}
                    places[i] = place;
                    values[i] = place == WC_CUBE_NONE ? 0 : (int64_t)({value});
                    (void)key;
                }}
                run.add(p.sums, p.filled, places, values);
            }}
        }}
    }}
    run.flush(p.sums, p.filled);
}}
",
            stage = if shared {
                "uint32_t* const classes = (uint32_t*)wc_shared();\n    \
                 for (uint32_t word = threadIdx.x; word < p.words; word += blockDim.x) {\n        \
                 classes[word] = p.classes[word];\n    }\n    \
                 __syncthreads();\n    "
            } else {
                ""
            },
            columns = readers.len() * 2,
            pointers = all(&ColumnReader::pointers),
            step = SLOTS * 32,
            declarations = all(&|reader| reader.declaration("d", SLOTS)),
            loads = all(&|reader| reader.load("d", "base", SLOTS)),
            decoded = all(&|reader| reader.decode("d", SLOTS, "")),
            value = measure.value("d"),
        );
        let library = [PLAIN_LIBRARY, &decoding_library(&text)].concat();
        let arithmetic = include_str!("../../kernels/gather_classes.cuh");
        (Program::new("cube classes", ["#define WC_LIMBS 1\n", &library, arithmetic, &text].concat()), constants)
    }
}

/// A buffer with these bytes; one of no bytes has a word.
pub(super) fn uploaded(
    device: &Device,
    stream: &mut Stream,
    bytes: &[u8],
    purpose: &str,
) -> Result<DeviceBuffer, DeviceError> {
    let buffer = device.buffer(bytes.len().max(size_of::<u64>()), purpose)?;
    if !bytes.is_empty() {
        stream.upload(&buffer, 0, bytes)?;
    }
    Ok(buffer)
}
