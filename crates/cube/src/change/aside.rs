//! Facts and texts of elements that are gone, as rows that are kept aside.
//!
//! A row has the name that each element had before the change, then the values: of an AVG its sum and the number of its
//! rows. The last column is the reason.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::error::ArrowError;

use crate::facts::{Facts, Rule, SegmentTuning, count_array};
use crate::model::{CubeModel, Dimension};
use crate::store::{StoredCube, TextCell};

/// A coordinate whose element is gone or holds no facts any more.
pub(super) struct Freed {
    pub(super) dimension: usize,
    pub(super) base: u32,
    /// Name of the element before the changes.
    pub(super) name: String,
}

/// The facts and texts that stay, and those kept aside.
pub(super) struct Split {
    pub(super) facts: Facts,
    pub(super) texts: Vec<TextCell>,
    pub(super) aside: Vec<RecordBatch>,
    /// Facts kept aside for each freed coordinate; one of several such coordinates counts for the first.
    pub(super) facts_of: Vec<u64>,
}

/// Splits the facts and texts of a cube: those at elements of `model`, the changed one, stay.
pub(super) fn split(old: &StoredCube, model: &CubeModel, freed: &[Freed]) -> Result<Split, ArrowError> {
    let cause = if freed.is_empty() { Vec::new() } else { causes(old, freed) };
    let mut facts_of = vec![0; freed.len()];
    let mut gone: Vec<usize> = (0..cause.len()).filter(|place| cause[*place].is_some()).collect();
    gone.retain(|place| old.facts.is_live(*place));
    gone.sort_by_key(|place| old.facts.key(*place));
    gone.iter().filter_map(|place| cause[*place]).for_each(|cause| facts_of[cause] += 1);
    let facts = if gone.is_empty() { old.facts.clone() } else { old.facts.without(&gone) };
    let facts = match facts.layout() == model.layout() {
        true => facts.compacted(&SegmentTuning::default()),
        false => facts.selected(model.layout(), &facts.in_order()),
    };
    let mut aside = Vec::new();
    if !gone.is_empty() {
        let reasons = gone.iter().filter_map(|cell| cause[*cell]).map(|cause| reason(&old.model, &freed[cause]));
        aside.push(rows(old, &gone, reasons.collect())?);
    }
    let lives = |cell: &&TextCell| {
        model.dimensions().iter().zip(&cell.elements).all(|(dimension, id)| dimension.get(*id).is_some())
    };
    let (texts, lost): (Vec<&TextCell>, Vec<&TextCell>) = old.texts.iter().partition(lives);
    if !lost.is_empty() {
        aside.push(text_rows(old, model, &lost)?);
    }
    Ok(Split { facts, texts: texts.into_iter().cloned().collect(), aside, facts_of })
}

/// Of each place the first freed coordinate that it lies at.
fn causes(old: &StoredCube, freed: &[Freed]) -> Vec<Option<usize>> {
    let mut causes = vec![None; old.facts.places()];
    for (at, dimension) in old.model.dimensions().iter().enumerate() {
        let mut by_base = vec![None; dimension.base_count()];
        for (number, freed) in freed.iter().enumerate().filter(|(_, freed)| freed.dimension == at) {
            by_base[freed.base as usize] = Some(number);
        }
        if by_base.iter().all(Option::is_none) {
            continue;
        }
        for (start, segment) in old.facts.placed() {
            let mut coordinates = vec![0; segment.len()];
            segment.coordinates(0..segment.len(), at, &mut coordinates);
            for (cause, coordinate) in causes[start..].iter_mut().zip(&coordinates) {
                *cause = cause.or(by_base[*coordinate as usize]);
            }
        }
    }
    causes
}

fn reason(model: &CubeModel, freed: &Freed) -> String {
    format!("{}: '{}' was removed", model.dimensions()[freed.dimension].name(), freed.name)
}

/// Facts as rows.
fn rows(old: &StoredCube, places: &[usize], reasons: Vec<String>) -> Result<RecordBatch, ArrowError> {
    let (facts, mut columns): (&Facts, Vec<(String, ArrayRef)>) = (&old.facts, Vec::new());
    for (at, dimension) in old.model.dimensions().iter().enumerate() {
        let base = |place: &usize| facts.layout().coordinate(facts.key(*place), at);
        let name = |place: &usize| Some(dimension.element(dimension.at_base(base(place))?).name());
        columns.push((dimension.name().to_owned(), Arc::new(places.iter().map(name).collect::<StringArray>())));
    }
    for (number, measure) in facts.measures().iter().enumerate() {
        let name = &measure.name;
        let title = if measure.rule == Rule::Avg { format!("sum of {name}") } else { name.clone() };
        columns.push((title, facts.stored_array(number, places)?));
        if facts.has_counts(number) {
            let counts = places.iter().map(|place| facts.count(number, *place));
            columns.push((format!("rows of {name}"), count_array(counts)));
        }
    }
    if facts.has_rows() {
        columns.push(("rows".to_owned(), count_array(places.iter().map(|place| facts.rows(*place)))));
    }
    with_reasons(columns, reasons)
}

/// Texts as rows.
fn text_rows(old: &StoredCube, model: &CubeModel, texts: &[&TextCell]) -> Result<RecordBatch, ArrowError> {
    let name =
        |dimension: &Dimension, at: usize, text: &TextCell| dimension.element(text.elements[at]).name().to_owned();
    let mut columns: Vec<(String, ArrayRef)> = Vec::new();
    for (at, dimension) in old.model.dimensions().iter().enumerate() {
        let names = texts.iter().map(|text| Some(name(dimension, at, text)));
        columns.push((dimension.name().to_owned(), Arc::new(names.collect::<StringArray>())));
    }
    let words = texts.iter().map(|text| Some(&text.text));
    columns.push(("text".to_owned(), Arc::new(words.collect::<StringArray>())));
    let reason = |text: &&TextCell| {
        let lost = old.model.dimensions().iter().enumerate();
        let mut lost = lost.filter(|(at, _)| model.dimensions()[*at].get(text.elements[*at]).is_none());
        let first = lost.next().map(|(at, dimension)| (dimension.name(), name(dimension, at, text)));
        first.map_or_else(String::new, |(dimension, name)| format!("{dimension}: '{name}' was removed"))
    };
    with_reasons(columns, texts.iter().map(reason).collect())
}

/// A batch of columns with distinct names, and of reasons.
fn with_reasons(mut columns: Vec<(String, ArrayRef)>, reasons: Vec<String>) -> Result<RecordBatch, ArrowError> {
    columns.push(("reason".to_owned(), Arc::new(StringArray::from(reasons))));
    let mut names: Vec<String> = Vec::new();
    for (name, _) in &columns {
        let mut free = name.clone();
        while names.iter().any(|taken| taken.eq_ignore_ascii_case(&free)) {
            free.push('_');
        }
        names.push(free);
    }
    let data_type = |array: &ArrayRef| -> DataType { array.data_type().clone() };
    let fields = names.iter().zip(&columns).map(|(name, (_, array))| Field::new(name, data_type(array), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    RecordBatch::try_new(schema, columns.into_iter().map(|(_, array)| array).collect())
}
