//! Which errors of a fragment have the CPU answer instead, and which would come again.

use warpcube_column::ColumnError;
use warpcube_engine::EngineError;
use warpcube_gpu::GpuError;

use crate::settings::Settings;
use crate::values::{DeviceChoice, Placement};

/// Whether the same fragment over the same tables would be refused again.
pub(super) fn is_lasting(error: &EngineError) -> bool {
    match error {
        EngineError::Unsupported(_) | EngineError::Evaluation(_) => true,
        EngineError::Column(error) => error.is_unsupported(),
        _ => false,
    }
}

/// Whether a column cannot be resident as the fragment asks for it.
pub(super) fn is_of_column(error: &EngineError) -> bool {
    matches!(error, EngineError::Column(error) if error.is_unsupported())
}

/// Whether neither the device nor the placement was named, so that any place may give the answer.
pub(super) fn is_open(settings: &Settings) -> bool {
    settings.placement == Placement::Auto && !matches!(settings.database.device, DeviceChoice::Cuda(_))
}

/// Whether the CPU may give the statement's answer instead. Not under placement `cuda`; where the device was named, for
/// what is not supported there, and not for a device that has no room, no compiler or is gone.
pub(super) fn may_fall_back(error: &EngineError, settings: &Settings) -> bool {
    if settings.placement == Placement::Cuda {
        return false;
    }
    if error.falls_back() {
        return true;
    }
    if matches!(settings.database.device, DeviceChoice::Cuda(_)) {
        return false;
    }
    let gpu = match error {
        EngineError::Gpu(error) | EngineError::Column(ColumnError::Gpu(error)) => error,
        EngineError::Column(ColumnError::OverBudget { .. }) => return true,
        _ => return false,
    };
    // A device that was lost earlier only means that statements run on the CPU from now on.
    matches!(gpu, GpuError::OutOfMemory { .. } | GpuError::CompilerUnavailable { .. }) || gpu.is_lost_before()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_device_that_fails_is_an_error() {
        let settings = |device: &str, placement: &str| {
            let mut settings = Settings::default();
            settings.database.device = device.parse().unwrap();
            settings.placement = placement.parse().unwrap();
            settings
        };
        let full = EngineError::Gpu(GpuError::OutOfMemory { operation: String::new(), wanted: 2, free: 1, budget: 1 });
        let unsupported = EngineError::Unsupported("the join has two rows for a key".into());
        let outcomes = |device: &str, placement: &str| {
            [&full, &unsupported].map(|error| may_fall_back(error, &settings(device, placement)))
        };
        assert_eq!(outcomes("auto", "auto"), [true, true]);
        assert_eq!(outcomes("cuda:1", "auto"), [false, true]);
        assert_eq!(outcomes("auto", "cuda"), [false, false]);
    }
}
