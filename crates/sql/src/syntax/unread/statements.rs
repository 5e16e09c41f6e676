//! Clauses of statements other than queries.

use datafusion::sql::sqlparser::ast::{DropFunction, FunctionDesc, ObjectType, SchemaName, Statement as SqlStatement};

use super::types::{self, Lengths};
use super::{definitions, refuse};
use crate::error::{Result, SqlError};

/// Checks a statement; queries and expressions in it are visited by themselves.
pub(super) fn statement(statement: &SqlStatement) -> Result<()> {
    match statement {
        SqlStatement::CreateTable(table) => definitions::table(table),
        SqlStatement::CreateView(view) => definitions::view(view),
        SqlStatement::CreateIndex(index) => match index.unique {
            true => Err(SqlError::Unsupported("CREATE UNIQUE INDEX; declare the columns UNIQUE".into())),
            false => Err(SqlError::Unsupported("CREATE INDEX".into())),
        },
        SqlStatement::CreateSchema { schema_name, if_not_exists: _, with, options, default_collate_spec, clone } => {
            refuse([
                ("AUTHORIZATION of CREATE SCHEMA", !matches!(schema_name, SchemaName::Simple(_))),
                ("options of CREATE SCHEMA", with.is_some() || options.is_some()),
                ("DEFAULT COLLATE", default_collate_spec.is_some()),
                ("CLONE", clone.is_some()),
            ])
        }
        SqlStatement::CreateDatabase {
            db_name: _,
            if_not_exists: _,
            location,
            managed_location,
            or_replace,
            transient,
            clone,
            data_retention_time_in_days,
            max_data_extension_time_in_days,
            external_volume,
            catalog,
            replace_invalid_characters,
            default_ddl_collation,
            storage_serialization_policy,
            comment,
            default_charset,
            default_collation,
            catalog_sync,
            catalog_sync_namespace_mode,
            catalog_sync_namespace_flatten_delimiter,
            with_tags,
            with_contacts,
        } => {
            let has_options = data_retention_time_in_days.is_some()
                || max_data_extension_time_in_days.is_some()
                || external_volume.is_some()
                || catalog.is_some()
                || replace_invalid_characters.is_some()
                || default_ddl_collation.is_some()
                || storage_serialization_policy.is_some()
                || catalog_sync.is_some()
                || catalog_sync_namespace_mode.is_some()
                || catalog_sync_namespace_flatten_delimiter.is_some()
                || with_tags.is_some()
                || with_contacts.is_some()
                || *transient
                || clone.is_some();
            refuse([
                ("CREATE OR REPLACE DATABASE", *or_replace),
                ("LOCATION of CREATE DATABASE", location.is_some() || managed_location.is_some()),
                ("COMMENT of CREATE DATABASE", comment.is_some()),
                ("character sets of CREATE DATABASE", default_charset.is_some() || default_collation.is_some()),
                ("options of CREATE DATABASE", has_options),
            ])
        }
        SqlStatement::Drop { object_type, if_exists: _, names, cascade, restrict, purge, temporary, table } => {
            refuse([
                ("several names behind DROP; write a DROP for each", names.len() > 1),
                ("CASCADE of DROP", *cascade && *object_type != ObjectType::Schema),
                ("RESTRICT of DROP", *restrict && *object_type != ObjectType::Schema),
                ("PURGE", *purge),
                ("DROP TEMPORARY", *temporary),
                ("ON of DROP", table.is_some()),
            ])
        }
        SqlStatement::DropFunction(DropFunction { if_exists: _, func_desc, drop_behavior }) => {
            let has_arguments = |FunctionDesc { name: _, args }: &FunctionDesc| args.is_some();
            refuse([
                ("DROP FUNCTION of several", func_desc.len() > 1),
                ("arguments in DROP FUNCTION", func_desc.iter().any(has_arguments)),
                ("CASCADE and RESTRICT of DROP FUNCTION", drop_behavior.is_some()),
            ])
        }
        SqlStatement::Prepare { name: _, data_types, statement: _ } => {
            data_types.iter().try_for_each(|data_type| types::check(data_type, Lengths::Refused))
        }
        SqlStatement::Explain {
            describe_alias: _,
            analyze: _,
            verbose: _,
            query_plan,
            estimate,
            statement: _,
            format: _,
            options,
        } => refuse([
            ("EXPLAIN QUERY PLAN", *query_plan),
            ("EXPLAIN ESTIMATE", *estimate),
            ("options of EXPLAIN within a statement", options.is_some()),
        ]),
        SqlStatement::ExplainTable { describe_alias: _, hive_format, has_table_keyword: _, table_name: _ } => {
            refuse([("DESCRIBE EXTENDED and FORMATTED", hive_format.is_some())])
        }
        // The planner takes these apart without `..`, or refuses them whole.
        _ => Ok(()),
    }
}
