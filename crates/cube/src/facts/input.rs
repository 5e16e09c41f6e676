//! Columns of rows that are appended to facts.

/// Values of one measure in an append.
#[derive(Debug, Clone, Copy)]
pub enum InputValues<'a> {
    /// Decimals: whole numbers, the value times 10^scale of the measure.
    Decimals(&'a [i64]),
    /// Doubles; NaN and infinities are refused where the row is filled.
    Doubles(&'a [f64]),
    /// No values, for COUNT alone: a row counts where it is filled.
    Rows,
}

/// One measure of an append.
#[derive(Debug, Clone, Copy)]
pub struct InputColumn<'a> {
    /// The values, one a row.
    pub values: InputValues<'a>,
    /// False where the value is NULL, one entry a row; absent without NULLs.
    pub filled: Option<&'a [bool]>,
}

impl InputValues<'_> {
    /// The type, without scale, for errors.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            InputValues::Decimals(_) => "decimals",
            InputValues::Doubles(_) => "doubles",
            InputValues::Rows => "no values",
        }
    }
}
