//! What people see of cells: number formats and cross-tabs.

mod format;

pub use format::{Number, NumberFormat};
