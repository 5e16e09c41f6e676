//! Functions of a string column as tables indexed by code.
//!
//! A table has one entry for each string of the dictionary and one more, the last, for NULL. Tables of large
//! dictionaries are computed by several threads, and the last ones are cached, for whatever statement asks for the same
//! function. Two ways make new constants cheap over large dictionaries. Strings for which a comparison or a LIKE of a
//! beginning holds are neighbours there, and are searched for. A function of what another function gives, as
//! `substr(s, 1, 2) IN ('13', '31')`, is computed for that one's different results alone, whose table is cached too.

use std::collections::{HashSet, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Weak};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray, UInt32Array};
use arrow::compute::{CastOptions, cast, cast_with_options, concat, take};
use arrow::datatypes::{DataType, Decimal128Type, Int64Type};
use parking_lot::Mutex;
use warpcube_column::{Dictionary, Storage, cores, is_string};

use crate::error::{EngineError, Result, unsupported};
use crate::ir::{BinaryOp, DictionaryFunction, Expr, Ty};

/// Strings from which on a thread more is worth its start.
const STRINGS_PER_THREAD: usize = 64 << 10;
/// Most threads that compute one table.
const THREADS_MAX: usize = 16;
/// Bytes of cached tables.
const CACHED_BYTES_MAX: usize = 64 << 20;
/// Cached tables at most: each look-up passes over them.
const CACHED_MAX: usize = 256;
/// Strings of a sample that tells whether a function gives few different strings, and most that are few.
const SAMPLE: usize = 1024;
const FEW_RESULTS: usize = SAMPLE / 4;

/// Results of a function for every code, then for NULL.
#[derive(Debug, Clone)]
pub(crate) struct LookupTable {
    /// Strings of the dictionary.
    strings: usize,
    /// The codes for which a truth value is true, where they are neighbours for any constants: there are no values.
    run: Option<Range<usize>>,
    values: Vec<u8>,
    /// How an entry lies.
    storage: Storage,
    /// Whether the result for NULL is NULL.
    null_of_null: bool,
    /// A byte an entry, if a result for a string is NULL.
    valid: Option<Vec<u8>>,
    range: Option<(i128, i128)>,
    dictionary: Option<Arc<Dictionary>>,
    is_truth: bool,
    true_share: f64,
}

impl LookupTable {
    /// A table of so many strings, without entries.
    fn new(strings: usize, null_of_null: bool) -> LookupTable {
        LookupTable {
            strings,
            run: None,
            values: Vec::new(),
            storage: Storage::I64,
            null_of_null,
            valid: None,
            range: None,
            dictionary: None,
            is_truth: false,
            true_share: 0.0,
        }
    }

    /// Entries, that of NULL included.
    pub(crate) fn len(&self) -> usize {
        self.strings + 1
    }

    /// Entries, one behind the other; none where the table is a run.
    pub(crate) fn values(&self) -> &[u8] {
        &self.values
    }

    /// How an entry lies.
    pub(crate) fn storage(&self) -> Storage {
        self.storage
    }

    /// A byte an entry, zero where the result is NULL; `None` if all results for strings are valid.
    pub(crate) fn validity(&self) -> Option<&[u8]> {
        self.valid.as_deref()
    }

    /// Whether the result is NULL for NULL and for nothing else.
    pub(crate) fn null_in_null_out(&self) -> bool {
        self.null_of_null && self.valid.is_none()
    }

    /// The codes for which a truth value is true, if those are neighbours whatever the function's constants are.
    pub(crate) fn true_run(&self) -> Option<Range<usize>> {
        self.run.clone()
    }

    /// A bit a code, set where a truth value is true, if there are at most 64 codes.
    pub(crate) fn true_bits(&self) -> Option<u64> {
        if !self.is_truth || self.strings > 64 {
            return None;
        }
        let is_true = |code: usize| self.run.as_ref().map_or_else(|| self.values[code] == 1, |run| run.contains(&code));
        Some((0..self.strings).fold(0, |bits, code| bits | u64::from(is_true(code)) << code))
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

/// A cached table, for the very dictionary that it was made of.
struct CachedTable {
    dictionary: Weak<Dictionary>,
    function: Arc<dyn DictionaryFunction>,
    ty: Ty,
    table: Arc<LookupTable>,
}

/// The tables computed last, the newest in front.
static CACHE: Mutex<VecDeque<CachedTable>> = Mutex::new(VecDeque::new());

/// The table of a function, if it is cached.
fn cached(dictionary: &Arc<Dictionary>, function: &Arc<dyn DictionaryFunction>, ty: Ty) -> Option<Arc<LookupTable>> {
    let is_same = |cached: &&CachedTable| {
        std::ptr::eq(cached.dictionary.as_ptr(), Arc::as_ptr(dictionary))
            && cached.ty == ty
            && (std::ptr::addr_eq(Arc::as_ptr(&cached.function), Arc::as_ptr(function))
                || cached.function.is_same(function.as_ref()))
    };
    CACHE.lock().iter().find(is_same).map(|cached| cached.table.clone())
}

/// Applies a function to all strings of a dictionary.
pub(crate) fn evaluate(
    dictionary: &Arc<Dictionary>,
    function: &Arc<dyn DictionaryFunction>,
    ty: Ty,
) -> Result<Arc<LookupTable>> {
    if let Some(table) = cached(dictionary, function, ty) {
        return Ok(table);
    }
    let table = Arc::new(compute(dictionary, function, ty)?);
    let mut cache = CACHE.lock();
    cache.retain(|cached| cached.dictionary.strong_count() > 0);
    cache.push_front(CachedTable {
        dictionary: Arc::downgrade(dictionary),
        function: function.clone(),
        ty,
        table: table.clone(),
    });
    let bytes = |cached: &CachedTable| cached.table.values.len() + cached.table.valid.as_ref().map_or(0, Vec::len);
    while cache.len() > CACHED_MAX || cache.len() > 1 && cache.iter().map(bytes).sum::<usize>() > CACHED_BYTES_MAX {
        cache.pop_back();
    }
    Ok(table)
}

/// The positions among sorted strings for which tests hold, if those are neighbours whatever the tests' constants are:
/// those of a test, or of two.
fn run(tests: &Expr, strings: &StringArray) -> Option<Range<usize>> {
    match tests {
        Expr::Match(_, test) => test.run(strings),
        Expr::Binary(BinaryOp::And, left, right) => {
            let (one, other) = (run(left, strings)?, run(right, strings)?);
            let start = one.start.max(other.start);
            Some(start..one.end.min(other.end).max(start))
        }
        _ => None,
    }
}

fn compute(dictionary: &Arc<Dictionary>, function: &Arc<dyn DictionaryFunction>, ty: Ty) -> Result<LookupTable> {
    let run = function.over_bytes().and_then(|tests| run(&tests, dictionary.values()));
    if let Some(run) = run.filter(|_| ty == Ty::Bool) {
        return Ok(run_of(run, dictionary.len()));
    }
    if dictionary.len() > STRINGS_PER_THREAD
        && let Some([first, second]) = function.steps()
        && gives_few(dictionary, &first)?
    {
        let first = evaluate(dictionary, &first, Ty::U32)?;
        let results =
            first.dictionary().ok_or_else(|| EngineError::Malformed("a step that gives no strings".into()))?;
        let second = evaluate(&results, &second, ty)?;
        return Ok(composed(&first, &second));
    }
    let results = |strings: &ArrayRef| {
        let results = function.apply(strings).map_err(EngineError::Unsupported)?;
        match results.len() == strings.len() {
            true => Ok(results),
            false => Err(EngineError::Malformed(format!("{} gave {} results", function.describe(), results.len()))),
        }
    };
    let of_null = results(&(Arc::new(StringArray::from(vec![None::<&str>])) as ArrayRef))?;
    let mut table = LookupTable::new(dictionary.len(), of_null.is_null(0));
    if let DataType::Boolean = of_null.data_type() {
        let parts = by_threads(dictionary, |strings| Ok(truth_values(results(strings)?.as_boolean())))?;
        join_truth_values(&mut table, parts, of_null.as_boolean());
        return Ok(table);
    }
    let mut parts = by_threads(dictionary, results)?;
    parts.push(of_null);
    let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
    let results = concat(&parts).map_err(refused)?;
    let of_strings = results.slice(0, table.strings);
    if let Some(nulls) = of_strings.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
        let valid = nulls.iter().chain([!table.null_of_null]).map(u8::from);
        table.valid = Some(valid.collect());
    }
    match results.data_type() {
        DataType::Float32 | DataType::Float64 => {
            let results = cast(&results, &DataType::Float64).map_err(refused)?;
            let numbers = results.as_primitive::<arrow::datatypes::Float64Type>();
            table.storage = Storage::F64;
            table.values = numbers.iter().flat_map(|number| number.unwrap_or_default().to_le_bytes()).collect();
        }
        other if is_string(other) => strings_of(&mut table, &results)?,
        _ => integers(&mut table, &results, ty)?,
    }
    Ok(table)
}

/// What `work` makes of all strings of a dictionary, part by part, by several threads where there are many.
fn by_threads<T: Send>(dictionary: &Dictionary, work: impl Fn(&ArrayRef) -> Result<T> + Send + Sync) -> Result<Vec<T>> {
    let strings = dictionary.array();
    let threads = strings.len().div_ceil(STRINGS_PER_THREAD).clamp(1, cores().min(THREADS_MAX));
    let rows = strings.len().div_ceil(threads);
    let one = |part: usize| {
        let first = (part * rows).min(strings.len());
        work(&strings.slice(first, rows.min(strings.len() - first)))
    };
    if threads == 1 {
        return Ok(vec![one(0)?]);
    }
    std::thread::scope(|scope| {
        let one = &one;
        let running: Vec<_> = (0..threads).map(|part| scope.spawn(move || one(part))).collect();
        running.into_iter().map(|thread| thread.join().expect("a function does not panic")).collect()
    })
}

fn refused(error: arrow::error::ArrowError) -> EngineError {
    EngineError::Unsupported(error.to_string())
}

/// Whether a sample of the strings has few different results.
fn gives_few(dictionary: &Arc<Dictionary>, function: &Arc<dyn DictionaryFunction>) -> Result<bool> {
    if cached(dictionary, function, Ty::U32).is_some() {
        return Ok(true);
    }
    let positions = (0..SAMPLE).map(|at| (at * dictionary.len() / SAMPLE) as u32);
    let sample = take(dictionary.values(), &UInt32Array::from_iter_values(positions), None).map_err(refused)?;
    let results = function.apply(&sample).map_err(EngineError::Unsupported)?;
    let results = cast(&results, &DataType::Utf8).map_err(refused)?;
    Ok(results.as_string::<i32>().iter().collect::<HashSet<_>>().len() <= FEW_RESULTS)
}

/// The table of a function that is true of a run of codes.
fn run_of(run: Range<usize>, strings: usize) -> LookupTable {
    let true_share = run.len() as f64 / strings.max(1) as f64;
    let table = LookupTable::new(strings, true);
    LookupTable { run: Some(run), storage: Storage::U8, range: Some((0, 1)), is_truth: true, true_share, ..table }
}

/// The table of `second` over what `first` gives: strings.
fn composed(first: &LookupTable, second: &LookupTable) -> LookupTable {
    let codes = first.values.chunks_exact(first.storage.width());
    match first.storage.width() {
        1 => composed_by(first, second, codes.map(|code| usize::from(code[0]))),
        2 => composed_by(first, second, codes.map(|code| usize::from(u16::from_le_bytes([code[0], code[1]])))),
        _ => composed_by(
            first,
            second,
            codes.map(|code| u32::from_le_bytes([code[0], code[1], code[2], code[3]]) as usize),
        ),
    }
}

/// The same by the codes of what `first` gives.
fn composed_by(first: &LookupTable, second: &LookupTable, codes: impl Iterator<Item = usize> + Clone) -> LookupTable {
    let (null, width) = (second.strings, second.storage.width());
    // A code of a result that is NULL is any.
    let nulls: Vec<usize> = match &first.valid {
        Some(valid) => valid.iter().enumerate().filter(|(_, valid)| **valid == 0).map(|(at, _)| at).collect(),
        None => first.null_of_null.then_some(first.strings).into_iter().collect(),
    };
    let mut values: Vec<u8> = match &second.run {
        Some(run) => codes.clone().map(|code| run.contains(&code).into()).collect(),
        None if width == 1 => codes.clone().map(|code| second.values[code]).collect(),
        None => codes.clone().flat_map(|code| second.values[width * code..][..width].iter().copied()).collect(),
    };
    for at in &nulls {
        match &second.run {
            Some(_) => values[*at] = 0,
            None => values[width * at..][..width].copy_from_slice(&second.values[width * null..][..width]),
        }
    }
    let is_valid = |entry: usize| match &second.valid {
        Some(valid) => valid[entry] == 1,
        None => !second.null_of_null || entry != null,
    };
    let mut valid: Option<Vec<u8>> = None;
    if second.valid.is_some() || !nulls.is_empty() && nulls != [first.strings] {
        let mut all: Vec<u8> = codes.clone().map(|code| is_valid(code).into()).collect();
        nulls.iter().for_each(|at| all[*at] = is_valid(null).into());
        valid = all[..first.strings].contains(&0).then_some(all);
    }
    let of_null = if first.null_of_null { Some(null) } else { codes.last() };
    let table = LookupTable { strings: first.strings, run: None, values, valid, ..second.clone() };
    let true_share = if table.is_truth { share_of_true(&table.values[..table.strings]) } else { 0.0 };
    LookupTable { null_of_null: !of_null.is_none_or(is_valid), true_share, ..table }
}

/// Truth values of a part as bytes, with a byte a value that tells whether it is valid if one is not.
fn truth_values(results: &BooleanArray) -> (Vec<u8>, Option<Vec<u8>>) {
    match results.nulls().filter(|nulls| nulls.null_count() > 0) {
        None => (results.values().iter().map(u8::from).collect(), None),
        Some(nulls) => {
            let values = results.iter().map(|value| u8::from(value == Some(true))).collect();
            (values, Some(nulls.iter().map(u8::from).collect()))
        }
    }
}

fn join_truth_values(table: &mut LookupTable, parts: Vec<(Vec<u8>, Option<Vec<u8>>)>, of_null: &BooleanArray) {
    table.storage = Storage::U8;
    table.range = Some((0, 1));
    table.is_truth = true;
    let (of_null, _) = truth_values(of_null);
    if parts.iter().any(|(_, valid)| valid.is_some()) {
        let valid =
            |(values, valid): &(Vec<u8>, Option<Vec<u8>>)| valid.clone().unwrap_or_else(|| vec![1; values.len()]);
        let valid = parts.iter().flat_map(valid).chain([u8::from(!table.null_of_null)]);
        table.valid = Some(valid.collect());
    }
    for (values, _) in parts {
        table.values.extend(values);
    }
    table.true_share = share_of_true(&table.values);
    table.values.extend(of_null);
}

fn share_of_true(values: &[u8]) -> f64 {
    values.iter().map(|value| u64::from(*value)).sum::<u64>() as f64 / values.len().max(1) as f64
}

fn strings_of(table: &mut LookupTable, results: &ArrayRef) -> Result<()> {
    let results = cast(results, &DataType::Utf8).map_err(refused)?;
    let (dictionary, codes) = Dictionary::of(results.as_string::<i32>())?;
    (table.storage, table.values) = match dictionary.len() {
        ..=0x100 => (Storage::U8, codes.into_iter().map(|code| code as u8).collect()),
        0x101..=0x1_0000 => (Storage::U16, codes.into_iter().flat_map(|code| (code as u16).to_le_bytes()).collect()),
        _ => (Storage::U32, codes.into_iter().flat_map(u32::to_le_bytes).collect()),
    };
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

    /// What a closure gives, of a string or NULL.
    struct Of<R>(fn(Option<&str>) -> Option<R>, Option<[Arc<dyn DictionaryFunction>; 2]>);

    impl<R> std::fmt::Debug for Of<R> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a closure")
        }
    }

    impl DictionaryFunction for Of<&'static str> {
        fn apply(&self, strings: &ArrayRef) -> Result<ArrayRef, String> {
            Ok(Arc::new(strings.as_string::<i32>().iter().map(self.0).collect::<StringArray>()))
        }

        fn describe(&self) -> String {
            "strings".into()
        }
    }

    impl DictionaryFunction for Of<bool> {
        fn apply(&self, strings: &ArrayRef) -> Result<ArrayRef, String> {
            Ok(Arc::new(strings.as_string::<i32>().iter().map(self.0).collect::<BooleanArray>()))
        }

        fn describe(&self) -> String {
            "truth".into()
        }

        fn steps(&self) -> Option<[Arc<dyn DictionaryFunction>; 2]> {
            self.1.clone()
        }
    }

    /// Of the first step: a string for most strings, NULL for some, and either for NULL.
    fn first(text: Option<&str>) -> Option<&'static str> {
        let text = text.unwrap_or("0000001");
        ["a", "b", "c"].get(text.as_bytes()[6] as usize % 4).copied()
    }

    fn first_of_valid(text: Option<&str>) -> Option<&'static str> {
        text.map(|text| ["a", "b", "c", "d"][text.as_bytes()[6] as usize % 4])
    }

    #[test]
    fn two_steps_give_what_one_gives() {
        let count = STRINGS_PER_THREAD + 100;
        let strings: Vec<String> = (0..count).map(|number| format!("{number:07}")).collect();
        let dictionary = Arc::new(Dictionary::from_sorted(StringArray::from(strings)));
        type Step = fn(Option<&str>) -> Option<bool>;
        let is: [(Step, Step, Step); 3] = [
            (|s| Some(s? == "b"), |s| Some(first(s)? == "b"), |s| Some(first_of_valid(s)? == "b")),
            (|s| Some(s == Some("c")), |s| Some(first(s) == Some("c")), |s| Some(first_of_valid(s) == Some("c"))),
            (
                |s| s.is_none_or(|s| s != "a").then_some(true),
                |s| first(s).is_none_or(|s| s != "a").then_some(true),
                |s| first_of_valid(s).is_none_or(|s| s != "a").then_some(true),
            ),
        ];
        let check = |whole: Step, of: fn(Option<&str>) -> Option<&'static str>, second: Step| {
            let steps: [Arc<dyn DictionaryFunction>; 2] = [Arc::new(Of(of, None)), Arc::new(Of(second, None))];
            let plain: Arc<dyn DictionaryFunction> = Arc::new(Of(whole, None));
            let stepped: Arc<dyn DictionaryFunction> = Arc::new(Of(whole, Some(steps)));
            let plain = compute(&dictionary, &plain, Ty::Bool).unwrap();
            let stepped = compute(&dictionary, &stepped, Ty::Bool).unwrap();
            assert_eq!(plain.validity(), stepped.validity());
            assert_eq!(plain.values(), stepped.values());
            assert_eq!(plain.null_in_null_out(), stepped.null_in_null_out());
            assert_eq!(plain.true_share(), stepped.true_share());
        };
        for (second, of_first, of_valid) in is {
            check(of_first, first, second);
            check(of_valid, first_of_valid, second);
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
