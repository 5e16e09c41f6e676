//! The groups of a run, level after level.

use std::marker::PhantomData;

use warpcube_gpu::prims::histogram::HistogramBins;
use warpcube_gpu::prims::radix_sort::{RadixOrder, Records};
use warpcube_gpu::prims::{DeviceSlice, Element, Gather, SegmentedReduce, SelectOperands};
use warpcube_gpu::{Params, Stream};

use super::{CubeKernels, DeviceKey};
use crate::cube_operator::grouping::{Reorder, below, leading, reordered};
use crate::cube_operator::{self, Components, Cuboid, Level, Run, Way};
use crate::device::array::{DeviceValue, padded, walk};
use crate::device::error::{DeviceSchemeError, Result};
use crate::key::KeyLayout;

/// A cuboid in device memory, its groups in ascending order.
pub struct DeviceCuboid<K, V> {
    /// Dimensions of the keys, of which the first `length` are the cuboid's; those behind mean nothing.
    order: Vec<usize>,
    length: usize,
    pub(super) layout: KeyLayout,
    pub(super) keys: DeviceSlice,
    pub(super) columns: Columns,
    types: PhantomData<(K, V)>,
}

impl<K: DeviceKey, V: DeviceValue> DeviceCuboid<K, V> {
    pub(super) fn new(order: &[usize], length: usize, layout: KeyLayout, keys: DeviceSlice, columns: Columns) -> Self {
        DeviceCuboid { order: order.to_vec(), length, layout, keys, columns, types: PhantomData }
    }

    /// Its dimensions, in the order of the keys' coordinates.
    pub fn dimensions(&self) -> &[usize] {
        &self.order[..self.length]
    }

    /// Number of groups.
    pub fn len(&self) -> u64 {
        self.keys.len()
    }

    /// True if there is no group.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Copies the groups to the host and gives them to a sink. Waits for the stream.
    ///
    /// # Errors
    /// A device that fails; that of the sink.
    pub fn read<E: From<DeviceSchemeError>>(
        &self,
        stream: &mut Stream,
        mut sink: impl FnMut(Cuboid<'_, K, V>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut keys: Vec<K> = read(stream, Some(&self.keys))?.unwrap_or_default();
        let below = below(&self.layout, self.length);
        keys.iter_mut().for_each(|key| *key = leading(*key, below));
        let Columns { counts, sums, least, largest, .. } = &self.columns;
        let sums: Option<Vec<V>> = read(stream, sums.as_ref())?;
        let level = Level {
            order: self.dimensions().to_vec(),
            layout: reordered(&self.layout, &self.order, self.dimensions()),
            keys,
            columns: cube_operator::Columns {
                counts: read(stream, counts.as_ref())?,
                sums: sums.map(|sums| sums.into_iter().map(V::widen).collect()),
                least: read(stream, least.as_ref())?,
                largest: read(stream, largest.as_ref())?,
            },
        };
        level.give::<Failure<E>>(&mut |cuboid| sink(cuboid).map_err(Failure)).map_err(|failure| failure.0)
    }
}

/// The error of a sink, or that of a level as one.
struct Failure<E>(E);

impl<E: From<DeviceSchemeError>> From<crate::SchemeError> for Failure<E> {
    fn from(error: crate::SchemeError) -> Self {
        Failure(DeviceSchemeError::from(error).into())
    }
}

pub(super) fn read<T: bytemuck::Pod>(stream: &mut Stream, slice: Option<&DeviceSlice>) -> Result<Option<Vec<T>>> {
    let Some(slice) = slice else { return Ok(None) };
    let mut items = vec![T::zeroed(); slice.len() as usize];
    stream.download(slice.buffer(), slice.offset(), bytemuck::cast_slice_mut(&mut items))?;
    Ok(Some(items))
}

/// Components of items, those that rules need. Of rows the values are all of them but the counts, which may be absent
/// where each row is one.
pub(super) struct Columns {
    pub(super) components: Components,
    pub(super) counts: Option<DeviceSlice>,
    pub(super) sums: Option<DeviceSlice>,
    pub(super) least: Option<DeviceSlice>,
    pub(super) largest: Option<DeviceSlice>,
}

impl Columns {
    pub(super) fn of_rows(components: Components, values: &DeviceSlice, counts: Option<&DeviceSlice>) -> Columns {
        let of = |is_there: bool| is_there.then(|| values.clone());
        Columns {
            components,
            counts: counts.filter(|_| components.count).cloned(),
            sums: of(components.sum),
            least: of(components.least),
            largest: of(components.largest),
        }
    }
}

/// Keys of a source in the order of some of its dimensions.
pub(super) struct Sorted {
    order: Vec<usize>,
    layout: KeyLayout,
    keys: DeviceSlice,
    /// The rows of the keys; absent where they are in the order of the source.
    rows: Option<DeviceSlice>,
}

impl Sorted {
    pub(super) fn as_it_is<K, V>(from: &DeviceCuboid<K, V>) -> Sorted {
        Sorted { order: from.order.clone(), layout: from.layout.clone(), keys: from.keys.clone(), rows: None }
    }
}

impl<K: DeviceKey, V: DeviceValue> CubeKernels<K, V> {
    /// The cuboids of a run, the longest first.
    pub(super) fn levels(
        &self,
        stream: &mut Stream,
        from: &DeviceCuboid<K, V>,
        run: &Run,
        sorted: &mut Sorted,
    ) -> Result<Vec<DeviceCuboid<K, V>>> {
        let Way::Sort { shared } = run.way else { return Err(DeviceSchemeError::Way { way: run.way }) };
        if shared < run.order.len() {
            *sorted = self.sorted(stream, from, &run.order)?;
        }
        let belows: Vec<u32> = run.lengths().map(|length| below(&sorted.layout, length)).collect();
        let mut codes = self.codes(stream, &sorted.keys, &belows)?;
        let groups = self.group_counts(stream, &codes, belows.len())?;
        let mut levels: Vec<DeviceCuboid<K, V>> = Vec::with_capacity(groups.len());
        for ((length, groups), bound) in run.lengths().zip(groups).zip(1..) {
            let (keys, items) = match levels.last() {
                Some(above) => (&above.keys, &above.columns),
                None => (&sorted.keys, &from.columns),
            };
            let offsets = self.offsets(stream, &codes, bound, groups)?;
            let heads = offsets.part(0, groups)?;
            let rows = sorted.rows.as_ref().filter(|_| levels.is_empty());
            let columns = self.joined(stream, items, rows, &codes, &offsets)?;
            let keys_of = self.room(K::ELEMENT, groups)?;
            self.keys_of.launch(stream, keys, &heads, &keys_of)?;
            let codes_of = self.room(Element::U8, groups)?;
            self.codes_of.launch(stream, &codes, &heads, &codes_of)?;
            codes = codes_of;
            levels.push(DeviceCuboid::new(&sorted.order, length, sorted.layout.clone(), keys_of, columns));
        }
        Ok(levels)
    }

    /// The first items of groups, those with a code of at least `bound`, and the end of the last group.
    pub(super) fn offsets(
        &self,
        stream: &mut Stream,
        codes: &DeviceSlice,
        bound: u64,
        groups: u64,
    ) -> Result<DeviceSlice> {
        let offsets = self.room(Element::U64, groups + 1)?;
        let (heads, count) = (offsets.part(0, groups)?, self.room(Element::U64, 1)?);
        let operands =
            SelectOperands { input: Some(codes), flags: None, bounds: [bound, 0], out: &heads, count: &count };
        self.heads.launch(stream, &operands, &self.scratch(self.heads.scratch_bytes(codes.len()))?)?;
        stream.upload(offsets.buffer(), groups as usize * size_of::<u64>(), &codes.len().to_ne_bytes())?;
        Ok(offsets)
    }

    /// The keys of a source sorted by some of its dimensions.
    pub(super) fn sorted(&self, stream: &mut Stream, from: &DeviceCuboid<K, V>, order: &[usize]) -> Result<Sorted> {
        let (n, layout) = (from.keys.len(), reordered(&from.layout, &from.order, order));
        let [keys, other] = [self.room(K::ELEMENT, n)?, self.room(K::ELEMENT, n)?];
        let [rows, other_rows] = [self.room(Element::U32, n)?, self.room(Element::U32, n)?];
        self.reordered(stream, &Reorder::new(&from.layout, &from.order, order), &from.keys, &keys)?;
        let by = RadixOrder { bits: 0..layout.total_bits(), descending: false };
        let other = Records { keys: &other, values: Some(&other_rows) };
        let scratch = self.scratch(self.sort.scratch_bytes(n))?;
        self.sort.launch_numbering(stream, Records { keys: &keys, values: Some(&rows) }, other, &by, &scratch)?;
        Ok(Sorted { order: order.to_vec(), layout, keys, rows: Some(rows) })
    }

    /// Writes keys in another order of their dimensions to `out`.
    pub(super) fn reordered(
        &self,
        stream: &mut Stream,
        Reorder { shifts, bits }: &Reorder,
        keys: &DeviceSlice,
        out: &DeviceSlice,
    ) -> Result<()> {
        let params = Params::new().slice(keys).slice(out).u64(keys.len()).u64(bits.len() as u64);
        let params = padded(padded(params, shifts), bits);
        Ok(stream.launch(&self.reorder, walk(&self.device, keys.len()), &params)?)
    }

    /// Of how many levels each key begins a group.
    pub(super) fn codes(&self, stream: &mut Stream, keys: &DeviceSlice, belows: &[u32]) -> Result<DeviceSlice> {
        let codes = self.room(Element::U8, keys.len())?;
        let params = Params::new().slice(keys).slice(&codes).u64(keys.len()).u64(belows.len() as u64);
        stream.launch(&self.codes, walk(&self.device, keys.len()), &padded(params, belows))?;
        Ok(codes)
    }

    /// Groups of each level. Waits for the stream.
    pub(super) fn group_counts(&self, stream: &mut Stream, codes: &DeviceSlice, levels: usize) -> Result<Vec<u64>> {
        let counts = self.room(Element::U64, levels as u64)?;
        self.histogram.launch(stream, codes, HistogramBins::Codes { shift: 0, first: 1 }, &counts)?;
        let mut groups: Vec<u64> = read(stream, Some(&counts))?.unwrap_or_default();
        for level in (1..levels).rev() {
            groups[level - 1] += groups[level];
        }
        Ok(groups)
    }

    /// Components of the groups between offsets, of items that are taken by `rows` if there are any.
    pub(super) fn joined(
        &self,
        stream: &mut Stream,
        items: &Columns,
        rows: Option<&DeviceSlice>,
        codes: &DeviceSlice,
        offsets: &DeviceSlice,
    ) -> Result<Columns> {
        let groups = offsets.len() - 1;
        let mut column = |items: &DeviceSlice, take: &Gather, reduce: &SegmentedReduce| -> Result<DeviceSlice> {
            let ordered = match rows {
                None => items.clone(),
                Some(rows) => {
                    let ordered = self.room(items.element(), rows.len())?;
                    take.launch(stream, items, rows, &ordered)?;
                    ordered
                }
            };
            let out = self.room(items.element(), groups)?;
            let scratch = self.scratch(reduce.scratch_bytes(ordered.len(), groups))?;
            reduce.launch(stream, &ordered, offsets, &out, &scratch)?;
            Ok(out)
        };
        let components = items.components;
        let mut of = |items: &Option<DeviceSlice>, take, reduce| {
            items.as_ref().map(|items| column(items, take, reduce)).transpose()
        };
        let counts = of(&items.counts, &self.counts_of, &self.counts)?;
        let sums = of(&items.sums, &self.values_of, &self.sums)?;
        let least = of(&items.least, &self.values_of, &self.least)?;
        let largest = of(&items.largest, &self.values_of, &self.largest)?;
        let counts = match counts {
            None if components.count => {
                let out = self.room(Element::U64, groups)?;
                let scratch = self.scratch(self.number.scratch_bytes(codes.len(), groups))?;
                self.number.launch(stream, codes, offsets, &out, &scratch)?;
                Some(out)
            }
            counts => counts,
        };
        Ok(Columns { components, counts, sums, least, largest })
    }
}
