//! Measures: what a cell holds and how it aggregates.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::{Rule, SCALE_MAX, ValueType};

/// What a time balance takes of a span of its dimension, by position: of the base elements below an element, if all
/// weights on the way are 1. Elements with other weights add the balances of their children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Span {
    /// The base element of the lowest position.
    First,
    /// The base element of the highest position.
    Last,
    /// The sum over the number of base elements, filled or not.
    Average,
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Span::First => "first",
            Span::Last => "last",
            Span::Average => "average",
        })
    }
}

/// Time balance of a measure: its rule over one dimension in place of the sum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Balance {
    /// Name of the dimension.
    pub dimension: String,
    /// Base elements taken.
    pub span: Span,
}

/// A measure of a cube.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measure {
    /// Name, unique in the cube, case ignored.
    pub name: String,
    /// Rule of aggregation.
    pub rule: Rule,
    /// Type of the values.
    pub value: ValueType,
    /// Number format of output, for example `#,##0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Time balance; for rule [`Rule::Sum`] alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Balance>,
}

impl Measure {
    /// The problem of a measure that has no meaning, as a predicate that says what to change.
    pub(super) fn problem(&self, dimension_names: &[&str]) -> Option<String> {
        if let ValueType::Decimal { scale } = self.value
            && scale > SCALE_MAX
        {
            return Some(format!("has {scale} digits after the point; a decimal has 0 to {SCALE_MAX}"));
        }
        let over = self.over.as_ref()?;
        if self.rule != Rule::Sum {
            return Some("has a time balance ('over') and a rule other than sum; remove one of them".to_owned());
        }
        let wanted = super::names::folded(&over.dimension);
        if dimension_names.iter().any(|name| super::names::folded(name) == wanted) {
            return None;
        }
        let nearest = super::nearest(&over.dimension, dimension_names.iter().copied());
        Some(format!("balances over '{}', which is no dimension of the cube{nearest}", over.dimension))
    }
}
