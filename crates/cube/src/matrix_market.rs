//! Matrix Market coordinate files, extended to any number of dimensions, as cubes.
//!
//! ```text
//! %%MatrixMarket matrix coordinate real general     real, integer or pattern
//! % comments
//! 3 4 2                                             a size for each dimension, and the number of entries
//! 1 2 0.5                                           a coordinate for each dimension, and a value (not of a pattern)
//! 3 4 7e-2
//! ```
//!
//! Coordinates count from 1, as the format has it, or from 0. The cube has dimensions d1, d2, … whose elements are
//! named by the numbers of the file, and one measure, `value`, which is summed: doubles of real files, whole numbers of
//! integer files, and 1 an entry of patterns. Entries of one cell add up.
//!
//! Source: Boisvert, Pozo, Remington, *The Matrix Market Exchange Formats: Initial Design*, NISTIR 5935 (1996).

use std::io::BufRead;

use thiserror::Error;
use warpcube_arrays::key::DIMENSIONS_MAX;

use crate::error::ModelError;
use crate::facts::{FactMeasure, Facts, FactsError, InputColumn, InputValues, Loader, PAGE_CELLS};
use crate::model::{CubeModel, Dimension, DimensionBuilder, ElementKind, Measure, Rule, ValueType, layout_of};

/// Elements of all dimensions together at most: every number up to a dimension's size is one.
pub const ELEMENTS_MAX: u32 = 1 << 24;
/// Name of the measure.
const MEASURE: &str = "value";
/// Entries that go to the loader at once.
const BATCH_ENTRIES: usize = 1 << 16;

/// The number of the first element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexBase {
    /// Coordinates 0 … size − 1.
    Zero,
    /// Coordinates 1 … size.
    One,
}

/// A file that cannot be read. Lines and fields count from 1.
#[derive(Debug, Error)]
pub enum MatrixMarketError {
    /// A line is not of the format.
    #[error("line {line}, field {field}: {message}")]
    Field {
        /// The line.
        line: u64,
        /// The field in it.
        field: usize,
        /// What was expected, and what was found.
        message: String,
    },
    /// The file has another number of entries than its sizes announce.
    #[error("the file ends after {found} entries; line {line} announces {announced}")]
    Entries {
        /// Entries of the file.
        found: u64,
        /// The line of sizes.
        line: u64,
        /// Entries that it announces.
        announced: u64,
    },
    /// The file cannot be read.
    #[error("line {line}: {source}")]
    Io {
        /// The line.
        line: u64,
        /// The error.
        source: std::io::Error,
    },
    /// The dimensions make no cube.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Entries of one cell add up to too much.
    #[error(transparent)]
    Facts(#[from] FactsError),
}

/// The type of a file's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Real,
    Integer,
    Pattern,
}

/// Reads a file into a cube of a name. Without `base` it is found out: a coordinate 0 tells that they count from 0;
/// a file without any counts from 1.
///
/// # Errors
/// [`MatrixMarketError`], with line and field.
pub fn read(
    reader: impl BufRead,
    name: &str,
    base: Option<IndexBase>,
) -> Result<(CubeModel, Facts), MatrixMarketError> {
    let mut lines = Lines { reader, line: 0, text: String::new() };
    let field = header(&mut lines)?;
    let (sizes, announced) = sizes(&mut lines)?;
    let size_line = lines.line;
    check_key(&sizes)?;
    let mut entries = Entries::new(field, &sizes, base);
    while let Some(text) = lines.next_of_content()? {
        let line = entries.count + 1;
        if line > announced {
            let message = format!("line {size_line} announces {announced} entries, and here is one more");
            return Err(MatrixMarketError::Field { line: lines.line, field: 1, message });
        }
        entries.read(text).map_err(|(field, message)| MatrixMarketError::Field { line: lines.line, field, message })?;
        entries.note_ends(lines.line)?;
    }
    if entries.count < announced {
        return Err(MatrixMarketError::Entries { found: entries.count, line: size_line, announced });
    }
    entries.finish(name)
}

/// Lines of a text, counted.
struct Lines<R> {
    reader: R,
    line: u64,
    text: String,
}

impl<R: BufRead> Lines<R> {
    fn next(&mut self) -> Result<Option<&str>, MatrixMarketError> {
        self.text.clear();
        self.line += 1;
        match self.reader.read_line(&mut self.text) {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some(self.text.trim())),
            Err(source) => Err(MatrixMarketError::Io { line: self.line, source }),
        }
    }

    /// The next line that is neither empty nor a comment.
    fn next_of_content(&mut self) -> Result<Option<&str>, MatrixMarketError> {
        loop {
            match self.next()? {
                None => return Ok(None),
                Some(text) if text.is_empty() || text.starts_with('%') => {}
                Some(_) => return Ok(Some(self.text.trim())),
            }
        }
    }
}

fn header(lines: &mut Lines<impl BufRead>) -> Result<Field, MatrixMarketError> {
    let text = lines.next()?.unwrap_or_default().to_ascii_lowercase();
    let mut words = text.split_whitespace();
    let wrong = |field, expected: &str, found: &str| {
        let found = if found.is_empty() { "nothing" } else { found };
        Err(MatrixMarketError::Field { line: 1, field, message: format!("expected {expected}, found {found}") })
    };
    let fixed = [("%%matrixmarket", "%%MatrixMarket"), ("matrix", "matrix"), ("coordinate", "coordinate")];
    for (at, (word, shown)) in fixed.into_iter().enumerate() {
        match words.next().unwrap_or_default() {
            found if found == word => {}
            found => return wrong(at + 1, shown, found),
        }
    }
    let field = match words.next().unwrap_or_default() {
        "real" => Field::Real,
        "integer" => Field::Integer,
        "pattern" => Field::Pattern,
        found => return wrong(4, "real, integer or pattern", found),
    };
    match words.next().unwrap_or_default() {
        "general" => Ok(field),
        found => wrong(5, "general (the other half of a symmetric file is to be written out)", found),
    }
}

/// The sizes of all dimensions, and the number of entries.
fn sizes(lines: &mut Lines<impl BufRead>) -> Result<(Vec<u32>, u64), MatrixMarketError> {
    let text = lines.next_of_content()?.unwrap_or_default().to_owned();
    let line = lines.line;
    let wrong = |field, message| Err(MatrixMarketError::Field { line, field, message });
    let mut numbers = Vec::new();
    for (at, word) in text.split_whitespace().enumerate() {
        match word.parse::<u64>() {
            Ok(number) => numbers.push(number),
            Err(_) => return wrong(at + 1, format!("expected a size, a whole number, found {word}")),
        }
    }
    let Some(announced) = numbers.pop().filter(|_| !numbers.is_empty()) else {
        return wrong(1, "expected a size for each dimension and the number of entries".to_owned());
    };
    if numbers.len() > DIMENSIONS_MAX {
        let message = format!("a cube has at most {DIMENSIONS_MAX} dimensions, here are {}", numbers.len());
        return wrong(DIMENSIONS_MAX + 1, message);
    }
    let mut elements = 0_u64;
    for (at, size) in numbers.iter().enumerate() {
        elements = elements.saturating_add(*size);
        if elements > ELEMENTS_MAX.into() {
            let up_to =
                if at == 0 { "dimension d1 has".to_owned() } else { format!("dimensions d1 to d{} have", at + 1) };
            let message = format!("{up_to} {elements} elements; at most {ELEMENTS_MAX} of all dimensions are read");
            return wrong(at + 1, message);
        }
    }
    Ok((numbers.into_iter().map(|size| size as u32).collect(), announced))
}

/// Refuses sizes whose coordinates fit no key, before elements are made of them.
fn check_key(sizes: &[u32]) -> Result<(), ModelError> {
    let names: Vec<String> = (1..=sizes.len()).map(name).collect();
    layout_of(names.iter().map(String::as_str).zip(sizes.iter().map(|size| *size as usize))).map(drop)
}

/// The name of a dimension by its number.
fn name(number: usize) -> String {
    format!("d{number}")
}

/// Entries as columns.
struct Entries {
    field: Field,
    sizes: Vec<u32>,
    base: Option<IndexBase>,
    count: u64,
    /// As the file has them.
    coordinates: Vec<Vec<u32>>,
    whole: Vec<i64>,
    doubles: Vec<f64>,
    /// The first field that is 0: its line, and the place of its dimension.
    zero: Option<(u64, usize)>,
    /// The first field that equals its dimension's size.
    full: Option<(u64, usize)>,
    /// Fields of the last line that are 0 or equal to their dimension's size.
    ends: (Option<usize>, Option<usize>),
}

impl Entries {
    fn new(field: Field, sizes: &[u32], base: Option<IndexBase>) -> Entries {
        Entries {
            field,
            sizes: sizes.to_vec(),
            base,
            count: 0,
            coordinates: vec![Vec::new(); sizes.len()],
            whole: Vec::new(),
            doubles: Vec::new(),
            zero: None,
            full: None,
            ends: (None, None),
        }
    }

    /// Reads a line; an error is a field and a message.
    fn read(&mut self, text: &str) -> Result<(), (usize, String)> {
        let mut words = text.split_whitespace();
        self.ends = (None, None);
        for (at, (column, size)) in self.coordinates.iter_mut().zip(&self.sizes).enumerate() {
            let word = words.next().ok_or_else(|| (at + 1, format!("expected a coordinate of d{}", at + 1)))?;
            let (least, most) = match self.base {
                Some(IndexBase::Zero) => (0, size.saturating_sub(1)),
                Some(IndexBase::One) => (1, *size),
                None => (0, *size),
            };
            let coordinate = word.parse::<u32>().ok().filter(|coordinate| (least..=most).contains(coordinate));
            let Some(coordinate) = coordinate.filter(|_| *size > 0) else {
                let message = format!("expected a coordinate of d{}, {least} to {most}, found {word}", at + 1);
                return Err((at + 1, message));
            };
            if coordinate == 0 {
                self.ends.0.get_or_insert(at);
            } else if coordinate == *size {
                self.ends.1.get_or_insert(at);
            }
            column.push(coordinate);
        }
        let place = self.sizes.len() + 1;
        let mut word = || words.next().ok_or_else(|| (place, "expected a value".to_owned()));
        match self.field {
            Field::Pattern => self.whole.push(1),
            Field::Integer => {
                let word = word()?;
                let value = word.parse::<i64>();
                let message = |_| (place, format!("expected a whole number of 64 bits, found {word}"));
                self.whole.push(value.map_err(message)?);
            }
            Field::Real => {
                let word = word()?;
                let value = word.parse::<f64>().ok().filter(|value| value.is_finite());
                self.doubles.push(value.ok_or_else(|| (place, format!("expected a finite number, found {word}")))?);
            }
        }
        let last = if self.field == Field::Pattern { place } else { place + 1 };
        match words.next() {
            None => {
                self.count += 1;
                Ok(())
            }
            Some(more) => Err((last, format!("expected the end of the line, found {more}"))),
        }
    }

    /// Notes the ends of the range that the last line has; a file with both counts neither from 0 nor from 1.
    fn note_ends(&mut self, line: u64) -> Result<(), MatrixMarketError> {
        if self.base.is_some() {
            return Ok(());
        }
        let had_both = self.zero.is_some() && self.full.is_some();
        let (zero, full) = self.ends;
        self.zero = self.zero.or_else(|| zero.map(|at| (line, at)));
        self.full = self.full.or_else(|| full.map(|at| (line, at)));
        let (Some((zero_line, zero_at)), Some((full_line, full_at))) = (self.zero, self.full) else { return Ok(()) };
        if had_both {
            return Ok(());
        }
        let field = if zero_line == line && zero.is_some() { zero_at + 1 } else { full_at + 1 };
        let message = format!(
            "line {zero_line} has coordinate 0 in d{}, and line {full_line} has {} in d{}, the size of it: coordinates \
             count neither from 0 nor from 1",
            zero_at + 1,
            self.sizes[full_at],
            full_at + 1
        );
        Err(MatrixMarketError::Field { line, field, message })
    }

    fn finish(mut self, name: &str) -> Result<(CubeModel, Facts), MatrixMarketError> {
        let first = match self.base {
            Some(IndexBase::Zero) => 0,
            Some(IndexBase::One) => 1,
            None => u32::from(self.zero.is_none()),
        };
        self.coordinates.iter_mut().flatten().for_each(|coordinate| *coordinate -= first);
        let value = if self.field == Field::Real { ValueType::Double } else { ValueType::Decimal { scale: 0 } };
        let measure = Measure { name: MEASURE.to_owned(), rule: Rule::Sum, value, format: None, over: None };
        let dimensions = self.sizes.iter().enumerate().map(|(at, size)| numbered(at + 1, first, *size));
        let model = CubeModel::new(name, dimensions.collect::<Result<_, _>>()?, vec![measure])?;
        let measures = vec![FactMeasure::new(MEASURE, Rule::Sum, value)];
        let mut loader = Loader::new(model.layout().clone(), measures);
        let count = self.count as usize;
        for start in (0..count).step_by(BATCH_ENTRIES) {
            let rows = start..count.min(start + BATCH_ENTRIES);
            let coordinates: Vec<&[u32]> = self.coordinates.iter().map(|column| &column[rows.clone()]).collect();
            let values = match self.field {
                Field::Real => InputValues::Doubles(&self.doubles[rows]),
                Field::Integer | Field::Pattern => InputValues::Decimals(&self.whole[rows]),
            };
            loader.append(&coordinates, &[InputColumn { values, filled: None }])?;
        }
        Ok((model, loader.finish(PAGE_CELLS)?))
    }
}

/// Dimension d`number` of elements `first`, `first` + 1, ….
fn numbered(number: usize, first: u32, size: u32) -> Result<Dimension, ModelError> {
    let mut builder = DimensionBuilder::new(&name(number))?;
    builder.reserve(size as usize);
    for element in first..first + size {
        builder.add(&element.to_string(), ElementKind::Base)?;
    }
    builder.finish()
}
