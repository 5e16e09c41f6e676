//! Dictionaries of string columns.
//!
//! While a column is loaded, strings get codes in order of arrival from one [`DictionaryBuilder`] shared by all
//! threads; each thread remembers what it has seen, so the shared map is asked once a distinct string and thread. When
//! the column closes the dictionary is sorted and the codes on the device are remapped: codes then order as strings do.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, StringArray};
use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::error::{ColumnError, Result};

/// The distinct strings of a column in ascending byte order; a code is a position here.
#[derive(Debug, Clone)]
pub struct Dictionary {
    values: Arc<StringArray>,
    bytes: u64,
}

impl Dictionary {
    /// A dictionary of strings that are already distinct and ascending.
    pub fn from_sorted(values: StringArray) -> Dictionary {
        let bytes = values.value_data().len() as u64;
        Dictionary { values: Arc::new(values), bytes }
    }

    /// Number of strings.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there is no string.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The strings.
    pub fn values(&self) -> &StringArray {
        &self.values
    }

    /// The strings as an Arrow array.
    pub fn array(&self) -> ArrayRef {
        self.values.clone()
    }

    /// The string of a code.
    pub fn value(&self, code: u32) -> &str {
        self.values.value(code as usize)
    }

    /// Bytes of text.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Collects the distinct strings of a column in order of arrival.
#[derive(Debug)]
pub struct DictionaryBuilder {
    column: String,
    limit: usize,
    codes: Mutex<HashMap<Arc<str>, u32>>,
}

/// One thread's view of a [`DictionaryBuilder`].
#[derive(Debug)]
pub struct LocalDictionary {
    shared: Arc<DictionaryBuilder>,
    seen: HashMap<Arc<str>, u32>,
    last: Option<(Arc<str>, u32)>,
}

impl DictionaryBuilder {
    /// An empty dictionary of at most `limit` strings; `column` names it in errors.
    pub fn new(column: &str, limit: usize) -> Arc<DictionaryBuilder> {
        Arc::new(DictionaryBuilder { column: column.to_string(), limit, codes: Mutex::default() })
    }

    /// A view for one thread.
    pub fn local(self: &Arc<Self>) -> LocalDictionary {
        LocalDictionary { shared: self.clone(), seen: HashMap::new(), last: None }
    }

    fn code(&self, text: &str) -> Result<(Arc<str>, u32)> {
        let mut codes = self.codes.lock();
        if let Some((text, code)) = codes.get_key_value(text) {
            return Ok((text.clone(), *code));
        }
        if codes.len() >= self.limit {
            let reason = format!(
                "it has more than {} distinct strings (warpcube.dictionary_limit raises the limit)",
                self.limit
            );
            return Err(ColumnError::Unsupported { column: self.column.clone(), reason });
        }
        let (text, code) = (Arc::<str>::from(text), codes.len() as u32);
        codes.insert(text.clone(), code);
        Ok((text, code))
    }

    /// The sorted dictionary, and for each code of arrival its final code (`None` if nothing changes).
    pub fn finish(&self) -> (Dictionary, Option<Vec<u32>>) {
        let codes = self.codes.lock();
        let mut order: Vec<(&Arc<str>, u32)> = codes.iter().map(|(text, code)| (text, *code)).collect();
        order.sort_unstable();
        let mut remap = vec![0u32; order.len()];
        for (position, (_, arrival)) in order.iter().enumerate() {
            remap[*arrival as usize] = position as u32;
        }
        let in_order = remap.iter().enumerate().all(|(arrival, position)| arrival == *position as usize);
        let values = StringArray::from_iter_values(order.iter().map(|(text, _)| text.as_ref()));
        (Dictionary::from_sorted(values), (!in_order).then_some(remap))
    }
}

impl LocalDictionary {
    /// The code of arrival of a string.
    ///
    /// # Errors
    /// [`ColumnError::Unsupported`] once the column has more distinct strings than the limit.
    pub fn code(&mut self, text: &str) -> Result<u32> {
        if let Some((last, code)) = &self.last
            && last.as_ref() == text
        {
            return Ok(*code);
        }
        let entry = match self.seen.get_key_value(text) {
            Some((text, code)) => (text.clone(), *code),
            None => {
                let entry = self.shared.code(text)?;
                self.seen.insert(entry.0.clone(), entry.1);
                entry
            }
        };
        let code = entry.1;
        self.last = Some(entry);
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_arrive_then_sort() {
        let builder = DictionaryBuilder::new("c", 3);
        let (mut one, mut two) = (builder.local(), builder.local());
        assert_eq!((one.code("b").unwrap(), two.code("a").unwrap(), one.code("a").unwrap()), (0, 1, 1));
        two.code("c").unwrap();
        assert!(one.code("d").unwrap_err().is_unsupported());
        let (dictionary, remap) = builder.finish();
        assert_eq!(dictionary.values().iter().flatten().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(remap, Some(vec![1, 0, 2]));
    }

    #[test]
    fn strings_that_arrive_in_order_need_no_remap() {
        let builder = DictionaryBuilder::new("c", 10);
        let mut local = builder.local();
        for text in ["", "a", "ab"] {
            local.code(text).unwrap();
        }
        assert_eq!(builder.finish().1, None);
    }
}
