//! `regexp_replace` reads its replacement as PostgreSQL does: `\1` to `\9` are groups, `\&` is the whole match, `\\` a
//! backslash, and `$` is no more than a dollar sign.
//!
//! DataFusion 55.2 hands the replacement to Rust's regular expressions, to which `$5` is a group. The file goes once it
//! escapes dollar signs.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, LargeStringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

/// The function of a session, mended.
pub(crate) fn function(state: &SessionState) -> Option<ScalarUDF> {
    Some(ScalarUDF::new_from_impl(RegexpReplace(state.udf("regexp_replace").ok()?)))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RegexpReplace(Arc<ScalarUDF>);

impl ScalarUDFImpl for RegexpReplace {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn aliases(&self) -> &[String] {
        self.0.aliases()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.0.return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.0.return_field_from_args(args)
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if let Some(replacement) = args.args.get_mut(2) {
            *replacement = match &*replacement {
                ColumnarValue::Array(texts) => ColumnarValue::Array(in_rust(texts)?),
                ColumnarValue::Scalar(text) => {
                    ColumnarValue::Scalar(ScalarValue::try_from_array(&in_rust(&text.to_array_of_size(1)?)?, 0)?)
                }
            };
        }
        self.0.invoke_with_args(args)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.0.simplify(args, info)
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.0.coerce_types(arg_types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.0.documentation()
    }
}

/// Replacements in the words of Rust's regular expressions, of the type they had.
fn in_rust(texts: &ArrayRef) -> Result<ArrayRef> {
    let plain = cast(texts, &DataType::LargeUtf8)?;
    let replaced: LargeStringArray = plain.as_string::<i64>().iter().map(|text| text.map(replacement)).collect();
    Ok(cast(&replaced, texts.data_type())?)
}

fn replacement(text: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek()) {
            ('$', _) => replaced.push_str("$$"),
            ('\\', Some(group @ ('1'..='9'))) => {
                replaced.extend(["${", &group.to_string(), "}"]);
                characters.next();
            }
            ('\\', Some('&')) => {
                replaced.push_str("${0}");
                characters.next();
            }
            ('\\', Some('\\')) => {
                replaced.push('\\');
                characters.next();
            }
            (other, _) => replaced.push(other),
        }
    }
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_written_with_backslashes() {
        for (theirs, ours) in
            [("$5", "$$5"), (r"[\1]\2x", "[${1}]${2}x"), (r"\&\&", "${0}${0}"), (r"\\n", r"\n"), (r"\n\", r"\n\")]
        {
            assert_eq!(replacement(theirs), ours);
        }
    }
}
