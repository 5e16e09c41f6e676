//! Parts of strings as columns of a table.
//!
//! A string column past the dictionary limit has no codes, and what needs them, such as GROUP BY, cannot have it. Where
//! all that a fragment asks of it is a function that gives strings, as `substr(c_phone, 1, 2)`, the function's results
//! are a column of their own, made as the column is read, with codes if they are few.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::FieldRef;
use parking_lot::Mutex;
use warpcube_column::{Residency, is_string};
use warpcube_engine::{BindingCache, DictionaryFunction};

use super::Lowered;
use super::strings::StringExpression;

/// A column that is made of one of its table's: a function of its strings.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// Its number among the table's columns, behind those of the schema.
    pub(crate) number: usize,
    /// The column that it is made of.
    pub(crate) column: usize,
    /// Its name and type.
    pub(crate) field: FieldRef,
    function: Arc<dyn DictionaryFunction>,
}

impl Part {
    /// The part of some of the column's strings. Strings of a dictionary are computed once.
    ///
    /// # Errors
    /// What the function cannot compute.
    pub(crate) fn of(&self, strings: &ArrayRef) -> Result<ArrayRef, String> {
        match strings.as_any_dictionary_opt() {
            Some(coded) => Ok(coded.with_values(self.function.apply(coded.values())?)),
            None => self.function.apply(strings),
        }
    }
}

/// A column that may have a part in its place.
#[derive(Debug)]
struct Place {
    table: usize,
    /// The column's position in the fragment's table, and in the table, and its name.
    position: usize,
    column: usize,
    name: String,
    function: Arc<dyn DictionaryFunction>,
    field: FieldRef,
}

/// What may be in place of a fragment's columns of strings, and the fragment with that, once it was needed.
#[derive(Debug, Default)]
pub(crate) struct PartsCache {
    places: OnceLock<Vec<Place>>,
    /// The fragment with parts in these places.
    made: Mutex<Option<(Vec<usize>, Arc<Lowered>)>>,
}

impl Lowered {
    /// The fragment with parts in place of those columns of strings that are known to be past the dictionary limit,
    /// where that makes a difference.
    pub(crate) fn over_parts(&self, residency: &Residency, limit: usize) -> Option<Arc<Lowered>> {
        let places = self.parts.places.get_or_init(|| self.places());
        let is_past_limit = |number: &usize| {
            let Place { table, column, name, .. } = &places[*number];
            let info = &self.tables[*table];
            residency.is_past_limit(&info.key, &info.version, (*column, name), limit)
        };
        let needed: Vec<usize> = (0..places.len()).filter(is_past_limit).collect();
        if needed.is_empty() {
            return None;
        }
        let mut made = self.parts.made.lock();
        if let Some((_, lowered)) = made.as_ref().filter(|(of, _)| *of == needed) {
            return Some(lowered.clone());
        }
        let lowered = Arc::new(self.with_parts(residency, needed.iter().map(|number| &places[*number])));
        *made = Some((needed, lowered.clone()));
        Some(lowered)
    }

    fn places(&self) -> Vec<Place> {
        let mut places = Vec::new();
        for (table, (info, columns)) in self.tables.iter().zip(&self.fragment.tables).enumerate() {
            let schema = info.schema();
            for (position, column) in columns.columns.iter().enumerate() {
                // Parts have no parts.
                if info.part(*column).is_some() || !is_string(schema.field(*column).data_type()) {
                    continue;
                }
                let name = schema.field(*column).name();
                let field_of = |function: &Arc<dyn DictionaryFunction>| {
                    let function: &dyn Any = function.as_ref();
                    let field = function.downcast_ref::<StringExpression>()?.as_column()?;
                    schema.field_with_name(field.name()).is_err().then_some(field)
                };
                let parts = self.fragment.parts(table, position).into_iter();
                let part = parts.filter_map(|function| field_of(&function).map(|field| (function, field))).next();
                let place =
                    |(function, field)| Place { table, position, column: *column, name: name.clone(), function, field };
                places.extend(part.map(place));
            }
        }
        places
    }

    fn with_parts<'a>(&self, residency: &Residency, places: impl Iterator<Item = &'a Place>) -> Lowered {
        let (mut fragment, mut tables) = (self.fragment.clone(), self.tables.clone());
        for Place { table, position, column, function, field, .. } in places {
            let info = &mut tables[*table];
            let columns = info.provider.schema().fields().len();
            let number = residency.number(&info.key, columns, &format!("{column} {}", field.name()));
            fragment = fragment.with_part(*table, *position, function.as_ref(), number);
            let part = Part { number, column: *column, field: field.clone(), function: function.clone() };
            *info = Arc::new(info.with_part(part));
        }
        Lowered {
            fragment,
            tables,
            groups_max: self.groups_max,
            finish: self.finish.clone(),
            arguments: self.arguments.clone(),
            what: self.what.clone(),
            valued: Mutex::default(),
            binding: BindingCache::default(),
            parts: PartsCache::default(),
            identity: self.identity.clone(),
            join: self.join.clone(),
        }
    }
}
