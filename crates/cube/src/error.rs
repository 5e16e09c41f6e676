//! Errors of cube models, in the words of the person who defines the cube.

use std::fmt;

/// Names that an abbreviated path shows before and after its gap.
const SHOWN_AT_EACH_END: usize = 4;

/// Result of an operation on a model.
pub type Result<T, E = ModelError> = std::result::Result<T, E>;

/// A path of element names from parent to child, printed as `A → B → A`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path(pub Vec<String>);

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = &self.0;
        if names.len() <= 2 * SHOWN_AT_EACH_END + 1 {
            return f.write_str(&names.join(" → "));
        }
        let (head, tail) = (&names[..SHOWN_AT_EACH_END], &names[names.len() - SHOWN_AT_EACH_END..]);
        let hidden = names.len() - 2 * SHOWN_AT_EACH_END;
        write!(f, "{} → … {hidden} more … → {}", head.join(" → "), tail.join(" → "))
    }
}

/// The names nearest to an unknown one, printed as a question; prints nothing if there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nearest(pub Vec<String>);

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.split_last() {
            None => Ok(()),
            Some((last, [])) => write!(f, "; did you mean '{last}'?"),
            Some((last, others)) => write!(f, "; did you mean '{}' or '{last}'?", others.join("', '")),
        }
    }
}

/// An error of a cube model: a refused definition, a refused change or an unknown name.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A name, alias, caption, attribute or level is the empty text, or blanks.
    #[error("a name in {place} is empty or blank: give it a character that is no blank")]
    EmptyName {
        /// The dimension or cube.
        place: String,
    },
    /// Two elements claim one name.
    #[error("dimension '{dimension}': {}; names are unique", taken(.name, .other))]
    DuplicateName {
        /// The dimension.
        dimension: String,
        /// The name claimed a second time.
        name: String,
        /// The element that holds it, by its primary name.
        other: String,
    },
    /// Two elements of levels get one name of the values that lead to them.
    #[error(
        "dimension '{dimension}': {one} and {other} both get the name '{name}', the values with a '-' between them; \
         give one of them another value"
    )]
    SharedPath {
        /// The dimension.
        dimension: String,
        /// The name.
        name: String,
        /// Values that lead to one of them.
        one: Path,
        /// Values that lead to the other.
        other: Path,
    },
    /// Two dimensions or two measures of a cube share a name, case ignored.
    #[error("cube '{cube}': two {what} are named '{name}'; names are unique, case ignored")]
    DuplicatePart {
        /// The cube.
        cube: String,
        /// The plural noun: `dimensions` or `measures`.
        what: &'static str,
        /// The repeated name.
        name: String,
    },
    /// No element has the name.
    #[error("dimension '{dimension}' has no element '{name}'{nearest}")]
    UnknownElement {
        /// The dimension.
        dimension: String,
        /// The name looked for.
        name: String,
        /// Names within a few edits.
        nearest: Nearest,
    },
    /// A consolidation names a child, or a table row a parent, that is not an element.
    #[error("dimension '{dimension}': {path} names an unknown element '{name}'{nearest}")]
    UnknownInPath {
        /// The dimension.
        dimension: String,
        /// The edge, parent first.
        path: Path,
        /// The unknown end of it.
        name: String,
        /// Names within a few edits.
        nearest: Nearest,
    },
    /// No element has the name, and names of several elements differ from it in case alone.
    #[error(
        "dimension '{dimension}': '{name}' is no element; {} are, which differ in case alone: write one of them",
        all_quoted(.candidates)
    )]
    AmbiguousCase {
        /// The dimension.
        dimension: String,
        /// The name looked for.
        name: String,
        /// The names, at least two.
        candidates: Vec<String>,
    },
    /// Several elements share a caption that is the name of no element.
    #[error("dimension '{dimension}': '{caption}' is the caption of several elements: {}", .candidates.join(", "))]
    AmbiguousCaption {
        /// The dimension.
        dimension: String,
        /// The caption looked for.
        caption: String,
        /// Names of the elements that have it.
        candidates: Vec<String>,
    },
    /// The number is not that of a living element.
    #[error("dimension '{dimension}' has no element number {id}: it was removed or never existed")]
    NoSuchId {
        /// The dimension.
        dimension: String,
        /// The number.
        id: u32,
    },
    /// An element would lie below itself.
    #[error("dimension '{dimension}': a cycle of consolidations: {path}")]
    Cycle {
        /// The dimension.
        dimension: String,
        /// The cycle; its first and last names are equal.
        path: Path,
    },
    /// A weight is NaN or too large.
    #[error("dimension '{dimension}': {}", weight_problem(.path, *.weight, *.max))]
    Weight {
        /// The dimension.
        dimension: String,
        /// The edge, parent first.
        path: Path,
        /// The refused weight.
        weight: f64,
        /// The largest magnitude of a weight.
        max: f64,
    },
    /// The weights of all base elements below an element add up to too much by magnitude.
    #[error(
        "dimension '{dimension}': the weights of the base elements below '{element}' add up to {sum:e} by magnitude, \
         over all paths; the most is {max:e}: give its edges smaller weights"
    )]
    WeightSum {
        /// The dimension.
        dimension: String,
        /// The consolidated element.
        element: String,
        /// The sum.
        sum: f64,
        /// The largest sum.
        max: f64,
    },
    /// The product of weights along paths, or their sum over paths, leaves the range of doubles.
    #[error("dimension '{dimension}': the weights below '{element}' multiply to more than a double holds")]
    WeightRange {
        /// The dimension.
        dimension: String,
        /// The consolidated element.
        element: String,
    },
    /// A child stands twice below one parent.
    #[error("dimension '{dimension}': {path} is given twice; add the weights up in one entry")]
    DuplicateChild {
        /// The dimension.
        dimension: String,
        /// The edge, parent first.
        path: Path,
    },
    /// The edge to be changed does not exist.
    #[error("dimension '{dimension}': '{child}' is no child of '{parent}'")]
    NoSuchChild {
        /// The dimension.
        dimension: String,
        /// The parent's name.
        parent: String,
        /// The child's name.
        child: String,
    },
    /// A text element was given children.
    #[error("dimension '{dimension}': '{element}' is a text element and cannot hold children")]
    TextParent {
        /// The dimension.
        dimension: String,
        /// The text element.
        element: String,
    },
    /// An element added as base was given children.
    #[error("dimension '{dimension}': '{element}' is a base element and cannot hold children; add it as consolidated")]
    BaseParent {
        /// The dimension.
        dimension: String,
        /// The base element.
        element: String,
    },
    /// A base element with facts was given children.
    #[error(
        "dimension '{dimension}': '{element}' holds facts and cannot become a consolidated element; add an element \
         that consolidates it instead"
    )]
    HasFacts {
        /// The dimension.
        dimension: String,
        /// The base element.
        element: String,
    },
    /// A row of level values ends at an element that other rows place above base.
    #[error("dimension '{dimension}': {path} ends in NULL levels here, but other rows have elements below it")]
    RaggedConflict {
        /// The dimension.
        dimension: String,
        /// The values of the row, top level first.
        path: Path,
    },
    /// A row has another number of values than the hierarchy has levels.
    #[error("dimension '{dimension}': a row has {found} level values, hierarchy '{hierarchy}' has {wanted} levels")]
    LevelCount {
        /// The dimension.
        dimension: String,
        /// The hierarchy.
        hierarchy: String,
        /// Values of the row.
        found: usize,
        /// Levels of the hierarchy.
        wanted: usize,
    },
    /// The dimension has no such level hierarchy.
    #[error(
        "dimension '{dimension}' has {count} level hierarchies; there is no number {hierarchy} (they count from 0)"
    )]
    NoSuchHierarchy {
        /// The dimension.
        dimension: String,
        /// The number asked for.
        hierarchy: usize,
        /// Level hierarchies of the dimension.
        count: usize,
    },
    /// An attribute value is not of the attribute's kind, or not finite.
    #[error("dimension '{dimension}': attribute '{attribute}' of '{element}' is {found}; {wanted}")]
    Attribute {
        /// The dimension.
        dimension: String,
        /// The attribute.
        attribute: String,
        /// The element.
        element: String,
        /// The refused value.
        found: String,
        /// The values that the attribute takes, as a clause.
        wanted: &'static str,
    },
    /// A dimension or level hierarchy outgrew a counter.
    #[error("dimension '{dimension}' has too many {what}: at most {max}")]
    TooMany {
        /// The dimension.
        dimension: String,
        /// The plural noun: `elements`, `attributes`, `level hierarchies`.
        what: &'static str,
        /// The limit.
        max: usize,
    },
    /// A cube has no dimension, or more than 32.
    #[error("cube '{cube}' has {count} dimensions; a cube has 1 to 32")]
    DimensionCount {
        /// The cube.
        cube: String,
        /// Its dimensions.
        count: usize,
    },
    /// A cube has no measure.
    #[error("cube '{cube}' has no measure; define at least one")]
    NoMeasure {
        /// The cube.
        cube: String,
    },
    /// The keys of a cube do not fit 128 bits.
    #[error("the key needs {} bits, at most 128: {}", .bits.iter().map(|(_, bits)| bits).sum::<u32>(), spelled(.bits))]
    KeyTooWide {
        /// Name and bits of each dimension.
        bits: Vec<(String, u32)>,
    },
    /// A measure is defined in a way that has no meaning.
    #[error("cube '{cube}': measure '{measure}' {problem}")]
    Measure {
        /// The cube.
        cube: String,
        /// The measure.
        measure: String,
        /// The problem, as a predicate with what to change.
        problem: String,
    },
    /// The stored model is of another version of the format.
    #[error("the stored model has version {found}; this program reads version {wanted}")]
    Version {
        /// Version found.
        found: u64,
        /// Version that is read and written.
        wanted: u64,
    },
    /// The stored model contradicts itself.
    #[error("the stored model of dimension '{dimension}' is damaged: {problem}")]
    Damaged {
        /// The dimension.
        dimension: String,
        /// The contradiction.
        problem: String,
    },
    /// The stored model is not the JSON of a model.
    #[error("the stored model cannot be read: {0}")]
    Json(#[from] serde_json::Error),
}

/// A refused weight.
pub(crate) fn weight_problem(path: &Path, weight: f64, max: f64) -> String {
    let weight = if weight.abs() > max { format!("{weight:e}") } else { weight.to_string() };
    format!("the weight of {path} is {weight}; a weight is a number from -{max:e} to {max:e}")
}

/// Which element has a name.
fn taken(name: &str, other: &str) -> String {
    match name == other {
        true => format!("the name '{name}' is taken by '{other}'"),
        false => format!("'{name}' is an alternative name of '{other}'"),
    }
}

/// Names in a row: `'true', 'True' and 'TRUE'`.
pub(crate) fn all_quoted(names: &[String]) -> String {
    match names {
        [others @ .., last] if !others.is_empty() => format!("'{}' and '{last}'", others.join("', '")),
        names => format!("'{}'", names.concat()),
    }
}

/// Bits of each dimension as a sum: `Month 7 + Region 9`.
fn spelled(bits: &[(String, u32)]) -> String {
    bits.iter().map(|(name, bits)| format!("{name} {bits}")).collect::<Vec<_>>().join(" + ")
}
