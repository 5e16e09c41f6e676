//! The catalog and the schema that names without them belong to.

/// The catalog's name.
pub const CATALOG: &str = "warpcube";
/// The schema's name.
pub const SCHEMA: &str = "public";
