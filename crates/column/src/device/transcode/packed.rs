//! Packed segments and patches, also as parts of ALP, delta and dictionary segments.

use warpcube_gpu::{DeviceBuffer, Params};

use super::context::{KernelContext, Source, flip};
use super::programs::{BASICS, PACKED, PATCHES};
use super::scratch::{Counts, Regions, Scratch};
use crate::error::Result;
use crate::format::Packed;
use crate::units::VECTOR_ROWS;

/// Groups of packed segments a vector.
pub(super) const VECTOR_GROUPS: usize = 4;

/// A batch of packed segments.
pub(super) struct PackedForm {
    packed: Packed,
    /// Smallest and largest key of each vector; `None` if all vectors have one reference.
    bounds: Option<Regions>,
    patches: Option<Patches>,
}

impl PackedForm {
    pub(super) fn new(context: &mut KernelContext<'_>, packed: Packed, sources: &[Source]) -> Result<PackedForm> {
        let mut form = PackedForm { packed, bounds: None, patches: None };
        if packed.reference.is_none() {
            form.bounds = Some(Regions::new(context, sources, 2 * size_of::<u64>())?);
        }
        // The kernel that marks patches also finds bounds.
        if let Some(bounds) = form.bounds.as_ref().filter(|_| !packed.patches) {
            let segments = sources.iter().enumerate();
            let segments =
                segments.map(|(position, source)| (source.vectors(), bounds.add_to(source.params(), position)));
            context.launch_all((BASICS, "vector_bounds"), segments, 0)?;
        }
        if packed.patches {
            let mut patches = Patches::new(context, sources)?;
            let segments = sources.iter().enumerate().map(|(position, source)| {
                let params = form.referred(source, position).u64(packed.width.into());
                (source.vectors(), patches.add_to(params, position))
            });
            context.launch_all((PATCHES, "mark_wide"), segments, 0)?;
            patches.counts.sum(context)?;
            form.patches = Some(patches);
        }
        Ok(form)
    }

    /// Parameters of a segment and its references.
    fn referred(&self, source: &Source, position: usize) -> Params {
        match (&self.bounds, self.packed.reference) {
            (Some(bounds), _) => bounds.add_to(source.params(), position).u64(0),
            (None, reference) => source.params().null().u64(reference.unwrap_or_default() ^ flip(source.storage)),
        }
    }

    /// First byte of the patches of a segment at byte `at`.
    fn body_end(&self, source: &Source, at: usize) -> usize {
        let references = if self.bounds.is_some() { source.vectors() * source.storage.word_bytes() } else { 0 };
        at + source.vectors() * VECTOR_ROWS / 8 * self.packed.width as usize + references
    }

    /// End of a segment at byte `at`.
    pub(super) fn end(&self, source: &Source, position: usize, at: usize) -> usize {
        let end = self.body_end(source, at);
        self.patches.as_ref().map_or(end, |patches| patches.end(source, position, end))
    }

    /// Launches the kernels that write the segments to byte `at` of their buffers.
    pub(super) fn write(
        &self,
        context: &mut KernelContext<'_>,
        flag: &Scratch,
        sources: &[Source],
        (outs, at): (&[DeviceBuffer], usize),
    ) -> Result<()> {
        let segments = sources.iter().enumerate().map(|(position, source)| {
            let params = self.referred(source, position).u64(self.packed.width.into());
            let params = if self.patches.is_some() { params.null() } else { params.buffer(flag.buffer()) };
            (VECTOR_GROUPS * source.vectors(), params.buffer_at(&outs[position], at))
        });
        context.launch_all((PACKED, "pack_groups"), segments, 0)?;
        let Some(patches) = &self.patches else { return Ok(()) };
        patches.write(context, sources, outs, |position| {
            (self.referred(&sources[position], position), self.body_end(&sources[position], at))
        })
    }
}

/// Marks of patched rows, and numbers of patches by group.
pub(super) struct Patches {
    marks: Regions,
    pub(super) counts: Counts,
}

impl Patches {
    pub(super) fn new(context: &KernelContext<'_>, sources: &[Source]) -> Result<Patches> {
        let marks = Regions::new(context, sources, VECTOR_ROWS / 8)?;
        Ok(Patches { marks, counts: Counts::new(context, sources, VECTOR_GROUPS)? })
    }

    /// Adds pointers to the marks and counts of a segment.
    pub(super) fn add_to(&self, params: Params, position: usize) -> Params {
        self.counts.add_to(self.marks.add_to(params, position), position)
    }

    /// End of a section at byte `at`.
    pub(super) fn end(&self, source: &Source, position: usize, at: usize) -> usize {
        let patches = self.counts.total(position);
        let rows_end = at + 4 * (VECTOR_GROUPS * source.vectors() + 1) + 2 * patches;
        rows_end.next_multiple_of(8) + patches * source.storage.word_bytes()
    }

    /// Launches the kernels that write the sections; `of` gives the parameters of a segment and the byte of its
    /// section.
    pub(super) fn write(
        &self,
        context: &mut KernelContext<'_>,
        sources: &[Source],
        outs: &[DeviceBuffer],
        of: impl Fn(usize) -> (Params, usize),
    ) -> Result<()> {
        let segments = sources.iter().zip(outs).enumerate().map(|(position, (source, out))| {
            let (params, at) = of(position);
            (VECTOR_GROUPS * source.vectors(), self.add_to(params, position).u64(at as u64).buffer(out))
        });
        context.launch_all((PATCHES, "write_patches"), segments, 0)
    }
}
