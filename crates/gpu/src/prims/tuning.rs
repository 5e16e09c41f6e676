//! Measured values: what kernels are cut by and what the roofline knows, each with the measurement behind it.

/// A value measured on an H200: the value, the day, what was measured.
macro_rules! on_h200 {
    ($value:expr, $date:literal, $figure:literal) => {
        $crate::prims::Measured { value: $value, device: "NVIDIA H200", date: $date, figure: $figure }
    };
}
pub(crate) use on_h200;

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
