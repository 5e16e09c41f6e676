//! Radix partition of 2^28 rows of keys and values of 32 bits.

use serde_json::json;
use warpcube_gpu::Params;
use warpcube_gpu::prims::radix_partition::{PARTITIONS, TUNING};
use warpcube_gpu::prims::{Element, PartitionBy, RadixPartition, Records};

use super::Bench;
use super::hashed::{kernel, numbers, room, scratch, walk, word};
use super::keyed::KEYED;
use crate::operators::roofline::Roofline;
use crate::suite::Failure;

/// A sum over rows that does not know their order, and the rows whose key a range of keys has not, which begins where
/// that of a partition does.
const TEXT: &str = "struct CheckParams {
    const uint32_t* keys; const uint32_t* values; uint64_t n; const uint64_t* starts; uint64_t* out;
};
WC_KERNEL(partition_check, CheckParams, 256, 1) {
    uint64_t sum = 0, wrong = 0;
    for (uint64_t i = wc_first(); i < p.n; i += wc_stride()) {
        sum += wc_hash(p.keys[i], p.values[i]);
        if (p.starts == nullptr) continue;
        const uint32_t partition = p.keys[i] >> 24;
        if (i < p.starts[partition] || i >= p.starts[partition + 1]) ++wrong;
    }
    wc_add(p.out, sum);
    if (wrong != 0) wc_add(p.out + 1, wrong);
}";

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let shapes = bench.shapes("partition/u32", TUNING.value);
    if shapes.is_empty() {
        return Ok(());
    }
    let (device, n) = (bench.device.clone(), bench.rows(28));
    let rows = [numbers(&device, &mut bench.stream, n, 51)?, numbers(&device, &mut bench.stream, n, 52)?];
    let moved = [room(&device, Element::U32, n)?, room(&device, Element::U32, n)?];
    let (starts, sums) = (room(&device, Element::U64, PARTITIONS as u64 + 1)?, room(&device, Element::U64, 2)?);
    let check = kernel(&device, "partition_check", &[KEYED, TEXT].concat())?;
    for (case, tuning) in shapes {
        let Ok(partition) = RadixPartition::with_tuning(&device, Element::U32, Some(Element::U32), tuning) else {
            continue;
        };
        let memory = scratch(&device, partition.scratch_bytes())?;
        let records = [&rows, &moved].map(|[keys, values]| Records { keys, values: Some(values) });
        let read = rows.each_ref().map(|column| column.buffer());
        let written = [moved[0].buffer(), moved[1].buffer(), starts.buffer(), &memory];
        let by = PartitionBy::place(Element::U32);
        let ms = bench.time(&read, &written, |work| partition.launch(work, records, by, &starts, &memory))?;
        let mut found = Vec::new();
        for ([keys, values], is_moved) in [(&rows, false), (&moved, true)] {
            bench.stream.fill(sums.buffer(), 0, 0, 16)?;
            let params = Params::new().slice(keys).slice(values).u64(n);
            let params = if is_moved { params.slice(&starts) } else { params.null() };
            bench.stream.launch(&check, walk(&device), &params.slice(&sums))?;
            found.push([word(&mut bench.stream, &sums, 0)?, word(&mut bench.stream, &sums, 1)?]);
        }
        if found[0] != found[1] {
            return Err(format!("{case}: sum and wrong rows {:?} instead of {:?}", found[1], found[0]).into());
        }
        let bytes = 20 * n;
        let predicted_ms = bench.rates.partition_ms(n);
        bench.add(
            &case,
            ms,
            bytes,
            bytes as f64 / predicted_ms * 1e3,
            json!({"rows": n, "predicted_ms": predicted_ms}),
        );
    }
    Ok(())
}
