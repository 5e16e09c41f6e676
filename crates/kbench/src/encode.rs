//! The suite `encode`: plain columns encoded on the device, by encoding, and the profile that encodings are chosen by.
//!
//! A case is timed on the host, from its first launch to its last result: what the device waits for on the way belongs
//! to the cost of a load. Memory is there from the run before.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, Float64Array, Int32Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use serde_json::{Value, json};
use warpcube_column::encoding::{Alp, Dictionary, Encoding, Nsf, Nsv, Packed, Plain, encode};
use warpcube_column::{
    CHUNK_ROWS, ColumnError, ColumnScan, ColumnSource, EncodingChoice, LoadLimits, Pinned, PinnedTable, Residency,
    ResidentColumn, Result, TableRequest,
};
use warpcube_gpu::{Device, DeviceBuffer};

use crate::EncodeArgs;
use crate::data::mix;

/// How the values of a column are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Uniform in 12 bits.
    Uniform,
    /// As uniform, but one in 100 has 31 bits.
    Outliers,
    /// Runs of 19 equal values of 31 bits.
    Runs,
    /// Ascending by up to 15.
    Sorted,
    /// One of 1,000 values of 31 bits.
    Few,
    /// Doubles that are hundredths below 10,000.
    Decimals,
}

impl Content {
    const ALL: [Content; 6] =
        [Content::Uniform, Content::Outliers, Content::Runs, Content::Sorted, Content::Few, Content::Decimals];

    fn value(self, row: usize) -> i32 {
        let (mixed, row) = (mix(row as u64), row as u64);
        (match self {
            Content::Uniform => mixed & 0xfff,
            Content::Outliers if mixed >> 40 & 0x7f == 0 => mixed & 0x7fff_ffff,
            Content::Outliers => mixed & 0xfff,
            Content::Runs => mix(row / 19) & 0x7fff_ffff,
            Content::Sorted => row % 0x0700_0000 * 16 + (mixed & 0xf),
            Content::Few => mix(mixed % 1000) & 0x7fff_ffff,
            Content::Decimals => mixed % 1_000_000,
        }) as i32
    }

    fn array(self, rows: std::ops::Range<usize>) -> ArrayRef {
        match self {
            Content::Decimals => {
                Arc::new(Float64Array::from_iter_values(rows.map(|row| f64::from(self.value(row)) / 100.0)))
            }
            _ => Arc::new(Int32Array::from_iter_values(rows.map(|row| self.value(row)))),
        }
    }

    /// Encodings that are measured on such a column.
    fn encodings(self, residency: &Residency, column: &ResidentColumn) -> Result<Vec<(&'static str, Encoding)>> {
        let packed = |width, reference, patches| Packed { width, reference, patches };
        Ok(match self {
            Content::Uniform => vec![
                ("packed", Encoding::Packed(packed(12, Some(0), false))),
                ("packed, references", Encoding::Packed(packed(12, None, false))),
                ("nsf", Encoding::Nsf(Nsf { bytes: 2 })),
                ("nsv", Encoding::Nsv(Nsv { reference: 0 })),
                ("gpu-for", Encoding::GpuFor),
            ],
            Content::Outliers => vec![("packed, patches", Encoding::Packed(packed(12, None, true)))],
            Content::Runs => vec![("rle", Encoding::Rle)],
            Content::Sorted => vec![("gpu-dfor", Encoding::GpuDfor)],
            Content::Few => {
                let values = residency.distinct(column, 4_096)?.unwrap_or_default();
                let codes = Encoding::Packed(packed(10, Some(0), false));
                vec![("dictionary", Encoding::Dictionary(Dictionary::new(column.storage(), values, codes)?))]
            }
            Content::Decimals => {
                let alp = Alp { exponent: 14, factor: 12, integers: packed(20, None, true) };
                vec![("alp", Encoding::Alp(alp))]
            }
        })
    }
}

/// One column, made when it is read.
#[derive(Debug, Clone)]
struct Made {
    rows: usize,
    content: Content,
}

impl ColumnSource for Made {
    fn name(&self) -> &str {
        "made"
    }

    fn key(&self) -> String {
        format!("{:?}", self.content)
    }

    fn version(&self) -> String {
        "1".into()
    }

    fn schema(&self) -> SchemaRef {
        let data_type = if self.content == Content::Decimals { DataType::Float64 } else { DataType::Int32 };
        Arc::new(Schema::new(vec![Field::new("x", data_type, false)]))
    }

    fn rows(&self) -> Option<u64> {
        Some(self.rows as u64)
    }

    fn open(&self, _columns: &[usize]) -> Result<Box<dyn ColumnScan>> {
        Ok(Box::new(self.clone()))
    }
}

impl ColumnScan for Made {
    fn partitions(&self) -> usize {
        self.rows.div_ceil(CHUNK_ROWS)
    }

    fn read(&self, partition: usize, sink: &mut dyn FnMut(RecordBatch) -> Result<()>) -> Result<()> {
        let rows = partition * CHUNK_ROWS..((partition + 1) * CHUNK_ROWS).min(self.rows);
        sink(RecordBatch::try_new(self.schema(), vec![self.content.array(rows)]).map_err(ColumnError::source)?)
    }
}

/// Runs the suite.
pub(crate) fn run(arguments: &EncodeArgs) -> std::result::Result<(), String> {
    let device = Device::cuda(0, None).map_err(|error| error.to_string())?;
    let mut results = Vec::new();
    println!("{:<32} {:>9} {:>9} {:>9}", "case", "ms", "GB/s", "bits");
    for content in Content::ALL {
        let residency = Residency::new(device.clone());
        results.extend(measure(&residency, content, arguments).map_err(|error| format!("{content:?}: {error}"))?);
    }
    let report = crate::report("encode", &device, json!({"rows": arguments.rows}), results);
    crate::write(arguments.json.as_deref(), &report)
}

/// Loads a column and encodes it again and again.
fn measure(residency: &Residency, content: Content, arguments: &EncodeArgs) -> Result<Vec<Value>> {
    let source = Arc::new(Made { rows: arguments.rows, content });
    let requests = [TableRequest { source, columns: vec![0] }];
    let limits = LoadLimits { encoding: EncodingChoice::Plain, ..LoadLimits::default() };
    let pinned: Pinned = residency.admit(&requests, &limits, |_: &[PinnedTable]| Ok::<u64, ColumnError>(0))?;
    let column = &pinned.tables[0].columns[0];
    let plain_bytes = arguments.rows * column.storage().width();
    let name = |encoding: &str| format!("{encoding}/{content:?}").to_lowercase();
    let mut results = Vec::new();
    let seconds = median(arguments.runs, || residency.profile(column).map(drop))?;
    results.push(report(&name("profile"), seconds, plain_bytes, None));
    for (encoding_name, encoding) in content.encodings(residency, column)? {
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

/// Compares the last segment with what the CPU makes of it.
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
