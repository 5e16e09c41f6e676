//! What each encoding needs before a batch is written, what it takes, and how it is written.

use warpcube_gpu::{DeviceBuffer, Params};

use super::codes::Codes;
use super::delta::DeltaForm;
use super::scratch::{Counts, Regions, Scratch};
use super::{ALP, BASICS, BLOCK_WARPS, BLOCKS, BYTES, PACKED, PATCHES, Parts, RUNS, Source, Workshop, flip};
use crate::build::VECTOR_ROWS;
use crate::encoding::{Alp, Encoding, Nsf, Nsv, Packed};
use crate::error::Result;
use crate::storage::Storage;

/// Blocks of GPU-FOR a vector.
const VECTOR_BLOCKS: usize = 8;
/// Groups of packed segments a vector.
pub(super) const VECTOR_GROUPS: usize = 4;
/// Bytes before the packed integers of an ALP segment.
const ALP_HEAD: usize = 16;

/// Bytes of a word of values: a reference, a patch.
pub(super) fn word_bytes(storage: Storage) -> usize {
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
    Delta(Box<DeltaForm>),
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
            Encoding::Delta(delta) => Form::Delta(Box::new(DeltaForm::new(workshop, *delta, sources)?)),
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

    /// Launches what writes the segments.
    pub(super) fn write(
        &self,
        workshop: &mut Workshop<'_>,
        flag: &Scratch,
        sources: &[Source],
        outs: &[DeviceBuffer],
    ) -> Result<()> {
        let vectors = |position: usize| sources[position].vectors();
        let params = |position: usize| sources[position].params();
        let all = 0..sources.len();
        match &self.form {
            Form::Plain => {
                let mut copies = sources.iter().zip(outs);
                copies.try_for_each(|(source, out)| Ok(workshop.stream.copy(out, 0, &source.values, 0, out.bytes())?))
            }
            Form::Nsf(nsf) => {
                let kernel = workshop.kernel(BYTES, "write_nsf")?;
                let segments = all.map(|position| {
                    let params = params(position).u64(nsf.bytes.into()).buffer(flag.buffer());
                    (VECTOR_BLOCKS * vectors(position), params.buffer(&outs[position]))
                });
                workshop.launch_all(&kernel, segments, 0)
            }
            Form::Nsv(nsv, starts) => {
                let kernel = workshop.kernel(BYTES, "write_nsv")?;
                let segments = all.map(|position| {
                    let params = starts.add_to(params(position).u64(nsv.reference), position);
                    (vectors(position), params.buffer(&outs[position]))
                });
                workshop.launch_all(&kernel, segments, 0)
            }
            Form::Rle(firsts) => {
                let kernel = workshop.kernel(RUNS, "write_runs")?;
                let segments = all.map(|position| {
                    (vectors(position), firsts.add_to(params(position), position).buffer(&outs[position]))
                });
                workshop.launch_all(&kernel, segments, 0)
            }
            Form::Blocks { differences, counts } => {
                let kernel = workshop.kernel(BLOCKS, "write_blocks")?;
                let segments = all.map(|position| {
                    let params = counts.add_to(params(position).u64((*differences).into()), position);
                    (vectors(position), params.buffer(&outs[position]))
                });
                workshop.launch_all(&kernel, segments, BLOCK_WARPS * 256)
            }
            Form::Packed(packed) => packed.write(workshop, flag, sources, (outs, 0)),
            Form::Delta(delta) => delta.write(workshop, flag, outs),
            Form::Codes(codes, prepared) => prepared.write(workshop, flag, codes.sources(), outs),
            Form::Alp(alp) => {
                let AlpForm { integers, packed, exceptions, .. } = alp.as_ref();
                let length = |position: usize| packed.end(&integers[position], position, ALP_HEAD) - ALP_HEAD;
                let head = workshop.kernel(ALP, "alp_head")?;
                let heads = all.map(|position| (1, Params::new().u64(length(position) as u64).buffer(&outs[position])));
                workshop.launch_all(&head, heads, 0)?;
                packed.write(workshop, flag, integers, (outs, ALP_HEAD))?;
                exceptions.write(workshop, sources, outs, |position| {
                    (params(position).null().u64(0), (ALP_HEAD + length(position)).next_multiple_of(8))
                })
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
            Form::Delta(delta) => delta.bytes(source),
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
    let segments = sources
        .iter()
        .enumerate()
        .map(|(position, source)| (source.vectors(), counts.add_to(parameters(source.params()), position)));
    workshop.launch_all(&kernel, segments, 0)?;
    counts.sum(workshop)?;
    Ok(counts)
}

/// Packed segments: what a batch of them needs.
pub(super) struct PackedForm {
    packed: Packed,
    /// Smallest and largest key of each vector, where each has a reference of its own.
    bounds: Option<Regions>,
    patches: Option<Patches>,
}

impl PackedForm {
    pub(super) fn new(workshop: &mut Workshop<'_>, packed: Packed, sources: &[Source]) -> Result<PackedForm> {
        sources.iter().try_for_each(|source| packed.check(source.storage))?;
        let mut form = PackedForm { packed, bounds: None, patches: None };
        if packed.reference.is_none() {
            form.bounds = Some(Regions::new(workshop, sources, 2 * size_of::<u64>())?);
        }
        // What marks patches finds bounds on the way.
        if let Some(bounds) = form.bounds.as_ref().filter(|_| !packed.patches) {
            let kernel = workshop.kernel(BASICS, "vector_bounds")?;
            let segments = sources.iter().enumerate();
            let segments =
                segments.map(|(position, source)| (source.vectors(), bounds.add_to(source.params(), position)));
            workshop.launch_all(&kernel, segments, 0)?;
        }
        if packed.patches {
            let kernel = workshop.kernel(PATCHES, "mark_wide")?;
            let mut patches = Patches::new(workshop, sources)?;
            let segments = sources.iter().enumerate().map(|(position, source)| {
                let params = form.referred(source, position).u64(packed.width.into());
                (source.vectors(), patches.add_to(params, position))
            });
            workshop.launch_all(&kernel, segments, 0)?;
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

    /// Launches what writes the segments, each from a byte of its buffer on.
    pub(super) fn write(
        &self,
        workshop: &mut Workshop<'_>,
        flag: &Scratch,
        sources: &[Source],
        (outs, at): (&[DeviceBuffer], usize),
    ) -> Result<()> {
        let kernel = workshop.kernel(PACKED, "pack_groups")?;
        let segments = sources.iter().enumerate().map(|(position, source)| {
            let params = self.referred(source, position).u64(self.packed.width.into());
            let params = if self.patches.is_some() { params.null() } else { params.buffer(flag.buffer()) };
            (VECTOR_GROUPS * source.vectors(), params.buffer_at(&outs[position], at))
        });
        workshop.launch_all(&kernel, segments, 0)?;
        let Some(patches) = &self.patches else { return Ok(()) };
        patches.write(workshop, sources, outs, |position| {
            (self.referred(&sources[position], position), self.body_end(&sources[position], at))
        })
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

    /// Launches what writes the sections; `of` tells the parameters of a segment and the byte at which its section is.
    fn write(
        &self,
        workshop: &mut Workshop<'_>,
        sources: &[Source],
        outs: &[DeviceBuffer],
        of: impl Fn(usize) -> (Params, usize),
    ) -> Result<()> {
        let kernel = workshop.kernel(PATCHES, "write_patches")?;
        let segments = sources.iter().zip(outs).enumerate().map(|(position, (source, out))| {
            let (params, at) = of(position);
            (VECTOR_GROUPS * source.vectors(), self.add_to(params, position).u64(at as u64).buffer(out))
        });
        workshop.launch_all(&kernel, segments, 0)
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
        let place = |(position, source): (usize, &Source)| {
            let values = memory.part(position, source.vectors() * VECTOR_ROWS * size_of::<i64>())?;
            Ok(source.with(values, Storage::I64))
        };
        let integers: Vec<Source> = sources.iter().enumerate().map(place).collect::<Result<_>>()?;
        let segments = sources.iter().zip(&integers).enumerate().map(|(position, (source, integers))| {
            let params = scales.iter().fold(source.params(), |params, scale| params.f64(*scale));
            let params = exceptions.add_to(params.buffer(&integers.values), position);
            (VECTOR_GROUPS * source.vectors(), params)
        });
        workshop.launch_all(&kernel, segments, 0)?;
        exceptions.counts.sum(workshop)?;
        let packed = PackedForm::new(workshop, alp.integers, &integers)?;
        Ok(AlpForm { integers, _memory: memory, packed, exceptions })
    }
}
