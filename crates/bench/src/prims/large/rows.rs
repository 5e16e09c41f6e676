//! Primitives over rows in their order.

use warpcube_gpu::prims::{
    DeviceSlice, Element, Gather, Moved, Partition, Predicate, Reduce, Reduction, Scan, ScanKind, Scatter,
    SegmentedReduce, SegmentedScan, Select, SelectOperands, SelectOrder, Split,
};

use super::{Given, Large};
use crate::operators::project::{Project, Projection};
use crate::stats::Sample;
use crate::suite::Failure;

/// Rows of a segment.
const SEGMENT: u64 = 1000;
/// Half of the keys are below it.
const BOUND: u64 = 1 << 31;

pub(super) fn reduce(large: &mut Large<'_, '_>) -> Result<Sample, Failure> {
    let (keys, out) = (large.keys()?, large.room(Element::U64, 1)?);
    let reduce = Reduce::new(&large.bench.device, Element::U32, Reduction::Sum(Element::U64))?;
    let memory = large.scratch(reduce.scratch_bytes(large.n))?;
    let ms = large.time(&[&keys], &[&out], &memory, |work| reduce.launch(work, &keys, &out, &memory))?;
    let expected = large.sum(&keys)?;
    large.expect("the sum", &out, 0, expected)?;
    Ok(ms)
}

pub(super) fn scan(large: &mut Large<'_, '_>) -> Result<Sample, Failure> {
    let (keys, sums) = (large.keys()?, large.room(Element::U64, large.n)?);
    let scan = Scan::new(&large.bench.device, Element::U32, Reduction::Sum(Element::U64), ScanKind::Exclusive)?;
    let memory = large.scratch(scan.scratch_bytes(large.n))?;
    let ms = large.time(&[&keys], &[&sums], &memory, |work| scan.launch(work, &keys, &sums, &memory))?;
    let given = Given { input: Some(&keys), wide: Some(&sums), ..Given::default() };
    large.check("large_scanned", large.n, given, 0)?;
    Ok(ms)
}

pub(super) fn segmented_reduce(large: &mut Large<'_, '_>) -> Result<Sample, Failure> {
    let (keys, (starts, segments)) = (large.keys()?, large.offsets(SEGMENT)?);
    let sums = large.room(Element::U32, segments)?;
    let reduce = SegmentedReduce::new(&large.bench.device, Element::U32, Reduction::Sum(Element::U32))?;
    let memory = large.scratch(reduce.scratch_bytes(large.n, segments))?;
    let ms =
        large.time(&[&keys, &starts], &[&sums], &memory, |work| reduce.launch(work, &keys, &starts, &sums, &memory))?;
    let given = Given { input: Some(&sums), second: Some(&keys), wide: Some(&starts), ..Given::default() };
    large.check("large_segments", segments, given, 0)?;
    Ok(ms)
}

pub(super) fn segmented_scan(large: &mut Large<'_, '_>) -> Result<Sample, Failure> {
    let (keys, (starts, segments)) = (large.keys()?, large.offsets(SEGMENT)?);
    let sums = large.room(Element::U32, large.n)?;
    let scan =
        SegmentedScan::new(&large.bench.device, Element::U32, Reduction::Sum(Element::U32), ScanKind::Inclusive)?;
    let memory = large.scratch(scan.scratch_bytes(large.n, segments))?;
    let ms =
        large.time(&[&keys, &starts], &[&sums], &memory, |work| scan.launch(work, &keys, &starts, &sums, &memory))?;
    let given = Given { input: Some(&keys), words: Some(&sums), other: SEGMENT, ..Given::default() };
    large.check("large_segments_scanned", large.n, given, 0)?;
    Ok(ms)
}

/// The number of keys below the bound.
fn below(large: &mut Large<'_, '_>, keys: &DeviceSlice, n: u64) -> Result<u64, Failure> {
    let given = Given { input: Some(keys), other: BOUND, ..Given::default() };
    Ok(large.kernel("large_below", n, given)?[1])
}

pub(super) fn select(large: &mut Large<'_, '_>) -> Result<Sample, Failure> {
    let (keys, count) = (large.keys()?, large.room(Element::U64, 1)?);
    let expected = below(large, &keys, large.n)?;
    let rows = large.room(Element::U64, expected)?;
    let (device, moved) = (&large.bench.device, Moved::Rows(Element::U64));
    let predicate = Predicate::Text("x < a".into());
    let select = Select::new(device, Element::U32, predicate, moved, SelectOrder::Stable)?;
    let memory = large.scratch(select.scratch_bytes(large.n))?;
    let operands = SelectOperands { input: Some(&keys), flags: None, bounds: [BOUND, 0], out: &rows, count: &count };
    let ms = large.time(&[&keys], &[&rows, &count], &memory, |work| select.launch(work, &operands, &memory))?;
    large.expect("the count", &count, 0, expected)?;
    let given = Given { input: Some(&keys), wide: Some(&rows), other: BOUND, ..Given::default() };
    large.check("large_selected", expected, given, 0)?;
    Ok(ms)
}

pub(super) fn partition(large: &mut Large<'_, '_>) -> Result<Sample, Failure> {
    let (keys, count) = (large.keys()?, large.room(Element::U64, 1)?);
    let expected = below(large, &keys, large.n)?;
    let [first, others] = [large.room(Element::U32, large.n)?, large.room(Element::U32, large.n)?];
    let partition = Partition::new(&large.bench.device, Element::U32, Predicate::Text("x < a".into()))?;
    let memory = large.scratch(partition.scratch_bytes(large.n))?;
    let operands = SelectOperands { input: Some(&keys), flags: None, bounds: [BOUND, 0], out: &first, count: &count };
    let written = [&first, &others, &count];
    let ms = large.time(&[&keys], &written, &memory, |work| partition.launch(work, &operands, &others, &memory))?;
    large.expect("the count", &count, 0, expected)?;
    let parts = [(first, expected, expected), (others, large.n - expected, 0)];
    let mut sum = 0u64;
    for (part, len, wanted) in &parts {
        if below(large, part, *len)? != *wanted {
            return Err(format!("of {len} rows of a part {wanted} are not below the bound").into());
        }
        sum = sum.wrapping_add(large.hash(part, *len)?);
    }
    let expected = large.hash(&keys, large.n)?;
    if sum == expected { Ok(ms) } else { Err(format!("hashes add up to {sum} instead of {expected}").into()) }
}

pub(super) fn split(large: &mut Large<'_, '_>) -> Result<Sample, Failure> {
    let n = large.n;
    let (flags, count) = (large.made("large_flags", Element::U8, n, 0)?, large.room(Element::U64, 1)?);
    let offsets = large.room(Element::U64, n.div_ceil(16))?;
    let split = Split::new(&large.bench.device)?;
    let memory = large.scratch(split.scratch_bytes(n))?;
    let written = [&offsets, &count];
    let ms = large.time(&[&flags], &written, &memory, |work| split.launch(work, &flags, &offsets, &count, &memory))?;
    large.expect("the count", &count, 0, n.div_ceil(16))?;
    large.check("large_split", n.div_ceil(16), Given { wide: Some(&offsets), ..Given::default() }, 0)?;
    Ok(ms)
}

pub(super) fn project(large: &mut Large<'_, '_>) -> Result<Sample, Failure> {
    let [x, y] = factors(large)?;
    project_of(large, [&x, &y])
}

/// Two different columns of floats.
pub(super) fn factors(large: &mut Large<'_, '_>) -> Result<[DeviceSlice; 2], Failure> {
    let n = large.n;
    Ok([large.made("large_floats", Element::F32, n, 1)?, large.made("large_floats", Element::F32, n, 3)?])
}

/// Measures 2x + y, and verifies it against the columns of [`factors`].
pub(super) fn project_of(large: &mut Large<'_, '_>, [x, y]: [&DeviceSlice; 2]) -> Result<Sample, Failure> {
    let out = large.room(Element::F32, large.n)?;
    let (project, memory) = (Project::new(&large.bench.device, Element::F32, Projection::Linear)?, large.scratch(0)?);
    let ms = large.time(&[x, y], &[&out], &memory, |work| project.launch(work, [x, y], [2.0, 1.0], &out))?;
    large.check("large_projected", large.n, Given { words: Some(&out), ..Given::default() }, 0)?;
    Ok(ms)
}

pub(super) fn gather(large: &mut Large<'_, '_>) -> Result<Sample, Failure> {
    let (keys, rows) = (large.keys()?, large.made("large_backwards", Element::U32, large.n, 0)?);
    let out = large.room(Element::U32, large.n)?;
    let (gather, memory) = (Gather::new(&large.bench.device, Element::U32, Element::U32)?, large.scratch(0)?);
    let ms = large.time(&[&keys, &rows], &[&out], &memory, |work| gather.launch(work, &keys, &rows, &out))?;
    large.check("large_reversed", large.n, Given { input: Some(&keys), words: Some(&out), ..Given::default() }, 0)?;
    Ok(ms)
}

pub(super) fn scatter(large: &mut Large<'_, '_>) -> Result<Sample, Failure> {
    let (keys, rows) = (large.keys()?, large.made("large_backwards", Element::U32, large.n, 0)?);
    let out = large.room(Element::U32, large.n)?;
    let (scatter, memory) = (Scatter::new(&large.bench.device, Element::U32, Element::U32)?, large.scratch(0)?);
    let ms = large.time(&[&keys, &rows], &[&out], &memory, |work| scatter.launch(work, &keys, &rows, &out))?;
    large.check("large_reversed", large.n, Given { input: Some(&keys), words: Some(&out), ..Given::default() }, 0)?;
    Ok(ms)
}
