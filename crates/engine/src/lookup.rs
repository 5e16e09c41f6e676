//! Functions of a string column as tables indexed by code.
//!
//! A table has one entry for each string of the dictionary and one more, the last, for NULL. Tables of large
//! dictionaries are computed by several threads, and the last ones are kept: binding asks for each several times.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray};
use arrow::compute::{CastOptions, cast, cast_with_options, concat};
use arrow::datatypes::{DataType, Decimal128Type, Int64Type};
use parking_lot::Mutex;
use warpcube_column::{Dictionary, is_string};

use crate::error::{EngineError, Result, unsupported};
use crate::ir::{DictionaryFunction, Ty};

/// Strings from which on a thread more is worth its start.
const STRINGS_PER_THREAD: usize = 64 << 10;
/// Most threads that compute one table.
const THREADS_MAX: usize = 16;
/// Bytes of tables that are kept.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// Results of a function for every code, then for NULL.
#[derive(Debug)]
pub(crate) struct LookupTable {
    values: Vec<u8>,
    c_type: &'static str,
    valid: Vec<u8>,
    range: Option<(i128, i128)>,
    dictionary: Option<Arc<Dictionary>>,
    is_truth: bool,
    true_run: Option<(u32, u32)>,
    true_share: f64,
}

impl LookupTable {
    /// Entries, that of NULL included.
    pub(crate) fn len(&self) -> usize {
        self.valid.len()
    }

    /// Values as bytes of [`LookupTable::c_type`].
    pub(crate) fn values(&self) -> &[u8] {
        &self.values
    }

    /// C type of an entry.
    pub(crate) fn c_type(&self) -> &'static str {
        self.c_type
    }

    /// A byte an entry, zero where the result is NULL; `None` if no result is.
    pub(crate) fn validity(&self) -> Option<&[u8]> {
        self.valid.contains(&0).then_some(&self.valid[..])
    }

    /// Whether the result is NULL for NULL and for nothing else.
    pub(crate) fn null_in_null_out(&self) -> bool {
        self.valid.split_last().is_some_and(|(null, others)| *null == 0 && others.iter().all(|valid| *valid == 1))
    }

    /// First code and number of codes where a truth value is true, if those are neighbours.
    pub(crate) fn true_run(&self) -> Option<(u32, u32)> {
        self.true_run
    }

    /// A bit a code, set where a truth value is true, if there are at most 64 codes.
    pub(crate) fn true_bits(&self) -> Option<u64> {
        let (_, strings) = self.values.split_last().filter(|_| self.is_truth && self.len() <= 65)?;
        Some(strings.iter().enumerate().fold(0, |bits, (code, value)| bits | u64::from(*value) << code))
    }

    /// Share of the strings for which a truth value is true.
    pub(crate) fn true_share(&self) -> f64 {
        self.true_share
    }

    /// Bounds of integer results.
    pub(crate) fn range(&self) -> Option<(i128, i128)> {
        self.range
    }

    /// Strings behind the results' codes.
    pub(crate) fn dictionary(&self) -> Option<Arc<Dictionary>> {
        self.dictionary.clone()
    }
}

/// A table that is kept, for the very dictionary and function it was made of: what a function gives may depend on more
/// than its text tells, such as the time zone.
struct Kept {
    dictionary: Weak<Dictionary>,
    function: Arc<dyn DictionaryFunction>,
    ty: Ty,
    table: Arc<LookupTable>,
}

/// The tables computed last, the newest in front.
static KEPT: Mutex<VecDeque<Kept>> = Mutex::new(VecDeque::new());

/// Applies a function to all strings of a dictionary.
pub(crate) fn evaluate(
    dictionary: &Arc<Dictionary>,
    function: &Arc<dyn DictionaryFunction>,
    ty: Ty,
) -> Result<Arc<LookupTable>> {
    let is_same = |kept: &Kept| {
        std::ptr::eq(kept.dictionary.as_ptr(), Arc::as_ptr(dictionary))
            && std::ptr::addr_eq(Arc::as_ptr(&kept.function), Arc::as_ptr(function))
            && kept.ty == ty
    };
    if let Some(kept) = KEPT.lock().iter().find(|kept| is_same(kept)) {
        return Ok(kept.table.clone());
    }
    let table = Arc::new(compute(dictionary, function.as_ref(), ty)?);
    let mut kept = KEPT.lock();
    kept.retain(|kept| kept.dictionary.strong_count() > 0);
    kept.push_front(Kept {
        dictionary: Arc::downgrade(dictionary),
        function: function.clone(),
        ty,
        table: table.clone(),
    });
    let bytes = |kept: &Kept| kept.table.values.len() + kept.table.valid.len();
    while kept.len() > 1 && kept.iter().map(bytes).sum::<usize>() > KEPT_BYTES_MAX {
        kept.pop_back();
    }
    Ok(table)
}

/// The results for all strings, by several threads where there are many.
fn apply(function: &dyn DictionaryFunction, strings: &ArrayRef) -> Result<ArrayRef> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = strings.len().div_ceil(STRINGS_PER_THREAD).clamp(1, cores.min(THREADS_MAX));
    let rows = strings.len().div_ceil(threads);
    let one = |part: usize| {
        let first = (part * rows).min(strings.len());
        let slice = strings.slice(first, rows.min(strings.len() - first));
        let results = function.apply(&slice).map_err(EngineError::Unsupported)?;
        match results.len() == slice.len() {
            true => Ok(results),
            false => Err(EngineError::Malformed(format!("{} gave {} results", function.describe(), results.len()))),
        }
    };
    if threads == 1 {
        return one(0);
    }
    let parts: Vec<ArrayRef> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|part| scope.spawn(move || one(part))).collect();
        running.into_iter().map(|thread| thread.join().expect("a function does not panic")).collect::<Result<_>>()
    })?;
    let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
    concat(&parts).map_err(refused)
}

fn compute(dictionary: &Dictionary, function: &dyn DictionaryFunction, ty: Ty) -> Result<LookupTable> {
    let null: ArrayRef = Arc::new(StringArray::from(vec![None::<&str>]));
    let strings = concat(&[&dictionary.array(), &null]).map_err(refused)?;
    let results = apply(function, &strings)?;
    let nulls = results.logical_nulls();
    let valid: Vec<u8> =
        (0..results.len()).map(|row| u8::from(nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)))).collect();
    let mut table = LookupTable {
        values: Vec::new(),
        c_type: "int64_t",
        valid,
        range: None,
        dictionary: None,
        is_truth: false,
        true_run: None,
        true_share: 0.0,
    };
    match results.data_type() {
        DataType::Boolean => truth_values(&mut table, results.as_boolean()),
        DataType::Float32 | DataType::Float64 => {
            let results = cast(&results, &DataType::Float64).map_err(refused)?;
            let numbers = results.as_primitive::<arrow::datatypes::Float64Type>();
            table.c_type = "double";
            table.values = numbers.iter().flat_map(|number| number.unwrap_or_default().to_le_bytes()).collect();
        }
        other if is_string(other) => strings_of(&mut table, &results)?,
        _ => integers(&mut table, &results, ty)?,
    }
    Ok(table)
}

fn refused(error: arrow::error::ArrowError) -> EngineError {
    EngineError::Unsupported(error.to_string())
}

fn truth_values(table: &mut LookupTable, results: &BooleanArray) {
    table.c_type = "uint8_t";
    table.range = Some((0, 1));
    table.is_truth = true;
    table.values = results.iter().map(|value| u8::from(value == Some(true))).collect();
    let strings = &table.values[..table.values.len() - 1];
    let count = strings.iter().filter(|value| **value == 1).count();
    let first = strings.iter().position(|value| *value == 1).unwrap_or(0);
    if strings[first..].iter().take(count).all(|value| *value == 1) {
        table.true_run = Some((first as u32, count as u32));
    }
    table.true_share = count as f64 / strings.len().max(1) as f64;
}

fn strings_of(table: &mut LookupTable, results: &ArrayRef) -> Result<()> {
    let results = cast(results, &DataType::Utf8).map_err(refused)?;
    let (dictionary, codes) = Dictionary::of(results.as_string::<i32>())?;
    table.c_type = "uint32_t";
    table.values = codes.into_iter().flat_map(u32::to_le_bytes).collect();
    table.range = Some((0, dictionary.len().max(1) as i128 - 1));
    table.dictionary = Some(Arc::new(dictionary));
    Ok(())
}

fn integers(table: &mut LookupTable, results: &ArrayRef, ty: Ty) -> Result<()> {
    let numbers: Vec<Option<i64>> = if let DataType::Decimal128(_, _) = results.data_type() {
        let wide = results.as_primitive::<Decimal128Type>();
        let narrow = |value: Option<i128>| value.map(i64::try_from).transpose();
        match wide.iter().map(narrow).collect() {
            Ok(numbers) => numbers,
            Err(_) => return unsupported("a string function whose decimal results need more than 64 bits"),
        }
    } else {
        let exact = CastOptions { safe: false, ..CastOptions::default() };
        let narrow = cast_with_options(results, &DataType::Int64, &exact).map_err(refused)?;
        narrow.as_primitive::<Int64Type>().iter().collect()
    };
    let bounds = numbers.iter().flatten();
    table.range = bounds.clone().min().zip(bounds.max()).map(|(low, high)| (i128::from(*low), i128::from(*high)));
    table.range = table.range.or_else(|| ty.bounds().map(|_| (0, 0)));
    table.values = numbers.into_iter().flat_map(|number| number.unwrap_or_default().to_le_bytes()).collect();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// The length of a string, counting the values it was applied to.
    #[derive(Debug, Default)]
    struct Length(AtomicUsize);

    impl DictionaryFunction for Length {
        fn apply(&self, strings: &ArrayRef) -> Result<ArrayRef, String> {
            self.0.fetch_add(strings.len(), Ordering::Relaxed);
            arrow::compute::kernels::length::length(strings).map_err(|error| error.to_string())
        }

        fn describe(&self) -> String {
            "length".into()
        }
    }

    #[test]
    fn several_threads_give_what_one_does_and_only_once() {
        let count = 3 * STRINGS_PER_THREAD + 7;
        let strings: Vec<String> = (0..count).map(|number| format!("{number:07}{}", "x".repeat(number % 50))).collect();
        let dictionary = Arc::new(Dictionary::from_sorted(StringArray::from(strings.clone())));
        let counter = Arc::new(Length::default());
        let function: Arc<dyn DictionaryFunction> = counter.clone();
        let table = evaluate(&dictionary, &function, Ty::I32).unwrap();
        let lengths: Vec<i64> =
            table.values().chunks(8).map(|bytes| i64::from_le_bytes(bytes.try_into().unwrap())).collect();
        assert_eq!(lengths.len(), count + 1);
        assert!(strings.iter().zip(&lengths).all(|(string, length)| string.len() as i64 == *length));
        assert!(table.null_in_null_out() && table.range() == Some((7, 56)));
        assert!(Arc::ptr_eq(&table, &evaluate(&dictionary, &function, Ty::I32).unwrap()));
        assert_eq!(counter.0.load(Ordering::Relaxed), count + 1);
        // Another function of the same name is another function, and so is one of another dictionary.
        let other: Arc<dyn DictionaryFunction> = Arc::new(Length::default());
        assert!(!Arc::ptr_eq(&table, &evaluate(&dictionary, &other, Ty::I32).unwrap()));
        let same = Arc::new(Dictionary::from_sorted(StringArray::from(strings)));
        assert!(!Arc::ptr_eq(&table, &evaluate(&same, &function, Ty::I32).unwrap()));
    }
}
