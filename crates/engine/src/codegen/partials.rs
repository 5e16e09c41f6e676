//! Sums over the rows that a lane works on in one step.

/// Sums of a few rows in 32 bits, which take a third of the instructions of 64 bits; they are folded into the cells
/// before they can overflow. Valid values of a column are counted for all rows of a step at once.
#[derive(Debug, Default)]
pub(crate) struct Partials {
    sums: Vec<usize>,
    /// Cells with the columns whose valid values they count.
    counts: Vec<(usize, usize)>,
}

impl Partials {
    /// A sum for a cell, by its index.
    pub(crate) fn add(&mut self, cell: usize) {
        self.sums.push(cell);
    }

    /// A cell that takes the number of valid values of a loaded column among the rows that are left.
    pub(crate) fn count(&mut self, cell: usize, column: usize) {
        self.counts.push((cell, column));
    }

    /// Declares them.
    pub(crate) fn declaration(&self) -> String {
        self.sums.iter().map(|index| format!("        uint32_t part{index} = 0;\n")).collect()
    }

    /// Adds them to the cells; `alive` has a bit for each row that is left.
    pub(crate) fn fold(&self, alive: &str) -> String {
        let count = |(index, column): &(usize, usize)| {
            format!("            sum{index} += (uint64_t)__popc(dn{column} & {alive});\n")
        };
        let fold = |index: &usize| {
            format!(
                "            sum{index} += (uint64_t)(int64_t)(int32_t)part{index};\n            part{index} = 0;\n"
            )
        };
        self.sums.iter().map(fold).chain(self.counts.iter().map(count)).collect()
    }
}
