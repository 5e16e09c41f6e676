//! Texts that become timestamps without a zone, dates or times of day keep what their clock shows.
//!
//! Arrow 59 moves `2024-01-01 08:00:00+02` to UTC before it forgets the zone: 06:00, and for a text near midnight
//! another day. As in PostgreSQL, the zone of a text is left out where the target has none. Instants (TIMESTAMP WITH
//! TIME ZONE) read it.
//!
//! The file goes once Arrow's cast to a timestamp without a zone ignores the offset.

use std::sync::{Arc, LazyLock};

use arrow::array::timezone::Tz;
use arrow::array::{ArrayRef, AsArray, LargeStringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TryCast, Volatility,
};
use datafusion::optimizer::AnalyzerRule;

use super::each_expression;

/// The rule, once types are coerced.
#[derive(Debug)]
pub(super) struct WallTexts;

impl AnalyzerRule for WallTexts {
    fn name(&self) -> &str {
        "wall_texts"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let mended = plan.transform_up_with_subqueries(|plan| {
            each_expression(plan, is_to_wall, |expr, schema| expr.transform_up(|expr| Ok(read(expr, schema))))
        })?;
        Ok(mended.data)
    }
}

fn is_to_wall(expr: &Expr) -> bool {
    match expr {
        Expr::Cast(cast) => is_on_wall(cast.field.data_type()),
        Expr::TryCast(cast) => is_on_wall(cast.field.data_type()),
        _ => false,
    }
}

fn is_on_wall(data_type: &DataType) -> bool {
    use DataType::{Date32, Date64, Time32, Time64, Timestamp};
    matches!(data_type, Timestamp(_, None) | Date32 | Date64 | Time32(_) | Time64(_))
}

fn read(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let within = |text: Box<Expr>| bare(*text, schema).update_data(Box::new);
    match expr {
        Expr::Cast(Cast { expr, field }) if is_on_wall(field.data_type()) => {
            within(expr).update_data(|expr| Expr::Cast(Cast { expr, field }))
        }
        Expr::TryCast(TryCast { expr, field }) if is_on_wall(field.data_type()) => {
            within(expr).update_data(|expr| Expr::TryCast(TryCast { expr, field }))
        }
        other => Transformed::no(other),
    }
}

/// A text without its zone; anything else as it is.
fn bare(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    if let Expr::Literal(value, metadata) = &expr {
        return match value.try_as_str().flatten().map(|text| (text, without_zone(text))) {
            Some((text, bare)) if text != bare => {
                let bare = ScalarValue::Utf8(Some(bare.to_string()));
                Transformed::yes(Expr::Literal(bare, metadata.clone()))
            }
            _ => Transformed::no(expr),
        };
    }
    let is_text = match expr.get_type(schema) {
        Ok(DataType::Dictionary(_, values)) => values.is_string(),
        Ok(data_type) => data_type.is_string(),
        Err(_) => false,
    };
    let is_bare = matches!(&expr, Expr::ScalarFunction(function) if function.name() == NAME);
    match is_text && !is_bare {
        true => Transformed::yes(FUNCTION.call(vec![expr])),
        false => Transformed::no(expr),
    }
}

/// The text of a time of day or a timestamp without the offset or the name of a zone at its end.
fn without_zone(text: &str) -> &str {
    let Some(colon) = text.find(':') else { return text };
    let is_clock = |character: char| character.is_ascii_digit() || matches!(character, ':' | '.');
    let end = text[colon..].find(|character: char| !is_clock(character)).map_or(text.len(), |end| colon + end);
    let zone = text[end..].trim();
    let is_zone = || zone.eq_ignore_ascii_case("z") || zone.parse::<Tz>().is_ok();
    if !zone.is_empty() && is_zone() { &text[..end] } else { text }
}

/// The function's name in plans that travel.
const NAME: &str = "warpcube_without_zone";

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(WithoutZone { signature: Signature::any(1, Volatility::Immutable) }))
});

/// The function of a name, for plans that come from another session.
pub(crate) fn function(name: &str) -> Option<Arc<ScalarUDF>> {
    (name == NAME).then(|| FUNCTION.clone())
}

/// Texts without their zones; no statement can call it, since no registry has it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct WithoutZone {
    signature: Signature,
}

impl ScalarUDFImpl for WithoutZone {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::LargeUtf8)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let bare = |texts: &ArrayRef| -> Result<LargeStringArray> {
            let texts = cast(texts, &DataType::LargeUtf8)?;
            Ok(texts.as_string::<i64>().iter().map(|text| text.map(without_zone)).collect())
        };
        Ok(match &arguments.args[0] {
            ColumnarValue::Array(texts) => ColumnarValue::Array(Arc::new(bare(texts)?)),
            ColumnarValue::Scalar(text) => {
                ColumnarValue::Scalar(ScalarValue::try_from_array(&bare(&text.to_array_of_size(1)?)?, 0)?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_are_left_out() {
        for (text, expected) in [
            ("2024-01-01 08:00:00+02", "2024-01-01 08:00:00"),
            ("2024-01-01T08:00:00.5-0530", "2024-01-01T08:00:00.5"),
            ("2024-01-01T08:00:00z", "2024-01-01T08:00:00"),
            ("2024-01-01 08:00:00 +01:00", "2024-01-01 08:00:00"),
            ("2024-01-01 08:00:00 Europe/Berlin", "2024-01-01 08:00:00"),
            ("08:00:00+02", "08:00:00"),
            ("2024-01-01 08:00:00", "2024-01-01 08:00:00"),
            ("2024-01-01", "2024-01-01"),
            ("2024-01-01 08:00:00 PM", "2024-01-01 08:00:00 PM"),
            ("2024-01-01 08:00:00 Mars/Olympus", "2024-01-01 08:00:00 Mars/Olympus"),
            ("10:00+x", "10:00+x"),
            ("", ""),
        ] {
            assert_eq!(without_zone(text), expected, "{text}");
        }
    }
}
