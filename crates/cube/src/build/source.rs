//! Rows of the facts and of tables, by SQL text: which columns there are, and queries for some of them.

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, SchemaRef};

use super::error::sentence_end;
use super::{BuildError, Tables, TablesError};
use crate::define::FactsDefinition;
use crate::model::{folded, nearest};
use crate::progress::Progress;

/// A query or file whose columns are known.
pub(super) struct Source<'a> {
    tables: &'a dyn Tables,
    progress: &'a Progress,
    /// What stands behind FROM.
    from: String,
    /// Its name in errors.
    place: String,
    schema: SchemaRef,
    /// True if its rows come in an order that means something: those of files, and of queries with an ORDER BY.
    has_order: bool,
}

/// Batches of a query.
pub(super) struct Rows<'a> {
    sql: String,
    reader: Box<dyn RecordBatchReader + 'a>,
    progress: &'a Progress,
}

impl<'a> Source<'a> {
    /// The facts of a definition.
    pub(super) fn facts(
        facts: &FactsDefinition,
        tables: &'a dyn Tables,
        progress: &'a Progress,
    ) -> Result<Self, BuildError> {
        let place = "the facts".to_owned();
        let from = match (&facts.sql, &facts.file) {
            // The text may end in a comment, which the line break ends.
            (Some(sql), None) => format!("({}\n) AS facts", sql.trim_end().trim_end_matches(';')),
            (None, Some(file)) => quoted_file(file),
            _ => {
                let message = "the facts come from sql or from file, one of the two".to_owned();
                return Err(BuildError::Definition { place: "facts".to_owned(), message });
            }
        };
        let has_order = facts.sql.as_ref().is_none_or(|sql| sql.to_ascii_lowercase().contains("order by"));
        Ok(Self { has_order, ..Self::open(from, place, tables, progress)? })
    }

    /// A table of a dimension.
    pub(super) fn table(file: &str, tables: &'a dyn Tables, progress: &'a Progress) -> Result<Self, BuildError> {
        Self::open(quoted_file(file), format!("table '{file}'"), tables, progress)
    }

    fn open(from: String, place: String, tables: &'a dyn Tables, progress: &'a Progress) -> Result<Self, BuildError> {
        progress.check()?;
        let sql = format!("SELECT * FROM {from} LIMIT 0");
        let schema = match tables.query(&sql) {
            Ok(reader) => reader.schema(),
            Err(source) => return Err(BuildError::Query { sql, source }),
        };
        Ok(Self { tables, progress, from, place, schema, has_order: true })
    }

    /// True if the order of its rows means something.
    pub(super) fn has_order(&self) -> bool {
        self.has_order
    }

    /// The place that errors name.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// The column of a name as the source writes it: exactly so, else the only one that differs in case alone.
    pub(super) fn column(&self, user: &str, name: &str) -> Result<&str, BuildError> {
        let fields = || self.schema.fields().iter().map(|field| field.name().as_str());
        if let Some(exact) = fields().find(|field| *field == name) {
            return Ok(exact);
        }
        let wanted = folded(name);
        let alike: Vec<&str> = fields().filter(|field| folded(field) == wanted).collect();
        let owned = |columns: &[&str]| columns.iter().map(|column| (*column).to_owned()).collect();
        match alike.as_slice() {
            [one] => Ok(one),
            [] => Err(BuildError::NoColumn {
                user: user.to_owned(),
                place: self.place.clone(),
                column: name.to_owned(),
                nearest: sentence_end(&nearest(name, fields())),
                columns: fields().map(str::to_owned).collect(),
            }),
            several => Err(BuildError::SeveralColumns {
                user: user.to_owned(),
                place: self.place.clone(),
                column: name.to_owned(),
                candidates: owned(several),
            }),
        }
    }

    /// The type of a column.
    pub(super) fn data_type(&self, column: &str) -> &DataType {
        self.schema.field_with_name(column).map_or(&DataType::Null, |field| field.data_type())
    }

    /// The rows of some columns, in the order of the source.
    pub(super) fn select(&self, columns: &[&str]) -> Result<Rows<'a>, BuildError> {
        self.query("SELECT", columns)
    }

    /// All columns of all rows.
    pub(super) fn all(&self) -> Result<Rows<'a>, BuildError> {
        let sql = format!("SELECT * FROM {}", self.from);
        match self.tables.query(&sql) {
            Ok(reader) => Ok(Rows { sql, reader, progress: self.progress }),
            Err(source) => Err(BuildError::Query { sql, source }),
        }
    }

    /// All rows of some columns.
    pub(super) fn whole(&self, columns: &[&str]) -> Result<RecordBatch, BuildError> {
        self.select(columns)?.whole()
    }

    /// The distinct tuples of some columns, in any order.
    pub(super) fn distinct(&self, columns: &[&str]) -> Result<RecordBatch, BuildError> {
        self.query("SELECT DISTINCT", columns)?.whole()
    }

    fn query(&self, select: &str, columns: &[&str]) -> Result<Rows<'a>, BuildError> {
        let list: Vec<String> = columns.iter().map(|column| quoted_name(column)).collect();
        let sql = format!("{select} {} FROM {}", list.join(", "), self.from);
        let reader = match self.tables.query(&sql) {
            Ok(reader) => reader,
            Err(source) => return Err(BuildError::Query { sql, source }),
        };
        let (found, wanted) = (reader.schema().fields().len(), columns.len());
        if found != wanted {
            return Err(BuildError::Columns { sql, found, wanted });
        }
        Ok(Rows { sql, reader, progress: self.progress })
    }
}

impl Rows<'_> {
    /// The schema of the batches.
    pub(super) fn schema(&self) -> SchemaRef {
        self.reader.schema()
    }

    fn whole(mut self) -> Result<RecordBatch, BuildError> {
        let schema = self.reader.schema();
        let batches = self.by_ref().collect::<Result<Vec<_>, _>>()?;
        let schema = batches.first().map_or(schema, RecordBatch::schema);
        concat_batches(&schema, &batches)
            .map_err(|error| BuildError::Query { sql: self.sql, source: TablesError::from(error) })
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<RecordBatch, BuildError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(stopped) = self.progress.check() {
            return Some(Err(stopped.into()));
        }
        let failed = |error| BuildError::Query { sql: self.sql.clone(), source: TablesError::from(error) };
        self.reader.next().map(|batch| batch.map_err(failed))
    }
}

/// An identifier of SQL.
pub(super) fn quoted_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A file in the place of a table of SQL.
fn quoted_file(file: &str) -> String {
    format!("'{}'", file.replace('\'', "''"))
}
