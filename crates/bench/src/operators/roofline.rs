//! The roofline: the time that an operator's bytes need on a device, by the rates of the levels that they come from,
//! and the time that its instructions need where these take longer.
//!
//! Formulas are those of Shanbhag's thesis, chapter 3.6 (project, select, join, sort); those of hash aggregation follow
//! the same way. Times are milliseconds.

use warpcube_gpu::prims::{DeviceRates, Measured, RadixAlgorithm};

/// Bytes that a random access moves.
const SECTOR_BYTES: f64 = 32.0;
/// Pairs of slots that a probe of linear probing loads in the mean, of half the slots full, where it finds its key and
/// where there is none: a chain of states over the rows that overflow a pair.
const MATCH_LOADS: f64 = 1.18;
const MISS_LOADS: f64 = 1.63;
/// Instructions of a probe of linear probing: a row, and a pair of slots that it looks at. Behind the first pair of a
/// table in shared memory rows are collected; elsewhere the lanes of a warp wait for its longest probe.
const PROBE_ROW: Measured<f64> = at(16.0, "2026-11-25", "2^28 probes of 8 to 128 KB in 0.75 and 0.96 ms");
const PROBE_QUEUED: Measured<f64> = at(57.0, "2026-11-25", "the same, of 1.18 and 1.59 pairs in the mean");
const PROBE_DIVERGED: Measured<f64> = at(121.0, "2026-11-25", "2^28 probes of 256 KB in 1.37 and 2.04 ms");

/// Instructions of a byte that an ordered aggregation reads.
const ORDERED_BYTE: Measured<f64> =
    at(2.7, "2026-11-26", "2^28 keys, 16 runs: counts in 0.303 ms, of which bytes 0.236, sums in 0.617 of 0.472");
/// Instructions of a row that lanes of a warp add to a table in device memory, those with one key at once.
const ADD_ROW: Measured<f64> = at(110.0, "2026-11-25", "2^28 rows of 10^6 groups in 6.70 ms");
/// Seconds that an addition waits for others to its slot, times the root of what a slot has of a warp's additions.
const ADD_WAIT: Measured<f64> = at(2.2e-9, "2026-11-25", "2^28 rows of 10 and 10^4 groups in 108 and 10.6 ms");
/// Instructions of a row that is added to a table in shared memory, and of each other key that its warp has.
const PRIVATE_ROW: Measured<f64> = at(161.0, "2026-11-25", "2^28 rows of 10 groups in 2.11 ms");
const PRIVATE_KEY: Measured<f64> = at(8.3, "2026-11-25", "2^28 rows of 10^4 groups in 3.78 ms");

/// A value measured on an H200: the day, and what was measured.
const fn at(value: f64, date: &'static str, figure: &'static str) -> Measured<f64> {
    Measured { value, device: "NVIDIA H200", date, figure }
}

/// How a table is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheLevel {
    /// Each block has a copy in shared memory.
    Shared,
    /// The L2 cache holds all of it.
    L2,
    /// The L2 cache holds a part.
    Device,
}

/// Times by the rates of a device.
pub trait Roofline {
    /// The level of a table that is read at random.
    fn level(&self, table_bytes: f64) -> CacheLevel;

    /// Reads and writes one after the other: as a copy of the smaller of them, and the rest at its own rate.
    fn stream_ms(&self, read: f64, written: f64) -> f64;

    /// A projection of two columns to one.
    fn project_ms(&self, rows: u64, item_bytes: usize) -> f64;

    /// A selection: all rows are read, the selected ones written.
    fn select_ms(&self, rows: u64, selected: u64, item_bytes: usize) -> f64;

    /// A scan: each row is read and its sum written.
    fn scan_ms(&self, rows: u64, item_bytes: usize, sum_bytes: usize) -> f64;

    /// A radix sort: one pass that reads keys to count digits, two where the most significant comes first, and passes
    /// that read and write rows.
    fn sort_ms(&self, algorithm: RadixAlgorithm, rows: u64, key_bytes: usize, row_bytes: usize, passes: u32) -> f64;

    /// The same at the rate of a radix sort's own passes, which write each row to one of 256 places.
    fn sorted_ms(&self, algorithm: RadixAlgorithm, rows: u64, key_bytes: usize, row_bytes: usize, passes: u32) -> f64;

    /// A partition of rows of keys and values of 32 bits: the bytes of a sort of one pass, at the rate that runs of a
    /// partition are written with.
    fn partition_ms(&self, rows: u64) -> f64;

    /// An ordered aggregation: keys and values are read, a record for each run written, and instructions of rows are
    /// issued while a tile is waited for.
    fn ordered_ms(&self, rows: u64, row_bytes: usize, runs: u64, run_bytes: usize) -> f64;

    /// The same in so many kernels: each behind the first reads a word a row that the one before wrote.
    fn fused_ms(&self, rows: u64, row_bytes: usize, runs: u64, run_bytes: usize, kernels: u32) -> f64;

    /// Milliseconds that so many instructions of lanes need.
    fn issue_ms(&self, instructions: f64) -> f64;

    /// Random reads of a table, a sector each; beside them `streamed` bytes are read one after the other. What the L1
    /// cache has not comes from the L2 cache, as columns do; device memory serves one after the other (thesis, 3.6.3).
    fn probe_ms(&self, probes: f64, table_bytes: f64, streamed: f64) -> f64;

    /// The sectors of a table, each from device memory once, in any order: what partitioned probes read of it.
    fn first_reads_ms(&self, table_bytes: f64) -> f64;

    /// Probes of a table of linear probing, of which a share matches, beside `streamed` bytes. A probe loads pairs of
    /// slots until it ends; every other pair lies in the sector of the one before.
    fn linear_probe_ms(&self, probes: f64, match_share: f64, table_bytes: f64, streamed: f64) -> f64;

    /// Additions of rows of so many groups to a table of slots of 16 bytes, a read and an atomic each, beside streamed
    /// bytes; all slots are set to zero before and read afterwards. Additions to one slot wait for each other.
    fn add_ms(&self, rows: f64, groups: f64, table_bytes: f64, streamed: f64) -> f64;

    /// Additions of rows of so many groups to a table in each block's shared memory, beside streamed bytes. A warp
    /// takes as many steps as its longest probe.
    fn private_add_ms(&self, rows: f64, groups: f64, streamed: f64) -> f64;

    /// Columns sent over the bus for one query, in chunks, while the chunk before is worked on: the slower of both, and
    /// the last chunk's work (the coprocessor mode of the thesis, 3.1).
    fn sent_ms(&self, bytes: f64, resident_ms: f64, chunks: u64) -> f64;
}

impl Roofline for DeviceRates {
    fn level(&self, table_bytes: f64) -> CacheLevel {
        match table_bytes {
            bytes if bytes <= self.shared_bytes.value as f64 => CacheLevel::Shared,
            bytes if bytes <= self.l2_bytes.value => CacheLevel::L2,
            _ => CacheLevel::Device,
        }
    }

    fn stream_ms(&self, read: f64, written: f64) -> f64 {
        let copied = 2.0 * read.min(written);
        let rest = if read > written { self.read.value } else { self.copy.value };
        (copied / self.copy.value + (read + written - copied) / rest) * 1e3
    }

    fn project_ms(&self, rows: u64, item_bytes: usize) -> f64 {
        self.stream_ms((2 * rows * item_bytes as u64) as f64, (rows * item_bytes as u64) as f64)
    }

    fn select_ms(&self, rows: u64, selected: u64, item_bytes: usize) -> f64 {
        self.stream_ms((rows * item_bytes as u64) as f64, (selected * item_bytes as u64) as f64)
    }

    fn scan_ms(&self, rows: u64, item_bytes: usize, sum_bytes: usize) -> f64 {
        self.stream_ms((rows * item_bytes as u64) as f64, (rows * sum_bytes as u64) as f64)
    }

    fn sort_ms(&self, algorithm: RadixAlgorithm, rows: u64, key_bytes: usize, row_bytes: usize, passes: u32) -> f64 {
        let (keys, bytes) = (rows as f64 * key_bytes as f64, rows as f64 * row_bytes as f64);
        counts(algorithm) * self.stream_ms(keys, 0.0) + f64::from(passes) * self.stream_ms(bytes, bytes)
    }

    fn sorted_ms(&self, algorithm: RadixAlgorithm, rows: u64, key_bytes: usize, row_bytes: usize, passes: u32) -> f64 {
        let row = counts(algorithm) * key_bytes as f64 + 2.0 * f64::from(passes) * row_bytes as f64;
        rows as f64 * row / self.sorted.value * 1e3
    }

    fn partition_ms(&self, rows: u64) -> f64 {
        20.0 * rows as f64 / self.partition.value * 1e3
    }

    fn ordered_ms(&self, rows: u64, row_bytes: usize, runs: u64, run_bytes: usize) -> f64 {
        let read = (rows * row_bytes as u64) as f64;
        self.stream_ms(read, (runs * run_bytes as u64) as f64) + self.issue_ms(read * ORDERED_BYTE.value)
    }

    fn fused_ms(&self, rows: u64, row_bytes: usize, runs: u64, run_bytes: usize, kernels: u32) -> f64 {
        let words = 4.0 * rows as f64;
        let between_ms = f64::from(kernels.saturating_sub(1)) * self.stream_ms(words, words);
        self.ordered_ms(rows, row_bytes, runs, run_bytes) + between_ms
    }

    fn issue_ms(&self, instructions: f64) -> f64 {
        instructions / self.issue.value * 1e3
    }

    fn probe_ms(&self, probes: f64, table_bytes: f64, streamed: f64) -> f64 {
        match self.level(table_bytes) {
            CacheLevel::Shared => (streamed / self.read.value).max(probes / self.shared_words.value) * 1e3,
            _ => cached_ms(self, probes, probes, table_bytes, streamed),
        }
    }

    fn first_reads_ms(&self, table_bytes: f64) -> f64 {
        table_bytes / self.device_sectors.value * 1e3
    }

    fn linear_probe_ms(&self, probes: f64, match_share: f64, table_bytes: f64, streamed: f64) -> f64 {
        let loads = match_share * MATCH_LOADS + (1.0 - match_share) * MISS_LOADS;
        let issued = |pair: Measured<f64>| self.issue_ms(probes * (PROBE_ROW.value + loads * pair.value));
        match self.level(table_bytes) {
            CacheLevel::Shared => {
                let bytes_s = (streamed / self.read.value).max(probes * loads / self.shared_pairs.value);
                (bytes_s * 1e3).max(issued(PROBE_QUEUED))
            }
            _ => {
                let sectors = probes * (1.0 + (loads - 1.0) / 2.0);
                cached_ms(self, probes * loads, sectors, table_bytes, streamed).max(issued(PROBE_DIVERGED))
            }
        }
    }

    fn add_ms(&self, rows: f64, groups: f64, table_bytes: f64, streamed: f64) -> f64 {
        let cached = (self.l2_bytes.value / table_bytes).min(1.0);
        let sectors_s = |l2: Measured<f64>, device: Measured<f64>| {
            rows * SECTOR_BYTES * (cached / l2.value + (1.0 - cached) / device.value)
        };
        let reads_s = sectors_s(self.l2_sectors, self.device_sectors);
        let adds_s = sectors_s(self.l2_adds, self.device_adds);
        let waits_s = rows * ADD_WAIT.value * (warp_keys(groups) / 32.0 / groups.max(1.0)).sqrt();
        let bytes_ms = (streamed / self.read.value + reads_s + adds_s + waits_s) * 1e3;
        bytes_ms + self.issue_ms(rows * ADD_ROW.value) + self.stream_ms(table_bytes, table_bytes)
    }

    fn private_add_ms(&self, rows: f64, groups: f64, streamed: f64) -> f64 {
        let row_s = 1.0 / self.shared_words.value + 1.0 / self.shared_adds.value;
        let instructions = PRIVATE_ROW.value + PRIVATE_KEY.value * (warp_keys(groups) - 1.0);
        self.stream_ms(streamed, 0.0).max(rows * row_s * 1e3).max(self.issue_ms(rows * instructions))
    }

    fn sent_ms(&self, bytes: f64, resident_ms: f64, chunks: u64) -> f64 {
        let bus_ms = bytes / self.sent.value * 1e3;
        let chunk_ms = resident_ms / chunks.max(1) as f64;
        (bus_ms + chunk_ms).max(resident_ms + bus_ms / chunks.max(1) as f64)
    }
}

/// Loads of a table that is not in shared memory, from so many sectors.
fn cached_ms(rates: &DeviceRates, loads: f64, sectors: f64, table_bytes: f64, streamed: f64) -> f64 {
    let streamed_s = streamed / rates.read.value;
    let l2_s = |loads: f64| loads * SECTOR_BYTES / rates.l2_sectors.value;
    if rates.level(table_bytes) != CacheLevel::Device {
        let missed = 1.0 - (rates.l1_bytes.value / table_bytes).min(1.0);
        return streamed_s.max(l2_s(missed * loads) + streamed / rates.l2_sectors.value) * 1e3;
    }
    let cached = rates.l2_bytes.value / table_bytes;
    let device_s = (1.0 - cached) * sectors * SECTOR_BYTES / rates.device_sectors.value;
    (streamed_s + l2_s(cached * loads) + device_s) * 1e3
}

/// Passes of a radix sort that read keys to count digits.
fn counts(algorithm: RadixAlgorithm) -> f64 {
    match algorithm {
        RadixAlgorithm::Lsd => 1.0,
        RadixAlgorithm::Msd => 2.0,
    }
}

/// Different keys of a warp's rows in the mean, of so many groups at random.
fn warp_keys(groups: f64) -> f64 {
    let groups = groups.max(1.0);
    -groups * (32.0 * (-1.0 / groups).ln_1p()).exp_m1()
}

#[cfg(test)]
mod tests {
    use warpcube_gpu::prims::roofline::H200;

    use super::*;

    #[test]
    fn streams_are_copies_and_reads() {
        let close = |found: f64, expected: f64| (found - expected).abs() < 1e-9 * expected;
        assert!(close(H200.stream_ms(4.55e9, 0.0), 1.0));
        assert!(close(H200.stream_ms(2.1e9, 2.1e9), 1.0));
        assert!(close(H200.stream_ms(0.0, 4.2e9), 1.0));
        assert!(close(H200.project_ms(1 << 20, 4), H200.stream_ms(8.0 * 1048576.0, 4.0 * 1048576.0)));
        let [lsd, msd] = RadixAlgorithm::ALL.map(|algorithm| H200.sort_ms(algorithm, 1 << 28, 4, 8, 4));
        assert!(lsd > 4.0 * H200.stream_ms(2f64.powi(31), 2f64.powi(31)));
        assert!(close(msd - lsd, H200.stream_ms(2f64.powi(30), 0.0)));
        assert!(close(H200.fused_ms(1 << 28, 4, 16, 8, 1), H200.ordered_ms(1 << 28, 4, 16, 8)));
        let more = H200.fused_ms(1 << 28, 4, 16, 8, 3) - H200.ordered_ms(1 << 28, 4, 16, 8);
        assert!(close(more, 2.0 * H200.stream_ms(2f64.powi(30), 2f64.powi(30))));
    }

    #[test]
    fn probes_cost_by_the_level_of_their_table() {
        let probes = 2f64.powi(28);
        let ms = |bytes: f64| H200.probe_ms(probes, bytes, 8.0 * probes);
        let sizes: Vec<f64> = (13..31).map(|log| ms(2f64.powi(log))).collect();
        assert!(sizes.windows(2).all(|pair| pair[0] <= pair[1]), "{sizes:?}");
        assert_eq!(H200.level(8192.0), CacheLevel::Shared);
        assert_eq!(H200.level(1e6), CacheLevel::L2);
        assert_eq!(H200.level(1e9), CacheLevel::Device);
    }

    /// Linear probing on one H200 (`warpcube-bench primitives`, 2026-11-25): tables, and milliseconds of 2^28
    /// probes that match all, and by a tenth.
    #[test]
    fn linear_probing_is_predicted_within_a_fifth() {
        let probes = 2f64.powi(28);
        let measured = [
            (13, 0.757, 0.945),
            (15, 0.744, 0.957),
            (17, 0.756, 0.973),
            (18, 1.367, 2.041),
            (19, 1.669, 2.214),
            (20, 1.891, 2.409),
            (22, 2.154, 2.628),
            (24, 2.205, 2.737),
            (25, 2.448, 3.044),
            (26, 3.826, 4.470),
            (27, 5.542, 6.259),
            (28, 6.581, 7.328),
            (30, 7.386, 8.385),
        ];
        for (log, all, tenth) in measured {
            for (share, ms) in [(1.0, all), (0.1, tenth)] {
                let predicted = H200.linear_probe_ms(probes, share, 2f64.powi(log), 8.0 * probes);
                assert!((1.0 / 1.2..1.2).contains(&(ms / predicted)), "2^{log}, {share}: {ms} and {predicted}");
            }
        }
    }

    #[test]
    fn sent_columns_are_bound_by_the_bus() {
        let bytes = 4e9;
        let bus_ms = bytes / H200.sent.value * 1e3;
        assert!(H200.sent_ms(bytes, 1.0, 16) < 1.01 * bus_ms);
        assert!(H200.sent_ms(bytes, 1.0, 1) >= bus_ms + 1.0);
        assert!(H200.sent_ms(bytes, 1e6, 16) > 1e6);
    }
}
