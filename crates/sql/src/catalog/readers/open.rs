//! Opening the files of a call.
//!
//! A call that says no more than a `CREATE EXTERNAL TABLE` can is a listing table. Else the columns of all files are
//! found first, by the same way, and a projection stands over the files: texts that are NULL, dates and numbers in
//! other spellings are expressions over columns that are read as texts, and the name of a file and the names of its
//! folders are constants. Files with other constants are other branches of a union.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Column, DFSchema, ScalarValue, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::execution::SessionState;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    CreateExternalTable, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Union, cast, lit, try_cast,
};
use datafusion::sql::sqlparser::keywords::{ALL_KEYWORDS, ALL_KEYWORDS_INDEX, RESERVED_FOR_COLUMN_ALIAS};

use super::super::csv_types::{WHOLE, distinct, given};
use super::super::files::{ExternalTable, resolve};
use super::super::memory::mirror_of;
use super::super::mirror::LeftOut;
use super::super::patterns::{by_folder, with_braces};
use super::super::special::DerivedTable;
use super::super::text_files::TextReading;
use super::super::text_keys::NULL_KEY;
use super::options::{NULL_TEXTS, Reading, Types};
use crate::access::Access;
use crate::error::{Result, SqlError};
use crate::file_sets::is_partition;
use crate::format_options::{self, Purpose};
use crate::formats::stored_as;
use crate::functions::url_decoded;
use crate::locations::{canonical, is_elsewhere, shown, url_of};

/// Files whose rows have the same constants beside their columns.
struct Group {
    /// The names of folders, `key=value`.
    keys: Vec<(String, String)>,
    filename: Option<String>,
    files: Vec<PathBuf>,
}

/// The table of a call, which is called `name`.
///
/// # Errors
/// Whatever is wrong with the files, or with what the call says of their columns.
pub(in crate::catalog) async fn open(
    state: &dyn Session,
    name: &str,
    reading: &Reading,
) -> Result<Arc<dyn TableProvider>> {
    let access = Access::of(state.config_options());
    let mut paths: Vec<String> = reading.paths.iter().flat_map(|path| with_braces(path)).collect();
    let mut files = Vec::new();
    for path in &mut paths {
        access.check_location(path)?;
        if is_elsewhere(path) {
            *path = mirror_of(state)?.open(state, path, Some(&reading.file_type)).await?.location();
        } else if path.contains("://") && !path.starts_with("file://") {
            return Err(SqlError::Unsupported(format!(
                "{}() of '{path}': paths, s3:// and https://",
                reading.function
            )));
        }
        let found = resolve(&mut canonical(path), &reading.file_type, false)?;
        found.iter().try_for_each(|file| access.check_path(file))?;
        files.extend(found);
    }
    if reading.leaves_lines_out() {
        let compression = reading.format.get("format.compression").map(String::as_str);
        let unreadable = reading.ignores_errors.then(|| given(&reading.format));
        let left_out = LeftOut { first: reading.skipped, unreadable };
        for file in &mut files {
            *file = mirror_of(state)?.without_lines(state, file, left_out.clone(), compression).await?;
        }
        paths = files.iter().map(|file| file.display().to_string()).collect();
    }
    let opening = Opening { state, name, reading, access: &access };
    let groups = opening.groups(&paths, &files)?;
    match groups {
        None => opening.listing(&paths, &files).await,
        Some(groups) => opening.projected(groups, &files).await,
    }
}

struct Opening<'a> {
    state: &'a dyn Session,
    name: &'a str,
    reading: &'a Reading,
    access: &'a Access,
}

impl Opening<'_> {
    /// The files by their constants; none where a listing table does all that is asked for.
    fn groups(&self, paths: &[String], files: &[PathBuf]) -> Result<Option<Vec<Group>>> {
        let reading = self.reading;
        let keys: Vec<Vec<(String, String)>> = files.iter().map(|file| keys_of(file)).collect();
        let names = |keys: &[(String, String)]| keys.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
        let first = keys.first().map(|keys| names(keys)).unwrap_or_default();
        let alike = keys.iter().all(|keys| names(keys) == first);
        if reading.hive == Some(true) && (!alike || first.is_empty()) {
            return Err(reading.refused("hive_partitioning", "not all files are in folders key=value of the same keys"));
        }
        let are_columns = alike && !first.is_empty() && reading.hive != Some(false);
        // Below the place of one listing, keys are columns of it.
        let listed = match paths {
            [path] => {
                let place = canonical(path);
                let is_one = by_folder(&place)? == [place.as_str()];
                let above = Path::new(&place).parent().is_some_and(|folder| !keys_of_folder(folder).is_empty());
                is_one && (!above || Path::new(&place).is_dir())
            }
            _ => false,
        };
        let by_name = reading.by_name && reading.file_type == "CSV";
        let is_plain = reading.filename.is_none()
            && !by_name
            && reading.names.is_empty()
            && !reading.normalizes
            && reading.types.is_none()
            && reading.nulls.is_empty()
            && reading.date_format.is_none()
            && reading.timestamp_format.is_none()
            && !reading.decimal_comma
            && !reading.ignores_errors
            && reading.hive_types.is_empty()
            && (listed || !are_columns)
            && (reading.hive != Some(false) || keys.iter().all(Vec::is_empty));
        if is_plain {
            return Ok(None);
        }
        let mut groups: Vec<Group> = Vec::new();
        for (file, keys) in files.iter().zip(keys) {
            let keys = if are_columns { keys } else { Vec::new() };
            let filename = reading.filename.is_some().then(|| shown(file));
            match groups.last_mut() {
                Some(group) if !by_name && group.keys == keys && group.filename == filename => {
                    group.files.push(file.clone());
                }
                _ => groups.push(Group { keys, filename, files: vec![file.clone()] }),
            }
        }
        Ok(Some(groups))
    }

    /// The options of the format; copies are not compressed.
    fn options(&self) -> HashMap<String, String> {
        let mut options = self.reading.format.clone();
        if self.reading.leaves_lines_out() {
            options.remove("format.compression");
        }
        options
    }

    /// The command that reads files as the call says.
    fn command(&self, locations: Vec<String>, files: &[PathBuf]) -> Result<CreateExternalTable> {
        let reading = self.reading;
        let given: Vec<(String, _)> = reading
            .format
            .iter()
            .map(|(name, value)| {
                (name.clone(), datafusion::sql::sqlparser::ast::Value::SingleQuotedString(value.clone()))
            })
            .collect();
        let format = stored_as(&reading.file_type, &locations[0])?;
        format_options::check(format.name, Purpose::Table, &given)?;
        let columns = reading.columns.iter().map(|(name, kind)| self.column(name, kind));
        let schema = Arc::new(DFSchema::try_from(Schema::new(columns.collect::<Result<Vec<_>>>()?))?);
        let reference = TableReference::bare(self.name.to_string());
        let mut command =
            CreateExternalTable::builder(reference, locations[0].clone(), reading.file_type.clone(), schema).build();
        command.locations = locations;
        command.options = self.options();
        if !reading.nulls.is_empty() {
            command.options.insert(NULL_TEXTS.into(), reading.nulls.join("\n"));
        }
        if reading.by_name && format.name != "CSV" {
            command.options.insert("format.union_by_name".into(), "true".into());
        }
        if reading.whole_sample && reading.columns.is_empty() {
            let is_large = |file: &&PathBuf| file.metadata().is_ok_and(|found| found.len() > WHOLE);
            if let Some(file) = files.iter().find(is_large) {
                let why = format!("'{}' is larger than {WHOLE} bytes; name its columns and types", shown(file));
                return Err(reading.refused("sample_size", &format!("-1, {why}")));
            }
        }
        Ok(command)
    }

    /// A table over the files of the paths.
    async fn listing(&self, paths: &[String], files: &[PathBuf]) -> Result<Arc<dyn TableProvider>> {
        let locations = match paths {
            [path] => vec![path.clone()],
            _ => files.iter().map(|file| url_of(file, false)).collect(),
        };
        let mut command = self.command(locations, files)?;
        let text = TextReading::current().filter(|_| self.reading.file_type == "CSV");
        if let (Some(text), Some(first)) = (&text, files.first()) {
            text.prepare(&mut command, &first.to_string_lossy(), self.access)?;
            command.options.extend(self.options());
        }
        Ok(ExternalTable::open_as(self.state, &command, text.as_deref()).await?.table)
    }

    async fn opened(&self, files: &[PathBuf], schema: Option<&Schema>) -> Result<Arc<dyn TableProvider>> {
        let mut command = self.command(files.iter().map(|file| url_of(file, false)).collect(), files)?;
        if let Some(schema) = schema {
            command.schema = Arc::new(DFSchema::try_from(schema.clone())?);
        }
        Ok(ExternalTable::open_as(self.state, &command, None).await?.table)
    }

    /// A projection over the files, or a union of those of groups.
    async fn projected(&self, groups: Vec<Group>, files: &[PathBuf]) -> Result<Arc<dyn TableProvider>> {
        let reading = self.reading;
        if TextReading::current().is_some() && reading.file_type == "CSV" {
            return Err(SqlError::Unsupported(format!(
                "options of columns and files of {}() in a cube's definition; its query may compute them",
                reading.function
            )));
        }
        let mut tables = Vec::new();
        let found = if reading.by_name && reading.file_type == "CSV" {
            for group in &groups {
                tables.push(self.opened(&group.files, None).await?);
            }
            merged(&tables)
        } else {
            let all = self.opened(files, None).await?;
            let schema = all.schema().as_ref().clone();
            if groups.len() == 1 {
                tables.push(all);
            }
            schema
        };
        let columns = self.as_named(found.clone())?;
        let is_text = |field: &Field| !self.is_as_read(field);
        if let Some(name) = self.misses_its_columns(&columns) {
            let why = "no column is declared of a type that it is about: name one in types, as {'a': 'DATE'}";
            return Err(reading.refused(name, why));
        }
        let read = |field: &Arc<Field>| match is_text(field) {
            true => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8)),
            false => field.clone(),
        };
        let as_read = Schema::new(columns.fields().iter().map(read).collect::<Vec<_>>());
        if as_read != found || tables.is_empty() {
            if reading.by_name && reading.file_type == "CSV" {
                // Each file has its own columns.
                let wanted = |table: &Arc<dyn TableProvider>| {
                    let field = |field: &Arc<Field>| match as_read.field_with_name(field.name()) {
                        Ok(wanted) => wanted.clone(),
                        Err(_) => field.as_ref().clone(),
                    };
                    Schema::new(table.schema().fields().iter().map(field).collect::<Vec<_>>())
                };
                for (table, group) in tables.iter_mut().zip(&groups) {
                    *table = self.opened(&group.files, Some(&wanted(table))).await?;
                }
            } else {
                tables.clear();
                for group in &groups {
                    tables.push(self.opened(&group.files, Some(&as_read)).await?);
                }
            }
        }
        let kinds = self.kinds_of_keys(&groups)?;
        let mut branches = Vec::new();
        for (table, group) in tables.into_iter().zip(&groups) {
            branches.push(Arc::new(self.branch(table, &columns, group, &kinds)?));
        }
        let plan = match branches.as_slice() {
            [one] => one.as_ref().clone(),
            _ => {
                let schema = branches[0].schema().clone();
                LogicalPlan::Union(Union { inputs: branches, schema })
            }
        };
        Ok(Arc::new(DerivedTable { plan }))
    }

    /// One group with its constants.
    fn branch(
        &self,
        table: Arc<dyn TableProvider>,
        columns: &Schema,
        group: &Group,
        kinds: &[DataType],
    ) -> Result<LogicalPlan> {
        let relation = TableReference::bare(self.name.to_string());
        let own = table.schema();
        let scan = LogicalPlanBuilder::scan(relation.clone(), provider_as_source(table), None)?;
        let schema = scan.schema().clone();
        let (mut exprs, mut fits) = (Vec::new(), Vec::new());
        for field in columns.fields() {
            let column = Expr::Column(Column::new(Some(relation.clone()), field.name()));
            let expr = match own.field_with_name(field.name()) {
                Err(_) => cast(lit(ScalarValue::Null), field.data_type().clone()),
                Ok(_) if self.is_as_read(field) => column,
                Ok(_) => self.of_text(field, &schema)?,
            };
            let expr = match self.reading.ignores_errors && !self.is_as_read(field) {
                true => {
                    let tried = try_cast(expr.clone(), field.data_type().clone());
                    fits.push(expr.is_null().or(tried.clone().is_not_null()));
                    tried
                }
                false => expr.cast_to(field.data_type(), &schema)?,
            };
            exprs.push(expr.alias(field.name()));
        }
        if let (Some(name), Some(filename)) = (&self.reading.filename, &group.filename) {
            exprs.push(lit(filename.as_str()).alias(name));
        }
        for ((key, value), kind) in group.keys.iter().zip(kinds) {
            let value = match value.as_str() {
                NULL_KEY => ScalarValue::Null,
                value => ScalarValue::Utf8(Some(value.to_string())),
            };
            exprs.push(lit(value.cast_to(kind)?).alias(key));
        }
        let kept = match conjunction(fits) {
            Some(fits) => scan.filter(fits)?,
            None => scan,
        };
        Ok(kept.project(exprs)?.build()?)
    }

    /// Columns with the names and types that the call gives.
    fn as_named(&self, found: Schema) -> Result<Schema> {
        let reading = self.reading;
        let mut fields: Vec<Field> = found.fields().iter().map(|field| field.as_ref().clone()).collect();
        // A column without a value has texts.
        let untyped = fields.iter_mut().filter(|field| field.data_type().is_null());
        untyped.for_each(|field| field.set_data_type(DataType::Utf8));
        if reading.names.len() > fields.len()
            || matches!(&reading.types, Some(Types::ByPosition(types)) if types.len() > fields.len())
        {
            return Err(reading.wrong(format!("names and types of the {} columns that there are", fields.len())));
        }
        if reading.normalizes {
            let names: Vec<String> = fields.iter().map(|field| normalized(field.name())).collect();
            fields.iter_mut().zip(distinct(&names)).for_each(|(field, name)| field.set_name(name));
        }
        for (field, name) in fields.iter_mut().zip(&reading.names) {
            field.set_name(name.clone());
        }
        match &reading.types {
            None => {}
            Some(Types::Text) => {
                fields.iter_mut().for_each(|field| field.set_data_type(DataType::Utf8));
            }
            Some(Types::ByPosition(types)) => {
                for (field, kind) in fields.iter_mut().zip(types) {
                    *field = self.column(field.name(), kind)?.with_nullable(field.is_nullable());
                }
            }
            Some(Types::ByName(types)) => {
                for (name, kind) in types {
                    let typed = self.column(name, kind)?;
                    let known = || found.fields().iter().map(|field| field.name().clone());
                    let field = fields.iter_mut().find(|field| field.name().eq_ignore_ascii_case(name));
                    let Some(field) = field else {
                        let nearest = crate::nearest::nearest(name, known());
                        return Err(SqlError::UnknownColumn { name: name.clone(), nearest });
                    };
                    *field = typed.with_name(field.name()).with_nullable(field.is_nullable());
                }
            }
        }
        Ok(Schema::new(fields))
    }

    /// Whether values of a column are read as their type, and not as texts of which an expression makes them.
    fn is_as_read(&self, field: &Field) -> bool {
        let reading = self.reading;
        let is_date = reading.date_format.is_some() && matches!(field.data_type(), DataType::Date32);
        let is_time = reading.timestamp_format.is_some() && matches!(field.data_type(), DataType::Timestamp(..));
        let is_number = reading.decimal_comma && has_point(field.data_type());
        let is_tried = reading.ignores_errors && !field.data_type().is_string();
        reading.nulls.is_empty() && !is_date && !is_time && !is_number && !is_tried
    }

    /// The option of a spelling that no column has the type for.
    fn misses_its_columns(&self, columns: &Schema) -> Option<&'static str> {
        let reading = self.reading;
        let has = |is_wanted: fn(&DataType) -> bool| columns.fields().iter().any(|it| is_wanted(it.data_type()));
        let is_time = |kind: &DataType| matches!(kind, DataType::Timestamp(..));
        [
            ("dateformat", reading.date_format.is_some() && !has(|kind| *kind == DataType::Date32)),
            ("timestampformat", reading.timestamp_format.is_some() && !has(is_time)),
            ("decimal_separator", reading.decimal_comma && !has(has_point)),
        ]
        .into_iter()
        .find_map(|(name, misses)| misses.then_some(name))
    }

    /// The value of a column that is read as text.
    fn of_text(&self, field: &Field, schema: &DFSchema) -> Result<Expr> {
        let reading = self.reading;
        let text = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let mut value = format!("\"{}\"", field.name().replace('"', "\"\""));
        for null in &reading.nulls {
            value = format!("nullif({value}, {})", text(null));
        }
        match (field.data_type(), &reading.date_format, &reading.timestamp_format) {
            (DataType::Date32, Some(format), _) => value = format!("to_date({value}, {})", text(format)),
            (DataType::Timestamp(..), _, Some(format)) => value = format!("to_timestamp({value}, {})", text(format)),
            (kind, _, _) if reading.decimal_comma && has_point(kind) => value = format!("replace({value}, ',', '.')"),
            _ => {}
        }
        Ok(self.session()?.create_logical_expr(&value, schema)?)
    }

    /// The type of a name in SQL.
    fn data_type(&self, name: &str) -> Result<DataType> {
        Ok(self.column("", name)?.data_type().clone())
    }

    /// A column of a type by its name in SQL.
    fn column(&self, name: &str, kind: &str) -> Result<Field> {
        let cast = format!("CAST(NULL AS {kind})");
        let wrong = || self.reading.wrong(format!("types by their names in SQL, and '{kind}' is none"));
        let planned = self.session()?.create_logical_expr(&cast, &DFSchema::empty()).map_err(|_| wrong())?;
        let (_, typed) = planned.to_field(&DFSchema::empty())?;
        Ok(typed.as_ref().clone().with_name(name).with_nullable(true))
    }

    fn session(&self) -> Result<&SessionState> {
        let state = self.state.as_any().downcast_ref::<SessionState>();
        state.ok_or_else(|| SqlError::Internal("files are read without a session".into()))
    }

    /// The types of the keys: as the call has them, BIGINT where all are whole numbers, else text.
    fn kinds_of_keys(&self, groups: &[Group]) -> Result<Vec<DataType>> {
        let Some(first) = groups.first() else { return Ok(Vec::new()) };
        let is_unknown = |name: &&String| !first.keys.iter().any(|(key, _)| key == *name);
        if let Some(name) = self.reading.hive_types.iter().map(|(name, _)| name).find(is_unknown) {
            return Err(SqlError::Planning(format!("hive_types: no folder has a key '{name}'")));
        }
        let kind = |(at, (key, _)): (usize, &(String, String))| {
            if let Some((_, kind)) = self.reading.hive_types.iter().find(|(name, _)| name == key) {
                return self.data_type(kind);
            }
            let values = groups.iter().map(|group| group.keys[at].1.as_str()).filter(|value| *value != NULL_KEY);
            let mut values = values.peekable();
            let are_numbers = values.peek().is_some() && values.all(|value| value.parse::<i64>().is_ok());
            Ok(if are_numbers { DataType::Int64 } else { DataType::Utf8 })
        };
        first.keys.iter().enumerate().map(kind).collect()
    }
}

/// A name that needs no quotes: lower-case letters, digits and `_`, which stands for a blank and in front of a digit or
/// a word of SQL.
fn normalized(name: &str) -> String {
    let character = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' => Some(c),
        c if c.is_whitespace() => Some('_'),
        _ => None,
    };
    let name: String = name.trim().chars().filter_map(character).collect::<String>().to_lowercase();
    let word = ALL_KEYWORDS.binary_search(&name.to_uppercase().as_str()).map(|at| ALL_KEYWORDS_INDEX[at]);
    let is_word = word.is_ok_and(|word| RESERVED_FOR_COLUMN_ALIAS.contains(&word));
    match is_word || !name.starts_with(|first: char| first.is_alphabetic() || first == '_') {
        true => format!("_{name}"),
        false => name,
    }
}

/// Whether numbers of a type may have digits behind a point.
fn has_point(kind: &DataType) -> bool {
    kind.is_floating() || kind.is_decimal()
}

/// The columns of several tables by name; those of unlike types hold the values of all.
fn merged(tables: &[Arc<dyn TableProvider>]) -> Schema {
    let mut fields: Vec<Field> = Vec::new();
    for field in tables.iter().flat_map(|table| table.schema().fields().iter().cloned().collect::<Vec<_>>()) {
        match fields.iter_mut().find(|known| known.name() == field.name()) {
            None => fields.push(field.as_ref().clone()),
            Some(known) if known.data_type() == field.data_type() => {}
            Some(known) => {
                let both = (known.data_type(), field.data_type());
                let kind = match both {
                    (a, b) if a.is_numeric() && b.is_numeric() => DataType::Float64,
                    (DataType::Date32, other @ DataType::Timestamp(..))
                    | (other @ DataType::Timestamp(..), DataType::Date32) => other.clone(),
                    _ => DataType::Utf8,
                };
                known.set_data_type(kind);
            }
        }
    }
    Schema::new(fields)
}

/// What a folder's name says: COPY writes what a path cannot have as `%` and two digits.
fn decoded(part: &str) -> String {
    url_decoded(part).unwrap_or_else(|_| part.to_string())
}

/// The names of a file's folders that are `key=value`.
fn keys_of(file: &Path) -> Vec<(String, String)> {
    file.parent().map(keys_of_folder).unwrap_or_default()
}

fn keys_of_folder(folder: &Path) -> Vec<(String, String)> {
    let names = folder.iter().filter_map(|name| name.to_str()).filter(|name| is_partition(name));
    names.filter_map(|name| name.split_once('=')).map(|(key, value)| (decoded(key), decoded(value))).collect()
}
