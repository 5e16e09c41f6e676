//! Each encoding on the device: the passes before a batch is written, its bytes, and the kernels that write it.

use warpcube_gpu::{DeviceBuffer, Params};

use super::codes::codes_of;
use super::context::{BLOCK_WARPS, KernelContext, Source};
use super::delta::DeltaForm;
use super::packed::{PackedForm, Patches, VECTOR_GROUPS};
use super::programs::{ALP, BLOCKS, BYTES, Parts, RUNS};
use super::scratch::{Counts, Derived, Scratch};
use crate::error::Result;
use crate::format::{Alp, Encoding, Nsf, Nsv};
use crate::units::{Storage, VECTOR_ROWS};

/// Blocks of GPU-FOR a vector.
const VECTOR_BLOCKS: usize = 8;
/// Bytes before the packed integers of an ALP segment.
const ALP_HEAD: usize = 16;

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
    Codes(Derived, Box<Prepared>),
    Alp(Box<AlpForm>),
}

struct AlpForm {
    integers: Derived,
    packed: PackedForm,
    exceptions: Patches,
}

impl Prepared {
    /// Counts the bytes of segments; kernels raise `flag` if the encoding cannot hold a value.
    pub(super) fn new(
        context: &mut KernelContext<'_>,
        flag: &Scratch,
        encoding: &Encoding,
        sources: &[Source],
    ) -> Result<Prepared> {
        sources.iter().try_for_each(|source| encoding.codec().check(source.storage))?;
        let form = match encoding {
            Encoding::Plain => Form::Plain,
            Encoding::Nsf(nsf) => Form::Nsf(*nsf),
            Encoding::Nsv(nsv) => {
                let counts = count(context, (BYTES, "count_nsv"), sources, 1, |params| {
                    params.u64(nsv.reference).buffer(flag.buffer())
                })?;
                Form::Nsv(*nsv, counts)
            }
            Encoding::Rle => Form::Rle(count(context, (RUNS, "count_runs"), sources, 1, |params| params)?),
            Encoding::GpuFor | Encoding::GpuDfor => {
                let differences = *encoding == Encoding::GpuDfor;
                let counts = count(context, (BLOCKS, "count_blocks"), sources, VECTOR_BLOCKS, |params| {
                    params.u64(differences.into())
                })?;
                Form::Blocks { differences, counts }
            }
            Encoding::Packed(packed) => Form::Packed(PackedForm::new(context, *packed, sources)?),
            Encoding::Delta(delta) => Form::Delta(Box::new(DeltaForm::new(context, *delta, sources)?)),
            Encoding::Bytes(bytes) => return Err(bytes.not_for_values().into()),
            Encoding::Dictionary(dictionary) => {
                let codes = codes_of(context, flag, dictionary, sources)?;
                let prepared = Prepared::new(context, flag, dictionary.codes(), &codes.sources)?;
                Form::Codes(codes, Box::new(prepared))
            }
            Encoding::Alp(alp) => Form::Alp(Box::new(AlpForm::new(context, alp, sources)?)),
        };
        let bytes = (0..sources.len()).map(|position| form.bytes(&sources[position], position)).collect();
        Ok(Prepared { form, bytes })
    }

    /// Bytes of each segment.
    pub(super) fn bytes(&self) -> &[usize] {
        &self.bytes
    }

    /// Launches the kernels that write the segments.
    pub(super) fn write(
        &self,
        context: &mut KernelContext<'_>,
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
                copies.try_for_each(|(source, out)| Ok(context.stream.copy(out, 0, &source.values, 0, out.bytes())?))
            }
            Form::Nsf(nsf) => {
                let segments = all.map(|position| {
                    let params = params(position).u64(nsf.bytes.into()).buffer(flag.buffer());
                    (VECTOR_BLOCKS * vectors(position), params.buffer(&outs[position]))
                });
                context.launch_all((BYTES, "write_nsf"), segments, 0)
            }
            Form::Nsv(nsv, starts) => {
                let segments = all.map(|position| {
                    let params = starts.add_to(params(position).u64(nsv.reference), position);
                    (vectors(position), params.buffer(&outs[position]))
                });
                context.launch_all((BYTES, "write_nsv"), segments, 0)
            }
            Form::Rle(firsts) => {
                let segments = all.map(|position| {
                    (vectors(position), firsts.add_to(params(position), position).buffer(&outs[position]))
                });
                context.launch_all((RUNS, "write_runs"), segments, 0)
            }
            Form::Blocks { differences, counts } => {
                let segments = all.map(|position| {
                    let params = counts.add_to(params(position).u64((*differences).into()), position);
                    (vectors(position), params.buffer(&outs[position]))
                });
                context.launch_all((BLOCKS, "write_blocks"), segments, BLOCK_WARPS * 256)
            }
            Form::Packed(packed) => packed.write(context, flag, sources, (outs, 0)),
            Form::Delta(delta) => delta.write(context, flag, outs),
            Form::Codes(codes, prepared) => prepared.write(context, flag, &codes.sources, outs),
            Form::Alp(alp) => alp.write(context, flag, sources, outs),
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
                let tiles = if *differences { blocks / 4 * source.storage.word_bytes() } else { 0 };
                16 + 4 * (blocks + 1) + 4 * counts.total(position) + tiles + 12
            }
            Form::Packed(packed) => packed.end(source, position, 0),
            Form::Delta(delta) => delta.bytes(source),
            Form::Codes(_, prepared) => prepared.bytes[position],
            Form::Alp(alp) => alp.exceptions.end(source, position, alp.exceptions_at(position)),
        }
    }
}

/// Launches a kernel that counts, and sums the counts.
fn count(
    context: &mut KernelContext<'_>,
    kernel: (Parts, &'static str),
    sources: &[Source],
    per_vector: usize,
    parameters: impl Fn(Params) -> Params,
) -> Result<Counts> {
    let mut counts = Counts::new(context, sources, per_vector)?;
    let segments = sources
        .iter()
        .enumerate()
        .map(|(position, source)| (source.vectors(), counts.add_to(parameters(source.params()), position)));
    context.launch_all(kernel, segments, 0)?;
    counts.sum(context)?;
    Ok(counts)
}

impl AlpForm {
    /// Computes integers and marks exceptions.
    fn new(context: &mut KernelContext<'_>, alp: &Alp, sources: &[Source]) -> Result<AlpForm> {
        let integers = Derived::new(context, sources, Storage::I64)?;
        let mut exceptions = Patches::new(context, sources)?;
        let scales = alp.scales()?;
        let segments = sources.iter().zip(&integers.sources).enumerate().map(|(position, (source, integers))| {
            let params = scales.iter().fold(source.params(), |params, scale| params.f64(*scale));
            let params = exceptions.add_to(params.buffer(&integers.values), position);
            (VECTOR_GROUPS * source.vectors(), params)
        });
        context.launch_all((ALP, "alp_integers"), segments, 0)?;
        exceptions.counts.sum(context)?;
        let packed = PackedForm::new(context, alp.integers, &integers.sources)?;
        Ok(AlpForm { integers, packed, exceptions })
    }

    /// End of the packed integers of a segment.
    fn integers_end(&self, position: usize) -> usize {
        self.packed.end(&self.integers.sources[position], position, ALP_HEAD)
    }

    /// First byte of the exceptions of a segment.
    fn exceptions_at(&self, position: usize) -> usize {
        self.integers_end(position).next_multiple_of(8)
    }

    fn write(
        &self,
        context: &mut KernelContext<'_>,
        flag: &Scratch,
        sources: &[Source],
        outs: &[DeviceBuffer],
    ) -> Result<()> {
        let length = |position| (self.integers_end(position) - ALP_HEAD) as u64;
        let heads = outs.iter().enumerate().map(|(position, out)| (1, Params::new().u64(length(position)).buffer(out)));
        context.launch_all((ALP, "alp_head"), heads, 0)?;
        self.packed.write(context, flag, &self.integers.sources, (outs, ALP_HEAD))?;
        self.exceptions.write(context, sources, outs, |position| {
            (sources[position].params().null().u64(0), self.exceptions_at(position))
        })
    }
}
