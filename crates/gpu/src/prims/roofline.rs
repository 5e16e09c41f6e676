//! The rates of a device: what its memory, caches and multiprocessors do in a second. Predictions are computed from
//! them, those of first rows by [`crate::prims::topk::predict_ms`].
//!
//! Rates are measured, never taken from a datasheet.

use super::tuning::{Measured, on_h200};
use crate::backend::DeviceInfo;

/// What a device can do, in bytes a second where nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeviceRates {
    /// Reads of device memory, one after the other.
    pub read: Measured<f64>,
    /// Passes of a radix sort of pairs, bytes read and written together.
    pub sorted: Measured<f64>,
    /// A copy in device memory, bytes read and written together.
    pub copy: Measured<f64>,
    /// Random sectors of 32 bytes from device memory.
    pub device_sectors: Measured<f64>,
    /// Random sectors of 32 bytes from the L2 cache.
    pub l2_sectors: Measured<f64>,
    /// Random sectors of the L2 cache that are added to by atomics.
    pub l2_adds: Measured<f64>,
    /// Random sectors of device memory that are added to by atomics.
    pub device_adds: Measured<f64>,
    /// Bytes of a table that random reads find in the L1 cache, while columns go through it too.
    pub l1_bytes: Measured<f64>,
    /// Bytes of a table that random reads find in the L2 cache.
    pub l2_bytes: Measured<f64>,
    /// Random words of 8 bytes from shared memory, words a second.
    pub shared_words: Measured<f64>,
    /// Random pairs of slots, 16 bytes, from shared memory, pairs a second.
    pub shared_pairs: Measured<f64>,
    /// Additions to random words of 4 bytes in shared memory, words a second.
    pub shared_adds: Measured<f64>,
    /// Bytes a second of shared memory, all multiprocessors together.
    pub shared: Measured<f64>,
    /// Instructions of lanes issued a second, all multiprocessors together.
    pub issue: Measured<f64>,
    /// Cycles of a multiprocessor a second.
    pub clock: Measured<f64>,
    /// Bytes of a table that a block copies to shared memory, at most.
    pub shared_bytes: Measured<usize>,
    /// Rows of keys and values moved to 256 partitions, bytes read and written together.
    pub partition: Measured<f64>,
    /// Page-locked memory of the host, sent to the device.
    pub sent: Measured<f64>,
    /// Milliseconds of a small kernel behind another one.
    pub launch_ms: Measured<f64>,
}

impl DeviceRates {
    /// The rates of a device: those of device memory by its peak, and those of all multiprocessors by their number, in
    /// proportion to an H200's, or an H200's where the peak is not known; the shared memory that its blocks are given;
    /// the others as they are on an H200.
    pub fn of(info: &DeviceInfo) -> DeviceRates {
        let shared_bytes = Measured { value: info.shared_memory_per_block, ..H200.shared_bytes };
        let rates = DeviceRates { shared_bytes, ..H200 };
        if info.peak_bandwidth <= 0.0 {
            return rates;
        }
        let times = |rate: Measured<f64>, factor: f64| Measured { value: rate.value * factor, ..rate };
        let of = |rate: Measured<f64>| times(rate, info.peak_bandwidth / H200_PEAK);
        let of_all = |rate: Measured<f64>| times(rate, f64::from(info.multiprocessors) / H200_MULTIPROCESSORS);
        DeviceRates {
            read: of(H200.read),
            sorted: of(H200.sorted),
            copy: of(H200.copy),
            device_sectors: of(H200.device_sectors),
            device_adds: of(H200.device_adds),
            partition: of(H200.partition),
            shared_words: of_all(H200.shared_words),
            shared_pairs: of_all(H200.shared_pairs),
            shared_adds: of_all(H200.shared_adds),
            shared: of_all(H200.shared),
            issue: of_all(H200.issue),
            ..rates
        }
    }
}

/// Peak bandwidth of an H200 by its clock and bus width, bytes a second.
const H200_PEAK: f64 = 4.814e12;

/// Multiprocessors of an H200.
const H200_MULTIPROCESSORS: f64 = 132.0;

/// One H200, 141 GB.
pub const H200: DeviceRates = DeviceRates {
    read: on_h200!(4.55e12, "2026-11-23", "4.55 TB/s, sums of plain columns of 2 GB"),
    sorted: on_h200!(2.29e12, "2026-11-23", "2^28 pairs of 8 bytes sorted in 7.98 ms, whose passes move 18.3 GB"),
    copy: on_h200!(4.2e12, "2026-11-23", "4.2 TB/s, copies of 4 GB"),
    device_sectors: on_h200!(1.36e12, "2026-11-23", "2^28 words of 8 bytes from 1 to 4 GB in 6.10 to 6.47 ms"),
    l2_sectors: on_h200!(5.2e12, "2026-11-23", "2^28 words of 8 bytes from 4 to 16 MB in 1.65 ms"),
    l2_adds: on_h200!(3.4e12, "2026-11-23", "2^28 additions to words of 8 bytes of 1 to 16 MB in 2.53 ms"),
    device_adds: on_h200!(5.2e11, "2026-11-23", "2^28 additions to words of 8 bytes of 1 to 4 GB in 16.3 to 17.0 ms"),
    l1_bytes: on_h200!(170e3, "2026-11-25", "joins with 256 KB and 512 KB of values in 1.00 and 1.70 ms"),
    l2_bytes: on_h200!(44e6, "2026-11-23", "2^28 words from 64 MiB in 3.28 ms: two thirds of them at 1.65 ms for all"),
    shared_words: on_h200!(1.32e12, "2026-11-23", "2^28 words of 8 bytes from 8 to 128 KB in 0.20 ms"),
    shared_pairs: on_h200!(7.9e11, "2026-11-25", "2^28 pairs of 16 bytes from 8 to 128 KB in 0.34 ms"),
    shared_adds: on_h200!(1.8e12, "2026-11-23", "2^28 additions to words of 4 bytes of 4 to 64 KB in 0.149 ms"),
    shared: on_h200!(2.95e13, "2026-11-23", "132 multiprocessors of 128 bytes a cycle at 1.75 GHz"),
    issue: on_h200!(2.957e13, "2026-11-25", "132 multiprocessors of 4 x 32 lanes a cycle at 1.75 GHz"),
    clock: on_h200!(1.75e9, "2026-11-25", "the clock under load"),
    shared_bytes: on_h200!(227 << 10, "2026-11-23", "the most that a block is given"),
    partition: on_h200!(2.75e12, "2026-11-23", "2^28 rows of 20 bytes in all in 1.95 ms"),
    sent: on_h200!(5.53e10, "2026-11-23", "1 GiB in 19.4 ms"),
    launch_ms: on_h200!(0.0035, "2026-11-23", "3.5 us a launch in a recording"),
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;
    use crate::emulated::EmulatorOptions;

    #[test]
    fn other_devices_have_other_memory_and_the_same_bus() {
        let device = Device::emulated(EmulatorOptions::default(), 1 << 20).unwrap();
        let info = |peak_bandwidth, shared_memory_per_block| {
            let (multiprocessors, info) = (132, device.info().clone());
            DeviceRates::of(&DeviceInfo { peak_bandwidth, shared_memory_per_block, multiprocessors, ..info })
        };
        assert_eq!(info(0.0, 227 << 10), H200);
        let half = info(H200_PEAK / 2.0, 99 << 10);
        assert_eq!((half.shared_bytes.value, half.read.value), (99 << 10, H200.read.value / 2.0));
        assert_eq!(half.copy.value, H200.copy.value / 2.0);
        assert_eq!(half.sent.value, H200.sent.value);
        assert_eq!(half.issue.value, H200.issue.value);
        let few = DeviceInfo { multiprocessors: 33, peak_bandwidth: H200_PEAK, ..device.info().clone() };
        assert_eq!(DeviceRates::of(&few).issue.value, H200.issue.value / 4.0);
    }
}
