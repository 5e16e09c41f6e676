//! `SET VARIABLE x = 1` and `RESET VARIABLE x`: a variable is a macro of the connection alone, whose expression is the
//! value as a constant ([`super::macros`]). `getvariable('x')` is a call of it, and NULL where there is none.

use arrow::array::Array;
use arrow::datatypes::{DataType, Field};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::ScalarValue;
use datafusion::execution::SessionState;
use datafusion::physical_plan::collect;
use datafusion::sql::sqlparser::ast::{Ident, ObjectNamePart};

use super::items::constant;
use super::macros;
use crate::default_schema::TEMPORARY;
use crate::error::{Result, SqlError};
use crate::lexer::{Kind, tokens};
use crate::words::type_name;

/// The statement that makes or drops the macro of a variable, whose value is computed now; none for other statements.
///
/// # Errors
/// A statement without a name or a value, and what is wrong with the value's expression.
pub(super) async fn as_macro(state: &SessionState, sql: &str) -> Result<Option<String>> {
    let Some((is_set, name, value)) = parse(sql)? else { return Ok(None) };
    let mut own = macros::of_variable(&name);
    if !is_set {
        own.0[1] = ObjectNamePart::Identifier(Ident::new(TEMPORARY[0]));
        let view = macros::called(&own).ok_or_else(|| SqlError::Internal("a variable without a name".into()))?;
        return Ok(Some(format!("DROP VIEW IF EXISTS {view}")));
    }
    let query = format!("SELECT ({value}) AS value");
    let (statement, _) = Box::pin(super::parse_returning(state, &query)).await?;
    let plan = state.create_physical_plan(&state.statement_to_plan(statement).await?).await?;
    let schema = plan.schema();
    let batches = collect(plan, state.task_ctx()).await?;
    let row = batches.iter().find(|batch| batch.num_rows() > 0);
    let found = match row {
        Some(row) => ScalarValue::try_from_array(row.column(0), 0)?,
        None => ScalarValue::try_from(schema.field(0).data_type())?,
    };
    let value = match found.is_null() {
        true => "NULL".into(),
        false => literal(&found)?,
    };
    let value = match schema.field(0).data_type() {
        // Constants of these types have no other.
        DataType::Boolean | DataType::Int64 | DataType::Utf8 | DataType::Utf8View => value,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => value,
        DataType::Null => "CAST(NULL AS VARCHAR)".into(),
        _ => format!("CAST({value} AS {})", type_name(schema.field(0))),
    };
    Ok(Some(format!("CREATE OR REPLACE TEMPORARY MACRO {own}() AS {value}")))
}

/// Whether a variable is set or reset, its name, and the text of its value.
fn parse(sql: &str) -> Result<Option<(bool, String, &str)>> {
    let is_first = |word: &str| sql.trim_start().get(..word.len()).is_some_and(|it| it.eq_ignore_ascii_case(word));
    if !is_first("set") && !is_first("reset") {
        return Ok(None);
    }
    let (tokens, _) = tokens(sql);
    let word = |at: usize, word: &str| {
        tokens
            .get(at)
            .is_some_and(|token| token.kind == Kind::Word && sql[token.range.clone()].eq_ignore_ascii_case(word))
    };
    let is_set = word(0, "set");
    if !is_set && !word(0, "reset") || !word(1, "variable") {
        return Ok(None);
    }
    let form = |text: &str| SqlError::Syntax(format!("expected {text}"));
    let end = tokens.iter().rposition(|token| token.kind != Kind::Symbol(';')).map_or(0, |last| last + 1);
    let name = match tokens.get(2).filter(|_| end > 2).map(|token| (token.kind, &sql[token.range.clone()])) {
        Some((Kind::Word, name)) => name.to_string(),
        Some((Kind::QuotedName, name)) => name[1..name.len() - 1].replace(&name[..1].repeat(2), &name[..1]),
        _ => return Err(form(if is_set { "SET VARIABLE name = value" } else { "RESET VARIABLE name" })),
    };
    let has_value = tokens.get(3).is_some_and(|token| token.kind == Kind::Symbol('=')) || word(3, "to");
    match (is_set, has_value, end) {
        (true, true, 5..) => Ok(Some((true, name, &sql[tokens[4].range.start..tokens[end - 1].range.end]))),
        (false, false, 3) => Ok(Some((false, name, ""))),
        (true, ..) => Err(form("SET VARIABLE name = value")),
        (false, ..) => Err(form("RESET VARIABLE name")),
    }
}

/// A value as a constant.
fn literal(value: &ScalarValue) -> Result<String> {
    if value.is_null() {
        return Ok("NULL".into());
    }
    let list = |values: &dyn Array| -> Result<Vec<String>> {
        (0..values.len()).map(|at| literal(&ScalarValue::try_from_array(values, at)?)).collect()
    };
    Ok(match value {
        ScalarValue::Boolean(Some(value)) => value.to_string(),
        ScalarValue::Utf8(Some(text)) | ScalarValue::LargeUtf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => {
            constant(text)
        }
        ScalarValue::Binary(Some(bytes))
        | ScalarValue::LargeBinary(Some(bytes))
        | ScalarValue::BinaryView(Some(bytes)) => {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("X'{digits}'")
        }
        ScalarValue::List(lists) => format!("[{}]", list(&lists.value(0))?.join(", ")),
        ScalarValue::Struct(row) => {
            let values = row.columns().iter().map(|column| literal(&ScalarValue::try_from_array(column, 0)?));
            let member =
                |(field, value): (&Field, Result<String>)| Ok(format!("{}: {}", constant(field.name()), value?));
            let members = row.fields().iter().map(|field| field.as_ref()).zip(values).map(member);
            format!("{{{}}}", members.collect::<Result<Vec<_>>>()?.join(", "))
        }
        ScalarValue::Map(maps) => {
            let (keys, values) = (maps.value(0).column(0).clone(), maps.value(0).column(1).clone());
            format!("map([{}], [{}])", list(&keys)?.join(", "), list(&values)?.join(", "))
        }
        ScalarValue::IntervalMonthDayNano(Some(it)) => {
            format!("INTERVAL '{} months {} days {} nanoseconds'", it.months, it.days, it.nanoseconds)
        }
        // The difference of timestamps is a duration.
        ScalarValue::IntervalYearMonth(_)
        | ScalarValue::IntervalDayTime(_)
        | ScalarValue::DurationSecond(_)
        | ScalarValue::DurationMillisecond(_)
        | ScalarValue::DurationMicrosecond(_)
        | ScalarValue::DurationNanosecond(_) => {
            return literal(&value.cast_to(&DataType::Interval(arrow::datatypes::IntervalUnit::MonthDayNano))?);
        }
        other => {
            let array = other.to_array_of_size(1)?;
            let options = FormatOptions::default();
            let text = ArrayFormatter::try_new(&array, &options).map(|formatter| formatter.value(0).to_string());
            let text = text.map_err(|error| SqlError::Internal(error.to_string()))?;
            match other.data_type().is_integer() {
                true => text,
                false => {
                    let field = Field::new("value", other.data_type(), true);
                    format!("CAST({} AS {})", constant(&text), type_name(&field))
                }
            }
        }
    })
}
