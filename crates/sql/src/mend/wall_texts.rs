//! Texts that are cast to times are written out as Arrow reads them ([`crate::text_times`]).
//!
//! The file goes once Arrow's casts of texts do so.

use std::sync::{Arc, LazyLock};

use arrow::array::{AsArray, LargeStringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::conversion::Conversion;
use super::each_value;
use crate::text_times::Wall;

/// A text as an expression of what Arrow reads; none where it is that.
fn read(wall: Wall, text: &Expr) -> Option<Expr> {
    match text {
        Expr::Literal(value, metadata) => {
            let text = value.try_as_str().flatten()?;
            let bare = wall.bare(text);
            let literal = || Expr::Literal(ScalarValue::Utf8(Some(bare.to_string())), metadata.clone());
            (text != bare).then(literal)
        }
        Expr::ScalarFunction(function) if WALLS.iter().any(|(name, _)| *name == function.name()) => None,
        text => Some(FUNCTIONS[wall as usize].call(vec![text.clone()])),
    }
}

/// The operand as Arrow reads it, of a cast of a text to a time.
pub(super) fn operand(cast: &Conversion) -> Option<Expr> {
    read(Wall::of(cast.to).filter(|_| cast.is_of_text())?, cast.operand)
}

/// A text that becomes an instant, as Arrow reads it; none where it is so.
pub(super) fn instant(text: &Expr) -> Option<Expr> {
    read(Wall::Instant, text)
}

/// The functions' names in plans that travel, in the order of [`Wall`].
const WALLS: [(&str, Wall); 5] = [
    ("warpcube_without_zone", Wall::Day),
    ("warpcube_time_of_day", Wall::Time),
    ("warpcube_instant", Wall::Instant),
    ("warpcube_microseconds", Wall::Micros),
    ("warpcube_instant_in_microseconds", Wall::InstantMicros),
];

static FUNCTIONS: LazyLock<[Arc<ScalarUDF>; 5]> = LazyLock::new(|| {
    WALLS.map(|(name, wall)| {
        let signature = Signature::any(1, Volatility::Immutable);
        Arc::new(ScalarUDF::new_from_impl(WithoutZone { name, wall, signature }))
    })
});

/// The function of a name, for plans that come from another session.
pub(crate) fn function(name: &str) -> Option<Arc<ScalarUDF>> {
    FUNCTIONS.iter().find(|function| function.name() == name).cloned()
}

/// Texts without their zones; no statement can call it, since no registry has it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct WithoutZone {
    name: &'static str,
    wall: Wall,
    signature: Signature,
}

impl ScalarUDFImpl for WithoutZone {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::LargeUtf8)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        each_value(&arguments.args[0], |texts| {
            let texts = cast(texts, &DataType::LargeUtf8)?;
            let bare = |text| self.wall.bare(text);
            let bare: LargeStringArray = texts.as_string::<i64>().iter().map(|text| text.map(bare)).collect();
            Ok(Arc::new(bare))
        })
    }
}
