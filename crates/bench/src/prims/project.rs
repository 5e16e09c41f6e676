//! Projections of two columns of 2^29 floats: a linear combination, and its sigmoid.

use serde_json::json;
use warpcube_gpu::prims::{DeviceSlice, Element};

use super::Bench;
use super::hashed::{floats, room, taken};
use crate::operators::project::{Project, Projection, project};
use crate::operators::roofline::Roofline;
use crate::suite::Failure;

/// Rows at both ends and in the middle that are compared.
const SAMPLE: u64 = 1 << 20;
/// The factors.
pub(super) const A: f32 = 2.5;
pub(super) const B: f32 = -0.75;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let cases = [("project/linear", Projection::Linear), ("project/sigmoid", Projection::Sigmoid)];
    let cases: Vec<_> = cases.into_iter().filter(|(case, _)| bench.wants(case)).collect();
    if cases.is_empty() {
        return Ok(());
    }
    let (device, n) = (bench.device.clone(), bench.rows(29));
    let (x, y) = (floats(&device, &mut bench.stream, n, 2)?, floats(&device, &mut bench.stream, n, 3)?);
    let out = room(&device, Element::F32, n)?;
    for (case, projection) in cases {
        let projects = Project::new(&device, Element::F32, projection)?;
        let factors = [A.into(), B.into()];
        let read = [x.buffer(), y.buffer()];
        let ms = bench.time(&read, &[out.buffer()], |work| projects.launch(work, [&x, &y], factors, &out))?;
        verify(bench, case, projection, [&x, &y, &out])?;
        let more = json!({"rows": n, "predicted_ms": bench.rates.project_ms(n, 4)});
        bench.add(case, ms, 12 * n, bench.ceiling(8 * n, 4 * n), more);
    }
    Ok(())
}

/// Compares samples of a projection's output, the third column, with the reference on the CPU.
///
/// # Errors
/// A value further from the reference than rounding explains, NaN included.
pub(super) fn verify(
    bench: &mut Bench<'_>,
    case: &str,
    projection: Projection,
    columns: [&DeviceSlice; 3],
) -> Result<(), Failure> {
    let n = columns[2].len();
    let sample = n.min(SAMPLE);
    for from in [0, n / 2 - sample / 2, n - sample] {
        let mut items = Vec::new();
        for slice in columns {
            let bytes = taken::<4>(&mut bench.stream, slice, from, sample)?;
            items.push(bytes.into_iter().map(f32::from_le_bytes).collect::<Vec<f32>>());
        }
        for ((x, y), found) in items[0].iter().zip(&items[1]).zip(&items[2]) {
            let expected = project(projection, *x, *y, A, B);
            let is_near = (found - expected).abs() <= 2e-6 * (1.0 + expected.abs());
            if !is_near {
                return Err(format!("{case}: {found} of {x} and {y} instead of {expected}").into());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::{Device, EmulatorOptions};

    use super::super::PrimitiveArgs;
    use super::*;
    use crate::suite::Run;

    #[test]
    fn an_output_that_nothing_wrote_is_refused() {
        let device = Device::emulated(EmulatorOptions::default(), 64 << 20).unwrap();
        let (arguments, mut unheard) = (PrimitiveArgs::small(13, &[]), Run::unheard("primitives").unwrap());
        let mut bench = Bench::new(&device, &arguments, &mut unheard).unwrap();
        let n = bench.rows(29);
        let [x, y] = [2, 3].map(|seed| floats(&device, &mut bench.stream, n, seed).unwrap());
        let out = room(&device, Element::F32, n).unwrap();
        let projects = Project::new(&device, Element::F32, Projection::Linear).unwrap();
        projects.launch(&mut bench.stream, [&x, &y], [A.into(), B.into()], &out).unwrap();
        verify(&mut bench, "all", Projection::Linear, [&x, &y, &out]).unwrap();
        // One item in the middle is not written: its bits are those of a NaN.
        bench.stream.fill(out.buffer(), out.offset() + n as usize / 2 * 4, 0xff, 4).unwrap();
        let failure = verify(&mut bench, "all but one", Projection::Linear, [&x, &y, &out]).unwrap_err();
        assert!(failure.to_string().starts_with("all but one: NaN of "), "{failure}");
    }
}
