//! Packed segments and their patches, which ALP, delta and dictionary segments hold too.

use warpcube_gpu::{DeviceBuffer, Params};

use super::context::{KernelContext, Source, flip};
use super::programs::{BASICS, PACKED, PATCHES};
use super::scratch::{Counts, Regions, Scratch};
use crate::error::Result;
use crate::format::Packed;
use crate::units::{Storage, VECTOR_ROWS};

/// Groups of packed segments a vector.
pub(super) const VECTOR_GROUPS: usize = 4;

/// Bytes of a word of values: a reference, a patch.
pub(super) fn word_bytes(storage: Storage) -> usize {
    storage.width().max(4)
}

/// Packed segments: what a batch of them needs.
pub(super) struct PackedForm {
    packed: Packed,
    /// Smallest and largest key of each vector, where each has a reference of its own.
    bounds: Option<Regions>,
    patches: Option<Patches>,
}

impl PackedForm {
    pub(super) fn new(context: &mut KernelContext<'_>, packed: Packed, sources: &[Source]) -> Result<PackedForm> {
        sources.iter().try_for_each(|source| packed.check(source.storage))?;
        let mut form = PackedForm { packed, bounds: None, patches: None };
        if packed.reference.is_none() {
            form.bounds = Some(Regions::new(context, sources, 2 * size_of::<u64>())?);
        }
        // What marks patches finds bounds on the way.
        if let Some(bounds) = form.bounds.as_ref().filter(|_| !packed.patches) {
            let kernel = context.kernel(BASICS, "vector_bounds")?;
            let segments = sources.iter().enumerate();
            let segments =
                segments.map(|(position, source)| (source.vectors(), bounds.add_to(source.params(), position)));
            context.launch_all(&kernel, segments, 0)?;
        }
        if packed.patches {
            let kernel = context.kernel(PATCHES, "mark_wide")?;
            let mut patches = Patches::new(context, sources)?;
            let segments = sources.iter().enumerate().map(|(position, source)| {
                let params = form.referred(source, position).u64(packed.width.into());
                (source.vectors(), patches.add_to(params, position))
            });
            context.launch_all(&kernel, segments, 0)?;
            patches.counts.sum(context)?;
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
    pub(super) fn end(&self, source: &Source, position: usize, at: usize) -> usize {
        let end = self.body_end(source, at);
        self.patches.as_ref().map_or(end, |patches| patches.end(source, position, end))
    }

    /// Launches what writes the segments, each from a byte of its buffer on.
    pub(super) fn write(
        &self,
        context: &mut KernelContext<'_>,
        flag: &Scratch,
        sources: &[Source],
        (outs, at): (&[DeviceBuffer], usize),
    ) -> Result<()> {
        let kernel = context.kernel(PACKED, "pack_groups")?;
        let segments = sources.iter().enumerate().map(|(position, source)| {
            let params = self.referred(source, position).u64(self.packed.width.into());
            let params = if self.patches.is_some() { params.null() } else { params.buffer(flag.buffer()) };
            (VECTOR_GROUPS * source.vectors(), params.buffer_at(&outs[position], at))
        });
        context.launch_all(&kernel, segments, 0)?;
        let Some(patches) = &self.patches else { return Ok(()) };
        patches.write(context, sources, outs, |position| {
            (self.referred(&sources[position], position), self.body_end(&sources[position], at))
        })
    }
}

/// Rows that are patches, and how many a group has.
pub(super) struct Patches {
    marks: Regions,
    pub(super) counts: Counts,
}

impl Patches {
    pub(super) fn new(context: &KernelContext<'_>, sources: &[Source]) -> Result<Patches> {
        let marks = Regions::new(context, sources, VECTOR_ROWS / 8)?;
        Ok(Patches { marks, counts: Counts::new(context, sources, VECTOR_GROUPS)? })
    }

    /// Adds pointers to a segment's marks and counts.
    pub(super) fn add_to(&self, params: Params, position: usize) -> Params {
        self.counts.add_to(self.marks.add_to(params, position), position)
    }

    /// Where a section ends that begins at a byte.
    pub(super) fn end(&self, source: &Source, position: usize, at: usize) -> usize {
        let patches = self.counts.total(position);
        let rows_end = at + 4 * (VECTOR_GROUPS * source.vectors() + 1) + 2 * patches;
        rows_end.next_multiple_of(8) + patches * word_bytes(source.storage)
    }

    /// Launches what writes the sections; `of` tells the parameters of a segment and the byte at which its section is.
    pub(super) fn write(
        &self,
        context: &mut KernelContext<'_>,
        sources: &[Source],
        outs: &[DeviceBuffer],
        of: impl Fn(usize) -> (Params, usize),
    ) -> Result<()> {
        let kernel = context.kernel(PATCHES, "write_patches")?;
        let segments = sources.iter().zip(outs).enumerate().map(|(position, (source, out))| {
            let (params, at) = of(position);
            (VECTOR_GROUPS * source.vectors(), self.add_to(params, position).u64(at as u64).buffer(out))
        });
        context.launch_all(&kernel, segments, 0)
    }
}
