//! Delta segments: offsets of rows as plain words, then packed.

use warpcube_gpu::{Device, DeviceBuffer};

use super::context::{KernelContext, Source};
use super::packed::PackedForm;
use super::programs::DELTA;
use super::scratch::{Derived, Regions, Scratch};
use crate::device::segment::{Room, Segment};
use crate::error::Result;
use crate::format::{Delta, Packed};
use crate::units::{Storage, VECTOR_ROWS};

/// The narrowest parameters that hold a column of integers.
pub(crate) fn fitting_delta(device: &Device, room: &dyn Room, storage: Storage, segments: &[Segment]) -> Result<Delta> {
    let mut context = KernelContext::new(device, room)?;
    let mut bits = [0u32; 2];
    let widest = Scratch::new(&context, size_of_val(&bits))?;
    context.stream.fill(widest.buffer(), 0, 0, size_of_val(&bits))?;
    let sources: Vec<Source> = segments.iter().map(|segment| Source::of(segment, storage)).collect();
    let params = |source: &Source| source.params().u64(0).u64(0).u64(0).buffer(widest.buffer()).null().null();
    let segments = sources.iter().map(|source| (source.vectors(), params(source)));
    context.launch_all((DELTA, "delta_offsets"), segments, 0)?;
    context.stream.download(widest.buffer(), 0, bytemuck::cast_slice_mut(&mut bits))?;
    let [distance, differences] = bits;
    Ok(Delta::narrowest(storage, distance, differences))
}

/// Words of a vector's head.
const HEAD_WORDS: usize = 4;

/// A batch of delta segments.
pub(super) struct DeltaForm {
    delta: Delta,
    /// Quarters of strings, padding included.
    offsets: Derived,
    packed: PackedForm,
    heads: Regions,
}

impl DeltaForm {
    /// Launches the computation of offsets and heads.
    pub(super) fn new(context: &mut KernelContext<'_>, delta: Delta, sources: &[Source]) -> Result<DeltaForm> {
        let word = sources.first().map_or(0, |source| source.storage.word_bytes());
        let heads = Regions::new(context, sources, HEAD_WORDS * word)?;
        let mut offsets = Derived::new(context, sources, if word == 8 { Storage::U64 } else { Storage::U32 })?;
        for source in &mut offsets.sources {
            (source.rows, source.validity) = (source.vectors() * VECTOR_ROWS, None);
        }
        let segments = sources.iter().zip(&offsets.sources).enumerate().map(|(position, (source, offsets))| {
            let bits = [delta.width, delta.distance(source.storage), delta.differences];
            let params = bits.into_iter().fold(source.params(), |params, bits| params.u64(bits.into()));
            let params = params.null().buffer(&offsets.values);
            (source.vectors(), heads.add_to(params, position))
        });
        context.launch_all((DELTA, "delta_offsets"), segments, 0)?;
        let packed = Packed { width: delta.width, reference: Some(0), patches: false };
        let packed = PackedForm::new(context, packed, &offsets.sources)?;
        Ok(DeltaForm { delta, offsets, packed, heads })
    }

    /// Bytes of a segment.
    pub(super) fn bytes(&self, source: &Source) -> usize {
        self.delta.bytes(source.storage, source.vectors())
    }

    /// Launches the kernels that write the segments.
    pub(super) fn write(&self, context: &mut KernelContext<'_>, flag: &Scratch, outs: &[DeviceBuffer]) -> Result<()> {
        self.packed.write(context, flag, &self.offsets.sources, (outs, 0))?;
        for (position, (offsets, out)) in self.offsets.sources.iter().zip(outs).enumerate() {
            let bytes = offsets.vectors() * HEAD_WORDS * offsets.storage.word_bytes();
            let heads = self.heads.part(position, bytes)?;
            context.stream.copy(out, out.bytes() - bytes, &heads, 0, bytes)?;
        }
        Ok(())
    }
}
