//! `sniff_csv('file.csv')`: how the lines of CSV files were read, as a table of one row.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result as DataFusionResult, ScalarValue};
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::{MemTable, TableType};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;

use super::files::by_name;
use super::text_keys::listing_of;
use crate::error::SqlError;
use crate::text_formats::plain;
use crate::words::sql_name;

/// The table function.
#[derive(Debug)]
pub(crate) struct SniffCsv;

impl SniffCsv {
    /// The function's name.
    pub(crate) const NAME: &str = "sniff_csv";
}

impl TableFunctionImpl for SniffCsv {
    fn call_with_args(&self, args: TableFunctionArgs) -> DataFusionResult<Arc<dyn TableProvider>> {
        match args.exprs() {
            [
                Expr::Literal(
                    ScalarValue::Utf8(Some(place))
                    | ScalarValue::LargeUtf8(Some(place))
                    | ScalarValue::Utf8View(Some(place)),
                    _,
                ),
            ] => Ok(Arc::new(Sniffed { place: place.clone(), schema: schema() })),
            _ => Err(SqlError::Planning("sniff_csv() takes a text: a CSV file, a folder or a pattern".into()).into()),
        }
    }
}

fn schema() -> SchemaRef {
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let header = Field::new("has_header", DataType::Boolean, false);
    Arc::new(Schema::new(vec![text("delimiter"), text("quote"), header, text("columns"), text("command")]))
}

/// The findings about the CSV files of a place, made when the table is read.
#[derive(Debug)]
struct Sniffed {
    place: String,
    schema: SchemaRef,
}

impl Sniffed {
    async fn row(&self, state: &dyn Session) -> DataFusionResult<RecordBatch> {
        let not_csv = |reason: &str| SqlError::FileFormat { path: self.place.clone(), reason: reason.into() };
        let table = by_name(state, &self.place).await?.ok_or_else(|| not_csv("it is no file"))?;
        let listing = listing_of(table.as_ref());
        let format = listing.and_then(|listing| plain(&listing.options().format).downcast_ref::<CsvFormat>());
        let format = format.ok_or_else(|| not_csv("it is not read as CSV"))?;
        let character = |byte: u8| char::from(byte).to_string();
        let quoted = |text: &str| text.replace('\'', "''");
        let (delimiter, quote) = (character(format.delimiter()), character(format.quote()));
        let has_header = format.has_header().unwrap_or(state.config_options().catalog.has_header);
        let schema = table.schema();
        let columns = schema.fields().iter().map(|field| format!("{} {}", name(field), sql_name(field.data_type())));
        let columns = columns.collect::<Vec<_>>().join(", ");
        let command = format!(
            "CREATE EXTERNAL TABLE t ({columns}) STORED AS CSV LOCATION '{}' OPTIONS (format.delimiter '{}', \
             format.quote '{}', format.has_header {has_header})",
            quoted(&self.place),
            quoted(&delimiter),
            quoted(&quote)
        );
        let text = |text: String| -> ArrayRef { Arc::new(StringArray::from(vec![text])) };
        let header: ArrayRef = Arc::new(BooleanArray::from(vec![has_header]));
        let row = vec![text(delimiter), text(quote), header, text(columns), text(command)];
        Ok(RecordBatch::try_new(self.schema.clone(), row)?)
    }
}

/// A column's name as a statement has it.
fn name(field: &Field) -> String {
    let plain = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
            && text.chars().all(|other| other.is_ascii_lowercase() || other.is_ascii_digit() || other == '_')
    };
    match plain(field.name()) {
        true => field.name().clone(),
        false => format!("\"{}\"", field.name().replace('"', "\"\"")),
    }
}

#[async_trait]
impl TableProvider for Sniffed {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let table = MemTable::try_new(self.schema.clone(), vec![vec![self.row(state).await?]])?;
        table.scan(state, projection, filters, limit).await
    }
}
