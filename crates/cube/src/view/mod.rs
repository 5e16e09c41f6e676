//! Cells as people see them: their texts, and cross-tabs.

mod cell;
mod cross_tab;
mod escape;

pub use cell::cell_text;
pub(crate) use cell::decimal_text;
pub use cross_tab::cross_tab_text;
pub use escape::escaped;
pub(crate) use escape::visible;
