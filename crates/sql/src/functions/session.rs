//! What a session says of itself.

use datafusion::DATAFUSION_VERSION;

use super::{Own, Text, raised};
use crate::default_schema::{LASTING, SCHEMA};

/// The name of whoever uses a database.
const USER: &str = "warpcube";

/// What stands before the names of settings that are asked for without it.
const FRONTS: [&str; 2] = ["warpcube", "datafusion.execution"];

/// The functions.
pub(super) const ALL: &[Own] = &[
    Own::new("current_catalog", &[], Text, |args| {
        args.texts(|_| Ok(Some(args.options.catalog.default_catalog.clone())))
    }),
    Own::new("current_database", &[], Text, |args| {
        args.texts(|_| Ok(Some(args.options.catalog.default_catalog.clone())))
    }),
    // There is one, who may do all.
    Own::new("current_user", &[], Text, |args| args.texts(|_| Ok(Some(USER.into())))),
    Own::new("session_user", &[], Text, |args| args.texts(|_| Ok(Some(USER.into())))),
    Own::new("version", &[], Text, |args| {
        args.texts(|_| Ok(Some(format!("Warpcube {}, DataFusion {DATAFUSION_VERSION}", env!("CARGO_PKG_VERSION")))))
    }),
    Own::new("current_setting", &[Text], Text, |args| {
        let entries = args.options.entries();
        args.texts(|row| {
            let name = args.text(0).value(row).to_lowercase();
            let is_it = |key: &str| {
                let front = key.strip_suffix(name.as_str()).map(|front| front.strip_suffix('.').unwrap_or(front));
                front.is_some_and(|front| front.is_empty() || FRONTS.contains(&front))
            };
            let found = entries.iter().find(|entry| is_it(&entry.key));
            let found = found.ok_or_else(|| raised(format!("there is no setting '{name}'")))?;
            Ok(found.value.clone())
        })
    }),
    Own::new("current_schema", &[], Text, |args| {
        let schema = &args.options.catalog.default_schema;
        args.texts(|_| Ok(Some(if schema == LASTING { SCHEMA.into() } else { schema.clone() })))
    }),
];
