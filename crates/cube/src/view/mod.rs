//! What people see of cells: number formats and cross-tabs.

mod cross_tab;
mod format;

pub use cross_tab::cross_tab_text;
pub(crate) use format::decimal_text;
pub use format::{Number, NumberFormat, cell_text};
