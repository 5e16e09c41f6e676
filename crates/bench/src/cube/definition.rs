//! Definitions of benchmark cubes, as `bench/cubes/*.yaml` have them.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The cubes of the suite.
const CUBES: [(&str, &str); 2] = [
    ("machines.yaml", include_str!("../../../../bench/cubes/machines.yaml")),
    ("biker.yaml", include_str!("../../../../bench/cubes/biker.yaml")),
];

/// A benchmark cube: dimensions, how facts are drawn, queries.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Name of the cube.
    pub cube: String,
    /// Begins all that is drawn.
    pub seed: u64,
    /// Dimensions in the order of the key.
    pub(super) dimensions: Vec<DimensionDefinition>,
    /// How facts are drawn.
    pub(super) facts: FactsDefinition,
    /// Queries by name, in alphabetical order.
    pub queries: BTreeMap<String, Query>,
}

/// A dimension: base elements by number, and parts of consolidated elements.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DimensionDefinition {
    pub(super) name: String,
    pub(super) base: u32,
    pub(super) parts: serde_json::Map<String, serde_json::Value>,
}

/// Consolidated elements.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(super) enum Part {
    /// A tree: so many elements a level, the root first; each level splits the one above evenly, the last one splits
    /// base elements.
    Tree { tree: Vec<u32> },
    /// So many elements, of which base element `b` is in number `b` modulo their number.
    Cycle { cycle: u32 },
    /// One element with base elements 0, n, 2n, …
    Every { every: u32 },
    /// One element with the first base elements at these weights.
    Weights { weights: Vec<f64> },
    /// So many elements: each `every`-th base element is in `members` drawn ones, those between in one drawn one.
    Drawn { drawn: u32, every: u32, members: u32 },
    /// One element over all of another part.
    SumOf { sum_of: String },
}

/// How facts are drawn: each of the dense tuples with each of the drawn ones.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FactsDefinition {
    /// Facts of the cube at full size.
    pub(super) number: u64,
    /// Least value, and the first one that is too large, in units of the last digit.
    pub(super) values: [i64; 2],
    /// Ranges of base elements of the leading dimensions; each has all combinations.
    pub(super) dense: Vec<BTreeMap<String, [u32; 2]>>,
    pub(super) tuples: TupleDefinition,
}

/// Tuples of the trailing dimensions.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TupleDefinition {
    /// The dimension whose elements buy, and how many of them do.
    pub(super) buyers: Buyers,
    /// Dimensions whose elements are drawn evenly.
    pub(super) uniform: Vec<String>,
    /// Dimensions in which a buyer has a usual element.
    #[serde(default)]
    pub(super) usual: Vec<String>,
    /// One tuple in so many is drawn evenly in those, too.
    #[serde(default)]
    pub(super) unusual: u64,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Buyers {
    pub(super) dimension: String,
    pub(super) number: u32,
}

/// A query: targets of some dimensions; the others take the first element of their first part.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Query {
    /// The time that the project allows itself, in milliseconds on the device.
    pub limit_ms: f64,
    #[serde(default)]
    pub(super) targets: BTreeMap<String, Targets>,
}

/// Targets of one dimension, in this order.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Targets {
    /// So many base elements: the first ones, or with `filled` those, in which so many buy.
    pub(super) base: u32,
    pub(super) filled: Option<u32>,
    /// All elements of these parts.
    pub(super) of: Vec<String>,
    /// The first elements of a drawn part that have nothing but each `every`-th base element.
    pub(super) of_every: u32,
}

impl Definition {
    /// Both cubes, Machines first.
    ///
    /// # Errors
    /// A file that is not of the form, with its place.
    pub fn all() -> Result<Vec<Definition>, String> {
        CUBES.iter().map(|(file, text)| Definition::parse(text).map_err(|error| format!("{file}: {error}"))).collect()
    }

    /// A definition from YAML.
    ///
    /// # Errors
    /// Text that is not of the form, with its place.
    pub fn parse(text: &str) -> Result<Definition, String> {
        serde_saphyr::from_str(text).map_err(|error| error.to_string())
    }
}

impl DimensionDefinition {
    /// The parts by name, in the order of the text.
    pub(super) fn parts(&self) -> Result<Vec<(&str, Part)>, String> {
        let part = |(name, value): (&'_ String, &serde_json::Value)| {
            serde_json::from_value(value.clone()).map_err(|error| format!("part {name} of {}: {error}", self.name))
        };
        self.parts.iter().map(|(name, value)| Ok((name.as_str(), part((name, value))?))).collect()
    }
}
