//! Coordinates of facts in one dimension: the names in a row's columns become a base element.
//!
//! Names are looked up once for each distinct value of a column. A dimension of several level columns gives each
//! tuple of values a number, column by column, and looks up each distinct tuple once.

use arrow::array::{Array, RecordBatch};
use arrow::error::ArrowError;
use hashbrown::HashMap;

use super::dates::{Civil, days};
use super::encode::Encoder;
use super::form::Form;
use super::keys::{name_text, value_text};
use super::problem::{FIRST, NULL, Problem, Problems};
use super::spelling::Spellings;
use crate::define::TimeLevels;
use crate::model::{Dimension, ElementId, ElementKind, LevelIndex, folded};

/// Number of the empty tuple of level values.
const NO_VALUES: u32 = 0;
/// The last year that is written with four digits.
const YEAR_MAX: i64 = 9_999;

/// Finds the coordinates of facts in one dimension.
pub(super) struct Resolver<'a> {
    names: Names<'a>,
    columns: Columns,
    lookup: Lookup<'a>,
    /// Keys that name no base element.
    pub(super) problems: Problems,
    /// Coordinates of the last batch, one a row; [`super::problem`] lists the codes beyond them.
    pub(super) codes: Vec<u32>,
}

/// Names of a dimension.
#[derive(Clone, Copy)]
struct Names<'a> {
    dimension: &'a Dimension,
    /// Names, folded, that consolidated elements will have.
    reserved: &'a [String],
}

/// The columns that name the elements.
enum Columns {
    One(Encoder),
    Levels(Vec<Level>, Tuples),
}

/// A level column and the numbers of its values: 0 for NULL, others by first appearance.
struct Level {
    encoder: Encoder,
    numbers: Vec<u32>,
    values: Vec<String>,
    by_spelling: HashMap<String, u32>,
}

/// Numbers of tuples of level values, by the number of the tuple without its last value and that value's number.
#[derive(Default)]
struct Tuples {
    /// One map a level.
    numbers: Vec<HashMap<(u32, u32), u32>>,
    /// By number, one list a level: the tuple without its last value, and the number of that value.
    parts: Vec<Vec<(u32, u32)>>,
    /// Coordinates by the numbers of whole tuples.
    coordinates: Vec<u32>,
}

/// How names are looked up.
enum Lookup<'a> {
    /// Names of the dimension; first the values of base elements of a level hierarchy.
    Names { by_value: HashMap<String, Vec<ElementId>> },
    /// Dates.
    Time { levels: &'a TimeLevels, index: LevelIndex },
    /// Tuples of level values.
    Levels { index: LevelIndex, spellings: Spellings },
}

impl<'a> Resolver<'a> {
    /// A resolver of facts in a dimension of a form. `reserved` are names, folded, that consolidated elements will
    /// have.
    pub(super) fn new(dimension: &'a Dimension, form: &'a Form<'_>, reserved: &'a [String]) -> Resolver<'a> {
        let (columns, lookup) = match form {
            Form::Time { levels, .. } => {
                let lookup = Lookup::Time { levels, index: LevelIndex::new(dimension, 0) };
                (Columns::One(Encoder::of_days()), lookup)
            }
            Form::FactLevels { levels } => {
                let index = LevelIndex::new(dimension, 0);
                let columns = levels.iter().map(|_| Level::new()).collect();
                let lookup = Lookup::Levels { index, spellings: Spellings::of(dimension, levels.len()) };
                (Columns::Levels(columns, Tuples::new(levels.len())), lookup)
            }
            Form::Elements { .. } | Form::TableLevels { .. } | Form::Parents { .. } | Form::Values => {
                (Columns::One(Encoder::of_names()), Lookup::Names { by_value: base_values(dimension) })
            }
        };
        let names = Names { dimension, reserved };
        Resolver { names, columns, lookup, problems: Problems::new(), codes: Vec::new() }
    }

    /// The coordinate of a code, if it has one.
    pub(super) fn base_of(&self, code: u32) -> Option<u32> {
        if code < FIRST { Some(code) } else { self.problems.of(code).base() }
    }

    /// Finds the coordinates of a batch's rows; `columns` are the places of this dimension's columns.
    pub(super) fn resolve(&mut self, batch: &RecordBatch, columns: &[usize]) -> Result<(), ArrowError> {
        let Resolver { names, columns: held, lookup, problems, codes } = self;
        match held {
            Columns::One(encoder) => {
                let mut code = |array: &dyn Array, row| match lookup.one(*names, array, row) {
                    Ok(base) => base,
                    Err(problem) => problems.code(problem),
                };
                encoder.encode(batch.column(columns[0]), NULL, codes, &mut code)
            }
            Columns::Levels(levels, tuples) => {
                for (level, column) in levels.iter_mut().zip(columns) {
                    level.number(batch, *column)?;
                }
                codes.clear();
                tuples.number(levels, codes, batch.num_rows());
                tuples.find_new(|values| match lookup.tuple(*names, levels, values) {
                    Ok(base) => base,
                    Err(problem) => problems.code(problem),
                });
                codes.iter_mut().for_each(|code| *code = tuples.coordinates[*code as usize]);
                Ok(())
            }
        }
    }
}

impl Lookup<'_> {
    /// The coordinate of a value of one column.
    fn one(&self, names: Names<'_>, array: &dyn Array, row: usize) -> Result<u32, Problem> {
        let text = name_text(array, row).ok_or(Problem::Null)?;
        match self {
            // A text that is no date may be the name of an element that was added.
            Lookup::Time { levels, index } => match time_names(levels, array, row) {
                None => names.find(&text),
                Some(path) => {
                    let path: Vec<Option<&str>> = path.iter().map(|name| Some(name.as_str())).collect();
                    index.find(&path).map_or_else(|| names.find(&text), |id| names.base_of(id, &text))
                }
            },
            Lookup::Names { by_value } => {
                let value = |id: &ElementId| names.dimension.element(*id).value();
                let alike = by_value.get(&folded(&text)).map_or(&[][..], Vec::as_slice);
                let mut found: Vec<ElementId> = alike.iter().copied().filter(|id| value(id) == text).collect();
                if found.is_empty() && names.dimension.holder_of_source(&text).is_none() {
                    found = alike.to_vec();
                }
                match found.as_slice() {
                    [] => names.find(&text),
                    [one] => names.spelled(*one, text, value(one)),
                    several if several.iter().all(|id| value(id) == value(&several[0])) => {
                        let several = several.iter().map(|id| names.dimension.element(*id).name().to_owned());
                        Err(Problem::Several(text, several.collect()))
                    }
                    several => {
                        let mut values: Vec<String> = Vec::new();
                        for value in several.iter().map(value) {
                            if values.iter().all(|known| known != value) {
                                values.push(value.to_owned());
                            }
                        }
                        Err(Problem::Case(text, values))
                    }
                }
            }
            Lookup::Levels { .. } => names.find(&text),
        }
    }

    /// The coordinate of a tuple of level values, by their numbers.
    fn tuple(&self, names: Names<'_>, levels: &[Level], numbers: &[u32]) -> Result<u32, Problem> {
        let Lookup::Levels { index, spellings } = self else { return Err(Problem::Null) };
        let value = |(at, (level, number)): (usize, (&'_ Level, &u32))| {
            let value = level.values.get((*number).checked_sub(1)? as usize)?;
            Some(spellings.of_value(at, value).to_owned())
        };
        let values: Vec<Option<String>> = levels.iter().zip(numbers).enumerate().map(value).collect();
        let path: Vec<Option<&str>> = values.iter().map(Option::as_deref).collect();
        let name = || path.iter().flatten().copied().collect::<Vec<_>>().join(" → ");
        match index.find(&path) {
            Some(id) => names.base_of(id, &name()),
            None if path.iter().all(Option::is_none) => Err(Problem::Null),
            None => Err(Problem::Unknown(name())),
        }
    }
}

impl Names<'_> {
    /// The coordinate of the base element that the source has this name for: to the letter, else in other case where
    /// one name alone is so written.
    fn find(&self, name: &str) -> Result<u32, Problem> {
        match self.dimension.find_of_source(name) {
            Some(id) if self.dimension.holder_of_source(name) == Some(id) => self.base_of(id, name),
            Some(id) => {
                let alike = self.dimension.alike_of_source(name);
                self.spelled(id, name.to_owned(), alike.first().map_or(name, String::as_str))
            }
            None if self.reserved.contains(&folded(name)) => Err(Problem::Consolidated(name.to_owned())),
            None => Err(match self.dimension.alike_of_source(name) {
                none if none.is_empty() => Problem::Unknown(name.to_owned()),
                several => Problem::Case(name.to_owned(), several),
            }),
        }
    }

    /// The coordinate of an element that has a name; facts may call it by the `key` in another case.
    fn spelled(&self, id: ElementId, key: String, name: &str) -> Result<u32, Problem> {
        match self.base_of(id, &key)? {
            base if key == name => Ok(base),
            base => Err(Problem::OtherCase { key, name: name.to_owned(), base }),
        }
    }

    /// The coordinate of an element; `name` is what the facts call it.
    fn base_of(&self, id: ElementId, name: &str) -> Result<u32, Problem> {
        let element = self.dimension.element(id);
        match (element.base(), element.kind()) {
            (Some(base), _) => Ok(base),
            (None, ElementKind::Text) => Err(Problem::Text(name.to_owned())),
            (None, _) => Err(Problem::Consolidated(name.to_owned())),
        }
    }
}

/// Base elements by the value of their level, folded; none for dimensions without level hierarchies.
fn base_values(dimension: &Dimension) -> HashMap<String, Vec<ElementId>> {
    let mut by_value: HashMap<String, Vec<ElementId>> = HashMap::new();
    for id in dimension.elements() {
        let element = dimension.element(*id);
        if let Some(member) = element.member().filter(|_| element.kind() == ElementKind::Base) {
            by_value.entry(folded(&member.value)).or_default().push(*id);
        }
    }
    by_value
}

/// Names of a date's elements, one a level; nothing for NULL, for texts that are no dates or lack a day that a level
/// needs, and for years beyond four digits.
pub(super) fn time_names(levels: &TimeLevels, array: &dyn Array, row: usize) -> Option<Vec<String>> {
    let (year, month, day) = time_of(levels, array, row)?;
    Some(levels.names(year, month, day))
}

/// Year, month and day of a value; see [`time_names`].
pub(super) fn time_of(levels: &TimeLevels, array: &dyn Array, row: usize) -> Option<(i32, u8, u8)> {
    let (year, month, day) = match days(&array.slice(row, 1)) {
        Some(days) => {
            let Civil { year, month, day } = Civil::of_days(days.iter().next().flatten()?);
            (year, month, day)
        }
        None => match Civil::parse(&value_text(array, row)?)? {
            (year, month, Some(day)) => (year, month, day),
            (year, month, None) if !levels.has_days() => (year, month, 1),
            (_, _, None) => return None,
        },
    };
    (0..=YEAR_MAX).contains(&year).then_some((year as i32, month, day))
}

impl Level {
    fn new() -> Level {
        let (numbers, values) = (Vec::new(), Vec::new());
        Level { encoder: Encoder::of_names(), numbers, values, by_spelling: HashMap::new() }
    }

    /// Numbers the values of a batch.
    fn number(&mut self, batch: &RecordBatch, column: usize) -> Result<(), ArrowError> {
        let Level { encoder, numbers, values, by_spelling } = self;
        let mut number = |array: &dyn Array, row| match name_text(array, row) {
            None => NO_VALUES,
            Some(text) => *by_spelling.entry_ref(text.as_str()).or_insert_with(|| {
                values.push(text.clone());
                values.len() as u32
            }),
        };
        encoder.encode(batch.column(column), NO_VALUES, numbers, &mut number)
    }
}

impl Tuples {
    fn new(levels: usize) -> Tuples {
        Tuples { numbers: vec![HashMap::new(); levels], parts: vec![Vec::new(); levels], coordinates: Vec::new() }
    }

    /// Appends the number of each row's tuple to `codes`.
    fn number(&mut self, levels: &[Level], codes: &mut Vec<u32>, rows: usize) {
        codes.resize(rows, NO_VALUES);
        for ((level, numbers), parts) in levels.iter().zip(&mut self.numbers).zip(&mut self.parts) {
            let mut last = None;
            for (code, &value) in codes.iter_mut().zip(&level.numbers) {
                let part = (*code, value);
                *code = match last {
                    Some((before, number)) if before == part => number,
                    _ => *numbers.entry(part).or_insert_with(|| {
                        parts.push(part);
                        parts.len() as u32 - 1
                    }),
                };
                last = Some((part, *code));
            }
        }
    }

    /// Finds the coordinates of tuples that have none yet, from the numbers of their values.
    fn find_new(&mut self, mut find: impl FnMut(&[u32]) -> u32) {
        let Some(whole) = self.parts.last() else { return };
        for tuple in self.coordinates.len()..whole.len() {
            let mut number = tuple as u32;
            let mut values: Vec<u32> = self
                .parts
                .iter()
                .rev()
                .map(|parts| {
                    let (above, value) = parts[number as usize];
                    number = above;
                    value
                })
                .collect();
            values.reverse();
            self.coordinates.push(find(&values));
        }
    }
}
