//! Derived columns: functions of strings as columns of a table.
//!
//! A string column past the dictionary limit has no codes, and what needs them, such as GROUP BY, cannot have it. Where
//! all that a fragment asks of it is a function that gives strings, as `substr(c_phone, 1, 2)`, the function's results
//! are a column of their own, computed as the column is read, with codes if they are few.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::FieldRef;
use parking_lot::Mutex;
use warpcube_engine::DictionaryFunction;

use crate::error::panic_text;

/// The derived columns of a table in the order of their numbers: the column that each is derived from, and its name.
type Numbered = Vec<(usize, String)>;

/// The derived columns of each table, by the table's key. Fragments keep the numbers across devices.
static NUMBERED: LazyLock<Mutex<HashMap<String, Numbered>>> = LazyLock::new(Mutex::default);

/// A column that is a function of one of its table's.
#[derive(Debug, Clone)]
pub(crate) struct DerivedColumn {
    /// Its number among the table's columns, behind those of the schema; the same in every statement.
    pub(crate) number: usize,
    /// The column that it is derived from.
    pub(crate) column: usize,
    /// Its name and type.
    pub(crate) field: FieldRef,
    function: Arc<dyn DictionaryFunction>,
}

impl DerivedColumn {
    /// A column of the table with this key, which has so many `columns` of its own.
    pub(super) fn new(
        (key, columns): (&str, usize),
        column: usize,
        field: FieldRef,
        function: Arc<dyn DictionaryFunction>,
    ) -> DerivedColumn {
        let mut numbered = NUMBERED.lock();
        let known = numbered.entry(key.to_string()).or_default();
        let is_same = |(of, name): &(usize, String)| *of == column && name == field.name();
        let position = known.iter().position(is_same).unwrap_or_else(|| {
            known.push((column, field.name().clone()));
            known.len() - 1
        });
        DerivedColumn { number: columns + position, column, field, function }
    }

    /// The function of some of the column's strings. Strings of a dictionary are computed once.
    ///
    /// # Errors
    /// What the function cannot compute.
    pub(crate) fn of(&self, strings: &ArrayRef) -> Result<ArrayRef, String> {
        let compute = || match strings.as_any_dictionary_opt() {
            Some(coded) => Ok(coded.with_values(self.function.apply(coded.values())?)),
            None => self.function.apply(strings),
        };
        catch_unwind(AssertUnwindSafe(compute)).unwrap_or_else(|panic| Err(panic_text(panic.as_ref())))
    }
}
