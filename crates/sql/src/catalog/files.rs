//! Tables over files: `CREATE EXTERNAL TABLE`, and names of files as tables ([`super::names`]).
//!
//! DataFusion's listing tables do the work. Added here: a location that is not there, a folder with nothing to read
//! and an unknown extension are errors; TSV, `.tbl` and compressed files are told by their extension; and every table
//! remembers the files it was made from ([`FileSnapshot`]) and the command that made it, so that it can be made anew.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider, TableProviderFactory};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{DFSchema, Result as DataFusionResult};
use datafusion::datasource::listing::ListingTable;
use datafusion::datasource::listing_table_factory::ListingTableFactory;
use datafusion::datasource::{TableType, provider_as_source};
use datafusion::execution::SessionState;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::{CreateExternalTable, Expr, LogicalPlanBuilder};
use datafusion::physical_plan::ExecutionPlan;

use super::csv_types::HeaderSaid;
use super::folders::data_files;
use super::memory::{FileMemory, mirror_of};
use super::mirror::MirrorSet;
use super::patterns::{by_folder, matching_names, unlisted};
use super::snapshot::FileSnapshot;
use super::special::DerivedTable;
use super::text_files::TextReading;
use super::text_keys::{NULL_KEY, TextKeys, are_read};
use super::{csv_newlines, csv_types, extensions, footers, json_types, lacking, partitions};
use crate::access::Access;
use crate::diagnose::{self, Suspect};
use crate::error::{Result, SqlError};
use crate::formats::{FileType, is_json_array, split_compression, stored_as};
use crate::locations::{
    OUTSIDE, Reach, canonical, for_listing, has_wildcards, is_elsewhere, is_pattern, local_path, shown,
};
use crate::nearest::nearest;
use crate::settings::Settings;

/// Name of the column that the separator at the end of each line of a `.tbl` file makes.
const TRAILING_COLUMN: &str = "__after_last_separator";

/// A table over files, with the command that makes it anew. The factory gives it to the schema, which stores it and
/// hands out [`ExternalTable::table`].
#[derive(Debug, Clone)]
pub(crate) struct ExternalTable {
    /// The command as the user wrote it.
    command: Arc<CreateExternalTable>,
    /// What statements see.
    pub(crate) table: Arc<dyn TableProvider>,
    /// The listing table itself; `table` is a plan over it for `.tbl` files.
    listing: Arc<dyn TableProvider>,
    snapshot: FileSnapshot,
    /// The columns that INSERT writes no NULL into; scans do not rely on it.
    pub(super) not_null: BTreeSet<String>,
    /// What was within reach when the files were looked at.
    reach: Reach,
    /// The files elsewhere that it reads.
    elsewhere: Vec<Arc<MirrorSet>>,
    /// The settings of its statement, by which its files are read whichever connection looks at them again.
    options: Arc<ConfigOptions>,
    header_said: Option<Arc<HeaderSaid>>,
}

impl ExternalTable {
    /// Makes the table that `command` asks for. Its columns may be NULL, whatever is declared.
    pub(crate) async fn open(state: &dyn Session, command: &CreateExternalTable) -> Result<ExternalTable> {
        let declared = command.schema.fields().iter().filter(|field| !field.is_nullable());
        let not_null: BTreeSet<String> = declared.map(|field| field.name().clone()).collect();
        if not_null.is_empty() {
            return ExternalTable::open_as(state, command, None).await;
        }
        let mut command = command.clone();
        let nullable = |field: &Arc<Field>| field.as_ref().clone().with_nullable(true);
        let fields: Vec<Field> = command.schema.fields().iter().map(nullable).collect();
        command.schema = Arc::new(DFSchema::try_from(Schema::new(fields))?);
        Ok(ExternalTable { not_null, ..ExternalTable::open_as(state, &command, None).await? })
    }

    /// The locations of the command.
    pub(super) fn locations(&self) -> &[String] {
        &self.command.locations
    }

    /// Whether the table reads its files by this listing table.
    pub(super) fn is_over(&self, listing: &Arc<dyn TableProvider>) -> bool {
        Arc::ptr_eq(&self.listing, listing)
    }

    /// Makes the table that `command` asks for, of text files as a cube's definition reads them.
    pub(super) async fn open_as(
        state: &dyn Session,
        command: &CreateExternalTable,
        reading: Option<&TextReading>,
    ) -> Result<ExternalTable> {
        let first = command.locations.first().cloned().unwrap_or_default();
        let access = Access::of(state.config_options());
        command.locations.iter().try_for_each(|location| access.check_location(location))?;
        let file_type = stored_as(&command.file_type, &first)?;
        let mut resolved = command.clone();
        resolved.file_type = file_type.name.to_string();
        resolved.options = file_type.with_options(&command.options);
        let (mut files, mut locations, mut elsewhere) = (Vec::new(), Vec::new(), Vec::new());
        for mut location in resolved.locations {
            if is_elsewhere(&location) {
                let set = mirror_of(state)?.open(state, &location, Some(&command.file_type)).await?;
                location = set.location();
                elsewhere.push(set);
            }
            let mut location = canonical(&location);
            files.extend(resolve(&mut location, &command.file_type, !command.schema.fields().is_empty())?);
            for place in by_folder(&location)? {
                let unlisted = unlisted(&place)?;
                locations.push(for_listing(place));
                locations.extend(unlisted);
            }
        }
        if locations.is_empty() {
            let reason = "no folder matches this pattern; files of several folders are 'folder*/*.parquet'".into();
            return Err(SqlError::FileNone { path: first, reason });
        }
        resolved.locations = locations;
        files.iter().try_for_each(|path| access.check_path(path))?;
        if let Some(memory) = state.config().get_extension::<FileMemory>() {
            memory.look(state.runtime_env(), &files);
        }
        set_defaults(&mut resolved, &files);
        if file_type.name == "PARQUET" {
            footers::check(state, files.clone()).await?;
        }
        let by_name = lacking::take_union_by_name(&mut resolved)?;
        partitions::check_types(&resolved)?;
        let declared = partitions::take_declared(&mut resolved);
        lacking::check_columns(state, &resolved, &files, by_name).await?;
        let inferred = match file_type.name {
            "CSV" => {
                let dialects = csv_types::look(state, &mut resolved, &command.options, &files).await?;
                csv_types::check_zones(&resolved, &dialects)?;
                csv_newlines::check(state, &mut resolved, &files).await?;
                // DataFusion would take the setting of each statement that reads.
                let catalog = &state.config_options().catalog;
                let header = || catalog.has_header.to_string();
                resolved.options.entry("format.has_header".into()).or_insert_with(header);
                if catalog.newlines_in_values {
                    resolved.options.entry(csv_newlines::OPTION.into()).or_insert("true".into());
                }
                match csv_types::infer(state, &resolved, &dialects)? {
                    Some(inferred) => Some(inferred),
                    None => csv_newlines::infer(state, &resolved, &files).await,
                }
            }
            "JSON" => json_types::infer(state, &resolved, &files).await?,
            _ => None,
        };
        if let Some(inferred) = inferred {
            resolved = partitions::with_columns(&resolved, inferred, declared.as_ref(), &files)?;
        }

        let trailing = file_type.trailing_separator && has_trailing_separator(&resolved, &files);
        if trailing && !command.schema.fields().is_empty() {
            resolved.schema = Arc::new(with_trailing_column(command)?);
        }
        let mut created = ListingTableFactory::new().create(state, &resolved).await;
        if created.is_err()
            && let Some(alike) = lacking::merged(state, &resolved, &files).await
            && let Ok(listing) = ListingTableFactory::new().create(state, &alike).await
        {
            created = Ok(listing);
        }
        let mut listing = match created {
            Ok(listing) => listing,
            Err(error) => {
                let suspects = files.iter().map(|path| Suspect::to_infer(path, &resolved)).collect();
                return Err(diagnose::explain(suspects, error.into()).await.over(&first));
            }
        };
        if let (true, Some(inferred)) = (resolved.schema.fields().is_empty(), listing.downcast_ref::<ListingTable>())
            && let Some(typed) = partitions::typed(&resolved, inferred, declared.as_ref(), &files)?
        {
            listing = ListingTableFactory::new().create(state, &typed).await?;
        }
        if let (true, Some(inferred)) = (resolved.schema.fields().is_empty(), listing.downcast_ref::<ListingTable>())
            && let Some(changed) = lacking::with_nulls(state, &resolved, inferred, &files).await?
        {
            listing = ListingTableFactory::new().create(state, &changed).await?;
        }
        if let (true, Some(inferred)) = (resolved.schema.fields().is_empty(), listing.downcast_ref::<ListingTable>())
            && let Some(typed) = extensions::typed(state, &resolved, inferred, &files).await?
        {
            listing = ListingTableFactory::new().create(state, &typed).await?;
        }
        if let ("CSV", Some(reading), Some(inferred)) =
            (file_type.name, reading, listing.downcast_ref::<ListingTable>())
            && let Some(written) = reading.as_written(command.name.table(), &resolved, inferred)?
        {
            listing = ListingTableFactory::new().create(state, &written).await?;
        }
        if let Some(table) = listing.downcast_ref::<ListingTable>() {
            partitions::check_folders(table, &files)?;
        }
        if let ("ARROW", Some(table)) = (file_type.name, listing.downcast_ref::<ListingTable>()) {
            lacking::check_positions(state, table, &files).await?;
        }
        if listing.schema().fields().is_empty() {
            let suspects = files.iter().map(|path| Suspect::to_infer(path, &resolved)).collect();
            let error = SqlError::FileCorrupt {
                path: first,
                reason: "it is empty, so that its columns are unknown; declare them".into(),
            };
            return Err(diagnose::explain(suspects, error).await);
        }
        let of_keys = listing.downcast_ref::<ListingTable>().filter(|table| are_read(table, &files));
        let table = match of_keys {
            Some(_) if trailing => {
                let reason = format!(
                    "text with a trailing separator in folders of keys that are DECIMAL, TIMESTAMP(0) or TIMESTAMP(3), \
                     or '{NULL_KEY}'"
                );
                return Err(SqlError::Unsupported(reason));
            }
            Some(_) => Arc::new(TextKeys::new(listing.clone())?),
            None if trailing => without_trailing_column(&resolved, &listing)?,
            None => listing.clone(),
        };
        let mut external = ExternalTable {
            command: Arc::new(command.clone()),
            table,
            listing,
            snapshot: FileSnapshot::default(),
            not_null: BTreeSet::new(),
            reach: access.reach().clone(),
            elsewhere,
            options: state.config().options().clone(),
            header_said: state.config().get_extension(),
        };
        let seen = external.elsewhere.iter().flat_map(|set| set.seen()).collect();
        external.snapshot = external.look_here(state.runtime_env()).await?.with_elsewhere(seen);
        Ok(external)
    }

    /// The files as they are now.
    pub(crate) async fn look(&self, runtime: &RuntimeEnv) -> Result<FileSnapshot> {
        let mut elsewhere = Vec::new();
        for set in &self.elsewhere {
            elsewhere.extend(set.look().await?);
        }
        Ok(self.look_here(runtime).await?.with_elsewhere(elsewhere))
    }

    /// The files of this machine as they are now, places of files elsewhere among them.
    async fn look_here(&self, runtime: &RuntimeEnv) -> Result<FileSnapshot> {
        let Some(listing) = self.listing.downcast_ref::<ListingTable>() else { return Ok(FileSnapshot::default()) };
        let mut snapshot = FileSnapshot::take(runtime, listing).await?;
        for location in self.command.locations.iter().filter(|location| has_wildcards(location)) {
            // Files of a folder with such a name are the table's locations one by one.
            let folder = local_path(location).filter(|path| !is_pattern(location) && path.is_dir());
            match folder {
                Some(folder) => {
                    let files = data_files(&folder);
                    snapshot.folders.extend(files.iter().map(|file| file.display().to_string()));
                }
                None => snapshot.folders.extend(by_folder(&canonical(location))?),
            }
        }
        Ok(snapshot)
    }

    /// Whether the files are those the table was made from, and were looked at when as much was within reach.
    pub(crate) fn is_current(&self, snapshot: &FileSnapshot, reach: &Reach) -> bool {
        self.snapshot == *snapshot && self.reach == *reach
    }

    /// The table for the files as they are now. It is the same provider where nothing but content changed.
    pub(crate) async fn reopen(&self, mut state: SessionState, snapshot: FileSnapshot) -> Result<ExternalTable> {
        if let Some(path) = snapshot.missing.first() {
            return Err(missing(path));
        }
        let access = Access::of(state.config_options());
        if snapshot.is_empty() {
            self.command.locations.iter().try_for_each(|location| access.check_location(location))?;
            // A folder that was emptied keeps its columns and has no rows.
            return Ok(ExternalTable { snapshot, reach: access.reach().clone(), ..self.clone() });
        }
        let config = state.config_mut();
        let now = config.options().extensions.get::<Settings>().cloned().unwrap_or_default();
        *config.options_mut() = self.options.as_ref().clone();
        if let Some(settings) = config.options_mut().extensions.get_mut::<Settings>() {
            settings.database = now.database;
        }
        if let Some(said) = &self.header_said {
            config.set_extension(said.clone());
        }
        let opened = ExternalTable::open(&state, &self.command).await?;
        // Files elsewhere have other places now.
        let is_same = self.elsewhere.is_empty() && snapshot.folders == self.snapshot.folders;
        match is_same && opened.table.schema() == self.table.schema() {
            true => Ok(ExternalTable { snapshot: opened.snapshot, reach: opened.reach, ..self.clone() }),
            false => Ok(ExternalTable { not_null: self.not_null.clone(), ..opened }),
        }
    }
}

/// Looks at the files of a table that another database made: they are there, and have its columns where files tell
/// theirs.
pub(crate) async fn check_received(state: &dyn Session, name: &str, listing: &ListingTable) -> Result<()> {
    let access = Access::of(state.config_options());
    for url in listing.table_paths() {
        let path = url.get_url().to_file_path().unwrap_or_default();
        access.check_path(&path).map_err(|_| SqlError::FileOutside(url.to_string(), OUTSIDE))?;
    }
    let snapshot = FileSnapshot::take(state.runtime_env(), listing).await?;
    if let Some(path) = snapshot.missing.first() {
        return Err(missing(path));
    }
    let path = || listing.table_paths().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if snapshot.is_empty() {
        let reason = format!("a plan that was received reads table '{name}' here, and there is no file of its format");
        return Err(SqlError::FileNone { path: path(), reason });
    }
    let files = snapshot.on_disk().unwrap_or_default();
    files.iter().try_for_each(|path| access.check_path(path))?;
    if let Some(memory) = state.config().get_extension::<FileMemory>() {
        memory.look(state.runtime_env(), &files);
    }
    let options = listing.options();
    if options.format.get_ext() != "parquet" {
        return Ok(());
    }
    footers::check(state, files).await?;
    let mut found = BTreeSet::new();
    for url in listing.table_paths() {
        let schema = options.infer_schema(state, url).await?;
        found.extend(schema.fields().iter().map(|field| field.name().clone()));
    }
    found.extend(options.table_partition_cols.iter().map(|(column, _)| column.clone()));
    match listing.schema().fields().iter().find(|field| !found.contains(field.name())) {
        Some(field) => Err(SqlError::PlanDecode(format!(
            "expected column '{}' of table '{name}' in {}, found {}; the files have changed: plan the statement again",
            field.name(),
            path(),
            found.into_iter().collect::<Vec<_>>().join(", "),
        ))),
        None => Ok(()),
    }
}

/// Checks one location of a command and makes it name the files of its format; gives the local files it means.
pub(super) fn resolve(location: &mut String, stored_as: &str, may_be_empty: bool) -> Result<Vec<PathBuf>> {
    let Some(path) = local_path(location) else { return Ok(Vec::new()) };
    if is_pattern(location) {
        let files = matching(location)?;
        let reason = || "no file matches this pattern".to_string();
        return match files.is_empty() && !may_be_empty {
            true => Err(SqlError::FileNone { path: location.clone(), reason: reason() }),
            false => Ok(files),
        };
    }
    if path.is_file() {
        return Ok(vec![path]);
    }
    if !path.is_dir() {
        // A folder to insert into may be made by the first INSERT.
        return if may_be_empty && location.ends_with('/') { Ok(Vec::new()) } else { Err(missing(location)) };
    }
    let files = data_files(&path);
    let wanted = FileType::by_name(stored_as).map(|kind| kind.name);
    let has_type =
        |file: &&PathBuf| FileType::by_extension(&file.to_string_lossy()).map(|(kind, _)| kind.name) == wanted;
    match files.iter().find(has_type) {
        Some(first) => {
            let suffix = data_suffix(first);
            if let Some(other) = files.iter().filter(has_type).find(|file| data_suffix(file) != suffix) {
                return Err(mixed(location, first, other));
            }
            if !location.ends_with('/') {
                location.push('/');
            }
            location.push_str(&format!("*{suffix}"));
            Ok(files.into_iter().filter(|file| file.to_string_lossy().ends_with(&suffix)).collect())
        }
        None if may_be_empty => Ok(files),
        None => {
            let found = files.first().and_then(|file| file.file_name()).map(|name| name.to_string_lossy().into_owned());
            let found = found.map_or("it is empty".into(), |name| format!("found '{name}' and the like"));
            let reason = format!("no {} file in this folder ({found})", stored_as.to_lowercase());
            Err(SqlError::FileNone { path: shown(Path::new(location)), reason })
        }
    }
}

/// The error of a folder whose files are read in different ways.
pub(super) fn mixed(location: &str, one: &Path, other: &Path) -> SqlError {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let location = shown(Path::new(location));
    let folder = location.trim_end_matches('/');
    let reason = format!(
        "its files '{}' and '{}' are not read alike; name those you mean by a pattern such as '{folder}/*{}'",
        name(one),
        name(other),
        data_suffix(one)
    );
    SqlError::FileFormat { path: location, reason }
}

/// The extension with that of its compression: `.csv.gz`.
fn data_suffix(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let stem = split_compression(&name).0;
    let from = stem.rfind('.').unwrap_or(stem.len());
    name[from..].to_string()
}

/// Fills in what can be told from the files: compression, and whether JSON is one array.
fn set_defaults(command: &mut CreateExternalTable, files: &[PathBuf]) {
    let Some(first) = files.first() else { return };
    let is_text = matches!(command.file_type.as_str(), "CSV" | "JSON");
    let compression = split_compression(&first.to_string_lossy().to_lowercase()).1;
    if let (true, Some(name)) = (is_text, compression) {
        command.options.entry("format.compression".into()).or_insert_with(|| name.into());
    }
    if command.file_type == "JSON" && compression.is_none() && is_json_array(first) {
        command.options.entry("format.newline_delimited".into()).or_insert_with(|| "false".into());
    }
}

/// Whether the first line of a `.tbl` file ends with its separator.
fn has_trailing_separator(command: &CreateExternalTable, files: &[PathBuf]) -> bool {
    let separator = command.options.get("format.delimiter").and_then(|text| text.chars().next()).unwrap_or('|');
    let line = files.first().and_then(|path| diagnose::first_line(path, command));
    line.is_some_and(|line| line.trim_end_matches(['\r', '\n']).ends_with(separator))
}

/// The declared schema with the trailing column after the columns of the file.
fn with_trailing_column(command: &CreateExternalTable) -> Result<DFSchema> {
    let declared = command.schema.as_arrow().fields().iter().cloned();
    let is_partition = |field: &Arc<Field>| command.table_partition_cols.contains(field.name());
    let (partitions, mut fields): (Vec<_>, Vec<_>) = declared.partition(is_partition);
    fields.push(Arc::new(Field::new(TRAILING_COLUMN, DataType::Utf8, true)));
    fields.extend(partitions);
    Ok(DFSchema::try_from(Schema::new(fields))?)
}

/// The table without its last column of the file: the one declared here, or the last one that was inferred.
fn without_trailing_column(
    command: &CreateExternalTable,
    listing: &Arc<dyn TableProvider>,
) -> Result<Arc<dyn TableProvider>> {
    let partitions = listing.downcast_ref::<ListingTable>().map_or(0, |t| t.options().table_partition_cols.len());
    let columns = listing.schema().fields().len();
    let trailing = columns - partitions - 1;
    let kept = (0..columns).filter(|column| *column != trailing).collect();
    let source = provider_as_source(listing.clone());
    let plan = LogicalPlanBuilder::scan(command.name.clone(), source, Some(kept))?.build()?;
    Ok(Arc::new(DerivedTable { plan }))
}

/// The files of a folder whose format is known.
pub(super) fn known_files(folder: &Path) -> Vec<PathBuf> {
    let is_known = |file: &PathBuf| FileType::by_extension(&file.to_string_lossy()).is_some();
    data_files(folder).into_iter().filter(is_known).collect()
}

/// The local files that a pattern means, in order.
pub(super) fn matching(pattern: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for location in by_folder(&canonical(pattern))? {
        match is_pattern(&location) {
            true => files.extend(matching_names(Path::new(&location))),
            false => files.extend(local_path(&location)),
        }
    }
    Ok(files)
}

/// The error for a path that is not there, with a file of nearly that name.
pub(super) fn missing(path: &str) -> SqlError {
    let wanted = Path::new(path);
    let folder = wanted.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let names =
        std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let name = wanted.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    SqlError::FileMissing { path: path.to_string(), nearest: nearest(&name, names) }
}

/// Makes tables for `CREATE EXTERNAL TABLE`.
#[derive(Debug)]
pub(crate) struct ExternalTableFactory;

#[async_trait]
impl TableProviderFactory for ExternalTableFactory {
    async fn create(
        &self,
        state: &dyn Session,
        command: &CreateExternalTable,
    ) -> DataFusionResult<Arc<dyn TableProvider>> {
        Ok(Arc::new(ExternalTable::open(state, command).await?))
    }
}

/// Only for catalogs that are not ours, which keep the table as it comes from the factory.
#[async_trait]
impl TableProvider for ExternalTable {
    fn schema(&self) -> arrow::datatypes::SchemaRef {
        self.table.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        self.table.scan(state, projection, filters, limit).await
    }
}
