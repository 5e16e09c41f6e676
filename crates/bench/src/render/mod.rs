//! Results as text and drawings: lines on a terminal ([`terminal`]), Markdown pages ([`pages`]), SVG ([`drawings`]).
//!
//! [`Spec`] says of each suite how its results are shown; everything here is made of [`Report`]s and nothing else, so
//! that equal results give equal bytes. A drawing without results is not made, and a series has a point for each result
//! and none in between.

mod chart;
mod cubes;
pub mod drawings;
mod kernels;
pub mod markdown;
pub mod pages;
mod primitives;
mod queries;
mod query_charts;
mod scale;
mod schemes;
mod specs;
mod svg;
pub mod terminal;
pub mod text;

use crate::report::Report;
pub use specs::Spec;

/// The results of some files, by the names of the files.
pub type Files = [(String, Report)];

/// A drawn chart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawing {
    /// Its name, that of its file without `.svg`.
    pub name: &'static str,
    /// What it shows, a sentence.
    pub title: String,
    /// The SVG.
    pub svg: String,
}
