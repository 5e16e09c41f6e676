//! What the statistics of a Parquet column chunk tell, as far as they are believed.
//!
//! Bounds are unknown where the format says not to believe them: those of the old fields, which compare bytes of text
//! as signed numbers, those of types without an order, and NaN. A count of NULLs that is missing is unknown, but for
//! columns that have none and for writers that leave out zeros.

use parquet::basic::SortOrder;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::statistics::Statistics;
use parquet::schema::types::SchemaDescriptor;

/// The writer that left out counts of NULLs that are zero, and its first version that does not.
const OMITS_ZEROS: (&str, u32) = ("parquet-rs version ", 53);

/// What a column chunk tells, as far as it is believed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ChunkStatistics {
    pub(super) low: bool,
    pub(super) high: bool,
    pub(super) nulls: Option<u64>,
    /// Whether there is something that readers take for more than it is.
    pub(super) misleads: bool,
}

impl ChunkStatistics {
    pub(super) fn of(chunk: &ColumnChunkMetaData, omits_zeros: bool) -> ChunkStatistics {
        let Some(statistics) = chunk.statistics() else { return ChunkStatistics::default() };
        let descriptor = chunk.column_descr();
        let order = descriptor.sort_order();
        let is_believed = order != SortOrder::UNDEFINED
            && (order == SortOrder::SIGNED || !statistics.is_min_max_deprecated())
            && !has_nan(statistics);
        let (low, high) = (statistics.min_bytes_opt().is_some(), statistics.max_bytes_opt().is_some());
        let is_zero = omits_zeros || descriptor.max_def_level() == 0;
        let nulls = statistics.null_count_opt().or(is_zero.then_some(0));
        ChunkStatistics {
            low: low && is_believed,
            high: high && is_believed,
            nulls,
            misleads: (low || high) && !is_believed || nulls.is_none(),
        }
    }
}

/// Whether the file's writer leaves counts of NULLs out where they are zero.
pub(super) fn omits_zeros(metadata: &ParquetMetaData) -> bool {
    let version = metadata.file_metadata().created_by().and_then(|writer| writer.strip_prefix(OMITS_ZEROS.0));
    let major = version.and_then(|version| version.split('.').next()?.parse::<u32>().ok());
    major.is_some_and(|major| major < OMITS_ZEROS.1)
}

/// The leaf of each column, none for those that are nested.
pub(super) fn leaves(schema: &SchemaDescriptor) -> Vec<Option<usize>> {
    let roots = schema.root_schema().get_fields();
    let mut leaves = vec![None; roots.len()];
    for leaf in 0..schema.num_columns() {
        let root = schema.get_column_root_idx(leaf);
        if roots[root].is_primitive() {
            leaves[root] = Some(leaf);
        }
    }
    leaves
}

/// The leaf of a column that is not nested.
pub(super) fn leaf_of(schema: &SchemaDescriptor, name: &str) -> Option<usize> {
    let root = schema.root_schema().get_fields().iter().position(|field| field.name() == name)?;
    let is_plain = schema.root_schema().get_fields()[root].is_primitive();
    (0..schema.num_columns()).find(|leaf| is_plain && schema.get_column_root_idx(*leaf) == root)
}

fn has_nan(statistics: &Statistics) -> bool {
    let is_nan = |value: Option<&f64>| value.is_some_and(|value| value.is_nan());
    match statistics {
        Statistics::Float(bounds) => [bounds.min_opt(), bounds.max_opt()].into_iter().flatten().any(|it| it.is_nan()),
        Statistics::Double(bounds) => is_nan(bounds.min_opt()) || is_nan(bounds.max_opt()),
        _ => false,
    }
}
