//! Sums over the rows that a lane works on in one step.

/// Sums of a few rows in 32 bits, which take a third of the instructions of 64 bits; they are folded into the cells
/// before they can overflow.
#[derive(Debug, Default)]
pub(crate) struct Partials(Vec<usize>);

impl Partials {
    /// One for a cell, by its index.
    pub(crate) fn add(&mut self, cell: usize) {
        self.0.push(cell);
    }

    /// Declares them.
    pub(crate) fn declaration(&self) -> String {
        self.0.iter().map(|index| format!("        uint32_t part{index} = 0;\n")).collect()
    }

    /// Adds them to the cells.
    pub(crate) fn fold(&self) -> String {
        let fold = |index: &usize| {
            format!(
                "            sum{index} += (uint64_t)(int64_t)(int32_t)part{index};\n            part{index} = 0;\n"
            )
        };
        self.0.iter().map(fold).collect()
    }
}
