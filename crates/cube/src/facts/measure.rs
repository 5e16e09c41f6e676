//! Measures of facts: name, rule, value type.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Digits after the point at most: 10¹⁸ is the highest power of ten within 64 bits.
pub const SCALE_MAX: u8 = 18;

/// How the rows of one cell, and the base cells below an aggregate, become one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// The sum, weighted along the paths of a hierarchy.
    Sum,
    /// The number of rows with a value; each base cell counts once, weights aside.
    Count,
    /// The sum of values over the number of rows with a value; each base cell counts once, weights aside.
    Avg,
    /// The least value; weights aside.
    Min,
    /// The greatest value; weights aside.
    Max,
}

impl Rule {
    /// Passes over the facts that a measure takes: an AVG has sums and rows.
    pub(crate) fn passes(self) -> f64 {
        if self == Rule::Avg { 2.0 } else { 1.0 }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Rule::Sum => "SUM",
            Rule::Count => "COUNT",
            Rule::Avg => "AVG",
            Rule::Min => "MIN",
            Rule::Max => "MAX",
        })
    }
}

/// Type of a measure's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueType {
    /// A decimal, stored as a whole number of 64 bits: the value times 10^scale.
    Decimal {
        /// Digits after the point, 0 to [`SCALE_MAX`].
        scale: u8,
    },
    /// A finite double.
    Double,
}

impl fmt::Display for ValueType {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueType::Decimal { scale } => write!(out, "decimal({scale})"),
            ValueType::Double => out.write_str("double"),
        }
    }
}

/// A measure of facts. The values of a COUNT are row counts: its type is `decimal(0)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactMeasure {
    /// Name, for errors.
    pub name: String,
    /// Rule of folding and aggregation.
    pub rule: Rule,
    /// Type of stored values.
    pub value_type: ValueType,
}

impl FactMeasure {
    /// A measure; COUNT takes `decimal(0)` whatever the given type.
    pub fn new(name: &str, rule: Rule, value_type: ValueType) -> FactMeasure {
        let value_type = if rule == Rule::Count { ValueType::Decimal { scale: 0 } } else { value_type };
        FactMeasure { name: name.to_string(), rule, value_type }
    }

    /// True if values are doubles.
    pub(super) fn is_double(&self) -> bool {
        self.value_type == ValueType::Double
    }
}
