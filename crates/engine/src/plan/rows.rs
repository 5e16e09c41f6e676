//! Rows as they leave a pipeline: as a result, or as a list that another pipeline scans.
//!
//! Columns are packed as group keys are ([`crate::plan::keys`]), floats by their bits. There is room for a guessed
//! number of rows; where more come, the room grows.
//!
//! A list is what lies between a join in which a row has several matches, or the branches of a union, and a sink that
//! goes by rows: those of the list have a number each, and are read again as those of a table are. It is scanned as a
//! group table is ([`crate::plan::group_values`]): its first column tells where there is a row, which is the packed
//! columns plus one where they take one word; otherwise words have a column each.

use std::sync::Arc;

use arrow::datatypes::DataType;
use warpcube_column::{Dictionary, VECTOR_ROWS};

use crate::error::Result;
use crate::facts::{Facts, Texts, analyse};
use crate::ir::{Expr, Ty};
use crate::plan::group_values::GroupValue;
use crate::plan::input::PipelineInput;
use crate::plan::keys::KeyPack;

/// A result of rows.
#[derive(Debug, Clone)]
pub(crate) struct ResultPlan {
    /// Packing of the columns.
    pub(crate) pack: KeyPack,
    /// Arrow types of the columns, and strings.
    pub(crate) columns: Vec<(DataType, Option<Arc<Dictionary>>)>,
    /// The column whose strings' places each of them is, if it is.
    pub(crate) texts: Vec<Option<Texts>>,
    /// Most rows there is room for.
    pub(crate) capacity: u64,
    /// Whether fewer rows than there are may be enough, and whether so many are.
    pub(crate) has_limit: bool,
    pub(crate) is_enough: bool,
    /// Whether there was room for fewer rows than may be wanted before it has grown.
    pub(crate) grows: bool,
}

/// A list.
#[derive(Debug, Clone)]
pub(crate) struct ListPlan {
    /// Packing of the columns.
    pub(crate) pack: KeyPack,
    /// What is known of each column.
    facts: Vec<Facts>,
    /// Most rows there is room for, whole vectors of them.
    pub(crate) places: u64,
    /// Whether there was room for fewer rows than may come before it has grown.
    pub(crate) grows: bool,
}

/// Plans a result.
///
/// # Errors
/// What the device does not compute.
pub(crate) fn result(
    input: &PipelineInput,
    (columns, limit): (&[(Expr, DataType)], Option<u64>),
    registers: &[Option<Facts>],
) -> Result<ResultPlan> {
    let exprs: Vec<&Expr> = columns.iter().map(|(expr, _)| expr).collect();
    let (values, _) = analyse(&exprs, registers, input.overflow)?;
    let pack = KeyPack::of_groups(&values.iter().map(bits_of).collect::<Vec<_>>());
    let most = input.rows_out().max(1);
    let guessed = input.guessed_rows().min(most);
    let capacity = limit.map_or(guessed, |limit| limit.min(guessed));
    let at_first = input.rows_at_first().min(most);
    let grows = at_first < limit.map_or(most, |limit| limit.min(most));
    let texts = values.iter().map(|value| value.texts).collect();
    let columns = columns.iter().zip(values).map(|((_, data_type), value)| (data_type.clone(), value.dictionary));
    Ok(ResultPlan {
        pack,
        columns: columns.collect(),
        texts,
        capacity,
        has_limit: limit.is_some(),
        is_enough: limit == Some(capacity),
        grows,
    })
}

/// Plans a list of these columns.
///
/// # Errors
/// What the device does not compute.
pub(crate) fn list(input: &PipelineInput, columns: &[&Expr], registers: &[Option<Facts>]) -> Result<ListPlan> {
    let (facts, _) = analyse(columns, registers, input.overflow)?;
    let pack = KeyPack::of_groups(&facts.iter().map(bits_of).collect::<Vec<_>>());
    let most = input.rows_out().max(1);
    let places = input.guessed_rows().min(most).next_multiple_of(VECTOR_ROWS as u64);
    Ok(ListPlan {
        pack,
        facts,
        places,
        grows: input.rows_at_first().min(most).next_multiple_of(VECTOR_ROWS as u64) < most,
    })
}

/// The facts of a value's bits if it is a float, which grouping would make one of two zeros.
pub(crate) fn bits_of(facts: &Facts) -> Facts {
    match facts.ty {
        Ty::F32 => Facts::new(Ty::U32, facts.nullable, Ty::U32.bounds()),
        Ty::F64 => Facts::new(Ty::U64, facts.nullable, Ty::U64.bounds()),
        _ => facts.clone(),
    }
}

impl ListPlan {
    /// Columns before the values: where there is a row, then words.
    fn width(&self) -> usize {
        1 + if self.pack.is_wide() { self.pack.words } else { 0 }
    }

    /// What is known of the columns that a scan reads.
    pub(crate) fn column_facts(&self) -> Vec<Facts> {
        let mut columns = vec![Facts::new(Ty::U64, false, Some((0, self.pack.domain.into())))];
        columns.resize(self.width(), Facts::new(Ty::U64, false, None));
        columns
    }

    /// What those columns stand for.
    pub(crate) fn values(&self) -> Vec<GroupValue> {
        let parts = self.pack.parts.iter().zip(&self.facts);
        parts
            .map(|(part, facts)| GroupValue::of_key(facts.clone(), part.clone(), self.width(), self.pack.domain))
            .collect()
    }
}
