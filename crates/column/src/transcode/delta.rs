//! Delta segments: quarters of strings as plain words, which are then packed.

use warpcube_gpu::{Device, DeviceBuffer};

use super::forms::{PackedForm, word_bytes};
use super::scratch::{Regions, Scratch};
use super::{DELTA, Source, Workshop};
use crate::build::VECTOR_ROWS;
use crate::encoding::{Delta, Packed};
use crate::error::Result;
use crate::load::Room;
use crate::segment::Segment;
use crate::storage::Storage;

/// The narrowest parameters that hold a column of integers.
pub(crate) fn fitting_delta(device: &Device, room: &dyn Room, storage: Storage, segments: &[Segment]) -> Result<Delta> {
    let mut workshop = Workshop::new(device, room)?;
    let mut bits = [0u32; 2];
    let widest = Scratch::new(&workshop, size_of_val(&bits))?;
    workshop.stream.fill(widest.buffer(), 0, 0, size_of_val(&bits))?;
    let sources: Vec<Source> = segments.iter().map(|segment| Source::of(segment, storage)).collect();
    let kernel = workshop.kernel(DELTA, "delta_offsets")?;
    let params = |source: &Source| source.params().u64(0).u64(0).u64(0).buffer(widest.buffer()).null().null();
    workshop.launch_all(&kernel, sources.iter().map(|source| (source.vectors(), params(source))), 0)?;
    workshop.stream.download(widest.buffer(), 0, bytemuck::cast_slice_mut(&mut bits))?;
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
    pub(super) fn new(workshop: &mut Workshop<'_>, delta: Delta, sources: &[Source]) -> Result<DeltaForm> {
        sources.iter().try_for_each(|source| delta.check(source.storage))?;
        let word = sources.first().map_or(0, |source| word_bytes(source.storage));
        let memory = Regions::new(workshop, sources, VECTOR_ROWS * word)?;
        let heads = Regions::new(workshop, sources, HEAD_WORDS * word)?;
        let storage = if word == 8 { Storage::U64 } else { Storage::U32 };
        let place = |(position, source): (usize, &Source)| {
            let rows = source.vectors() * VECTOR_ROWS;
            let values = memory.part(position, rows * word)?;
            Ok(Source { values, validity: None, rows, storage })
        };
        let offsets: Vec<Source> = sources.iter().enumerate().map(place).collect::<Result<_>>()?;
        let kernel = workshop.kernel(DELTA, "delta_offsets")?;
        let segments = sources.iter().zip(&offsets).enumerate().map(|(position, (source, offsets))| {
            let bits = [delta.width, delta.distance(source.storage), delta.differences];
            let params = bits.into_iter().fold(source.params(), |params, bits| params.u64(bits.into()));
            let params = params.null().buffer(&offsets.values);
            (source.vectors(), heads.add_to(params, position))
        });
        workshop.launch_all(&kernel, segments, 0)?;
        let packed = Packed { width: delta.width, reference: Some(0), patches: false };
        let packed = PackedForm::new(workshop, packed, &offsets)?;
        Ok(DeltaForm { delta, offsets, packed, heads, _memory: memory })
    }

    /// Bytes of a segment.
    pub(super) fn bytes(&self, source: &Source) -> usize {
        self.delta.bytes(source.storage, source.vectors())
    }

    /// Launches what writes the segments.
    pub(super) fn write(&self, workshop: &mut Workshop<'_>, flag: &Scratch, outs: &[DeviceBuffer]) -> Result<()> {
        self.packed.write(workshop, flag, &self.offsets, (outs, 0))?;
        for (position, (offsets, out)) in self.offsets.iter().zip(outs).enumerate() {
            let bytes = offsets.vectors() * HEAD_WORDS * word_bytes(offsets.storage);
            let heads = self.heads.part(position, bytes)?;
            workshop.stream.copy(out, out.bytes() - bytes, &heads, 0, bytes)?;
        }
        Ok(())
    }
}
