//! One launcher for all algorithms of ordered aggregation.

use warpcube_gpu::prims::Queue;
use warpcube_gpu::{Device, DeviceBuffer, Result};

use super::{FusedAggregation, FusedTuning, OrderedAggregation, OrderedAlgorithm, OrderedForm, OrderedOperands};

/// An algorithm and the shape of its launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderedPlan {
    /// The algorithm.
    pub algorithm: OrderedAlgorithm,
    /// Chunks and blocks of the paper's kernels; the single pass has a tuning of its own ([`OrderedForm::tuning`]).
    pub tuning: FusedTuning,
}

/// An ordered aggregation by one of the algorithms.
#[derive(Clone)]
pub enum OrderedLauncher {
    /// By the single pass.
    SinglePass(OrderedAggregation),
    /// By the paper's kernels.
    Fused(FusedAggregation),
}

impl OrderedPlan {
    /// The algorithm with the default shape.
    pub fn new(algorithm: OrderedAlgorithm) -> OrderedPlan {
        OrderedPlan { algorithm, tuning: FusedTuning::DEFAULT }
    }

    /// Compiles the kernels for a form.
    ///
    /// # Errors
    /// As [`OrderedAggregation::new`] and [`FusedAggregation::new`].
    pub fn launcher(&self, device: &Device, form: OrderedForm) -> Result<OrderedLauncher> {
        Ok(match self.algorithm {
            OrderedAlgorithm::SinglePass => OrderedLauncher::SinglePass(OrderedAggregation::new(device, form)?),
            OrderedAlgorithm::Fused(fusion, variant) => {
                OrderedLauncher::Fused(FusedAggregation::new(device, form, fusion, variant, self.tuning)?)
            }
        })
    }
}

impl OrderedLauncher {
    /// Scratch memory that a launch over `n` keys needs.
    pub fn scratch_bytes(&self, n: u64) -> usize {
        match self {
            OrderedLauncher::SinglePass(aggregation) => aggregation.scratch_bytes(n),
            OrderedLauncher::Fused(aggregation) => aggregation.scratch_bytes(n),
        }
    }

    /// Writes the runs of the keys.
    ///
    /// # Errors
    /// As [`OrderedAggregation::launch`] and [`FusedAggregation::launch`].
    pub fn launch(&self, queue: &mut impl Queue, operands: &OrderedOperands<'_>, scratch: &DeviceBuffer) -> Result<()> {
        match self {
            OrderedLauncher::SinglePass(aggregation) => aggregation.launch(queue, operands, scratch),
            OrderedLauncher::Fused(aggregation) => aggregation.launch(queue, operands, scratch),
        }
    }
}
