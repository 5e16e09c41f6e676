//! Delta segments: quarters of strings as plain words, which are then packed.

use warpcube_gpu::{Device, DeviceBuffer};

use super::context::{KernelContext, Source};
use super::packed::{PackedForm, word_bytes};
use super::programs::DELTA;
use super::scratch::{Regions, Scratch};
use crate::device::room::Room;
use crate::device::segment::Segment;
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
    let kernel = context.kernel(DELTA, "delta_offsets")?;
    let params = |source: &Source| source.params().u64(0).u64(0).u64(0).buffer(widest.buffer()).null().null();
    context.launch_all(&kernel, sources.iter().map(|source| (source.vectors(), params(source))), 0)?;
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
    offsets: Vec<Source>,
    packed: PackedForm,
    heads: Regions,
    _memory: Regions,
}

impl DeltaForm {
    /// Launches what makes offsets.
    pub(super) fn new(context: &mut KernelContext<'_>, delta: Delta, sources: &[Source]) -> Result<DeltaForm> {
        sources.iter().try_for_each(|source| delta.check(source.storage))?;
        let word = sources.first().map_or(0, |source| word_bytes(source.storage));
        let memory = Regions::new(context, sources, VECTOR_ROWS * word)?;
        let heads = Regions::new(context, sources, HEAD_WORDS * word)?;
        let storage = if word == 8 { Storage::U64 } else { Storage::U32 };
        let place = |(position, source): (usize, &Source)| {
            let rows = source.vectors() * VECTOR_ROWS;
            let values = memory.part(position, rows * word)?;
            Ok(Source { values, validity: None, rows, storage })
        };
        let offsets: Vec<Source> = sources.iter().enumerate().map(place).collect::<Result<_>>()?;
        let kernel = context.kernel(DELTA, "delta_offsets")?;
        let segments = sources.iter().zip(&offsets).enumerate().map(|(position, (source, offsets))| {
            let bits = [delta.width, delta.distance(source.storage), delta.differences];
            let params = bits.into_iter().fold(source.params(), |params, bits| params.u64(bits.into()));
            let params = params.null().buffer(&offsets.values);
            (source.vectors(), heads.add_to(params, position))
        });
        context.launch_all(&kernel, segments, 0)?;
        let packed = Packed { width: delta.width, reference: Some(0), patches: false };
        let packed = PackedForm::new(context, packed, &offsets)?;
        Ok(DeltaForm { delta, offsets, packed, heads, _memory: memory })
    }

    /// Bytes of a segment.
    pub(super) fn bytes(&self, source: &Source) -> usize {
        self.delta.bytes(source.storage, source.vectors())
    }

    /// Launches what writes the segments.
    pub(super) fn write(&self, context: &mut KernelContext<'_>, flag: &Scratch, outs: &[DeviceBuffer]) -> Result<()> {
        self.packed.write(context, flag, &self.offsets, (outs, 0))?;
        for (position, (offsets, out)) in self.offsets.iter().zip(outs).enumerate() {
            let bytes = offsets.vectors() * HEAD_WORDS * word_bytes(offsets.storage);
            let heads = self.heads.part(position, bytes)?;
            context.stream.copy(out, out.bytes() - bytes, &heads, 0, bytes)?;
        }
        Ok(())
    }
}
