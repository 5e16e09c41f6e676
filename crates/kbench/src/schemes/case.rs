//! Names of cases, and the results as lines.

use serde_json::Value;
use warpcube_cube::schemes::Scheme;

/// A measured operation of a scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// Bytes of the scheme to those of the dense array.
    Storage,
    /// The scheme from sorted cells; on the device, built on the CPU and copied.
    Construction,
    /// Values of many cells by their coordinates, in random order.
    Random,
    /// One of the three sub-arrays.
    SubArray(usize),
    /// The k - 1 aggregations of one scan.
    Aggregation,
}

impl Operation {
    /// All operations.
    pub(super) const ALL: [Operation; 7] = [
        Operation::Storage,
        Operation::Construction,
        Operation::Random,
        Operation::SubArray(0),
        Operation::SubArray(1),
        Operation::SubArray(2),
        Operation::Aggregation,
    ];

    fn name(self) -> String {
        match self {
            Operation::Storage => "storage".to_string(),
            Operation::Construction => "construction".to_string(),
            Operation::Random => "random".to_string(),
            Operation::SubArray(number) => format!("sub-array-{}", number + 1),
            Operation::Aggregation => "aggregation".to_string(),
        }
    }
}

/// Where an operation runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeviceKind {
    /// One core.
    Cpu,
    /// The device.
    Gpu,
}

/// One case.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case {
    pub(super) operation: Operation,
    pub(super) scheme: Scheme,
    pub(super) dimensions: usize,
    /// Share of empty places.
    pub(super) sparsity: f64,
    pub(super) kind: DeviceKind,
}

impl Case {
    /// All cases of one scheme over one kind of array.
    pub(super) fn all(dimensions: usize, sparsity: f64, scheme: Scheme) -> impl Iterator<Item = Case> {
        let kinds: &[DeviceKind] = match Case::is_on_device(scheme) {
            true => &[DeviceKind::Cpu, DeviceKind::Gpu],
            false => &[DeviceKind::Cpu],
        };
        let of = move |operation| {
            kinds.iter().map(move |kind| Case { operation, scheme, dimensions, sparsity, kind: *kind })
        };
        Operation::ALL.into_iter().flat_map(of)
    }

    /// True if the scheme has kernels.
    pub(super) fn is_on_device(scheme: Scheme) -> bool {
        matches!(scheme, Scheme::Bess | Scheme::Xcrs | Scheme::Bxcrs | Scheme::Hybrid { .. })
    }

    /// `<operation>/<scheme>/k<k>/s<sparsity>/<cpu|gpu>`.
    pub(super) fn name(&self) -> String {
        let scheme = match self.scheme {
            Scheme::Hybrid { .. } => "hybrid".to_string(),
            other => other.to_string(),
        };
        let kind = if self.kind == DeviceKind::Cpu { "cpu" } else { "gpu" };
        let percent = (self.sparsity * 1000.0).round() / 10.0;
        format!("{}/{scheme}/k{}/s{percent}/{kind}", self.operation.name(), self.dimensions)
    }
}

/// True if a case has this name or lies below it; `*` stands for any part.
pub(super) fn is_named(case: &str, wanted: &str) -> bool {
    let mut parts = case.split('/');
    wanted
        .trim_end_matches('/')
        .split('/')
        .all(|wanted| parts.next().is_some_and(|part| wanted == "*" || wanted == part))
}

/// A result as a line: its time, the time that it is compared with, and the figures of the operation.
pub(super) fn line(result: &Value) -> String {
    let figure = |key: &str| result[key].as_f64();
    let mut line = format!("{:<38}", result["case"].as_str().unwrap_or_default());
    for (key, unit) in
        [("cpu_ms", "ms on one core"), ("device_ms", "ms on the device"), ("warm_ms", "ms with transfers")]
    {
        if let Some(ms) = figure(key) {
            line += &format!(" {ms:>10.4} {unit}");
        }
    }
    if let Some(ratio) = figure("ratio") {
        line += &format!(" {ratio:>10.5} of the dense array");
    }
    if let Some(speedup) = figure("speedup") {
        line += &format!(" {speedup:>8.1} x one core");
    }
    if let Some(found) = figure("found") {
        line += &format!("  {found} found");
    }
    line
}

/// The random access on the device that is least faster than one core, transfers included.
pub(super) fn least_speedup(results: &[Value]) -> String {
    let of = |result: &'_ Value| {
        Some((result["speedup"].as_f64()?, format!("{}, {} cells", result["case"], result["cells"])))
    };
    let random =
        results.iter().filter(|result| result["case"].as_str().is_some_and(|case| case.starts_with("random/")));
    match random.filter_map(of).min_by(|one, other| one.0.total_cmp(&other.0)) {
        Some((speedup, case)) => {
            format!("bulk random access, transfers included: at least {speedup:.1} x one core ({case})")
        }
        None => "no bulk random access on the device".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_by_whole_parts() {
        let name = "random/offset-value/k2/s99.9/cpu";
        let is = |wanted| is_named(name, wanted);
        assert!(is("random") && is("random/") && is("*/offset-value") && is("*/*/*/s99.9/cpu") && is(name));
        assert!(!is("rand") && !is("*/*/*/s99") && !is(&format!("{name}/more")));
    }
}
