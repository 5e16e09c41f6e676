//! Syntax trees of queries. Every name keeps its place in the text, for errors that bind later.

use std::fmt;

/// A range of bytes of a query's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte behind the last.
    pub end: usize,
}

/// A query.
#[derive(Debug, Clone, PartialEq)]
pub enum Query {
    /// Aggregated cells, laid out in rows, columns and pages.
    CrossTab(CrossTab),
    /// The base cells below one cell, with their weights.
    Facts(Point),
    /// The rows of the source that make up one cell.
    Source(Point),
    /// How one cell is computed.
    Explain(Point),
    /// The filled base cells nearest to one.
    Nearest {
        /// How many.
        count: u64,
        /// The cell they are near to.
        to: Point,
    },
}

/// A cross-tab: the product of its axes within a point.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CrossTab {
    /// Sets laid out downwards.
    pub rows: Axis,
    /// Sets laid out to the right.
    pub columns: Axis,
    /// Sets of which each combination is a table of its own.
    pub pages: Axis,
    /// One place of each dimension that is on no axis; other dimensions have their default element.
    pub point: Point,
    /// Only the rows of the largest or smallest values.
    pub extreme: Option<Extreme>,
    /// Rows and columns without a filled cell are shown.
    pub shows_empty: bool,
}

/// A product of sets, each of a dimension of its own. Without sets it has one place.
pub type Axis = Vec<Set>;

/// Elements of one dimension, in the order of the text.
pub type Set = Vec<Term>;

/// One place for each dimension that is named.
pub type Point = Vec<Place>;

/// Elements of one dimension.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// Which elements.
    pub selection: Selection,
    /// Which of them stay.
    pub filter: Option<Filter>,
    /// The term in the text.
    pub span: Span,
}

/// Which elements a term names.
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    /// The element of this name, or all elements of the dimension of this name.
    Name(ElementName),
    /// All elements between two by position, both included.
    Range(ElementName, ElementName),
    /// Descendants a number of edges below an element.
    Children(ElementName, u32),
    /// Descendants of an element, at most a number of edges below it.
    Descendants(ElementName, Option<u32>),
    /// Base elements below an element.
    Leaves(ElementName),
    /// Elements of a dimension on a level; level 0 has the base elements.
    Level(ElementName, u32),
    /// One target, the sum of a set.
    Sum(Set),
}

/// One place of a dimension in a point.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// An element.
    Element(ElementName),
    /// The sum of a set.
    Sum(Set, Span),
}

/// A name, with the dimension's if the text says it.
#[derive(Debug, Clone, PartialEq)]
pub struct ElementName {
    /// The dimension.
    pub dimension: Option<String>,
    /// The element, or the dimension where one is meant.
    pub name: String,
    /// Both in the text.
    pub span: Span,
}

/// A condition on an attribute of elements.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    /// The attribute's name.
    pub attribute: String,
    /// How values are compared.
    pub comparison: Comparison,
    /// The literal that they are compared with.
    pub literal: Literal,
}

/// A comparison of an attribute with a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// A literal of a filter.
#[derive(Debug, Clone, PartialEq)]
pub enum Literal {
    /// A number without quotes, and its text.
    Number(f64, String),
    /// A name, or text between quotes.
    Text(String),
}

/// The rows of the largest or smallest values.
#[derive(Debug, Clone, PartialEq)]
pub struct Extreme {
    /// Which end.
    pub direction: Direction,
    /// How many rows of each page.
    pub count: u64,
    /// Places of the column that ranks the rows; the first one that has them does.
    pub by: Point,
    /// The option in the text.
    pub span: Span,
}

/// An end of the order of rows by value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The largest values.
    Top,
    /// The smallest values.
    Bottom,
}

impl Comparison {
    /// True if values in this order satisfy the comparison.
    pub fn holds(self, ordering: std::cmp::Ordering) -> bool {
        match self {
            Comparison::Equal => ordering.is_eq(),
            Comparison::NotEqual => ordering.is_ne(),
            Comparison::Less => ordering.is_lt(),
            Comparison::LessOrEqual => ordering.is_le(),
            Comparison::Greater => ordering.is_gt(),
            Comparison::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

impl fmt::Display for ElementName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.dimension {
            Some(dimension) => write!(f, "{dimension}:{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}
