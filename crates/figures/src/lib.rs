//! The papers' figures, drawn as SVG from the JSON of a benchmark and nothing else.
//!
//! `warpcube bench primitives --figures` and `cargo xtask figures` call [`primitives`], the latter [`schemes`],
//! [`ssb`] and [`tpch`] too: equal results give equal bytes, so that a check can tell whether the figures of a page
//! are those of its results. A figure without results is not drawn, and a series has a point for each result and
//! none in between.

mod chart;
mod primitives;
mod queries;
mod scale;
mod schemes;
mod svg;

pub use primitives::primitives;
pub use queries::{Times, query_times, rounded, ssb, tpch};
pub use schemes::schemes;

/// A drawn figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// Its name, that of its file without `.svg`.
    pub name: &'static str,
    /// What it shows, a sentence.
    pub title: String,
    /// The drawing.
    pub svg: String,
}
