//! Projections of two columns of 2^29 floats: a linear combination, and its sigmoid.

use serde_json::json;
use warpcube_gpu::prims::roofline::H200;
use warpcube_gpu::prims::{Element, Project, Projection, project};

use super::Bench;
use super::hashed::{Failure, ceiling, floats, room, taken};

/// Rows at both ends that are compared.
const SAMPLE: u64 = 1 << 20;
/// The factors.
const A: f32 = 2.5;
const B: f32 = -0.75;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), String> {
    measure(bench).map_err(|failure| failure.to_string())
}

fn measure(bench: &mut Bench<'_>) -> Result<(), Failure> {
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
        let buffers = [x.buffer(), y.buffer(), out.buffer()];
        let ms = bench.time(&buffers, |work| projects.launch(work, [&x, &y], factors, &out))?;
        let sample = n.min(SAMPLE);
        for from in [0, n - sample] {
            let mut columns = Vec::new();
            for slice in [&x, &y, &out] {
                let items = taken::<4>(&mut bench.stream, slice, from, sample)?;
                columns.push(items.into_iter().map(f32::from_le_bytes).collect::<Vec<f32>>());
            }
            for ((x, y), found) in columns[0].iter().zip(&columns[1]).zip(&columns[2]) {
                let expected = project(projection, *x, *y, A, B);
                if (found - expected).abs() > 2e-6 * (1.0 + expected.abs()) {
                    return Err(format!("{case}: {found} of {x} and {y} instead of {expected}").into());
                }
            }
        }
        let more = json!({"rows": n, "predicted_ms": H200.project_ms(n, 4)});
        bench.add(case, ms, 12 * n, ceiling(8 * n, 4 * n), more);
    }
    Ok(())
}
