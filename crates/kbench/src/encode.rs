//! The suite `encode`: plain columns encoded on the device, by encoding and as loads do that name none (`auto`), and
//! the profile that encodings are chosen by.
//!
//! A case is timed on the host, from its first launch to its last result: waits of the device in between belong to the
//! cost of a load. Memory is cached by the run before.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use warpcube_column::format::{Alp, Delta, Dictionary, Encoding, Nsf, Nsv, Packed, Plain, encode};
use warpcube_column::{
    ColumnError, EncodingChoice, LoadLimits, Pinned, Relation, Residency, ResidentColumn, Result, TableRequest,
};
use warpcube_gpu::{Device, DeviceBuffer};
use warpcube_kbench::report;

use crate::EncodeArgs;
use crate::data::{Content, Made};

/// Columns that are encoded.
const CONTENTS: [Content; 6] = [
    Content::Uniform { bits: 12 },
    Content::Outliers,
    Content::Runs,
    Content::Sorted { log2: 28 },
    Content::Few,
    Content::Hundredths { bits: 20 },
];

/// Encodings that are measured on such a column.
fn encodings(
    content: Content,
    residency: &Residency,
    column: &ResidentColumn,
) -> Result<Vec<(&'static str, Encoding)>> {
    let packed = |width, reference, patches| Packed { width, reference, patches };
    Ok(match content {
        Content::Uniform { .. } => vec![
            ("packed", Encoding::Packed(packed(12, Some(0), false))),
            ("packed, references", Encoding::Packed(packed(12, None, false))),
            ("nsf", Encoding::Nsf(Nsf { bytes: 2 })),
            ("nsv", Encoding::Nsv(Nsv { reference: 0 })),
            ("gpu-for", Encoding::GpuFor),
        ],
        Content::Outliers => vec![("packed, patches", Encoding::Packed(packed(12, None, true)))],
        Content::Runs => vec![("rle", Encoding::Rle)],
        Content::Sorted { .. } => {
            vec![("gpu-dfor", Encoding::GpuDfor), ("delta", Encoding::Delta(Delta { width: 2, differences: 1 }))]
        }
        Content::Few => {
            let values = residency.distinct(column, 4_096)?.unwrap_or_default();
            let codes = Encoding::Packed(packed(10, Some(0), false));
            vec![("dictionary", Encoding::Dictionary(Dictionary::new(column.storage(), values, codes)?))]
        }
        Content::Hundredths { .. } => {
            let alp = Alp { exponent: 14, factor: 12, integers: packed(20, None, true) };
            vec![("alp", Encoding::Alp(alp))]
        }
        Content::Normal { .. } | Content::Zipf { .. } => Vec::new(),
    })
}

/// Runs the suite.
pub(crate) fn run(arguments: &EncodeArgs) -> std::result::Result<(), String> {
    let device = Device::cuda(0, None).map_err(|error| error.to_string())?;
    let mut results = Vec::new();
    Residency::new(device.clone()).compile_encoders().map_err(|error| error.to_string())?;
    println!("{:<32} {:>9} {:>9} {:>9}", "case", "ms", "GB/s", "bits");
    for content in CONTENTS {
        let residency = Residency::new(device.clone());
        results.extend(measure(&residency, content, arguments).map_err(|error| format!("{content}: {error}"))?);
    }
    let report = report::of("encode", &device, json!({"rows": arguments.rows}), results);
    crate::write(arguments.json.as_deref(), &report)
}

/// Loads a column and encodes it again and again.
fn measure(residency: &Residency, content: Content, arguments: &EncodeArgs) -> Result<Vec<Value>> {
    let source = Arc::new(Made { rows: arguments.rows, content, nulls: false, key: content.to_string() });
    let requests = [TableRequest { source, columns: vec![0], coded: Vec::new() }];
    let limits = LoadLimits { encoding: EncodingChoice::Plain, ..LoadLimits::default() };
    let pinned: Pinned = residency.admit(&requests, &limits, |_: &[Relation]| Ok::<u64, ColumnError>(0))?;
    let column = &pinned.tables[0].columns[0];
    let plain_bytes = arguments.rows * column.storage().width();
    let name = |encoding: &str| format!("{encoding}/{content}");
    let mut results = Vec::new();
    let seconds = median(arguments.runs, || residency.profile(column).map(drop))?;
    // The profile is not verified here; tests verify it.
    let mut pass = report(&name("profile"), seconds, plain_bytes, None);
    pass["verified"] = Value::Null;
    results.push(pass);
    // All of it, as a load does: the pass that chooses the best encoding, and that encoding.
    let (mut best, mut bytes) = (None, 0);
    let seconds = median(arguments.runs, || {
        let (encoding, segments) = residency.encode_best(column)?;
        bytes = segments.iter().map(|segment| segment.values().bytes()).sum();
        best = Some(encoding);
        Ok(())
    })?;
    let mut whole = report(&name("auto"), seconds, plain_bytes, Some(8.0 * bytes as f64 / arguments.rows as f64));
    if let Some(encoding) = best {
        check(residency, column, &encoding)?;
        let of_codes = if let Encoding::Dictionary(_) = encoding { "dictionary, " } else { "" };
        whole["encoding"] = format!("{of_codes}{}", encoding.stored()).into();
    }
    results.push(whole);
    for (encoding_name, encoding) in encodings(content, residency, column)? {
        check(residency, column, &encoding)?;
        let mut bytes = 0;
        let seconds = median(arguments.runs, || {
            let encoded = residency.encode(column, &encoding)?;
            bytes = encoded.iter().map(|segment| segment.values().bytes()).sum();
            Ok(())
        })?;
        let bits = 8.0 * bytes as f64 / arguments.rows as f64;
        results.push(report(&name(encoding_name), seconds, plain_bytes, Some(bits)));
    }
    Ok(results)
}

/// Median time of some runs, after one that is not counted.
fn median(runs: usize, mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    run()?;
    let mut times = Vec::new();
    for _ in 0..runs.max(1) {
        let start = Instant::now();
        run()?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2].as_secs_f64())
}

fn report(case: &str, seconds: f64, plain_bytes: usize, bits: Option<f64>) -> Value {
    let (ms, speed) = (seconds * 1e3, plain_bytes as f64 / seconds / 1e9);
    println!("{case:<32} {ms:>9.3} {speed:>9.1} {:>9.2}", bits.unwrap_or(0.0));
    json!({"case": case, "ms": ms, "plain_gb_per_s": speed, "bits_per_value": bits, "verified": true})
}

/// Compares the last segment with the CPU's encoding of it.
fn check(residency: &Residency, column: &ResidentColumn, encoding: &Encoding) -> Result<()> {
    let mut stream = residency.device().stream()?;
    let mut bytes = |buffer: &DeviceBuffer| -> Result<Vec<u8>> {
        let mut bytes = vec![0; buffer.bytes()];
        stream.download(buffer, 0, &mut bytes)?;
        Ok(bytes)
    };
    let encoded = residency.encode(column, encoding)?;
    let (Some(plain), Some(found)) = (column.segments().last(), encoded.last()) else { return Ok(()) };
    let values = bytes(plain.values())?;
    let expected = encode(encoding, &Plain::new(column.storage(), &values, None, plain.rows() as usize)?)?;
    match bytes(found.values())? == expected {
        true => Ok(()),
        false => Err(ColumnError::source(format!("{} has other bytes than the CPU makes", encoding.name()))),
    }
}
