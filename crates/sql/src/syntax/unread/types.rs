//! Lengths and options of types.
//!
//! DataFusion 55.2 reads the names of types, digits of decimals and timestamps, and no length. Those of VARCHAR in
//! casts and in columns of tables in memory are kept ([`super::super::lengths`]); all others are refused.

use datafusion::sql::sqlparser::ast::{ArrayElemTypeDef, CharLengthUnits, CharacterLength, DataType, ExactNumberInfo};

use super::refuse;
use crate::error::{Result, SqlError};

/// Which lengths are kept where a type stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Lengths {
    OfVarchar,
    Refused,
}

/// Refuses what nothing keeps of a type.
pub(super) fn check(data_type: &DataType, lengths: Lengths) -> Result<()> {
    use DataType::*;
    match data_type {
        Char(_) | Character(_) => {
            Err(SqlError::Unsupported(format!("{data_type}, which is padded with blanks; use VARCHAR")))
        }
        Varchar(Some(length)) | CharacterVarying(Some(length)) | CharVarying(Some(length)) => match length {
            CharacterLength::Max => Ok(()),
            CharacterLength::IntegerLength { length: 0, unit: _ } => {
                Err(SqlError::Planning(format!("the length of {data_type} is at least 1")))
            }
            CharacterLength::IntegerLength { length: _, unit: None | Some(CharLengthUnits::Characters) }
                if lengths == Lengths::OfVarchar =>
            {
                Ok(())
            }
            CharacterLength::IntegerLength { length: _, unit: _ } => unkept(data_type, "VARCHAR"),
        },
        String(Some(_)) => unkept(data_type, "VARCHAR"),
        TinyInt(Some(_)) | TinyIntUnsigned(Some(_)) => unkept(data_type, "TINYINT"),
        SmallInt(Some(_)) | SmallIntUnsigned(Some(_)) | Int2(Some(_)) | Int2Unsigned(Some(_)) => {
            unkept(data_type, "SMALLINT")
        }
        Int(Some(_))
        | IntUnsigned(Some(_))
        | Integer(Some(_))
        | IntegerUnsigned(Some(_))
        | Int4(Some(_))
        | Int4Unsigned(Some(_)) => unkept(data_type, "INT"),
        BigInt(Some(_)) | BigIntUnsigned(Some(_)) | Int8(Some(_)) | Int8Unsigned(Some(_)) => {
            unkept(data_type, "BIGINT")
        }
        // As in PostgreSQL, 24 bits are those of REAL.
        Float(ExactNumberInfo::Precision(1..=24)) => Ok(()),
        Float(ExactNumberInfo::Precision(_) | ExactNumberInfo::PrecisionAndScale(_, _)) => {
            unkept(data_type, "REAL or DOUBLE")
        }
        Array(ArrayElemTypeDef::AngleBracket(element) | ArrayElemTypeDef::SquareBracket(element, _)) => {
            check(element, Lengths::Refused)
        }
        Struct(fields, _) => fields.iter().try_for_each(|field| {
            refuse([("OPTIONS of a field", field.options.is_some())])?;
            check(&field.field_type, Lengths::Refused)
        }),
        _ => Ok(()),
    }
}

fn unkept(data_type: &DataType, other: &str) -> Result<()> {
    Err(SqlError::Unsupported(format!("the length of {data_type} here; use {other}")))
}
