//! Every primitive over more than 2^31 rows: cases `large/<primitive>` of 2^31 + 12,345 rows, verified by each of its
//! algorithms or strategies, of which the last is measured. They run if they are asked for by name.

mod checks;
mod keys;
mod rows;

use serde_json::json;
use warpcube_gpu::prims::{DeviceSlice, Element};
use warpcube_gpu::{DeviceBuffer, GpuError, Params, Work};

use self::checks::TEXT;
use super::Bench;
use super::hashed::{kernel, room, scratch, taken, walk, word};
use super::keyed::KEYED;
use crate::stats::Sample;
use crate::suite::Failure;

/// Rows, where the largest inputs of the suite have 2^29.
const ROWS_LOG: u32 = 31;
const MORE_ROWS: u64 = 12_345;

/// Parameters of the kernels of [`TEXT`]: inputs `in` and `in2`, columns `a` and `b`, a number.
#[derive(Clone, Copy, Default)]
struct Given<'a> {
    input: Option<&'a DeviceSlice>,
    second: Option<&'a DeviceSlice>,
    words: Option<&'a DeviceSlice>,
    wide: Option<&'a DeviceSlice>,
    other: u64,
}

struct Large<'a, 'b> {
    bench: &'a mut Bench<'b>,
    n: u64,
    out: DeviceSlice,
}

impl Large<'_, '_> {
    fn room(&self, element: Element, len: u64) -> Result<DeviceSlice, GpuError> {
        room(&self.bench.device, element, len)
    }

    fn scratch(&self, bytes: usize) -> Result<DeviceBuffer, GpuError> {
        scratch(&self.bench.device, bytes.max(1))
    }

    /// Runs a kernel of [`TEXT`] over so many rows; the wrong rows and the sum that it finds.
    fn kernel(&mut self, name: &str, n: u64, given: Given<'_>) -> Result<[u64; 2], Failure> {
        self.bench.run.go_on()?;
        let kernel = kernel(&self.bench.device, name, &[KEYED, TEXT].concat())?;
        let slices = [given.input, given.second, given.words, given.wide];
        let params = slices.into_iter().fold(Params::new(), |params, slice| match slice {
            Some(slice) => params.slice(slice),
            None => params.null(),
        });
        let stream = &mut self.bench.stream;
        stream.fill(self.out.buffer(), 0, 0, 16)?;
        stream.launch(
            &kernel,
            walk(&self.bench.device),
            &params.u64(n).u64(given.other).u64(self.n).slice(&self.out),
        )?;
        Ok([word(stream, &self.out, 0)?, word(stream, &self.out, 1)?])
    }

    /// A column of `n` elements of 32 bits, or of bytes, that a kernel makes.
    fn made(&mut self, name: &str, element: Element, n: u64, other: u64) -> Result<DeviceSlice, Failure> {
        let column = self.room(element, n)?;
        self.kernel(name, n, Given { words: Some(&column), other, ..Given::default() })?;
        Ok(column)
    }

    fn keys(&mut self) -> Result<DeviceSlice, Failure> {
        self.made("large_keys", Element::U32, self.n, 0)
    }

    /// Offsets of segments of so many rows, and their number.
    fn offsets(&mut self, rows: u64) -> Result<(DeviceSlice, u64), Failure> {
        let segments = self.n.div_ceil(rows);
        let starts = self.room(Element::U64, segments + 1)?;
        let end = self.room(Element::U64, 1)?;
        self.bench.stream.upload(end.buffer(), end.offset(), &self.n.to_le_bytes())?;
        let given = Given { input: Some(&end), wide: Some(&starts), other: rows, ..Given::default() };
        self.kernel("large_offsets", segments + 1, given)?;
        Ok((starts, segments))
    }

    /// A sum of hashes of keys, whatever their order.
    fn hash(&mut self, keys: &DeviceSlice, n: u64) -> Result<u64, Failure> {
        Ok(self.kernel("large_hash", n, Given { input: Some(keys), ..Given::default() })?[1])
    }

    /// The sum of a column.
    fn sum(&mut self, column: &DeviceSlice) -> Result<u64, Failure> {
        Ok(self.kernel("large_sum", self.n, Given { input: Some(column), ..Given::default() })?[1])
    }

    /// A word of 32 bits of a result.
    fn word32(&mut self, slice: &DeviceSlice, at: u64) -> Result<u64, Failure> {
        let bytes = taken::<4>(&mut self.bench.stream, slice, at, 1)?[0];
        Ok(u32::from_le_bytes(bytes).into())
    }

    /// Runs a check; an error if it finds a wrong row or another sum.
    fn check(&mut self, name: &str, n: u64, given: Given<'_>, expected: u64) -> Result<(), Failure> {
        match self.kernel(name, n, given)? {
            [0, sum] if sum == expected => Ok(()),
            [wrong, sum] => Err(format!("{name}: {wrong} wrong, {sum} instead of {expected}").into()),
        }
    }

    /// Compares a word of a result.
    fn expect(&mut self, what: &str, slice: &DeviceSlice, at: u64, expected: u64) -> Result<(), Failure> {
        match word(&mut self.bench.stream, slice, at)? {
            found if found == expected => Ok(()),
            found => Err(format!("{what}: {found} instead of {expected}").into()),
        }
    }

    /// Runs and measures a primitive, given its inputs, its outputs and its scratch memory.
    fn time(
        &mut self,
        read: &[&DeviceSlice],
        written: &[&DeviceSlice],
        memory: &DeviceBuffer,
        describe: impl FnOnce(&mut Work) -> Result<(), GpuError>,
    ) -> Result<Sample, GpuError> {
        let read: Vec<_> = read.iter().map(|slice| slice.buffer()).collect();
        let written: Vec<_> = written.iter().map(|slice| slice.buffer()).chain([memory]).collect();
        self.bench.time(&read, &written, describe)
    }
}

/// A case: its name, bytes read and written for each row, and the run, which gives milliseconds. A search has no floor:
/// the sectors that it reads are those that its keys lead to.
type Case = (&'static str, Option<[u64; 2]>, fn(&mut Large<'_, '_>) -> Result<Sample, Failure>);

const CASES: [Case; 22] = [
    ("reduce", Some([4, 0]), rows::reduce),
    ("scan", Some([4, 8]), rows::scan),
    ("segmented_reduce", Some([4, 0]), rows::segmented_reduce),
    ("segmented_scan", Some([4, 4]), rows::segmented_scan),
    ("select", Some([4, 4]), rows::select),
    ("partition", Some([4, 4]), rows::partition),
    ("split", Some([1, 0]), rows::split),
    ("project", Some([8, 4]), rows::project),
    ("gather", Some([8, 4]), rows::gather),
    ("scatter", Some([8, 4]), rows::scatter),
    ("histogram", Some([4, 0]), keys::histogram),
    ("radix_sort", Some([20, 16]), keys::radix_sort),
    // A key and its validity make a word of 33 bits; five passes move it with the row's number, which the first pass
    // makes.
    ("sort", Some([5 + 8 + 8 + 4 * 16, 8 + 5 * 16]), keys::sort),
    ("segmented_sort", Some([20, 16]), keys::segmented_sort),
    ("merge", Some([4, 4]), keys::merge),
    ("search", None, keys::search),
    ("ordered", Some([4, 0]), keys::ordered),
    ("unique", Some([4, 0]), keys::unique),
    ("radix_partition", Some([12, 8]), keys::radix_partition),
    ("hash_join", Some([8, 0]), keys::hash_join),
    ("hash_group_by", Some([8, 0]), keys::hash_group_by),
    ("topk", Some([4, 0]), keys::top_k),
];

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let wanted: Vec<(String, Case)> = CASES
        .map(|case| (format!("large/{}", case.0), case))
        .into_iter()
        .filter(|(case, _)| bench.wants_named(case))
        .collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let n = bench.rows(ROWS_LOG) + MORE_ROWS;
    let out = room(&bench.device, Element::U64, 2)?;
    let mut large = Large { bench, n, out };
    for (case, (_, bytes, run)) in wanted {
        let ms = run(&mut large).map_err(|failure| format!("{case}: {failure}"))?;
        let more = json!({"rows": n});
        match bytes {
            Some([read, written]) => {
                large.bench.add(&case, ms, (read + written) * n, large.bench.ceiling(read * n, written * n), more);
            }
            None => large.bench.add_without_floor(&case, ms, more),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::{Device, EmulatorOptions};

    use super::*;
    use crate::prims::PrimitiveArgs;
    use crate::suite::Run;

    #[test]
    fn every_case_is_verified_over_few_rows() {
        let device = Device::emulated(EmulatorOptions::default(), 512 << 20).unwrap();
        let (arguments, mut unheard) = (PrimitiveArgs::small(10, &["large"]), Run::unheard("primitives").unwrap());
        let mut bench = Bench::new(&device, &arguments, &mut unheard).unwrap();
        run(&mut bench).unwrap();
        assert_eq!(bench.run.report.results.len(), CASES.len());
        // A search has no floor, and so no bytes.
        let unbound = bench.run.report.results.iter().filter(|result| result["bytes"].is_null());
        assert_eq!(unbound.map(|result| result.name.as_str()).collect::<Vec<_>>(), ["large/search"]);
    }

    #[test]
    fn a_wrong_operand_is_found() {
        let device = Device::emulated(EmulatorOptions::default(), 512 << 20).unwrap();
        let (arguments, mut unheard) = (PrimitiveArgs::small(10, &["large"]), Run::unheard("primitives").unwrap());
        let mut bench = Bench::new(&device, &arguments, &mut unheard).unwrap();
        let (n, out) = (bench.rows(ROWS_LOG) + MORE_ROWS, room(&device, Element::U64, 2).unwrap());
        let mut large = Large { bench: &mut bench, n, out };
        let refused = |ms: Result<Sample, Failure>, check: &str| {
            let failure = ms.unwrap_err().to_string();
            assert!(failure.starts_with(check), "{failure}");
        };
        let [x, y] = rows::factors(&mut large).unwrap();
        refused(rows::project_of(&mut large, [&y, &x]), "large_projected: ");
        refused(rows::project_of(&mut large, [&x, &x]), "large_projected: ");
        let [keys, values] = keys::grouped(&mut large).unwrap();
        refused(keys::hash_group_by_of(&mut large, [&keys, &keys]), "large_grouped: ");
        refused(keys::hash_group_by_of(&mut large, [&values, &keys]), "the groups: ");
        // Keys of other segments.
        let keys = large.keys().unwrap();
        let mut moved = taken::<4>(&mut large.bench.stream, &keys, 0, n).unwrap();
        moved.rotate_left(1);
        large.bench.stream.upload(keys.buffer(), keys.offset(), moved.as_flattened()).unwrap();
        refused(keys::segmented_sort_of(&mut large, &keys), "large_sorted: 0 wrong, ");
    }
}
