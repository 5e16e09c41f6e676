//! What a session says of itself.

use datafusion::DATAFUSION_VERSION;

use super::{Own, Text};
use crate::default_schema::{LASTING, SCHEMA};

/// The functions.
pub(super) const ALL: &[Own] = &[
    Own::new("current_catalog", &[], Text, |args| {
        args.texts(|_| Ok(Some(args.options.catalog.default_catalog.clone())))
    }),
    Own::new("current_database", &[], Text, |args| {
        args.texts(|_| Ok(Some(args.options.catalog.default_catalog.clone())))
    }),
    Own::new("version", &[], Text, |args| {
        args.texts(|_| Ok(Some(format!("Warpcube {}, DataFusion {DATAFUSION_VERSION}", env!("CARGO_PKG_VERSION")))))
    }),
    Own::new("current_schema", &[], Text, |args| {
        let schema = &args.options.catalog.default_schema;
        args.texts(|_| Ok(Some(if schema == LASTING { SCHEMA.into() } else { schema.clone() })))
    }),
];
