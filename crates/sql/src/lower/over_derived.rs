//! Fragments with derived columns in place of columns of strings that have no codes.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use arrow::datatypes::FieldRef;
use parking_lot::Mutex;
use warpcube_column::{Residency, is_string};
use warpcube_engine::DictionaryFunction;

use super::Lowered;
use super::derived::DerivedColumn;
use super::strings::StringExpression;

/// A column of a fragment that may have a derived column in its place.
#[derive(Debug)]
struct Place {
    table: usize,
    /// The column's position among those of the fragment's table, its number in the table, and its name.
    position: usize,
    column: usize,
    name: String,
    /// Name and type of the derived column, and its function.
    field: FieldRef,
    function: Arc<dyn DictionaryFunction>,
}

/// Which columns of a fragment may have derived ones in their place, and the fragment with some of these.
#[derive(Debug, Default)]
pub(crate) struct DerivedCache {
    places: OnceLock<Vec<Place>>,
    /// The fragment with derived columns in these places.
    made: Mutex<Option<(Vec<usize>, Arc<Lowered>)>>,
}

impl Lowered {
    /// The fragment with derived columns in place of those columns of strings that are known to be past the dictionary
    /// limit, where that makes a difference.
    pub(crate) fn over_derived(&self, residency: &Residency, limit: usize) -> Option<Arc<Lowered>> {
        let needed = self.derived_needed(residency, limit);
        if needed.is_empty() {
            return None;
        }
        let mut made = self.derived.made.lock();
        if let Some((_, lowered)) = made.as_ref().filter(|(of, _)| *of == needed) {
            return Some(lowered.clone());
        }
        let lowered = Arc::new(self.with_derived(&needed));
        *made = Some((needed, lowered.clone()));
        Some(lowered)
    }

    /// What to run after `tried`, of each of which a column was refused: the fragment over what is known to need
    /// derived columns by now, as a column may have just proved to be past the dictionary limit.
    pub(crate) fn next_try(
        self: &Arc<Lowered>,
        tried: &[Arc<Lowered>],
        residency: &Residency,
        limit: usize,
    ) -> Option<Arc<Lowered>> {
        let next = self.over_derived(residency, limit).unwrap_or_else(|| self.clone());
        (!tried.iter().any(|tried| Arc::ptr_eq(tried, &next))).then_some(next)
    }

    /// Positions of the places whose columns are known to be past the limit.
    fn derived_needed(&self, residency: &Residency, limit: usize) -> Vec<usize> {
        let places = self.derived.places.get_or_init(|| self.places());
        let is_needed = |number: &usize| {
            let Place { table, column, name, .. } = &places[*number];
            let info = &self.tables[*table];
            residency.has_no_codes(&info.key, &info.version, (*column, name), limit)
        };
        (0..places.len()).filter(is_needed).collect()
    }

    fn places(&self) -> Vec<Place> {
        let mut places = Vec::new();
        for (table, (info, columns)) in self.tables.iter().zip(&self.fragment.tables).enumerate() {
            let schema = info.schema();
            for (position, column) in columns.columns.iter().enumerate() {
                // Nothing is derived from derived columns.
                if info.derived(*column).is_some() || !is_string(schema.field(*column).data_type()) {
                    continue;
                }
                let field_of = |function: &Arc<dyn DictionaryFunction>| {
                    let function: &dyn Any = function.as_ref();
                    let field = function.downcast_ref::<StringExpression>()?.as_column()?;
                    schema.field_with_name(field.name()).is_err().then_some(field)
                };
                let functions = self.fragment.derivable(table, position).into_iter();
                let derived = functions.filter_map(|function| field_of(&function).map(|field| (field, function)));
                let (column, name) = (*column, schema.field(*column).name().clone());
                let place = |(field, function)| Place { table, position, column, name, field, function };
                places.extend({ derived }.next().map(place));
            }
        }
        places
    }

    fn with_derived(&self, needed: &[usize]) -> Lowered {
        let places = self.derived.places.get_or_init(|| self.places());
        let (mut fragment, mut tables) = (self.fragment.clone(), self.tables.clone());
        for Place { table, position, column, field, function, .. } in needed.iter().map(|number| &places[*number]) {
            let info = &mut tables[*table];
            let of = (info.key.as_str(), info.provider.schema().fields().len());
            let derived = DerivedColumn::new(of, *column, field.clone(), function.clone());
            fragment = fragment.with_derived(*table, *position, function.as_ref(), derived.number);
            *info = Arc::new(info.with_derived(derived));
        }
        Lowered { tables, ..self.with_fragment(fragment) }
    }
}
