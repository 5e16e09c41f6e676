//! The language in which a cube is asked: text to a [`Query`].
//!
//! ```text
//! query     = table | cells
//! table     = ["rows" axis] ["cols" axis] ["pages" axis] ["where" point] {option}
//! cells     = ("facts" | "source" | "explain") ["at" point] | "nearest" number "to" point
//! axis      = set {"*" set}                       the product of its sets
//! set       = term {"," term}                     elements of one dimension, in this order
//! term      = selection ["with" name compare literal]
//! selection = element                             the element; a dimension's name: all of its elements
//!           | element ".." element                the elements from one position to another
//!           | "children" "(" element ["," depth] ")"
//!           | "descendants" "(" element ["," depth] ")"
//!           | "leaves" "(" element ")"
//!           | "level" "(" name "," number ")"
//!           | "sum" "(" set ")"                   one target: the sum of the set
//! point     = (element | "sum" "(" set ")") {"," …}
//! element   = [name ":"] name
//! compare   = "=" | "<>" | "<" | "<=" | ">" | ">="
//! option    = ("top" | "bottom") number ["by" point] | "empty"
//! name      = letters, digits, "_", "-", "%"      or any text between double quotes, where "" is a quote
//! literal   = number | name
//! ```
//!
//! Clauses stand in any order, each at most once. Words of the language ignore case; a quoted name is never one of
//! them. `children(e, n)` are the descendants exactly n edges below e, `descendants(e, n)` those of at most n.
//!
//! The parser knows no cube: [`bind`] finds the elements that [`ElementName`]s name.

mod ast;
mod bind;
mod changes;
mod draw;
mod error;
mod find;
mod lexer;
mod parser;

pub use ast::{
    Axis, Comparison, CrossTab, Direction, ElementName, Extreme, Filter, Literal, Place, Point, Query, Selection, Set,
    Span, Term,
};
pub use bind::{BoundExtreme, BoundPlace, BoundQuery, BoundSet, BoundTable, Target, bind, bind_with_warnings};
pub use changes::{Action, ChangeStatement, Neighbour, Placed, parse_changes};
pub use draw::random_cross_tab;
pub use error::QueryError;
pub use find::quoted;
pub use find::{CubeAxis, MEASURES};
pub(crate) use find::{find_dimension, find_element, namesake_warning};
pub use parser::parse;
