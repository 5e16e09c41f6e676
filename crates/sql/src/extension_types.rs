//! UUID and JSON: extension types over texts, as Arrow calls types that the metadata of a field names.
//!
//! A UUID is a text of lower-case digits with hyphens, JSON a text that has been parsed. Each value is read where it
//! becomes one of the type, so that texts are compared, grouped and joined as they are. `arrow.uuid` is Arrow's name
//! for UUIDs of 16 bytes; those of text have a name of their own.
//!
//! A column of a table over files may hold values that nothing has read: declared ones, and UUIDs of 16 bytes. Its
//! field is marked, and a scan is read before anything else ([`crate::mend`]).

use std::collections::BTreeMap;

use arrow::datatypes::{DataType, Field};
use datafusion::logical_expr::expr::FieldMetadata;
use datafusion::sql::sqlparser::ast::DataType as SqlType;

/// The key of an extension's name in the metadata of a field.
const NAME_KEY: &str = "ARROW:extension:name";
/// The key of an extension's parameters.
const PARAMETERS_KEY: &str = "ARROW:extension:metadata";

/// The key in the metadata of a field whose values are still to be read.
const UNREAD_KEY: &str = "warpcube:unread";
/// Arrow's name of UUIDs in bytes, and how many these are.
const UUID_OF_BYTES: (&str, i32) = ("arrow.uuid", 16);

/// An extension type over texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExtensionType {
    Uuid,
    Json,
}

impl ExtensionType {
    /// The type of a field; none of one without such a type.
    pub(crate) fn of(field: &Field) -> Option<ExtensionType> {
        let name = field.extension_type_name()?;
        let is_text = match field.data_type() {
            DataType::Dictionary(_, values) => values.is_string(),
            other => other.is_string(),
        };
        [ExtensionType::Uuid, ExtensionType::Json].into_iter().find(|known| is_text && known.extension() == name)
    }

    /// The type that the values of a field become once they are read; none if they are of their type.
    pub(crate) fn unread(field: &Field) -> Option<ExtensionType> {
        let is_marked = field.metadata().contains_key(UNREAD_KEY);
        ExtensionType::of(field)
            .filter(|_| is_marked)
            .or_else(|| is_uuid_of_bytes(field).then_some(ExtensionType::Uuid))
    }

    /// The type that SQL names.
    pub(crate) fn of_sql(sql_type: &SqlType) -> Option<ExtensionType> {
        match sql_type {
            SqlType::Uuid => Some(ExtensionType::Uuid),
            SqlType::JSON | SqlType::JSONB => Some(ExtensionType::Json),
            SqlType::Custom(name, parameters) if parameters.is_empty() => {
                name.to_string().eq_ignore_ascii_case("guid").then_some(ExtensionType::Uuid)
            }
            _ => None,
        }
    }

    /// The name in SQL.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ExtensionType::Uuid => "UUID",
            ExtensionType::Json => "JSON",
        }
    }

    /// The function that reads a text as a value of the type.
    pub(crate) fn reader(self) -> &'static str {
        match self {
            ExtensionType::Uuid => "as_uuid",
            ExtensionType::Json => "as_json",
        }
    }

    /// The function that gives NULL for a text that is no value of the type.
    pub(crate) fn lenient_reader(self) -> &'static str {
        match self {
            ExtensionType::Uuid => "try_as_uuid",
            ExtensionType::Json => "try_as_json",
        }
    }

    /// The metadata of a field of the type.
    pub(crate) fn metadata(self) -> FieldMetadata {
        let entries = [(NAME_KEY, self.extension()), (PARAMETERS_KEY, "")];
        let entries = entries.map(|(key, value)| (key.to_string(), value.to_string()));
        FieldMetadata::from(BTreeMap::from(entries))
    }

    /// A column that is declared to have the type.
    pub(crate) fn declared(self) -> Field {
        let mut metadata = self.metadata().to_hashmap();
        metadata.insert(UNREAD_KEY.to_string(), String::new());
        Field::new("", DataType::Utf8, true).with_metadata(metadata)
    }

    /// The field of a column that a file has values of the type for: texts of the type, or bytes of UUIDs, which its
    /// scan reads.
    pub(crate) fn stored(self, field: &Field) -> Field {
        let field = field.clone();
        self.read(match field.data_type() {
            DataType::FixedSizeBinary(_) => field.with_data_type(DataType::Utf8View),
            _ => field,
        })
    }

    /// A field whose values are of the type.
    pub(crate) fn read(self, field: Field) -> Field {
        field.with_metadata(self.metadata().to_hashmap())
    }

    /// The name of the extension.
    fn extension(self) -> &'static str {
        match self {
            ExtensionType::Uuid => "warpcube.uuid",
            ExtensionType::Json => "arrow.json",
        }
    }
}

/// Whether a field has UUIDs of 16 bytes.
fn is_uuid_of_bytes(field: &Field) -> bool {
    let (name, bytes) = UUID_OF_BYTES;
    field.extension_type_name() == Some(name) && *field.data_type() == DataType::FixedSizeBinary(bytes)
}
