//! The suite `encode`: plain columns encoded on the device, by encoding and as loads do that name none (`auto`), and
//! the profile that encodings are chosen by.
//!
//! A case is timed on the host, from its first launch to its last result: waits of the device in between belong to the
//! cost of a load. Memory is cached by the run before.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use clap::Args;
use serde_json::json;
use warpcube_column::format::{Alp, Delta, Dictionary, Encoding, Nsf, Nsv, Packed, Plain, encode};
use warpcube_column::{
    ColumnError, EncodingChoice, LoadLimits, Pinned, Relation, Residency, ResidentColumn, Result, Segment,
    TableRequest, cores,
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
        let last = RefCell::new(None);
        let best = || {
            last.take();
            let (encoding, segments) = residency.encode_best(column)?;
            let bytes = segments.iter().map(|segment| segment.values().bytes()).sum();
            last.replace(Some((encoding, segments)));
            Ok(Some(bytes))
        };
        let mut whole = self.time(run, name("auto"), plain_bytes, &best)?;
        let Some((encoding, encoded)) = last.take() else {
            return Err(format!("{content}: nothing was encoded").into());
        };
        check(residency.device(), column, &encoding, &encoded).map_err(failed)?;
        drop(encoded);
        let of_codes = if let Encoding::Dictionary(_) = encoding { "dictionary, " } else { "" };
        whole.put("encoding", format!("{of_codes}{}", encoding.stored()));
        run.add(whole.verified(true));
        for (encoding_name, encoding) in encodings(content) {
            let encoding = encoding(residency, column).map_err(failed)?;
            let last = RefCell::new(Vec::new());
            let encode = || {
                last.take();
                let encoded = residency.encode(column, &encoding)?;
                let bytes = encoded.iter().map(|segment| segment.values().bytes()).sum();
                last.replace(encoded);
                Ok(Some(bytes))
            };
            let case = self.time(run, name(encoding_name), plain_bytes, &encode)?;
            check(residency.device(), column, &encoding, &last.take()).map_err(failed)?;
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

/// Compares all segments that a run made with the CPU's encoding of them, on as many threads as there are cores.
fn check(device: &Device, column: &ResidentColumn, encoding: &Encoding, encoded: &[Segment]) -> Result<()> {
    let plain = column.segments();
    if plain.len() != encoded.len() {
        return Err(ColumnError::source(format!("{} segments, expected {}", encoded.len(), plain.len())));
    }
    let (next, threads) = (AtomicUsize::new(0), cores().min(plain.len()));
    let work = || {
        let mut stream = device.stream()?;
        let mut bytes = |buffer: &DeviceBuffer| -> Result<Vec<u8>> {
            let mut bytes = vec![0; buffer.bytes()];
            stream.download(buffer, 0, &mut bytes)?;
            Ok(bytes)
        };
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let (Some(plain), Some(found)) = (plain.get(number), encoded.get(number)) else { return Ok(()) };
            let values = bytes(plain.values())?;
            let expected = encode(encoding, &Plain::new(column.storage(), &values, None, plain.rows() as usize)?)?;
            if bytes(found.values())? != expected {
                let reason = format!("segment {number} of {} has other bytes than the CPU makes", encoding.name());
                return Err(ColumnError::source(reason));
            }
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}

#[cfg(test)]
mod tests {
    use warpcube_column::CHUNK_ROWS;
    use warpcube_gpu::EmulatorOptions;

    use super::*;

    #[test]
    fn every_segment_is_compared() {
        let device = Device::emulated(EmulatorOptions::default(), 1 << 28).unwrap();
        let residency = Residency::new(device.clone());
        let limits = LoadLimits { encoding: EncodingChoice::Plain, ..LoadLimits::default() };
        let load = |content: Content| {
            let source = Arc::new(Made { rows: CHUNK_ROWS + 1000, content, nulls: false, key: content.to_string() });
            let requests = [TableRequest { source, columns: vec![0], coded: Vec::new() }];
            residency.admit(&requests, &limits, |_: &[Relation]| Ok::<u64, ColumnError>(0)).unwrap()
        };
        let [one, other] = [Content::Uniform { bits: 12 }, Content::Uniform { bits: 11 }].map(load);
        let [one, other] = [&one, &other].map(|pinned| &pinned.tables[0].columns[0]);
        let encoding = Encoding::Nsf(Nsf { bytes: 2 });
        let encoded = |column: &ResidentColumn| residency.encode(column, &encoding).unwrap();
        let mut found = encoded(one);
        assert_eq!(found.len(), 2);
        check(&device, one, &encoding, &found).unwrap();
        assert!(check(&device, one, &encoding, &found[1..]).is_err());
        found[0] = encoded(other).swap_remove(0);
        let error = check(&device, one, &encoding, &found).unwrap_err().to_string();
        assert!(error.contains("segment 0 of nsf has other bytes"), "{error}");
    }
}
