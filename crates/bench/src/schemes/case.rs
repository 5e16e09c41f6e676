//! Names of cases.

use warpcube_arrays::Scheme;

use crate::report;

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

/// The random access on the device that is least faster than one core, transfers included.
pub(super) fn least_speedup(results: &[report::Case]) -> String {
    let of = |result: &report::Case| {
        Some((result.figure("speedup")?, format!("{}, {} cells", result.name, result["cells"])))
    };
    let random = results.iter().filter(|result| result.part(0) == "random");
    match random.filter_map(of).min_by(|one, other| one.0.total_cmp(&other.0)) {
        Some((speedup, case)) => {
            format!("bulk random access, transfers included: at least {speedup:.1} x one core ({case})")
        }
        None => "no bulk random access on the device".to_string(),
    }
}
