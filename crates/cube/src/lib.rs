//! Multidimensional cubes: dimensions with weighted hierarchies, their storage and the aggregation of areas.
//!
//! | module | what it has |
//! |---|---|
//! | [`model`], [`facts`] | dimensions and measures; filled base cells sorted by key |
//! | [`define`], [`build`] | definition files; model and facts of the rows that their queries give |
//! | [`store`] | a cube as a folder of immutable files, its cells in a scheme of [`warpcube_arrays`] |
//! | [`query`], [`ask`], [`answer`], [`view`] | text of a query, its area, its aggregation, its cross-tab |
//! | [`algorithm`] | names of all algorithms of aggregation |
//! | [`aggregate`], [`device`] | the algorithms on the CPU and on a device |
//! | [`change`] | changes of the elements of a stored cube |
//! | [`roll`] | a measure by all combinations of dimensions, a table each |
//!
//! Invariants: empty is not zero; every algorithm gives the same cells; a reader of a stored cube sees one generation.
//! The crate knows no SQL engine: [`build::Tables`] answers its queries.

pub mod aggregate;
pub mod algorithm;
pub mod answer;
pub mod ask;
pub mod build;
pub mod change;
pub mod define;
pub mod demo;
pub mod device;
pub mod error;
pub mod facts;
pub mod matrix;
pub mod matrix_market;
pub mod model;
pub mod progress;
pub mod query;
pub mod roll;
pub mod store;
pub mod view;
