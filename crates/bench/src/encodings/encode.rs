//! The suite `encode`: plain columns encoded on the device, by encoding and as loads do that name none (`auto`), and
//! the profile that encodings are chosen by.
//!
//! A case is timed on the host, from its first launch to its last result: waits of the device in between belong to the
//! cost of a load. Memory is cached by the run before.

use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use serde_json::json;
use warpcube_column::format::{Alp, Delta, Dictionary, Encoding, Nsf, Nsv, Packed, Plain, encode};
use warpcube_column::{
    ColumnError, EncodingChoice, LoadLimits, Pinned, Relation, Residency, ResidentColumn, Result, TableRequest,
};
use warpcube_gpu::{Device, DeviceBuffer};

use super::data::{Content, Made};
use crate::report::Case;
use crate::stats::repeat;
use crate::suite::{About, Failure, Run, RunArgs, Suite};

/// Columns that are encoded.
const CONTENTS: [Content; 6] = [
    Content::Uniform { bits: 12 },
    Content::Outliers,
    Content::Runs,
    Content::Sorted { log2: 28 },
    Content::Few,
    Content::Hundredths { bits: 20 },
];

/// What to measure of encoding.
#[derive(Debug, Clone, Args)]
pub struct EncodeArgs {
    /// Values of a column
    #[arg(long, default_value_t = 500_000_000)]
    rows: usize,
    /// Runs of a case; the median is reported
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// What to do with the results
    #[command(flatten)]
    pub run: RunArgs,
}

/// The suite: a group is a column.
pub struct Encode {
    device: Device,
    arguments: EncodeArgs,
    /// The column that is encoded.
    loaded: Option<(Residency, Pinned)>,
}

impl Encode {
    /// The suite with these arguments.
    pub fn new(device: Device, arguments: EncodeArgs) -> Encode {
        Encode { device, arguments, loaded: None }
    }

    /// Encodes a column again and again; gives bytes, or none of a pass that makes none.
    fn time(
        &self,
        run: &mut Run,
        name: String,
        plain_bytes: usize,
        encode: &dyn Fn() -> Result<Option<usize>>,
    ) -> std::result::Result<Case, Failure> {
        let mut bytes = None;
        let time = repeat(self.arguments.runs, || {
            run.go_on()?;
            let start = Instant::now();
            bytes = encode().map_err(|error| error.to_string())?;
            Ok::<f64, Failure>(start.elapsed().as_secs_f64() * 1e3)
        })?;
        let bits = bytes.map(|bytes| 8.0 * bytes as f64 / self.arguments.rows as f64);
        let speed = plain_bytes as f64 / time.ms / 1e6;
        let figures = json!({"ms": time.ms, "spread": time.spread, "plain_gb_per_s": speed, "bits_per_value": bits});
        Ok(Case::new(name, figures))
    }
}

impl Suite for Encode {
    fn about(&self) -> About<'_> {
        About { name: "encode", device: Some(&self.device), params: json!({"rows": self.arguments.rows}) }
    }

    fn cases(&mut self) -> std::result::Result<Vec<Vec<String>>, Failure> {
        let of = |content: Content| {
            let names = ["profile", "auto"].into_iter().chain(encodings(content).iter().map(|(name, _)| *name));
            names.map(|name| format!("{name}/{content}")).collect()
        };
        Ok(CONTENTS.map(of).to_vec())
    }

    fn setup(&mut self, _run: &mut Run, group: usize) -> std::result::Result<(), Failure> {
        // The column before leaves the device first.
        self.loaded = None;
        let residency = Residency::new(self.device.clone());
        residency.compile_encoders().map_err(|error| error.to_string())?;
        let content = CONTENTS[group];
        let source = Arc::new(Made { rows: self.arguments.rows, content, nulls: false, key: content.to_string() });
        let requests = [TableRequest { source, columns: vec![0], coded: Vec::new() }];
        let limits = LoadLimits { encoding: EncodingChoice::Plain, ..LoadLimits::default() };
        let pinned = residency.admit(&requests, &limits, |_: &[Relation]| Ok::<u64, ColumnError>(0));
        self.loaded = Some((residency, pinned.map_err(|error| format!("{content}: {error}"))?));
        Ok(())
    }

    fn run(&mut self, run: &mut Run, group: usize) -> std::result::Result<(), Failure> {
        let Some((residency, pinned)) = &self.loaded else { return Ok(()) };
        let (content, column) = (CONTENTS[group], &pinned.tables[0].columns[0]);
        let failed = |error: ColumnError| format!("{content}: {error}");
        let plain_bytes = self.arguments.rows * column.storage().width();
        let name = |encoding: &str| format!("{encoding}/{content}");
        // The profile is not verified here; tests verify it.
        let profile = || residency.profile(column).map(|_| None);
        let case = self.time(run, name("profile"), plain_bytes, &profile)?;
        run.add(case);
        // All of it, as a load does: the pass that chooses the best encoding, and that encoding.
        let best = || {
            let segments = residency.encode_best(column)?.1;
            Ok(Some(segments.iter().map(|segment| segment.values().bytes()).sum()))
        };
        let mut whole = self.time(run, name("auto"), plain_bytes, &best)?;
        let encoding = residency.encode_best(column).map_err(failed)?.0;
        check(residency, column, &encoding).map_err(failed)?;
        let of_codes = if let Encoding::Dictionary(_) = encoding { "dictionary, " } else { "" };
        whole.put("encoding", format!("{of_codes}{}", encoding.stored()));
        run.add(whole.verified(true));
        for (encoding_name, encoding) in encodings(content) {
            let encoding = encoding(residency, column).map_err(failed)?;
            check(residency, column, &encoding).map_err(failed)?;
            let encode = || {
                let encoded = residency.encode(column, &encoding)?;
                Ok(Some(encoded.iter().map(|segment| segment.values().bytes()).sum()))
            };
            let case = self.time(run, name(encoding_name), plain_bytes, &encode)?;
            run.add(case.verified(true));
        }
        Ok(())
    }
}

/// An encoding by its name; that of a dictionary needs the column's values.
type Named = (&'static str, fn(&Residency, &ResidentColumn) -> Result<Encoding>);

/// The encodings that are measured on such a column.
fn encodings(content: Content) -> &'static [Named] {
    const fn packed(width: u32, reference: Option<u64>, patches: bool) -> Packed {
        Packed { width, reference, patches }
    }
    match content {
        Content::Uniform { .. } => &[
            ("packed", |_, _| Ok(Encoding::Packed(packed(12, Some(0), false)))),
            ("packed, references", |_, _| Ok(Encoding::Packed(packed(12, None, false)))),
            ("nsf", |_, _| Ok(Encoding::Nsf(Nsf { bytes: 2 }))),
            ("nsv", |_, _| Ok(Encoding::Nsv(Nsv { reference: 0 }))),
            ("gpu-for", |_, _| Ok(Encoding::GpuFor)),
        ],
        Content::Outliers => &[("packed, patches", |_, _| Ok(Encoding::Packed(packed(12, None, true))))],
        Content::Runs => &[("rle", |_, _| Ok(Encoding::Rle))],
        Content::Sorted { .. } => &[
            ("gpu-dfor", |_, _| Ok(Encoding::GpuDfor)),
            ("delta", |_, _| Ok(Encoding::Delta(Delta { width: 2, differences: 1 }))),
        ],
        Content::Few => &[("dictionary", |residency, column| {
            let values = residency.distinct(column, 4_096)?.unwrap_or_default();
            let codes = Encoding::Packed(packed(10, Some(0), false));
            Ok(Encoding::Dictionary(Dictionary::new(column.storage(), values, codes)?))
        })],
        Content::Hundredths { .. } => {
            &[("alp", |_, _| Ok(Encoding::Alp(Alp { exponent: 14, factor: 12, integers: packed(20, None, true) })))]
        }
        Content::Normal { .. } | Content::Zipf { .. } => &[],
    }
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
