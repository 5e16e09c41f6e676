//! What a session says of itself.

use super::{Own, Text};

/// The functions.
pub(super) const ALL: &[Own] = &[
    Own::new("current_catalog", &[], Text, |args| {
        args.texts(|_| Ok(Some(args.options.catalog.default_catalog.clone())))
    }),
    Own::new("current_database", &[], Text, |args| {
        args.texts(|_| Ok(Some(args.options.catalog.default_catalog.clone())))
    }),
    Own::new("current_schema", &[], Text, |args| args.texts(|_| Ok(Some(args.options.catalog.default_schema.clone())))),
];
