//! The catalog and the schema that names without them belong to.

/// The catalog's name.
pub const CATALOG: &str = "warpcube";
/// The schema's name.
pub const SCHEMA: &str = "public";
/// What a connection calls [`SCHEMA`] without its temporary tables; no name that is typed has its last character.
pub(crate) const LASTING: &str = "public\u{2063}";
/// The schema of a connection's temporary tables, as DuckDB and as PostgreSQL call it; no name that is typed has the
/// last character of the third one, which no schema of a user's can have.
pub(crate) const TEMPORARY: [&str; 3] = ["temp", "pg_temp", "temp\u{2063}"];
/// The names of the macros that variables are begin so; no name that is typed does.
pub(crate) const VARIABLE: &str = "variable\u{2063}";
