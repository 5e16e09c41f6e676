//! Answers to queries: bound targets become the area of an aggregation, its cells a cross-tab.

mod area;
mod cross_tab;
mod error;
mod label;
mod places;

pub(crate) use area::positions;
pub use area::{Asked, asked, asked_at};
pub use cross_tab::{CrossTabAnswer, Line, Page, cross_tab};
pub use error::CubeError;
pub(crate) use label::place_format;
pub use label::{Label, labels, target_name, target_names};
pub(crate) use places::{AxisPlaces, RankedPage, placed, ranked};
