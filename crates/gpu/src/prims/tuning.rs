//! Measured values: what kernels are cut by and what the roofline knows, each with the measurement behind it.

/// A value with the device, the date and the figure that it was chosen by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured<T> {
    /// The value.
    pub value: T,
    /// The device that it was measured on.
    pub device: &'static str,
    /// The day, as year-month-day.
    pub date: &'static str,
    /// What was measured.
    pub figure: &'static str,
}
