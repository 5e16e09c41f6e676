//! CSV and JSON as they are read and written here.
//!
//! Two defects. Arrow's readers of text (59) cut off the digits that a DECIMAL or a TIMESTAMP has no place for, where a
//! cast of the text rounds them, and ask for seconds. Here values are read with all their digits, and made what is
//! declared as casts make them ([`declared`], [`json`]). And DataFusion's writer of JSON (55.2) leaves out members that
//! are NULL, so that a reader may lack their columns. Here they are written ([`nulls`]).
//!
//! A [`TextFormat`] has DataFusion's own format within, which does everything else. What asks for the kind of a format
//! or a source asks [`plain`] or [`plain_source`]. Plans travel with the plain format.
//!
//! It goes once arrow's readers round and DataFusion's writer has an option for NULL.

mod declared;
mod form;
mod json;
mod nulls;

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::{GetExt, Statistics};
use datafusion::datasource::file_format::csv::{CsvFormat, CsvFormatFactory};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::json::{JsonFormat, JsonFormatFactory};
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder, FileSinkConfig, FileSource};
use datafusion::datasource::sink::DataSinkExec;
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionStateDefaults;
use datafusion::object_store::{ObjectMeta, ObjectStore};
use datafusion::physical_expr::LexRequirement;
use datafusion::physical_plan::ExecutionPlan;

use declared::DeclaredSource;
use nulls::WithNulls;

pub(crate) use declared::{Failed, declared, read_schema};
pub(crate) use form::TextForm;
pub(crate) use json::reader as json_reader;

/// CSV or JSON.
#[derive(Debug)]
pub(crate) struct TextFormat {
    plain: Arc<dyn FileFormat>,
}

/// A format as it is read and written here.
pub(crate) fn of(plain: Arc<dyn FileFormat>) -> Arc<dyn FileFormat> {
    match plain.is::<CsvFormat>() || plain.is::<JsonFormat>() {
        true => Arc::new(TextFormat { plain }),
        false => plain,
    }
}

/// DataFusion's own format that a format is or has within.
pub(crate) fn plain(format: &Arc<dyn FileFormat>) -> &Arc<dyn FileFormat> {
    format.downcast_ref::<TextFormat>().map_or(format, |format| &format.plain)
}

/// DataFusion's own source of a format that a source is or has within.
pub(crate) fn plain_source(source: &dyn FileSource) -> &dyn FileSource {
    source.downcast_ref::<DeclaredSource>().map_or(source, |source| source.plain.as_ref())
}

/// The factories of all formats, for sessions.
pub(crate) fn factories() -> Vec<Arc<dyn FileFormatFactory>> {
    let of = |plain: Arc<dyn FileFormatFactory>| -> Arc<dyn FileFormatFactory> {
        match plain.is::<CsvFormatFactory>() || plain.is::<JsonFormatFactory>() {
            true => Arc::new(TextFormatFactory { plain }),
            false => plain,
        }
    };
    SessionStateDefaults::default_file_formats().into_iter().map(of).collect()
}

#[derive(Debug)]
struct TextFormatFactory {
    plain: Arc<dyn FileFormatFactory>,
}

impl GetExt for TextFormatFactory {
    fn get_ext(&self) -> String {
        self.plain.get_ext()
    }
}

impl FileFormatFactory for TextFormatFactory {
    fn create(&self, state: &dyn Session, options: &HashMap<String, String>) -> Result<Arc<dyn FileFormat>> {
        Ok(of(self.plain.create(state, options)?))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        of(self.plain.default())
    }
}

#[async_trait]
impl FileFormat for TextFormat {
    fn get_ext(&self) -> String {
        self.plain.get_ext()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        self.plain.get_ext_with_compression(compression)
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        self.plain.compression_type()
    }

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        self.plain.infer_schema(state, store, objects).await
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        self.plain.infer_stats(state, store, table_schema, object).await
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        config: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        // The plain format settles options of the session in a source of its own kind.
        let Some(source) = config.file_source.downcast_ref::<DeclaredSource>().cloned() else {
            return self.plain.create_physical_plan(state, config).await;
        };
        let within = FileScanConfigBuilder::from(config).with_source(source.plain.clone()).build();
        let plan = self.plain.create_physical_plan(state, within).await?;
        let scan = plan.downcast_ref::<DataSourceExec>();
        let Some(settled) = scan.and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>()) else {
            return Err(DataFusionError::Internal("a scan of text files that is none".into()));
        };
        let source = source.over(settled.file_source.clone());
        let config = FileScanConfigBuilder::from(settled.clone()).with_source(Arc::new(source)).build();
        Ok(DataSourceExec::from_data_source(config))
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        state: &dyn Session,
        config: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(json) = self.plain.downcast_ref::<JsonFormat>() else {
            return self.plain.create_writer_physical_plan(input, state, config, order).await;
        };
        let sink = WithNulls::new(config, json.options())?;
        Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), order)))
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        let form = match self.plain.downcast_ref::<JsonFormat>() {
            None => TextForm::Csv,
            Some(json) if json.is_newline_delimited() => TextForm::JsonLines,
            Some(_) => TextForm::JsonArray,
        };
        match DeclaredSource::new(&table_schema, form, |read| self.plain.file_source(read)) {
            Some(source) => Arc::new(source),
            None => self.plain.file_source(table_schema),
        }
    }
}
