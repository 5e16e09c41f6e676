//! The values that DataFusion's numeric settings and options of formats take.
//!
//! DataFusion 55.2 checks few of them: a buffer of 0 bytes is written for ever, a page of 0 rows is an assertion that
//! fails, and a capacity of all numbers is an allocation that does. One table ([`RANGES`]) has them all, and every way
//! that assigns a value asks it: `SET`, start options, options of COPY and of CREATE EXTERNAL TABLE.
//!
//! Invariant: each of DataFusion's settings that is a number stands in the table, and its bounds are values that
//! statements run with (both held by tests).

use crate::error::{Result, SqlError};

/// Least and greatest value of a setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Range {
    /// Whole numbers.
    Whole(i64, i64),
    /// Numbers with digits after the point, too.
    Real(f64, f64),
}

use Range::{Real, Whole};

/// Most bytes of a buffer or a threshold.
const BYTES_MAX: i64 = 1 << 40;
/// Most bytes of what is allocated at once.
const ALLOCATED_MAX: i64 = 1 << 30;
/// Most rows or entries of what is allocated at once.
const ROWS_MAX: i64 = 1 << 24;
/// Most rows, groups or keys where they are counted alone.
const COUNT_MAX: i64 = 1 << 40;
/// Most partitions, files or tasks at once.
const AT_ONCE_MAX: i64 = 1024;
/// Most batches in a queue.
const QUEUED_MAX: i64 = 1 << 16;
/// The partitions of a plan; 0 means one a core.
pub(crate) const PARTITIONS: Range = Whole(0, AT_ONCE_MAX);

/// The prefix of the settings of the Parquet format, whose names its options have.
const PARQUET: &str = "datafusion.execution.parquet.";

/// Every setting of DataFusion's that is a number.
const RANGES: &[(&str, Range)] = &[
    ("datafusion.execution.batch_size", Whole(1, ROWS_MAX)),
    ("datafusion.execution.hash_join_buffering_capacity", Whole(0, BYTES_MAX)),
    ("datafusion.execution.max_buffered_batches_per_output_file", Whole(2, QUEUED_MAX)),
    ("datafusion.execution.max_spill_file_size_bytes", Whole(1, BYTES_MAX)),
    ("datafusion.execution.meta_fetch_concurrency", Whole(1, AT_ONCE_MAX)),
    ("datafusion.execution.minimum_parallel_output_files", Whole(1, AT_ONCE_MAX)),
    // Each part that is full is a task of its own.
    ("datafusion.execution.objectstore_writer_buffer_size", Whole(1 << 10, ALLOCATED_MAX)),
    ("datafusion.execution.parquet.bloom_filter_fpp", Real(1e-9, 0.999_999)),
    ("datafusion.execution.parquet.bloom_filter_ndv", Whole(1, COUNT_MAX)),
    ("datafusion.execution.parquet.column_index_truncate_length", Whole(1, ALLOCATED_MAX)),
    ("datafusion.execution.parquet.content_defined_chunking.max_chunk_size", Whole(2, ALLOCATED_MAX)),
    ("datafusion.execution.parquet.content_defined_chunking.min_chunk_size", Whole(1, ALLOCATED_MAX)),
    ("datafusion.execution.parquet.content_defined_chunking.norm_level", Whole(-3, 3)),
    ("datafusion.execution.parquet.data_page_row_count_limit", Whole(1, COUNT_MAX)),
    ("datafusion.execution.parquet.data_pagesize_limit", Whole(1, ALLOCATED_MAX)),
    ("datafusion.execution.parquet.dictionary_page_size_limit", Whole(1, ALLOCATED_MAX)),
    ("datafusion.execution.parquet.max_in_list_size", Whole(0, ROWS_MAX)),
    ("datafusion.execution.parquet.max_predicate_cache_size", Whole(0, BYTES_MAX)),
    ("datafusion.execution.parquet.max_row_group_bytes", Whole(1, BYTES_MAX)),
    ("datafusion.execution.parquet.max_row_group_size", Whole(1, COUNT_MAX)),
    ("datafusion.execution.parquet.maximum_buffered_record_batches_per_stream", Whole(1, QUEUED_MAX)),
    ("datafusion.execution.parquet.maximum_parallel_row_group_writers", Whole(1, AT_ONCE_MAX)),
    ("datafusion.execution.parquet.metadata_size_hint", Whole(0, ALLOCATED_MAX)),
    ("datafusion.execution.parquet.statistics_truncate_length", Whole(1, ALLOCATED_MAX)),
    ("datafusion.execution.parquet.write_batch_size", Whole(1, ROWS_MAX)),
    ("datafusion.execution.perfect_hash_join_min_key_density", Real(0.0, 1.0)),
    ("datafusion.execution.perfect_hash_join_small_build_threshold", Whole(0, ROWS_MAX)),
    ("datafusion.execution.planning_concurrency", PARTITIONS),
    ("datafusion.execution.skip_partial_aggregation_probe_ratio_threshold", Real(0.0, 1.0)),
    ("datafusion.execution.skip_partial_aggregation_probe_rows_threshold", Whole(0, COUNT_MAX)),
    ("datafusion.execution.soft_max_rows_per_output_file", Whole(1, COUNT_MAX)),
    ("datafusion.execution.sort_in_place_threshold_bytes", Whole(0, BYTES_MAX)),
    ("datafusion.execution.sort_pushdown_buffer_capacity", Whole(0, BYTES_MAX)),
    ("datafusion.execution.sort_spill_reservation_bytes", Whole(0, BYTES_MAX)),
    ("datafusion.execution.target_partitions", PARTITIONS),
    ("datafusion.explain.tree_maximum_render_width", Whole(0, 1 << 16)),
    ("datafusion.optimizer.default_filter_selectivity", Whole(0, 100)),
    ("datafusion.optimizer.hash_join_inlist_pushdown_max_distinct_values", Whole(0, ROWS_MAX)),
    ("datafusion.optimizer.hash_join_inlist_pushdown_max_size", Whole(0, BYTES_MAX)),
    ("datafusion.optimizer.hash_join_single_partition_threshold", Whole(0, BYTES_MAX)),
    ("datafusion.optimizer.hash_join_single_partition_threshold_rows", Whole(0, COUNT_MAX)),
    ("datafusion.optimizer.max_passes", Whole(0, 100)),
    ("datafusion.optimizer.preserve_file_partitions", Whole(0, COUNT_MAX)),
    ("datafusion.optimizer.repartition_file_min_size", Whole(0, BYTES_MAX)),
    ("datafusion.optimizer.subset_repartition_threshold", Whole(0, AT_ONCE_MAX)),
    ("datafusion.sql_parser.recursion_limit", Whole(1, 10_000)),
];

impl Range {
    /// Whether the text is a number within the bounds.
    pub(crate) fn holds(self, value: &str) -> bool {
        match self {
            Whole(least, most) => value.parse().is_ok_and(|number: i64| (least..=most).contains(&number)),
            Real(least, most) => value.parse().is_ok_and(|number: f64| (least..=most).contains(&number)),
        }
    }

    /// Refuses a value of a setting or an option that is outside.
    pub(crate) fn check(self, name: &str, value: &str) -> Result<()> {
        if self.holds(value) {
            return Ok(());
        }
        let expected = match self {
            Whole(least, most) => format!("a whole number from {least} to {most}"),
            Real(least, most) => format!("a number from {least} to {most}"),
        };
        Err(SqlError::SettingValue { name: name.to_string(), value: value.to_string(), expected, origin: None })
    }
}

/// Refuses a value that one of DataFusion's settings must not have.
pub(crate) fn check_setting(name: &str, value: &str) -> Result<()> {
    of(name).map_or(Ok(()), |range| range.check(name, value.trim()))
}

/// Refuses a value that an option of the Parquet format must not have.
pub(crate) fn check_parquet_option(name: &str, option: &str, value: &str) -> Result<()> {
    of(&format!("{PARQUET}{option}")).map_or(Ok(()), |range| range.check(name, value.trim()))
}

fn of(name: &str) -> Option<Range> {
    RANGES.iter().find(|(known, _)| *known == name).map(|(_, range)| *range)
}

#[cfg(test)]
mod tests {
    use datafusion::common::config::ConfigOptions;

    use super::*;

    #[test]
    fn every_number_of_datafusions_settings_has_a_range() {
        let takes = |name: &str, value: &str| ConfigOptions::default().set(name, value).is_ok();
        let names: Vec<String> = ConfigOptions::default().entries().into_iter().map(|entry| entry.key).collect();
        let is_number = |name: &&String| !takes(name, "x") && (takes(name, "2") || takes(name, "0.5"));
        let numbers: Vec<&String> = names.iter().filter(is_number).collect();
        assert!(numbers.len() > 40, "{numbers:?}");
        for name in numbers {
            let range = of(name).unwrap_or_else(|| panic!("{name} has no range"));
            let (least, most) = match range {
                Whole(least, most) => (least.to_string(), most.to_string()),
                Real(least, most) => (least.to_string(), most.to_string()),
            };
            assert!(takes(name, &least) && takes(name, &most), "{name} takes not all from {least} to {most}");
            for outside in ["-5", "99999999999999999999", "1e300", "NaN", "inf", "", "x"] {
                assert!(check_setting(name, outside).is_err(), "{name} = {outside}");
            }
        }
        for (name, _) in RANGES {
            assert!(names.iter().any(|known| known == name), "{name} is no setting");
        }
    }

    #[test]
    fn values_as_they_are_without_a_word_are_within_their_ranges() {
        for entry in ConfigOptions::default().entries() {
            if let Some(value) = entry.value.filter(|_| of(&entry.key).is_some()) {
                check_setting(&entry.key, &value).unwrap();
            }
        }
    }
}
