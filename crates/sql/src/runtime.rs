//! What statements run on: the memory pool and the disk for spilling of the CPU, and DataFusion's caches of files.
//!
//! Listings are not cached, because DataFusion's cache of them never expires: a file added to a folder would not be
//! seen. Its caches of footers and statistics compare size and time of a file and stay. Files of this machine are read
//! through a store that does not list files of encoded columns.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use datafusion::execution::SessionState;
use datafusion::execution::cache::cache_manager::{DEFAULT_FILE_STATISTICS_MEMORY_LIMIT, DEFAULT_METADATA_CACHE_LIMIT};
use datafusion::execution::disk_manager::{DEFAULT_MAX_TEMP_DIRECTORY_SIZE, DiskManagerBuilder};
use datafusion::execution::memory_pool::{FairSpillPool, TrackConsumersPool, UnboundedMemoryPool};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::prelude::SessionContext;

use crate::access::Access;
use crate::catalog::{DataFileStore, Mirror};
use crate::device::host_memory;
use crate::error::{Result, SqlError};
use crate::settings::{DatabaseSettings, Settings};
use crate::spill::Spill;
use crate::values::Budget;

/// How many of the largest users of memory an error names.
const CONSUMERS_NAMED: NonZeroUsize = NonZeroUsize::new(3).unwrap();

/// The prefix of DataFusion's settings that are not in its configuration but in the runtime.
const RUNTIME: &str = "datafusion.runtime.";

/// Values for `datafusion.runtime.…`, kept until there is a database to set them in.
#[derive(Debug, Default)]
pub(crate) struct RuntimeChoice {
    values: Vec<(String, String)>,
}

impl RuntimeChoice {
    /// Whether a setting is one of the runtime's.
    pub(crate) fn is_runtime(name: &str) -> bool {
        name.starts_with(RUNTIME)
    }

    /// Keeps the value if it is one of the runtime's.
    pub(crate) fn take(&mut self, name: &str, value: &str) -> bool {
        let is_runtime = RuntimeChoice::is_runtime(name);
        if is_runtime {
            self.values.push((name.to_string(), value.to_string()));
        }
        is_runtime
    }

    pub(crate) fn into_values(self) -> Vec<(String, String)> {
        self.values
    }
}

/// The runtime that a database starts with.
pub(crate) fn build(settings: &DatabaseSettings, mirror: Arc<Mirror>) -> Result<Arc<RuntimeEnv>> {
    let builder = with_memory(RuntimeEnvBuilder::new(), settings)?;
    let builder = with_spill_folder(builder, settings, DEFAULT_MAX_TEMP_DIRECTORY_SIZE)?;
    let runtime = builder.with_object_list_cache_limit(0).build_arc()?;
    share_files(&runtime, settings, mirror);
    Ok(runtime)
}

/// Gives a runtime the files that the settings allow, and those elsewhere.
pub(crate) fn share_files(runtime: &RuntimeEnv, settings: &DatabaseSettings, mirror: Arc<Mirror>) {
    let store = DataFileStore::new(Access::of_database(settings), mirror);
    runtime.register_object_store(ObjectStoreUrl::local_filesystem().as_ref(), Arc::new(store));
}

/// The runtime after a change of settings: what they have changed is new, all else is that of before.
pub(crate) fn rebuild(
    settings: &DatabaseSettings,
    before: &DatabaseSettings,
    environment: &Arc<RuntimeEnv>,
) -> Result<Arc<RuntimeEnv>> {
    let mut builder = RuntimeEnvBuilder::from_runtime_env(environment);
    if before.memory_limit != settings.memory_limit {
        builder = with_memory(builder, settings)?;
    }
    if before.spill_folder != settings.spill_folder {
        builder = with_spill_folder(builder, settings, environment.disk_manager.max_temp_directory_size())?;
    }
    Ok(builder.build_arc()?)
}

fn with_memory(builder: RuntimeEnvBuilder, settings: &DatabaseSettings) -> Result<RuntimeEnvBuilder> {
    Ok(match settings.memory_limit {
        Budget::Auto => builder.with_memory_pool(Arc::new(UnboundedMemoryPool::default())),
        limit => {
            let bytes = limit.bytes(host_memory()?).unwrap_or(u64::MAX);
            let pool = FairSpillPool::new(usize::try_from(bytes).unwrap_or(usize::MAX));
            builder.with_memory_pool(Arc::new(TrackConsumersPool::new(pool, CONSUMERS_NAMED)))
        }
    })
}

/// The runtime spilling to the folder of the settings, up to so many bytes.
fn with_spill_folder(
    builder: RuntimeEnvBuilder,
    settings: &DatabaseSettings,
    bytes_max: u64,
) -> Result<RuntimeEnvBuilder> {
    let Some(folder) = &settings.spill_folder else { return Ok(spilling(builder, Spill::new(None, bytes_max))) };
    let refused = |error: std::io::Error| SqlError::SettingValue {
        name: "warpcube.spill_folder".into(),
        value: folder.display().to_string(),
        expected: format!("a folder to write in ({error})"),
        origin: None,
    };
    Ok(spilling(builder, spill(folder, bytes_max).map_err(refused)?))
}

/// Files to spill to in a folder that is made if it is not there, and that can be written.
fn spill(folder: &Path, bytes_max: u64) -> std::io::Result<Spill> {
    std::fs::create_dir_all(folder)?;
    let spill = Spill::new(Some(folder), bytes_max);
    spill.check().map(|()| spill)
}

fn spilling(builder: RuntimeEnvBuilder, spill: Spill) -> RuntimeEnvBuilder {
    let mut disk = DiskManagerBuilder::default().with_max_temp_directory_size(spill.bytes_max());
    disk.set_temp_file_factory(Arc::new(spill));
    builder.with_disk_manager_builder(disk)
}

/// The runtime with one of `datafusion.runtime.…` set.
pub(crate) fn set(
    environment: &Arc<RuntimeEnv>,
    name: &str,
    value: &str,
    settings: &DatabaseSettings,
) -> Result<Arc<RuntimeEnv>> {
    let size = || SessionContext::parse_capacity_limit(name, value);
    let bytes_max = environment.disk_manager.max_temp_directory_size();
    let builder = RuntimeEnvBuilder::from_runtime_env(environment);
    let builder = match name.trim_start_matches(RUNTIME) {
        "memory_limit" => builder.with_memory_limit(size()?, 1.0),
        "max_temp_directory_size" => with_spill_folder(builder, settings, size()? as u64)?,
        "temp_directory" => {
            let failed = |error: std::io::Error| SqlError::FileAccess(format!("{value}: {error}"));
            spilling(builder, spill(Path::new(value), bytes_max).map_err(failed)?)
        }
        "metadata_cache_limit" => builder.with_metadata_cache_limit(size()?),
        "file_statistics_cache_limit" => builder.with_file_statistics_cache_limit(size()?),
        _ => return Err(unsupported(name)),
    };
    Ok(builder.build_arc()?)
}

/// The runtime with one of `datafusion.runtime.…` at its default.
pub(crate) fn reset(environment: &Arc<RuntimeEnv>, name: &str, settings: &DatabaseSettings) -> Result<Arc<RuntimeEnv>> {
    let bytes_max = environment.disk_manager.max_temp_directory_size();
    let builder = RuntimeEnvBuilder::from_runtime_env(environment);
    let builder = match name.trim_start_matches(RUNTIME) {
        "memory_limit" => with_memory(builder, settings)?,
        "temp_directory" => with_spill_folder(builder, settings, bytes_max)?,
        "max_temp_directory_size" => with_spill_folder(builder, settings, DEFAULT_MAX_TEMP_DIRECTORY_SIZE)?,
        "metadata_cache_limit" => builder.with_metadata_cache_limit(DEFAULT_METADATA_CACHE_LIMIT),
        "file_statistics_cache_limit" => builder.with_file_statistics_cache_limit(DEFAULT_FILE_STATISTICS_MEMORY_LIMIT),
        _ => return Err(unsupported(name)),
    };
    Ok(builder.build_arc()?)
}

/// The error for what is not to be set: listings that are kept would hide files that are added later.
fn unsupported(name: &str) -> SqlError {
    SqlError::Unsupported(format!("setting {name} here"))
}

/// Tells functions that depend on the configuration (those of dates on the time zone) about a change of it.
pub(crate) fn refresh_functions(state: &mut SessionState) -> Result<()> {
    use datafusion::execution::FunctionRegistry;
    let options = state.config_options().clone();
    let changed: Vec<_> = state
        .scalar_functions()
        .values()
        .filter_map(|function| function.inner().with_updated_config(&options).map(Arc::new))
        .collect();
    for function in changed {
        state.register_udf(function)?;
    }
    Ok(())
}

/// Share of this machine's memory that copies of columns may take by default.
const COPIES_SHARE: u64 = 8;

/// Most host memory for copies of columns that leave the device, in bytes; none where the machine's memory is not
/// known.
pub(crate) fn copies_budget(settings: &Settings) -> u64 {
    // Read once: each statement on the device asks for it, and a machine's memory stays the same.
    static TOTAL: OnceLock<Option<u64>> = OnceLock::new();
    let total = || *TOTAL.get_or_init(|| host_memory().ok());
    match settings.database.host_memory {
        Budget::Bytes(bytes) => bytes,
        budget => total().map_or(0, |total| budget.bytes(total).unwrap_or(total / COPIES_SHARE)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_memory_is_of_what_there_is() {
        let total = host_memory().unwrap();
        let text = std::fs::read_to_string("/proc/meminfo").unwrap();
        let kibibytes = text.split_whitespace().nth(1).and_then(|number| number.parse::<u64>().ok()).unwrap();
        assert!((1 << 20..=kibibytes * 1024).contains(&total), "{total} of {kibibytes} KiB");
    }
}
