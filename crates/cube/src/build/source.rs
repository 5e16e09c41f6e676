//! Rows of the facts and of tables, by SQL text: which columns there are, and queries for some of them.
//!
//! Columns of text files are text as it is written, but for those that `types` names: these become their types here.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Schema, SchemaRef};

use super::error::sentence_end;
use super::form::Form;
use super::keys::{plain, value_text};
use super::typed;
use super::{BuildError, Tables, TablesError, TextColumns, TextFiles};
use crate::define::{ColumnType, Definition, MeasureDefinition, Named, NumberStyle, TextFormat, ValueTypeText};
use crate::facts::{Rule, ValueType};
use crate::model::{folded, nearest};
use crate::progress::Progress;

/// Context that all sources of a build share.
#[derive(Clone, Copy)]
pub(super) struct Reading<'a> {
    pub(super) tables: &'a dyn Tables,
    pub(super) progress: &'a Progress,
    /// The definition's format of text files.
    pub(super) text: &'a TextFormat,
    /// Names, folded, of columns of the definition's `types` that a source has.
    pub(super) met: &'a RefCell<HashSet<String>>,
}

/// A query or file whose columns are known.
pub(super) struct Source<'a> {
    reading: Reading<'a>,
    /// The operand of FROM.
    from: String,
    /// Its name in errors.
    place: String,
    /// Columns with the types that `types` gives them.
    schema: SchemaRef,
    /// Columns of `types`, as the source writes them.
    types: Vec<(String, ColumnType)>,
    style: NumberStyle,
    /// Columns of `types` in which values of other types are NULL.
    spared: Vec<String>,
    files: TextFiles,
    /// True for text files, whose columns are text as it is written.
    is_text: bool,
    /// Its query, without a semicolon; nothing for a file.
    sql: Option<&'a str>,
    /// Columns that name elements, as the source writes them.
    keys: Vec<String>,
    /// Columns of decimals that a query hands on from text files as they are written.
    decimals: Vec<String>,
}

/// Batches of a query.
pub(super) struct Rows<'a> {
    sql: String,
    reader: Box<dyn RecordBatchReader + 'a>,
    schema: SchemaRef,
    progress: &'a Progress,
    /// The place that errors name.
    place: String,
    /// Columns with the types that they become.
    types: Vec<(usize, ColumnType)>,
    style: NumberStyle,
    /// Columns in which values of other types are NULL.
    spared: Vec<usize>,
    /// The batch that came last, as the source has it.
    written: Option<RecordBatch>,
    /// The columns of the query that batches have; nothing for all.
    columns: Option<Vec<usize>>,
    /// Rows of the batches so far; nothing where rows are not those of the source.
    before: Option<u64>,
}

impl<'a> Source<'a> {
    /// The facts of a definition.
    pub(super) fn facts(definition: &'a Definition, reading: Reading<'a>) -> Result<Self, BuildError> {
        let facts = &definition.facts;
        let place = "the facts".to_owned();
        let (from, file) = match (&facts.sql, &facts.file) {
            // The text may end in a comment, which the line break ends.
            (Some(sql), None) => (format!("({}\n) AS facts", query_of(sql)), None),
            (None, Some(file)) => (quoted_file(file), Some(file.as_str())),
            _ => {
                let message = "the facts come from sql or from file, one of the two".to_owned();
                return Err(BuildError::Definition { place: "facts".to_owned(), message });
            }
        };
        let mut keys = Vec::new();
        for (name, dimension) in definition.dimensions.iter() {
            let form = Form::of(name, dimension)?;
            keys.extend(form.fact_columns(name, dimension).into_iter().map(str::to_owned));
        }
        let is_alone = check_whole(definition, reading)? && file.is_none();
        let source = Self::open((from, file), place, facts.text(), (keys.clone(), is_alone), reading);
        let source = source.map_err(|error| error.at(|| "facts".to_owned()))?;
        let source = match &facts.sql {
            Some(_) => source.with_decimals(definition)?,
            None => source,
        };
        // Dimensions tell which of them there are not.
        let keys = keys.iter().filter_map(|key| source.column("", key).ok().map(str::to_owned)).collect();
        Ok(Self { sql: facts.sql.as_deref().map(query_of), keys, ..source })
    }

    /// A query whose doubles from text files are text, where measures are decimals: these are read by their digits.
    fn with_decimals(mut self, definition: &Definition) -> Result<Self, BuildError> {
        let is_decimal = |value: &ValueTypeText| matches!(value.0, ValueType::Decimal { .. });
        let of_measure = |(_, measure): (&str, &MeasureDefinition)| {
            let value_type = measure.value_type.unwrap_or(definition.value.value_type);
            measure.column.clone().filter(|_| measure.rule != Rule::Count && is_decimal(&value_type))
        };
        let of_facts = definition.facts.value.clone().filter(|_| is_decimal(&definition.value.value_type));
        let of_facts = of_facts.filter(|_| definition.measures.is_empty());
        let columns = definition.measures.iter().filter_map(of_measure).chain(of_facts);
        let found = columns.filter_map(|column| self.column("", &column).ok().map(str::to_owned));
        let doubles: Vec<String> = found.filter(|column| plain(self.data_type(column)).is_floating()).collect();
        if doubles.is_empty() {
            return Ok(self);
        }
        if let TextColumns::Of { decimals, .. } = &mut self.files.columns {
            decimals.clone_from(&doubles);
        }
        self.schema = self.rows(format!("SELECT * FROM {} LIMIT 0", self.from), None)?.schema;
        self.decimals = doubles;
        self.decimals.retain(|column| {
            self.schema.field_with_name(column).is_ok_and(|field| plain(field.data_type()).is_string())
        });
        Ok(self)
    }

    /// A table of a dimension.
    pub(super) fn table(file: &str, text: TextFormat, reading: Reading<'a>) -> Result<Self, BuildError> {
        Self::open((quoted_file(file), Some(file)), format!("table '{file}'"), text, (Vec::new(), false), reading)
    }

    /// Finds the columns of the operand of FROM. A query takes its columns `keys` from text files as text, and is
    /// refused without text files if it `is_alone`.
    fn open(
        (from, file): (String, Option<&str>),
        place: String,
        own: TextFormat,
        (keys, is_alone): (Vec<String>, bool),
        reading: Reading<'a>,
    ) -> Result<Self, BuildError> {
        let Reading { tables, progress, text: whole, met } = reading;
        progress.check()?;
        let is_text = file.is_some_and(|file| tables.is_text(file));
        let of_files = TextFormat { types: Named::default(), decimal: None, thousands: None, ..own.clone() };
        if let (Some(file), false, Some(field)) = (file, is_text, of_files.first_given()) {
            let message = format!("{field} is about text files such as CSV, and '{file}' is none: leave it out");
            return Err(BuildError::Definition { place, message });
        }
        let has_style = own.decimal.is_some() || own.thousands.is_some();
        if has_style && !is_text && own.types.is_empty() && whole.types.is_empty() {
            let message = "decimal and thousands are about texts: name the columns of numbers in types, too".to_owned();
            return Err(BuildError::Definition { place, message });
        }
        let text = own.or(whole);
        let style = text.style();
        let mut named: Vec<(&str, &ColumnType, bool)> =
            text.types.iter().map(|(name, wanted)| (name, wanted, true)).collect();
        let is_own = |name: &str| text.types.names().any(|own| folded(own) == folded(name));
        named.extend(whole.types.iter().filter(|(name, _)| !is_own(name)).map(|(name, wanted)| (name, wanted, false)));
        let columns = match file {
            Some(_) => TextColumns::All,
            None => TextColumns::Of {
                keys,
                decimals: Vec::new(),
                named: named.iter().map(|(name, ..)| (*name).to_owned()).collect(),
            },
        };
        let TextFormat { delimiter, quote, encoding, header, .. } = text;
        let is_needed = file.is_none() && of_files.first_given().is_some();
        let files = TextFiles { delimiter, quote, header, encoding, columns, is_needed: is_needed || is_alone };
        let sql = format!("SELECT * FROM {from} LIMIT 0");
        let schema = match tables.query(&sql, &files) {
            Ok(reader) => reader.schema(),
            Err(source) => return Err(BuildError::Query { sql, source }),
        };
        let mut source = Self {
            reading,
            from,
            place,
            schema,
            types: Vec::new(),
            style,
            spared: Vec::new(),
            files,
            is_text,
            sql: None,
            keys: Vec::new(),
            decimals: Vec::new(),
        };
        for (name, wanted, is_own) in named {
            let user = format!("types of {}", source.place);
            let has_it = || source.schema.fields().iter().any(|field| folded(field.name()) == folded(name));
            if !is_own && !has_it() {
                continue;
            }
            met.borrow_mut().insert(folded(name));
            let column = source.column(&user, name)?.to_owned();
            let found = source.data_type(&column);
            typed::check(found, wanted).map_err(|wanted| source.wrong_type(&user, &column, wanted))?;
            source.types.push((column, wanted.clone()));
        }
        source.schema = source.schema_of(&source.schema);
        Ok(source)
    }

    /// A schema of columns of the source, with the types that `types` gives them.
    fn schema_of(&self, found: &SchemaRef) -> SchemaRef {
        let fields = found.fields().iter().map(|field| match self.type_of(field.name()) {
            Some(wanted) => Arc::new(field.as_ref().clone().with_data_type(typed::array_type(wanted))),
            None => field.clone(),
        });
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    fn type_of(&self, column: &str) -> Option<&ColumnType> {
        self.types.iter().find(|(name, _)| name == column).map(|(_, wanted)| wanted)
    }

    /// The error of a column's type.
    pub(super) fn wrong_type(&self, user: &str, column: &str, wanted: String) -> BuildError {
        BuildError::ColumnType {
            user: user.to_owned(),
            place: self.place.clone(),
            column: column.to_owned(),
            found: Box::new(self.data_type(column).clone()),
            wanted,
        }
    }

    /// How numbers of its texts are written.
    pub(super) fn style(&self) -> NumberStyle {
        self.style
    }

    /// How numbers of a column are written: those that SQL takes for numbers, as programs write them.
    pub(super) fn style_of(&self, column: Option<&str>) -> NumberStyle {
        let is_decimal = column.is_some_and(|column| self.decimals.iter().any(|decimal| decimal == column));
        if is_decimal { NumberStyle::PLAIN } else { self.style }
    }

    /// True for a column of text files that is text as it is written.
    pub(super) fn is_written(&self, column: &str) -> bool {
        let is_decimal = self.decimals.iter().any(|decimal| decimal == column);
        is_decimal || self.is_text && self.type_of(column).is_none_or(|wanted| *wanted == ColumnType::Text)
    }

    /// True for a column without a declared type whose values may be read as another type.
    pub(super) fn is_untyped(&self, column: &str) -> bool {
        self.is_text && self.type_of(column).is_none()
    }

    /// True if types of text files are those that older versions guessed.
    pub(super) fn is_guessed(&self) -> bool {
        self.reading.tables.guesses_types()
    }

    /// True if the order of its rows means something: that of files, and of queries that are sorted.
    pub(super) fn has_order(&self) -> Result<bool, BuildError> {
        let Some(sql) = self.sql else { return Ok(true) };
        let is_sorted = self.reading.tables.is_sorted(sql, &self.files);
        is_sorted.map_err(|source| BuildError::Query { sql: sql.to_owned(), source })
    }

    /// Columns that name elements, each once.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        let is_first = |(at, key): &(usize, &String)| !self.keys[..*at].contains(key);
        self.keys.iter().enumerate().filter(is_first).map(|(_, key)| key.as_str())
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
                nearest: self.misread().unwrap_or_else(|| sentence_end(&nearest(name, fields()))),
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

    /// The advice where names of a text file's columns suggest another encoding.
    fn misread(&self) -> Option<String> {
        let is_broken = |field: &Arc<arrow::datatypes::Field>| field.name().contains(['\u{fffd}', '\0']);
        if self.is_text && self.schema.fields().iter().any(is_broken) {
            return Some(", which is not UTF-8: write encoding: windows-1252, or utf-16.".to_owned());
        }
        let mark = |field: &Arc<arrow::datatypes::Field>| field.name().starts_with(['\u{ef}', '\u{feff}']);
        if self.is_text && self.files.encoding.is_some() && self.schema.fields().first().is_some_and(mark) {
            return Some(", which begins as UTF-8 does: leave encoding out, or write encoding: utf-8.".to_owned());
        }
        let [only] = self.schema.fields().as_ref() else { return None };
        let delimiter = only.name().chars().find(|character| ";\t|,".contains(*character)).filter(|_| self.is_text)?;
        Some(format!(", which has one column: if {delimiter:?} parts its values, write delimiter: {delimiter:?}."))
    }

    /// The type of a column.
    pub(super) fn data_type(&self, column: &str) -> &DataType {
        self.schema.field_with_name(column).map_or(&DataType::Null, |field| field.data_type())
    }

    /// The rows of some columns, in the order that the text of a query asks for or a file has.
    pub(super) fn in_order(&self, columns: &[&str]) -> Result<Rows<'a>, BuildError> {
        let Some(sql) = self.sql else { return self.select(columns) };
        let mut rows = self.rows(sql.to_owned(), Some(0))?;
        // An ORDER BY counts on top of a query alone, so that the columns are taken from its rows.
        let place = |column: &&str| rows.schema.index_of(column);
        let places = columns.iter().map(place).collect::<Result<Vec<_>, _>>();
        rows.columns = Some(places.map_err(|source| BuildError::Arrow { what: "reading columns", source })?);
        Ok(rows)
    }

    /// The rows of some columns.
    pub(super) fn select(&self, columns: &[&str]) -> Result<Rows<'a>, BuildError> {
        self.query("SELECT", columns)
    }

    /// Makes values of other types NULL in columns.
    pub(super) fn spare(&mut self, columns: Vec<String>) {
        self.spared = columns;
    }

    /// All columns of all rows.
    pub(super) fn all(&self) -> Result<Rows<'a>, BuildError> {
        self.rows(format!("SELECT * FROM {}", self.from), Some(0))
    }

    /// All rows of some columns.
    pub(super) fn whole(&self, columns: &[&str]) -> Result<RecordBatch, BuildError> {
        self.select(columns)?.whole()
    }

    /// The distinct tuples of some columns, in any order; after `types` a tuple may come more than once.
    pub(super) fn distinct(&self, columns: &[&str]) -> Result<RecordBatch, BuildError> {
        self.query("SELECT DISTINCT", columns)?.whole()
    }

    fn query(&self, select: &str, columns: &[&str]) -> Result<Rows<'a>, BuildError> {
        let list: Vec<String> = columns.iter().map(|column| quoted_name(column)).collect();
        let sql = format!("{select} {} FROM {}", list.join(", "), self.from);
        let rows = self.rows(sql, (select == "SELECT").then_some(0))?;
        let (found, wanted) = (rows.schema.fields().len(), columns.len());
        if found != wanted {
            return Err(BuildError::Columns { sql: rows.sql, found, wanted });
        }
        Ok(rows)
    }

    fn rows(&self, sql: String, before: Option<u64>) -> Result<Rows<'a>, BuildError> {
        let reader = match self.reading.tables.query(&sql, &self.files) {
            Ok(reader) => reader,
            Err(source) => return Err(BuildError::Query { sql, source }),
        };
        let found = reader.schema();
        let of_column =
            |(at, field): (usize, &Arc<arrow::datatypes::Field>)| Some((at, self.type_of(field.name())?.clone()));
        let types = found.fields().iter().enumerate().filter_map(of_column).collect();
        let is_spared = |at: &usize| self.spared.contains(found.field(*at).name());
        let spared = (0..found.fields().len()).filter(is_spared).collect();
        let (schema, place, style) = (self.schema_of(&found), self.place.clone(), self.style);
        Ok(Rows {
            sql,
            reader,
            schema,
            progress: self.reading.progress,
            place,
            types,
            style,
            spared,
            written: None,
            columns: None,
            before,
        })
    }
}

impl Rows<'_> {
    /// The schema of the batches.
    pub(super) fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn whole(mut self) -> Result<RecordBatch, BuildError> {
        let batches = self.by_ref().collect::<Result<Vec<_>, _>>()?;
        let schema = batches.first().map_or(self.schema.clone(), RecordBatch::schema);
        concat_batches(&schema, &batches)
            .map_err(|error| BuildError::Query { sql: self.sql, source: TablesError::from(error) })
    }

    /// The schema of the batches as the source has them.
    pub(super) fn written_schema(&self) -> SchemaRef {
        self.reader.schema()
    }

    /// The batch that came last, as the source has it.
    pub(super) fn written(&self) -> Option<&RecordBatch> {
        self.written.as_ref()
    }

    /// A batch with the types that `types` gives its columns.
    fn typed(&mut self, batch: RecordBatch) -> Result<RecordBatch, BuildError> {
        let before = self.before;
        self.before = before.map(|rows| rows + batch.num_rows() as u64);
        self.written = Some(batch.clone());
        if self.types.is_empty() {
            return Ok(batch);
        }
        let mut columns = batch.columns().to_vec();
        for (at, wanted) in &self.types {
            let read = match self.spared.contains(at) {
                true => typed::typed_or_null,
                false => typed::typed,
            };
            columns[*at] = read(batch.column(*at), wanted, self.style).map_err(|(row, problem)| {
                let row_number = before.map(|before| before + row as u64 + 1);
                BuildError::Typed {
                    place: self.place.clone(),
                    column: batch.schema().field(*at).name().as_str().into(),
                    value: value_text(batch.column(*at), row).unwrap_or_default(),
                    row: row_number.map_or(String::new(), |row| format!(", row {row}")).into(),
                    problem,
                }
            })?;
        }
        RecordBatch::try_new(self.schema.clone(), columns)
            .map_err(|source| BuildError::Arrow { what: "reading columns by their types", source })
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<RecordBatch, BuildError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(stopped) = self.progress.check() {
            return Some(Err(stopped.into()));
        }
        let batch = self.reader.next()?;
        let failed = |error| BuildError::Query { sql: self.sql.clone(), source: TablesError::from(error) };
        Some(batch.map_err(failed).and_then(|batch| self.typed(batch)).and_then(|batch| match &self.columns {
            Some(columns) => {
                batch.project(columns).map_err(|source| BuildError::Arrow { what: "reading columns", source })
            }
            None => Ok(batch),
        }))
    }
}

/// Refuses what a definition says of all text files, and of numbers in texts, where it names none. True if something is
/// said of text files and its query alone may read any.
fn check_whole(definition: &Definition, reading: Reading<'_>) -> Result<bool, BuildError> {
    let dimensions = || definition.dimensions.iter().map(|(_, dimension)| dimension);
    let tables = dimensions().filter_map(|dimension| dimension.table.as_deref());
    let mut files = tables.chain(definition.facts.file.as_deref());
    if reading.tables.guesses_types() || files.any(|file| reading.tables.is_text(file)) {
        return Ok(false);
    }
    let whole = reading.text;
    let refused = |field: &str, message: String| BuildError::Definition { place: field.to_owned(), message };
    let of_numbers = TextFormat { decimal: whole.decimal, thousands: whole.thousands, ..TextFormat::default() };
    let mut types = [&whole.types, &definition.facts.types].into_iter().chain(dimensions().map(|it| &it.types));
    if let (Some(field), true) = (of_numbers.first_given(), types.all(Named::is_empty)) {
        let message = format!("{field} is about texts: name the columns of numbers in types, too");
        return Err(refused(field, message));
    }
    let of_files = TextFormat { types: Named::default(), decimal: None, thousands: None, ..whole.clone() };
    match of_files.first_given() {
        Some(field) if definition.facts.sql.is_none() => {
            let message = format!("{field} is about text files such as CSV, and the cube reads none: leave it out");
            Err(refused(field, message))
        }
        field => Ok(field.is_some()),
    }
}

/// A query without the semicolon that may end it.
fn query_of(sql: &str) -> &str {
    sql.trim_end().trim_end_matches(';')
}

/// An identifier of SQL.
pub(super) fn quoted_name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A file in the place of a table of SQL.
fn quoted_file(file: &str) -> String {
    format!("'{}'", file.replace('\'', "''"))
}
