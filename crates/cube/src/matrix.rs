//! Sparse matrices in compressed rows.

/// A sparse matrix: row `r` has the entries `offsets[r]..offsets[r + 1]`, columns ascending.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseMatrix<W = f64> {
    /// Rows + 1 positions in `columns` and `weights`, the first 0.
    pub offsets: Vec<usize>,
    /// Column of each entry.
    pub columns: Vec<u32>,
    /// Weight of each entry; a weight of 0 is an entry, too.
    pub weights: Vec<W>,
    /// Number of columns.
    pub width: u32,
}

impl<W: Copy> SparseMatrix<W> {
    /// A matrix of rows of (column, weight), columns ascending.
    pub fn from_rows<'a>(width: u32, rows: impl Iterator<Item = &'a [(u32, W)]>) -> SparseMatrix<W>
    where
        W: 'a,
    {
        let mut matrix = SparseMatrix { offsets: vec![0], columns: Vec::new(), weights: Vec::new(), width };
        for row in rows {
            matrix.columns.extend(row.iter().map(|entry| entry.0));
            matrix.weights.extend(row.iter().map(|entry| entry.1));
            matrix.offsets.push(matrix.columns.len());
        }
        matrix
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Number of entries.
    pub fn entries(&self) -> usize {
        self.columns.len()
    }

    /// Number of entries of a row; 0 beyond the last row.
    pub(crate) fn row_length(&self, row: usize) -> usize {
        if row < self.rows() { self.offsets[row + 1] - self.offsets[row] } else { 0 }
    }

    /// Columns and weights of a row.
    pub fn row(&self, row: usize) -> (&[u32], &[W]) {
        let entries = self.offsets[row]..self.offsets[row + 1];
        (&self.columns[entries.clone()], &self.weights[entries])
    }

    /// True if no row has several entries.
    pub(crate) fn is_single(&self) -> bool {
        self.offsets.windows(2).all(|pair| pair[1] - pair[0] <= 1)
    }

    /// Of each of `rows` rows, the number of rows before it that have an entry; one number more at the end.
    pub(crate) fn covered(&self, rows: usize) -> Vec<u32> {
        let mut covered = vec![0];
        for row in 0..rows {
            covered.push(covered[row] + u32::from(self.row_length(row) > 0));
        }
        covered
    }

    /// The same entries with other weights.
    pub(crate) fn with_weights<V>(&self, weight: impl Fn(W) -> V) -> SparseMatrix<V> {
        SparseMatrix {
            offsets: self.offsets.clone(),
            columns: self.columns.clone(),
            weights: self.weights.iter().map(|&held| weight(held)).collect(),
            width: self.width,
        }
    }

    /// The matrix with rows and columns exchanged, by counting sort.
    pub fn transposed(&self) -> SparseMatrix<W> {
        let mut offsets = vec![0; self.width as usize + 1];
        for &column in &self.columns {
            offsets[column as usize + 1] += 1;
        }
        for column in 0..self.width as usize {
            offsets[column + 1] += offsets[column];
        }
        let mut next = offsets.clone();
        let mut columns = vec![0; self.entries()];
        let mut weights = self.weights.clone();
        for row in 0..self.rows() {
            for entry in self.offsets[row]..self.offsets[row + 1] {
                let place = &mut next[self.columns[entry] as usize];
                columns[*place] = row as u32;
                weights[*place] = self.weights[entry];
                *place += 1;
            }
        }
        SparseMatrix { offsets, columns, weights, width: self.rows() as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposing_twice_gives_the_matrix() {
        let rows: [&[(u32, f64)]; 4] = [&[(0, 1.0), (2, -1.0)], &[], &[(2, 0.0)], &[(0, 3.0)]];
        let matrix = SparseMatrix::from_rows(4, rows.into_iter());
        let turned = matrix.transposed();
        assert_eq!(turned.row(2), (&[0, 2][..], &[-1.0, 0.0][..]));
        assert_eq!(turned.row_length(3), 0);
        assert_eq!(turned.transposed(), matrix);
        assert!(!matrix.is_single());
    }
}
