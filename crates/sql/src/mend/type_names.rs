//! Names of types that DataFusion 55.2 does not read: those of DuckDB and PostgreSQL beside its own, in casts, tables
//! and parameters.
//!
//! `HUGEINT` is a decimal of 38 digits, which holds as many of its values as Arrow has. Texts that are cast to bytes
//! keep their bytes ([`crate::syntax`] reads escapes of constants). UUID and JSON are texts with the name of an
//! extension ([`crate::extension_types`]).
//!
//! A TIMESTAMP without a precision has nanoseconds in DataFusion, which end in 2262. Here it has microseconds, as in
//! PostgreSQL and DuckDB. A session without a zone leaves it to DataFusion.
//!
//! The file goes once DataFusion reads these names, and timestamps have microseconds.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, TimeUnit};
use datafusion::common::TableReference;
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::planner::{ContextProvider, TypePlanner};
use datafusion::logical_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, TableSource, WindowUDF};
use datafusion::sql::planner::SqlToRel;
use datafusion::sql::sqlparser::ast::{ArrayElemTypeDef, ColumnDef, DataType as SqlType, Ident, TimezoneInfo};

use super::in_zone::zone_of;
use crate::error::SqlError;
use crate::extension_types::ExtensionType;

/// The names of a session.
#[derive(Debug, Clone)]
pub(crate) struct TypeNames {
    /// The session's zone, if it has one.
    zone: Option<Arc<str>>,
}

impl TypeNames {
    /// Those of a session with these settings.
    pub(crate) fn of(config: &ConfigOptions) -> TypeNames {
        TypeNames { zone: zone_of(config).map(Arc::from) }
    }

    /// The type of maps, with the names of members that the function `map` gives them.
    fn map(&self, key: &SqlType, value: &SqlType) -> Result<DataType> {
        let [key, value] = [self.field("key", key)?, self.field("value", value)?];
        // What a key is compared with is no view, and not coerced.
        let key = match key.data_type() {
            DataType::Utf8View => key.with_data_type(DataType::Utf8),
            _ => key,
        };
        let entries = DataType::Struct(Fields::from(vec![key.with_nullable(false), value]));
        Ok(DataType::Map(Arc::new(Field::new("entries", entries, false)), false))
    }

    /// A field of a type.
    fn field(&self, name: &str, data_type: &SqlType) -> Result<Field> {
        let names = NamesAlone { names: self.clone(), options: self.options() };
        let column = ColumnDef { name: Ident::new(name), data_type: data_type.clone(), options: Vec::new() };
        Ok(SqlToRel::new(&names).build_schema(vec![column])?.field(0).clone())
    }

    /// Settings under which DataFusion has the types that are not ours.
    fn options(&self) -> ConfigOptions {
        let mut options = ConfigOptions::new();
        options.execution.time_zone = self.zone.as_deref().map(str::to_string);
        options
    }

    /// A timestamp without a precision; none where DataFusion has its type.
    fn timestamp(&self, zone: TimezoneInfo) -> Option<DataType> {
        let of_session = self.zone.clone()?;
        let zone = match zone {
            TimezoneInfo::Tz | TimezoneInfo::WithTimeZone => Some(of_session),
            TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => None,
        };
        Some(DataType::Timestamp(TimeUnit::Microsecond, zone))
    }
}

impl TypePlanner for TypeNames {
    fn plan_type_field(&self, sql_type: &SqlType) -> Result<Option<FieldRef>> {
        if let Some(extension) = ExtensionType::of_sql(sql_type) {
            return Ok(Some(Arc::new(extension.declared())));
        }
        check_parts(sql_type)?;
        let nanoseconds = DataType::Timestamp(TimeUnit::Nanosecond, None);
        let data_type = match sql_type {
            SqlType::Map(key, value) => Some(self.map(key, value)?),
            SqlType::Dec(digits) => Some(self.field("", &SqlType::Decimal(*digits))?.data_type().clone()),
            SqlType::Timestamp(None, zone) => self.timestamp(*zone),
            SqlType::Datetime(None) => Some(self.timestamp(TimezoneInfo::None).unwrap_or(nanoseconds)),
            other => of_name(other),
        };
        Ok(data_type.map(|data_type| Arc::new(Field::new("", data_type, true))))
    }
}

/// What DataFusion asks for while it reads a type: its names and the settings.
struct NamesAlone {
    names: TypeNames,
    options: ConfigOptions,
}

impl ContextProvider for NamesAlone {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        Err(DataFusionError::Internal(format!("the table {name} in a type")))
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(self.names.clone()))
    }

    fn get_function_meta(&self, _name: &str) -> Option<Arc<ScalarUDF>> {
        None
    }

    fn get_higher_order_meta(&self, _name: &str) -> Option<Arc<HigherOrderUDF>> {
        None
    }

    fn get_aggregate_meta(&self, _name: &str) -> Option<Arc<AggregateUDF>> {
        None
    }

    fn get_window_meta(&self, _name: &str) -> Option<Arc<WindowUDF>> {
        None
    }

    fn get_variable_type(&self, _names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        &self.options
    }

    fn udf_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udaf_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn udwf_names(&self) -> Vec<String> {
        Vec::new()
    }
}

/// Refuses lists, maps and structs of an extension type: a cast to one would not read the texts in it.
fn check_parts(sql_type: &SqlType) -> Result<()> {
    let check = |part: &SqlType| match ExtensionType::of_sql(part) {
        Some(extension) => {
            Err(SqlError::Unsupported(format!("a {sql_type}; a list or a struct has VARCHAR for {}", extension.name())))
        }
        None => Ok(()),
    };
    match sql_type {
        SqlType::Array(
            ArrayElemTypeDef::AngleBracket(part)
            | ArrayElemTypeDef::SquareBracket(part, _)
            | ArrayElemTypeDef::Parenthesis(part),
        ) => Ok(check(part)?),
        SqlType::Map(key, value) => Ok(check(key).and_then(|()| check(value))?),
        SqlType::Struct(fields, _) => Ok(fields.iter().try_for_each(|field| check(&field.field_type))?),
        _ => Ok(()),
    }
}

/// Names without parameters that sqlparser has no type for.
static NAMES: [(&str, DataType); 23] = [
    ("BINARY", DataType::Binary),
    ("BPCHAR", DataType::Utf8),
    ("BYTEA", DataType::Binary),
    ("HUGEINT", DataType::Decimal128(38, 0)),
    ("INT1", DataType::Int8),
    ("INT16", DataType::Int16),
    ("INT32", DataType::Int32),
    ("INT64", DataType::Int64),
    ("INTEGRAL", DataType::Int32),
    ("LOGICAL", DataType::Boolean),
    ("LONG", DataType::Int64),
    ("NAME", DataType::Utf8),
    ("OID", DataType::Int64),
    ("SHORT", DataType::Int16),
    ("TIMESTAMP_MS", DataType::Timestamp(TimeUnit::Millisecond, None)),
    ("TIMESTAMP_NS", DataType::Timestamp(TimeUnit::Nanosecond, None)),
    ("TIMESTAMP_S", DataType::Timestamp(TimeUnit::Second, None)),
    ("TIMESTAMP_US", DataType::Timestamp(TimeUnit::Microsecond, None)),
    ("UBIGINT", DataType::UInt64),
    ("UHUGEINT", DataType::Decimal128(38, 0)),
    ("UINTEGER", DataType::UInt32),
    ("USMALLINT", DataType::UInt16),
    ("UTINYINT", DataType::UInt8),
];

/// The type of a name; none of one that DataFusion reads, or that nothing does.
fn of_name(sql_type: &SqlType) -> Option<DataType> {
    match sql_type {
        SqlType::Blob(None) | SqlType::Bytes(None) | SqlType::Binary(None) | SqlType::Varbinary(None) => {
            Some(DataType::Binary)
        }
        SqlType::Nvarchar(None) | SqlType::Clob(None) => Some(DataType::Utf8),
        SqlType::Int16 => Some(DataType::Int16),
        SqlType::Int32 => Some(DataType::Int32),
        SqlType::Int64 => Some(DataType::Int64),
        SqlType::Float32 => Some(DataType::Float32),
        SqlType::Float64 => Some(DataType::Float64),
        SqlType::HugeInt | SqlType::UHugeInt | SqlType::Int128 | SqlType::UInt128 => Some(DataType::Decimal128(38, 0)),
        SqlType::Signed => Some(DataType::Int32),
        SqlType::UBigInt | SqlType::UInt64 => Some(DataType::UInt64),
        SqlType::UInt32 => Some(DataType::UInt32),
        SqlType::USmallInt | SqlType::UInt16 => Some(DataType::UInt16),
        SqlType::UTinyInt | SqlType::UInt8 => Some(DataType::UInt8),
        SqlType::Custom(name, parameters) if parameters.is_empty() => {
            let name = name.to_string().to_uppercase();
            NAMES.iter().find(|(known, _)| *known == name).map(|(_, data_type)| data_type.clone())
        }
        _ => None,
    }
}
