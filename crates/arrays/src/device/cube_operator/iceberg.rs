//! The iceberg CUBE on a device: `cube_operator::iceberg` by primitives.
//!
//! The cells of a cuboid's groups are sorted by group and the coordinate of one more dimension; cells of groups with
//! too few rows are dropped, and the others are the next cuboid. The host waits three times a cuboid, for numbers of
//! groups and cells.

use warpcube_gpu::prims::radix_sort::{RadixOrder, Records};
use warpcube_gpu::prims::{
    DeviceSlice, Element, Gather, Moved, Predicate, Reduction, Scan, ScanKind, Select, SelectOperands, SelectOrder,
};
use warpcube_gpu::{Params, Stream};

use super::levels::{Columns, Sorted, read};
use super::{CubeKernels, DeviceCuboid, DeviceKey, DeviceRows};
use crate::SchemeError;
use crate::cube_operator::grouping::{Reorder, reordered};
use crate::cube_operator::rows::check_dimensions;
use crate::cube_operator::{Components, Extent, Iceberg, Planned, Rule, Run, Source, Way, refining_order};
use crate::device::array::{DeviceValue, operand, walk};
use crate::device::error::{DeviceSchemeError, Result};

impl<K: DeviceKey, V: DeviceValue> DeviceRows<'_, K, V> {
    /// Gives the groups with COUNT of at least `minimum` to `sink`, cuboid after cuboid, as `cube_operator::iceberg`
    /// does on the CPU. `extent` is that of the rows.
    ///
    /// # Errors
    /// As [`DeviceRows::cube`]; dimensions that the layout lacks, that repeat, or that are more than 16.
    pub fn iceberg<E: From<DeviceSchemeError>>(
        &self,
        stream: &mut Stream,
        extent: &Extent,
        dimensions: &[usize],
        rules: &[Rule],
        minimum: u64,
        sink: impl FnMut(&mut Stream, &DeviceCuboid<K, V>) -> Result<(), E>,
    ) -> Result<Iceberg, E> {
        if extent.layout != self.layout {
            return Err(DeviceSchemeError::from(SchemeError::OtherLayout).into());
        }
        check_dimensions(&self.layout, dimensions).map_err(DeviceSchemeError::from)?;
        let components = Components { count: true, ..Components::of(rules) };
        self.check_sums(components)?;
        if self.keys.is_empty() {
            return Ok(Iceberg::default());
        }
        let rows = self.whole(components);
        let order = refining_order(extent, dimensions);
        let cuboids = vec![Planned { groups: extent.rows as f64, reason: String::new() }];
        let run = Run { order, source: Source::Rows, way: Way::Sort { shared: 0 }, cuboids };
        let cells = self.kernels.levels(stream, &rows, &run, &mut Sorted::as_it_is(&rows))?.swap_remove(0);
        let primitives = Primitives::new::<K>(self.kernels)?;
        let (kernels, found) = (self.kernels, Iceberg::default());
        let mut search = Search { kernels, primitives, cells, minimum, sink, found };
        let whole = Refined { places: Vec::new(), items: None, groups: None, number: 1 };
        // One group of all cells: the grand total.
        if let Some(total) = search.total(stream)? {
            search.given(stream, &total)?;
            search.go_on(stream, &whole)?;
        }
        Ok(search.found)
    }
}

/// What the iceberg needs beside [`CubeKernels`].
struct Primitives {
    keys: Select,
    items: Select,
    numbers: Scan,
    /// Cells of heads.
    items_of: Gather,
    /// Keys of cells.
    keys_of: Gather,
}

impl Primitives {
    fn new<K: DeviceKey>(kernels: &CubeKernels<K, impl DeviceValue>) -> Result<Primitives> {
        let device = kernels.device();
        let select = |of| Select::new(device, of, Predicate::Flags, Moved::Values, SelectOrder::Stable);
        Ok(Primitives {
            keys: select(K::ELEMENT)?,
            items: select(Element::U32)?,
            numbers: Scan::new(device, Element::U8, Reduction::Sum(Element::U32), ScanKind::Inclusive)?,
            items_of: Gather::new(device, Element::U32, Element::U64)?,
            keys_of: Gather::new(device, K::ELEMENT, Element::U32)?,
        })
    }
}

/// The groups of a cuboid that have enough rows.
struct Refined {
    /// The cuboid's dimensions, as ascending places in the order of the cells.
    places: Vec<usize>,
    /// Cells, group after group; absent if all are in their order.
    items: Option<DeviceSlice>,
    /// The group of each of them, from 1 on; absent if there is one.
    groups: Option<DeviceSlice>,
    /// Number of groups.
    number: u64,
}

struct Search<'a, K, V, F> {
    kernels: &'a CubeKernels<K, V>,
    primitives: Primitives,
    /// The groups of all dimensions.
    cells: DeviceCuboid<K, V>,
    minimum: u64,
    sink: F,
    found: Iceberg,
}

impl<K: DeviceKey, V: DeviceValue, F> Search<'_, K, V, F> {
    /// Gives the cuboids with further dimensions behind the last one of a cuboid.
    fn go_on<E: From<DeviceSchemeError>>(&mut self, stream: &mut Stream, cuboid: &Refined) -> Result<(), E>
    where
        F: FnMut(&mut Stream, &DeviceCuboid<K, V>) -> Result<(), E>,
    {
        let first = cuboid.places.last().map_or(0, |last| last + 1);
        for place in first..self.cells.dimensions().len() {
            if let Some((refined, groups)) = self.refined(stream, cuboid, place)? {
                self.given(stream, &groups)?;
                drop(groups);
                self.go_on(stream, &refined)?;
            }
        }
        Ok(())
    }

    fn given<E: From<DeviceSchemeError>>(&mut self, stream: &mut Stream, groups: &DeviceCuboid<K, V>) -> Result<(), E>
    where
        F: FnMut(&mut Stream, &DeviceCuboid<K, V>) -> Result<(), E>,
    {
        self.found.cuboids += 1;
        self.found.groups += groups.len();
        (self.sink)(stream, groups)
    }

    /// The grand total, if it has enough rows.
    fn total(&self, stream: &mut Stream) -> Result<Option<DeviceCuboid<K, V>>> {
        let (kernels, cells) = (self.kernels, &self.cells);
        // All bits left out make one group.
        let codes = kernels.codes(stream, &cells.keys, &[cells.layout.total_bits()])?;
        let offsets = kernels.offsets(stream, &codes, 1, 1)?;
        let columns = kernels.joined(stream, &cells.columns, None, &codes, &offsets)?;
        let counts: Vec<u64> = read(stream, columns.counts.as_ref())?.unwrap_or_default();
        let keys = kernels.room(K::ELEMENT, 1)?;
        kernels.keys_of.launch(stream, &cells.keys, &offsets.part(0, 1)?, &keys)?;
        let total = DeviceCuboid::new(cells.dimensions(), 0, cells.layout.clone(), keys, columns);
        Ok(counts.first().is_some_and(|count| *count >= self.minimum).then_some(total))
    }

    /// The groups of a cuboid by one dimension more that have enough rows; none if there is none.
    fn refined(
        &mut self,
        stream: &mut Stream,
        cuboid: &Refined,
        place: usize,
    ) -> Result<Option<(Refined, DeviceCuboid<K, V>)>> {
        let (kernels, cells) = (self.kernels, &self.cells);
        let n = cuboid.items.as_ref().map_or(cells.keys.len(), DeviceSlice::len);
        self.found.sorted += n;
        let (keys, items) = self.sorted(stream, cuboid, place)?;
        let flags = self.flags(stream, &keys, &items)?;
        let [kept_keys, kept_items] = [kernels.room(K::ELEMENT, n)?, kernels.room(Element::U32, n)?];
        let count = kernels.room(Element::U64, 1)?;
        let Primitives { keys: select_keys, items: select_items, .. } = &self.primitives;
        for (select, input, out) in [(select_keys, &keys, &kept_keys), (select_items, &items, &kept_items)] {
            let operands =
                SelectOperands { input: Some(input), flags: Some(&flags), bounds: [0; 2], out, count: &count };
            select.launch(stream, &operands, &kernels.scratch(select.scratch_bytes(n))?)?;
        }
        let kept = read::<u64>(stream, Some(&count))?.and_then(|count| count.first().copied()).unwrap_or(0);
        if kept == 0 {
            return Ok(None);
        }
        let (keys, items) = (kept_keys.part(0, kept)?, kept_items.part(0, kept)?);
        let codes = kernels.codes(stream, &keys, &[0])?;
        let number = kernels.group_counts(stream, &codes, 1)?[0];
        let offsets = kernels.offsets(stream, &codes, 1, number)?;
        let columns = kernels.joined(stream, &cells.columns, Some(&items), &codes, &offsets)?;
        let places: Vec<usize> = cuboid.places.iter().copied().chain([place]).collect();
        let groups = self.cuboid(stream, &places, &items, &offsets.part(0, number)?, columns)?;
        let refined = Refined { places, groups: Some(self.numbers(stream, &codes)?), items: Some(items), number };
        Ok(Some((refined, groups)))
    }

    /// The cells of a cuboid sorted by their groups and one coordinate more, with keys of both.
    fn sorted(&self, stream: &mut Stream, cuboid: &Refined, place: usize) -> Result<(DeviceSlice, DeviceSlice)> {
        let (kernels, cells) = (self.kernels, &self.cells);
        let n = cuboid.items.as_ref().map_or(cells.keys.len(), DeviceSlice::len);
        let [given, keys, other] =
            [kernels.room(K::ELEMENT, n)?, kernels.room(K::ELEMENT, n)?, kernels.room(K::ELEMENT, n)?];
        let [items, other_items] = [kernels.room(Element::U32, n)?, kernels.room(Element::U32, n)?];
        let (bits, shift) = (cells.layout.bits()[place], cells.layout.shifts()[place]);
        let params = Params::new().slice(&cells.keys);
        let params = operand(operand(params, cuboid.items.as_ref()), cuboid.groups.as_ref());
        let params = params.slice(&given).u64(n).u64(shift.into()).u64(bits.into());
        stream.launch(&kernels.refine, walk(kernels.device(), n), &params)?;
        let of_groups = cuboid.groups.as_ref().map_or(0, |_| u64::BITS - cuboid.number.leading_zeros());
        let order = RadixOrder { bits: 0..bits + of_groups, descending: false };
        let input = Records { keys: &given, values: cuboid.items.as_ref() };
        let output = Records { keys: &keys, values: Some(&items) };
        let other = Records { keys: &other, values: Some(&other_items) };
        let scratch = kernels.scratch(kernels.sort.scratch_bytes(n))?;
        kernels.sort.launch(stream, input, output, other, &order, &scratch)?;
        Ok((keys, items))
    }

    /// Whether the group of each sorted cell has enough rows.
    fn flags(&self, stream: &mut Stream, keys: &DeviceSlice, items: &DeviceSlice) -> Result<DeviceSlice> {
        let (kernels, n) = (self.kernels, keys.len());
        let codes = kernels.codes(stream, keys, &[0])?;
        let number = kernels.group_counts(stream, &codes, 1)?[0];
        let offsets = kernels.offsets(stream, &codes, 1, number)?;
        let components = Components { count: true, ..Components::default() };
        let counts =
            Columns { components, counts: self.cells.columns.counts.clone(), sums: None, least: None, largest: None };
        let counts = kernels.joined(stream, &counts, Some(items), &codes, &offsets)?.counts;
        let groups = self.numbers(stream, &codes)?;
        let flags = kernels.room(Element::U8, n)?;
        let params = operand(Params::new().slice(&groups), counts.as_ref()).slice(&flags).u64(n).u64(self.minimum);
        stream.launch(&kernels.enough, walk(kernels.device(), n), &params)?;
        Ok(flags)
    }

    /// The number of the group of each place, from 1 on.
    fn numbers(&self, stream: &mut Stream, codes: &DeviceSlice) -> Result<DeviceSlice> {
        let (kernels, scan) = (self.kernels, &self.primitives.numbers);
        let numbers = kernels.room(Element::U32, codes.len())?;
        scan.launch(stream, codes, &numbers, &kernels.scratch(scan.scratch_bytes(codes.len()))?)?;
        Ok(numbers)
    }

    /// The groups of some places, with the keys of their first cells.
    fn cuboid(
        &self,
        stream: &mut Stream,
        places: &[usize],
        items: &DeviceSlice,
        heads: &DeviceSlice,
        columns: Columns,
    ) -> Result<DeviceCuboid<K, V>> {
        let (kernels, cells, number) = (self.kernels, &self.cells, heads.len());
        let first = kernels.room(Element::U32, number)?;
        self.primitives.items_of.launch(stream, items, heads, &first)?;
        let [of_cells, keys] = [kernels.room(K::ELEMENT, number)?, kernels.room(K::ELEMENT, number)?];
        self.primitives.keys_of.launch(stream, &cells.keys, &first, &of_cells)?;
        let order = cells.dimensions();
        let dimensions: Vec<usize> = places.iter().map(|place| order[*place]).collect();
        kernels.reordered(stream, &Reorder::new(&cells.layout, order, &dimensions), &of_cells, &keys)?;
        let layout = reordered(&cells.layout, order, &dimensions);
        Ok(DeviceCuboid::new(&dimensions, dimensions.len(), layout, keys, columns))
    }
}
