//! What each encoding needs before a batch is written, what it takes, and how it is written.

use warpcube_gpu::{DeviceBuffer, Params};

use super::codes::Codes;
use super::scratch::{Counts, Regions, Scratch};
use super::{ALP, BLOCK_WARPS, BLOCKS, BYTES, PACKED, PATCHES, Parts, RUNS, Source, Workshop, flip};
use crate::build::VECTOR_ROWS;
use crate::encoding::{Alp, Encoding, Nsf, Nsv, Packed};
use crate::error::Result;
use crate::storage::Storage;

/// Blocks of GPU-FOR a vector.
const VECTOR_BLOCKS: usize = 8;
/// Groups of packed segments a vector.
const VECTOR_GROUPS: usize = 4;
/// Bytes before the packed integers of an ALP segment.
const ALP_HEAD: usize = 16;

/// Bytes of a word of values: a reference, a patch.
fn word_bytes(storage: Storage) -> usize {
    storage.width().max(4)
}

/// A batch that is ready to be written.
pub(super) struct Prepared {
    form: Form,
    bytes: Vec<usize>,
}

enum Form {
    Plain,
    Nsf(Nsf),
    Nsv(Nsv, Counts),
    Rle(Counts),
    Blocks { differences: bool, counts: Counts },
    Packed(PackedForm),
    Codes(Codes, Box<Prepared>),
    Alp(Box<AlpForm>),
}

struct AlpForm {
    integers: Vec<Source>,
    _memory: Regions,
    packed: PackedForm,
    exceptions: Patches,
}

impl Prepared {
    /// Counts what segments will take; `flag` is raised where the encoding cannot hold a value.
    pub(super) fn new(
        workshop: &mut Workshop<'_>,
        flag: &Scratch,
        encoding: &Encoding,
        sources: &[Source],
    ) -> Result<Prepared> {
        let form = match encoding {
            Encoding::Plain => Form::Plain,
            Encoding::Nsf(nsf) => {
                sources.iter().try_for_each(|source| nsf.check(source.storage))?;
                Form::Nsf(*nsf)
            }
            Encoding::Nsv(nsv) => {
                let counts = count(workshop, (BYTES, "count_nsv"), sources, 1, |params| {
                    params.u64(nsv.reference).buffer(flag.buffer())
                })?;
                Form::Nsv(*nsv, counts)
            }
            Encoding::Rle => Form::Rle(count(workshop, (RUNS, "count_runs"), sources, 1, |params| params)?),
            Encoding::GpuFor | Encoding::GpuDfor => {
                let differences = *encoding == Encoding::GpuDfor;
                let counts = count(workshop, (BLOCKS, "count_blocks"), sources, VECTOR_BLOCKS, |params| {
                    params.u64(differences.into())
                })?;
                Form::Blocks { differences, counts }
            }
            Encoding::Packed(packed) => Form::Packed(PackedForm::new(workshop, *packed, sources)?),
            Encoding::Dictionary(dictionary) => {
                let codes = Codes::new(workshop, flag, dictionary, sources)?;
                let prepared = Prepared::new(workshop, flag, dictionary.codes(), codes.sources())?;
                Form::Codes(codes, Box::new(prepared))
            }
            Encoding::Alp(alp) => Form::Alp(Box::new(AlpForm::new(workshop, alp, sources)?)),
        };
        let bytes = (0..sources.len()).map(|position| form.bytes(&sources[position], position)).collect();
        Ok(Prepared { form, bytes })
    }

    /// Bytes of each segment.
    pub(super) fn bytes(&self) -> &[usize] {
        &self.bytes
    }

    /// Launches what writes a segment.
    pub(super) fn write(
        &self,
        workshop: &mut Workshop<'_>,
        flag: &Scratch,
        sources: &[Source],
        position: usize,
        out: &DeviceBuffer,
    ) -> Result<()> {
        let source = &sources[position];
        let (params, vectors) = (source.params(), source.vectors());
        match &self.form {
            Form::Plain => Ok(workshop.side(position).copy(out, 0, &source.values, 0, out.bytes())?),
            Form::Nsf(nsf) => {
                let kernel = workshop.kernel(BYTES, "write_nsf")?;
                let params = params.u64(nsf.bytes.into()).buffer(flag.buffer()).buffer(out);
                workshop.launch_for(position, &kernel, (VECTOR_BLOCKS * vectors, 0), &params)
            }
            Form::Nsv(nsv, starts) => {
                let kernel = workshop.kernel(BYTES, "write_nsv")?;
                let params = starts.add_to(params.u64(nsv.reference), position).buffer(out);
                workshop.launch_for(position, &kernel, (vectors, 0), &params)
            }
            Form::Rle(firsts) => {
                let kernel = workshop.kernel(RUNS, "write_runs")?;
                workshop.launch_for(position, &kernel, (vectors, 0), &firsts.add_to(params, position).buffer(out))
            }
            Form::Blocks { differences, counts } => {
                let kernel = workshop.kernel(BLOCKS, "write_blocks")?;
                let params = counts.add_to(params.u64((*differences).into()), position).buffer(out);
                workshop.launch_for(position, &kernel, (vectors, BLOCK_WARPS * 256), &params)
            }
            Form::Packed(packed) => packed.write(workshop, flag, source, position, (out, 0)),
            Form::Codes(codes, prepared) => prepared.write(workshop, flag, codes.sources(), position, out),
            Form::Alp(alp) => {
                let AlpForm { integers, packed, exceptions, .. } = alp.as_ref();
                let integers = &integers[position];
                let length = packed.end(integers, position, ALP_HEAD) - ALP_HEAD;
                let head = workshop.kernel(ALP, "alp_head")?;
                workshop.launch_for(position, &head, (1, 0), &Params::new().u64(length as u64).buffer(out))?;
                packed.write(workshop, flag, integers, position, (out, ALP_HEAD))?;
                let at = (ALP_HEAD + length).next_multiple_of(8);
                exceptions.write(workshop, params.null().u64(0), vectors, position, (out, at))
            }
        }
    }
}

impl Form {
    /// Bytes of a segment.
    fn bytes(&self, source: &Source, position: usize) -> usize {
        let vectors = source.vectors();
        match self {
            Form::Plain => vectors * VECTOR_ROWS * source.storage.width(),
            Form::Nsf(nsf) => vectors * VECTOR_ROWS * nsf.bytes as usize,
            Form::Nsv(_, counts) => 260 * vectors + 4 + counts.total(position) + 4,
            Form::Rle(counts) => {
                let (runs, width) = (counts.total(position), source.storage.width());
                ((4 * (vectors + 1)).next_multiple_of(8) + runs * width).next_multiple_of(2) + 2 * runs
            }
            Form::Blocks { differences, counts } => {
                let blocks = VECTOR_BLOCKS * vectors;
                let tiles = if *differences { blocks / 4 * word_bytes(source.storage) } else { 0 };
                16 + 4 * (blocks + 1) + 4 * counts.total(position) + tiles + 12
            }
            Form::Packed(packed) => packed.end(source, position, 0),
            Form::Codes(_, prepared) => prepared.bytes[position],
            Form::Alp(alp) => {
                let at = alp.packed.end(&alp.integers[position], position, ALP_HEAD).next_multiple_of(8);
                alp.exceptions.end(source, position, at)
            }
        }
    }
}

/// Sums of what a kernel counts.
fn count(
    workshop: &mut Workshop<'_>,
    (program, name): (Parts, &'static str),
    sources: &[Source],
    per_vector: usize,
    parameters: impl Fn(Params) -> Params,
) -> Result<Counts> {
    let (kernel, mut counts) = (workshop.kernel(program, name)?, Counts::new(workshop, sources, per_vector)?);
    for (position, source) in sources.iter().enumerate() {
        let params = counts.add_to(parameters(source.params()), position);
        workshop.launch_for(position, &kernel, (source.vectors(), 0), &params)?;
    }
    counts.sum(workshop)?;
    Ok(counts)
}

/// Packed segments: what a batch of them needs.
struct PackedForm {
    packed: Packed,
    /// Smallest and largest key of each vector, where each has a reference of its own.
    bounds: Option<Regions>,
    patches: Option<Patches>,
}

impl PackedForm {
    fn new(workshop: &mut Workshop<'_>, packed: Packed, sources: &[Source]) -> Result<PackedForm> {
        sources.iter().try_for_each(|source| packed.check(source.storage))?;
        let mut form = PackedForm { packed, bounds: None, patches: None };
        if packed.reference.is_none() {
            let kernel = workshop.kernel(PACKED, "vector_bounds")?;
            let bounds = Regions::new(workshop, sources, 2 * size_of::<u64>())?;
            for (position, source) in sources.iter().enumerate() {
                workshop.launch_for(
                    position,
                    &kernel,
                    (source.vectors(), 0),
                    &bounds.add_to(source.params(), position),
                )?;
            }
            form.bounds = Some(bounds);
        }
        if packed.patches {
            let kernel = workshop.kernel(PATCHES, "mark_wide")?;
            let mut patches = Patches::new(workshop, sources)?;
            for (position, source) in sources.iter().enumerate() {
                let params = form.referred(source, position).u64(packed.width.into());
                workshop.launch_for(position, &kernel, (source.vectors(), 0), &patches.add_to(params, position))?;
            }
            patches.counts.sum(workshop)?;
            form.patches = Some(patches);
        }
        Ok(form)
    }

    /// Parameters of a segment, followed by what offsets are taken from.
    fn referred(&self, source: &Source, position: usize) -> Params {
        match (&self.bounds, self.packed.reference) {
            (Some(bounds), _) => bounds.add_to(source.params(), position).u64(0),
            (None, reference) => source.params().null().u64(reference.unwrap_or_default() ^ flip(source.storage)),
        }
    }

    /// Where the patches of a segment begin that itself begins at a byte.
    fn body_end(&self, source: &Source, at: usize) -> usize {
        let references = if self.bounds.is_some() { source.vectors() * word_bytes(source.storage) } else { 0 };
        at + source.vectors() * VECTOR_ROWS / 8 * self.packed.width as usize + references
    }

    /// Where a segment ends that begins at a byte.
    fn end(&self, source: &Source, position: usize, at: usize) -> usize {
        let end = self.body_end(source, at);
        self.patches.as_ref().map_or(end, |patches| patches.end(source, position, end))
    }

    fn write(
        &self,
        workshop: &mut Workshop<'_>,
        flag: &Scratch,
        source: &Source,
        position: usize,
        (out, at): (&DeviceBuffer, usize),
    ) -> Result<()> {
        let kernel = workshop.kernel(PACKED, "pack_groups")?;
        let params = self.referred(source, position).u64(self.packed.width.into());
        let params = if self.patches.is_some() { params.null() } else { params.buffer(flag.buffer()) };
        workshop.launch_for(position, &kernel, (VECTOR_GROUPS * source.vectors(), 0), &params.buffer_at(out, at))?;
        let Some(patches) = &self.patches else { return Ok(()) };
        let at = self.body_end(source, at);
        patches.write(workshop, self.referred(source, position), source.vectors(), position, (out, at))
    }
}

/// Rows that are patches, and how many a group has.
struct Patches {
    marks: Regions,
    counts: Counts,
}

impl Patches {
    fn new(workshop: &Workshop<'_>, sources: &[Source]) -> Result<Patches> {
        let marks = Regions::new(workshop, sources, VECTOR_ROWS / 8)?;
        Ok(Patches { marks, counts: Counts::new(workshop, sources, VECTOR_GROUPS)? })
    }

    /// Adds pointers to a segment's marks and counts.
    fn add_to(&self, params: Params, position: usize) -> Params {
        self.counts.add_to(self.marks.add_to(params, position), position)
    }

    /// Where a section ends that begins at a byte.
    fn end(&self, source: &Source, position: usize, at: usize) -> usize {
        let patches = self.counts.total(position);
        let rows_end = at + 4 * (VECTOR_GROUPS * source.vectors() + 1) + 2 * patches;
        rows_end.next_multiple_of(8) + patches * word_bytes(source.storage)
    }

    /// Launches what writes the section at a byte of a segment.
    fn write(
        &self,
        workshop: &mut Workshop<'_>,
        params: Params,
        vectors: usize,
        position: usize,
        (out, at): (&DeviceBuffer, usize),
    ) -> Result<()> {
        let kernel = workshop.kernel(PATCHES, "write_patches")?;
        let params = self.add_to(params, position).u64(at as u64).buffer(out);
        workshop.launch_for(position, &kernel, (VECTOR_GROUPS * vectors, 0), &params)
    }
}

impl AlpForm {
    /// Integers and exceptions of floats.
    fn new(workshop: &mut Workshop<'_>, alp: &Alp, sources: &[Source]) -> Result<AlpForm> {
        sources.iter().try_for_each(|source| Alp::check(source.storage))?;
        let kernel = workshop.kernel(ALP, "alp_integers")?;
        let memory = Regions::new(workshop, sources, VECTOR_ROWS * size_of::<i64>())?;
        let mut exceptions = Patches::new(workshop, sources)?;
        let scales = alp.scales()?;
        let mut integers = Vec::with_capacity(sources.len());
        for (position, source) in sources.iter().enumerate() {
            let values = memory.part(position, source.vectors() * VECTOR_ROWS * size_of::<i64>())?;
            let params = scales.iter().fold(source.params(), |params, scale| params.f64(*scale)).buffer(&values);
            let params = exceptions.add_to(params, position);
            workshop.launch_for(position, &kernel, (VECTOR_GROUPS * source.vectors(), 0), &params)?;
            integers.push(source.with(values, Storage::I64));
        }
        exceptions.counts.sum(workshop)?;
        let packed = PackedForm::new(workshop, alp.integers, &integers)?;
        Ok(AlpForm { integers, _memory: memory, packed, exceptions })
    }
}
