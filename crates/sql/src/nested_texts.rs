//! Texts of lists, structs and maps: `[a, b]`, `{'a': 1, 'b': x}` and `{k=1}`, as DuckDB writes them.
//!
//! DataFusion 55.2 refuses a cast of a struct or a map to a text, and writes times within lists as Arrow has them. What
//! is within becomes a text by the cast of its own type. A text, a time or a value of bytes stands in quotes where it
//! is empty, NULL by its letters, or has a character that stands between values.
//!
//! The file goes once DataFusion casts these to texts.

mod reading;

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, LargeListArray, ListArray, MapArray, StringArray, StringBuilder,
    StructArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field};
use datafusion::error::{DataFusionError, Result};

use crate::time_texts;

pub(crate) use reading::{Item, items, pairs};

/// Whether values of a type are made of others.
pub(crate) fn is_nested(data_type: &DataType) -> bool {
    use DataType::{FixedSizeList, LargeList, List, Map, Struct};
    matches!(data_type, List(_) | LargeList(_) | FixedSizeList(_, _) | Struct(_) | Map(_, _))
}

/// Values as texts, as casts write them where no zone is asked for.
///
/// # Errors
/// A time that no calendar has.
pub(crate) fn texts_of(values: &ArrayRef) -> Result<ArrayRef> {
    match values.data_type() {
        nested if is_nested(nested) => texts(values, &DataType::Utf8, &texts_of),
        time if time_texts::is_time(time) => time_texts::texts(values, &DataType::Utf8),
        _ => Ok(cast(values, &DataType::Utf8)?),
    }
}

/// Timestamps, times of day, intervals, and values that are made of others, as people read them; none of other values,
/// and of a time that no calendar has.
pub fn shown_values(values: &ArrayRef) -> Option<ArrayRef> {
    let from = values.data_type();
    (time_texts::is_time(from) || is_nested(from)).then(|| texts_of(values).ok()).flatten()
}

/// Values whose intervals and durations are texts, within lists, structs and maps too.
///
/// # Errors
/// A duration that is too long for days.
pub fn with_texts_of_intervals(values: &ArrayRef) -> Result<ArrayRef> {
    with_texts(values, time_texts::is_interval)
}

/// Values whose times are texts, within lists, structs and maps too.
///
/// # Errors
/// A time that no calendar has.
pub(crate) fn with_texts_of_times(values: &ArrayRef) -> Result<ArrayRef> {
    with_texts(values, time_texts::is_time)
}

/// Values with texts of the times of these types.
fn with_texts(values: &ArrayRef, is_written: fn(&DataType) -> bool) -> Result<ArrayRef> {
    let typed = |field: &Arc<Field>, values: &ArrayRef| {
        Arc::new(field.as_ref().clone().with_data_type(values.data_type().clone()))
    };
    let nulls = values.nulls().cloned();
    Ok(match values.data_type() {
        time if is_written(time) => time_texts::texts(values, &DataType::Utf8)?,
        DataType::List(field) => {
            let list = values.as_list::<i32>();
            let items = with_texts(list.values(), is_written)?;
            Arc::new(ListArray::try_new(typed(field, &items), list.offsets().clone(), items, nulls)?)
        }
        DataType::LargeList(field) => {
            let list = values.as_list::<i64>();
            let items = with_texts(list.values(), is_written)?;
            Arc::new(LargeListArray::try_new(typed(field, &items), list.offsets().clone(), items, nulls)?)
        }
        DataType::FixedSizeList(field, length) => {
            let items = with_texts(values.as_fixed_size_list().values(), is_written)?;
            Arc::new(FixedSizeListArray::try_new(typed(field, &items), *length, items, nulls)?)
        }
        DataType::Struct(_) if values.as_struct().columns().is_empty() => values.clone(),
        DataType::Struct(_) => Arc::new(struct_with_texts(values.as_struct(), is_written)?),
        DataType::Map(field, is_ordered) => {
            let map = values.as_map();
            let entries = struct_with_texts(map.entries(), is_written)?;
            let field = Arc::new(field.as_ref().clone().with_data_type(entries.data_type().clone()));
            Arc::new(MapArray::try_new(field, map.offsets().clone(), entries, nulls, *is_ordered)?)
        }
        _ => values.clone(),
    })
}

fn struct_with_texts(values: &StructArray, is_written: fn(&DataType) -> bool) -> Result<StructArray> {
    let members = values.columns().iter().map(|member| with_texts(member, is_written)).collect::<Result<Vec<_>>>()?;
    let fields = values.fields().iter().zip(&members);
    let fields = fields.map(|(field, member)| field.as_ref().clone().with_data_type(member.data_type().clone()));
    Ok(StructArray::try_new(fields.collect(), members, values.nulls().cloned())?)
}

/// Values with the texts of what is innermost in them.
enum Texts {
    Single {
        texts: StringArray,
        may_have_quotes: bool,
    },
    /// Where each list begins and ends among the items.
    List {
        lists: ArrayRef,
        ends: Vec<usize>,
        items: Box<Texts>,
    },
    Map {
        maps: ArrayRef,
        ends: Vec<usize>,
        keys: Box<Texts>,
        values: Box<Texts>,
    },
    Struct {
        structs: ArrayRef,
        members: Vec<(String, Texts)>,
    },
}

/// The texts of nested values, as a type of texts; `single` gives those of values that are not.
///
/// # Errors
/// Those of `single`.
pub(crate) fn texts(
    values: &ArrayRef,
    target: &DataType,
    single: &dyn Fn(&ArrayRef) -> Result<ArrayRef>,
) -> Result<ArrayRef> {
    let of = Texts::of(values, single)?;
    let (mut texts, mut text) = (StringBuilder::new(), String::new());
    for row in 0..values.len() {
        if values.is_null(row) {
            texts.append_null();
            continue;
        }
        text.clear();
        of.write(row, &mut text);
        texts.append_value(&text);
    }
    Ok(cast(&(Arc::new(texts.finish()) as ArrayRef), target)?)
}

impl Texts {
    fn of(values: &ArrayRef, single: &dyn Fn(&ArrayRef) -> Result<ArrayRef>) -> Result<Texts> {
        let of = |values: &ArrayRef| Ok::<_, DataFusionError>(Box::new(Texts::of(values, single)?));
        Ok(match values.data_type() {
            DataType::List(_) => {
                let list = values.as_list::<i32>();
                let ends = list.value_offsets().iter().map(|end| *end as usize).collect();
                Texts::List { lists: values.clone(), ends, items: of(list.values())? }
            }
            DataType::LargeList(_) => {
                let list = values.as_list::<i64>();
                let ends = list.value_offsets().iter().map(|end| *end as usize).collect();
                Texts::List { lists: values.clone(), ends, items: of(list.values())? }
            }
            DataType::FixedSizeList(_, length) => {
                let ends = (0..=values.len()).map(|row| row * *length as usize).collect();
                Texts::List { lists: values.clone(), ends, items: of(values.as_fixed_size_list().values())? }
            }
            DataType::Map(_, _) => {
                let map = values.as_map();
                let ends = map.value_offsets().iter().map(|end| *end as usize).collect();
                Texts::Map { maps: values.clone(), ends, keys: of(map.keys())?, values: of(map.values())? }
            }
            DataType::Struct(fields) => {
                let members = values.as_struct().columns().iter().zip(fields);
                let member = |(values, field): (&ArrayRef, &Arc<Field>)| {
                    let mut name = String::new();
                    write_in_quotes(field.name(), &mut name);
                    Ok((name, Texts::of(values, single)?))
                };
                Texts::Struct { structs: values.clone(), members: members.map(member).collect::<Result<_>>()? }
            }
            plain => {
                let may_have_quotes = !plain.is_numeric() && !matches!(plain, DataType::Boolean | DataType::Date32);
                let texts = cast(&single(values)?, &DataType::Utf8)?;
                Texts::Single { texts: texts.as_string().clone(), may_have_quotes }
            }
        })
    }

    fn is_null(&self, row: usize) -> bool {
        match self {
            Texts::Single { texts, .. } => texts.is_null(row),
            Texts::List { lists, .. } => lists.is_null(row),
            Texts::Map { maps, .. } => maps.is_null(row),
            Texts::Struct { structs, .. } => structs.is_null(row),
        }
    }

    fn write(&self, row: usize, text: &mut String) {
        if self.is_null(row) {
            text.push_str("NULL");
            return;
        }
        match self {
            Texts::Single { texts, may_have_quotes } => {
                let value = texts.value(row);
                match *may_have_quotes && needs_quotes(value) {
                    true => write_in_quotes(value, text),
                    false => text.push_str(value),
                }
            }
            Texts::List { ends, items, .. } => {
                let written = (ends[row]..ends[row + 1]).map(|item| move |text: &mut String| items.write(item, text));
                write_all(['[', ']'], written, text);
            }
            Texts::Map { ends, keys, values, .. } => {
                let written = (ends[row]..ends[row + 1]).map(|item| {
                    move |text: &mut String| {
                        keys.write(item, text);
                        text.push('=');
                        values.write(item, text);
                    }
                });
                write_all(['{', '}'], written, text);
            }
            Texts::Struct { members, .. } => {
                let written = members.iter().map(|(name, values)| {
                    move |text: &mut String| {
                        text.push_str(name);
                        text.push_str(": ");
                        values.write(row, text);
                    }
                });
                write_all(['{', '}'], written, text);
            }
        }
    }
}

/// Writes values with commas between them, in brackets.
fn write_all(brackets: [char; 2], values: impl Iterator<Item = impl FnOnce(&mut String)>, text: &mut String) {
    text.push(brackets[0]);
    for (number, write) in values.enumerate() {
        if number > 0 {
            text.push_str(", ");
        }
        write(text);
    }
    text.push(brackets[1]);
}

fn needs_quotes(value: &str) -> bool {
    let is_blank = |end: Option<char>| end.is_none_or(char::is_whitespace);
    is_blank(value.chars().next())
        || is_blank(value.chars().next_back())
        || value.eq_ignore_ascii_case("null")
        || value.contains(['[', ']', '{', '}', '(', ')', ',', ':', '=', '\'', '"', '\\'])
}

fn write_in_quotes(value: &str, text: &mut String) {
    text.push('\'');
    for character in value.chars() {
        if matches!(character, '\'' | '\\') {
            text.push('\\');
        }
        text.push(character);
    }
    text.push('\'');
}
