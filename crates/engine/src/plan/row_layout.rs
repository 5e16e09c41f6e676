//! A row of a result as the device leaves it, for first rows and for groups: a bit a column that tells NULL from a
//! value, in words of 64, where a column may be NULL; then the values. A value takes a word; a decimal wider than 64
//! bits takes two.

use std::sync::Arc;

use arrow::datatypes::DataType;
use warpcube_column::Dictionary;

use crate::error::Result;
use crate::facts::{Facts, Texts, analyse};
use crate::ir::{Expr, Overflow, Ty};
use crate::plan::group_values::{GroupRead, GroupValue};

/// A column of a result.
#[derive(Debug, Clone)]
pub(crate) struct RowColumn {
    pub(crate) data_type: DataType,
    pub(crate) ty: Ty,
    pub(crate) dictionary: Option<Arc<Dictionary>>,
    /// The column whose strings' places these are, if they are.
    pub(crate) texts: Option<Texts>,
    /// Its first word among those of a row's values.
    pub(crate) word: usize,
    /// Whether it takes two words, the lower one first.
    pub(crate) wide: bool,
    /// Whether it may be NULL.
    pub(crate) nullable: bool,
}

/// The columns of a result.
#[derive(Debug, Clone)]
pub(crate) struct RowLayout {
    pub(crate) columns: Vec<RowColumn>,
}

impl RowLayout {
    /// The layout of these columns over registers of these facts.
    ///
    /// # Errors
    /// What the device does not compute.
    pub(crate) fn of(
        columns: &[(Expr, DataType)],
        registers: &[Option<Facts>],
        overflow: Overflow,
    ) -> Result<RowLayout> {
        let exprs: Vec<&Expr> = columns.iter().map(|(expr, _)| expr).collect();
        let (values, _) = analyse(&exprs, registers, overflow)?;
        Ok(RowLayout::of_values(values.iter().zip(columns.iter().map(|(_, data_type)| data_type))))
    }

    /// The layout of columns of these facts and types.
    pub(crate) fn of_values<'a>(columns: impl IntoIterator<Item = (&'a Facts, &'a DataType)>) -> RowLayout {
        let (mut laid_out, mut word) = (Vec::new(), 0);
        for (value, data_type) in columns {
            let (wide, nullable, texts) = (value.is_wide(), value.nullable, value.texts);
            let (data_type, dictionary) = (data_type.clone(), value.dictionary.clone());
            laid_out.push(RowColumn { data_type, ty: value.ty, dictionary, texts, word, wide, nullable });
            word += 1 + usize::from(wide);
        }
        RowLayout { columns: laid_out }
    }

    /// Words of validity.
    pub(crate) fn valid_words(&self) -> usize {
        if self.columns.iter().any(|column| column.nullable) { self.columns.len().div_ceil(64) } else { 0 }
    }

    /// Words of a row.
    pub(crate) fn words(&self) -> usize {
        self.valid_words() + self.columns.last().map_or(0, |column| column.word + 1 + usize::from(column.wide))
    }

    /// The values of rows whose words are columns from the column `first` on, of columns with these facts.
    pub(crate) fn values(&self, facts: &[Facts], first: usize) -> Vec<GroupValue> {
        let value = |(position, (column, facts)): (usize, (&RowColumn, &Facts))| {
            let (valid, word) = ((first + position / 64, (position % 64) as u32), self.word_of(column));
            let read = GroupRead::Stored { valid, word: first + word, wide: column.wide };
            GroupValue { facts: facts.clone(), read, first_cell: 0 }
        };
        self.columns.iter().zip(facts).enumerate().map(value).collect()
    }

    /// The first word of a column in a row.
    pub(crate) fn word_of(&self, column: &RowColumn) -> usize {
        self.valid_words() + column.word
    }

    /// Whether any column has places of strings.
    pub(crate) fn has_texts(&self) -> bool {
        self.columns.iter().any(|column| column.texts.is_some())
    }
}
