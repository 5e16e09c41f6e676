//! `sniff_csv('file.csv')`: how the lines of CSV files were read, as a table of one row. Columns have DuckDB's names;
//! the last one has the statement that reads the file so.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, ListArray, RecordBatch, StringArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result as DataFusionResult, ScalarValue};
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::{MemTable, TableType};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;

use super::names::by_name;
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
    let header = Field::new("hasheader", DataType::Boolean, false);
    let columns = DataType::new_list(DataType::Struct(of_column()), true);
    let columns = Field::new("columns", columns, false);
    Arc::new(Schema::new(vec![text("delimiter"), text("quote"), text("escape"), header, columns, text("prompt")]))
}

/// What is told of a column.
fn of_column() -> Fields {
    ["name", "type"].map(|name| Field::new(name, DataType::Utf8, true)).to_vec().into()
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
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let (delimiter, quote) = (character(format.delimiter()), character(format.quote()));
        // Two quotes are read as one where no other character escapes.
        let escape = format.escape().map_or_else(|| quote.clone(), character);
        let has_header = format.has_header().unwrap_or(state.config_options().catalog.has_header);
        let schema = table.schema();
        let columns: Vec<(&str, String)> =
            schema.fields().iter().map(|field| (field.name().as_str(), sql_name(field.data_type()))).collect();
        let declared: Vec<String> =
            columns.iter().map(|(name, kind)| format!("{}: {}", quoted(name), quoted(kind))).collect();
        let prompt = format!(
            "FROM read_csv({}, auto_detect = false, delim = {}, quote = {}, escape = {}, header = {has_header}, \
             columns = {{{}}});",
            quoted(&self.place),
            quoted(&delimiter),
            quoted(&quote),
            quoted(&escape),
            declared.join(", ")
        );
        let text = |text: String| -> ArrayRef { Arc::new(StringArray::from(vec![text])) };
        let header: ArrayRef = Arc::new(BooleanArray::from(vec![has_header]));
        let names: ArrayRef = Arc::new(StringArray::from_iter_values(columns.iter().map(|(name, _)| name)));
        let kinds: ArrayRef = Arc::new(StringArray::from_iter_values(columns.iter().map(|(_, kind)| kind)));
        let items: ArrayRef = Arc::new(StructArray::try_new(of_column(), vec![names, kinds], None)?);
        let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
        let list = ListArray::try_new(field, OffsetBuffer::from_lengths([columns.len()]), items, None)?;
        let row = vec![text(delimiter), text(quote), text(escape), header, Arc::new(list), text(prompt)];
        Ok(RecordBatch::try_new(self.schema.clone(), row)?)
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
