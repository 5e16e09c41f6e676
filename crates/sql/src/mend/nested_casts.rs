//! Casts of lists and structs cast what is within them as casts of single values do.
//!
//! DataFusion 55.2 leaves such casts to Arrow, whose rules for values are those that the other files here mend: `[1.7]`
//! as INT[] is cut off to 1, a text with an exponent is no decimal, an offset moves a date, and an instant becomes a
//! time of UTC. Here the items of lists and the members of structs go through the mended cast of their own types, in
//! the session's zone where they become instants or were some, and so do keys and values of maps. Structs whose members
//! have other names or another order are DataFusion's to match. Texts of nested values are those of
//! [`crate::nested_texts`], and are read as it writes them; Arrow makes a list of one item of each text.
//!
//! The file goes with the others.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, LargeListArray, ListArray, ListBuilder, MapArray, MapBuilder,
    RecordBatch, StringArray, StringBuilder, StructArray, UInt32Array,
};
use arrow::buffer::NullBuffer;
use arrow::compute::{CastOptions, cast, cast_with_options, is_null, nullif, take};
use arrow::datatypes::{DataType, Field, Fields, Schema};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TryCast, Volatility,
};
use datafusion::physical_expr::create_physical_expr;

use super::conversion::{Conversion, is_text};
use super::zones::in_session;
use super::{each_value, single_casts};
use crate::nested_keys::{KEY_TWICE, repeating};
use crate::nested_texts::{self, Item};
use crate::walk::Walk;
use crate::words::sql_name;

/// The column of values that are cast.
const ITEM: &str = "item";

/// Whether a cast from one type to another has values within that are cast by a mended rule, or may raise.
fn is_taken(from: &DataType, to: &DataType, way: &Way) -> bool {
    if nested_texts::is_nested(from) && to.is_string() || is_text(from) && nested_texts::is_nested(to) {
        return true;
    }
    pairs(from, to).is_some_and(|pairs| {
        let is_mended = |from: &DataType, to: &DataType| way.of_item(from, to).is_ok_and(|(_, is_mended)| is_mended);
        let of_item = |from: &DataType, to: &DataType| from != to && (may_raise(from, to) || is_mended(from, to));
        pairs.into_iter().any(|(from, to)| is_taken(from, to, way) || of_item(from, to))
    })
}

/// Whether a cast of texts to others, or of numbers to narrower ones, may raise.
fn may_raise(from: &DataType, to: &DataType) -> bool {
    let is_narrower = || from.primitive_width() > to.primitive_width() && from.is_numeric() && to.is_numeric();
    is_text(from) && !is_text(to) || is_narrower()
}

/// What casts the items of lists and the members of structs in a cast's place; none for other casts. Instants are read
/// in `zone`, the session's.
pub(super) fn of_items(cast: &Conversion, zone: Option<&str>) -> Option<Expr> {
    let way = Way { may_fail: cast.may_fail, zone: zone.map(str::to_string) };
    let is_taken = is_taken(&cast.from, cast.to, &way);
    let function = || ScalarUDF::new_from_impl(NestedCast::new(cast.to, way));
    is_taken.then(|| function().call(vec![cast.operand.clone()]))
}

/// The function of a name, for plans that come from another session.
pub(super) fn function(name: &str) -> Option<Arc<ScalarUDF>> {
    let target = |front: &str, may_fail: bool| {
        let (zone, to) = name.strip_prefix(front)?.split_once(' ')?;
        let zone = (!zone.is_empty()).then(|| zone.to_string());
        Some(NestedCast::new(&to.parse().ok()?, Way { may_fail, zone }))
    };
    Some(Arc::new(ScalarUDF::new_from_impl(target(NAME, false).or_else(|| target(TRY_NAME, true))?)))
}

/// How the names of functions begin that raise, and that give NULL, for what does not fit; the zone, a blank and the
/// type follow.
const NAME: &str = "warpcube_nested_";
const TRY_NAME: &str = "warpcube_try_nested_";

/// How single values are cast.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Way {
    /// Whether what does not fit is NULL.
    may_fail: bool,
    /// The session's zone.
    zone: Option<String>,
}

impl Way {
    /// The cast of a column of single values, and whether it is a mended one.
    fn of_item(&self, from: &DataType, to: &DataType) -> Result<(Expr, bool)> {
        let item = Box::new(Expr::Column(Column::from_name(ITEM)));
        let plain = match self.may_fail {
            true => Expr::TryCast(TryCast::new(item, to.clone())),
            false => Expr::Cast(Cast::new(item, to.clone())),
        };
        let schema = DFSchema::try_from(schema_of(from))?;
        let zoned = match &self.zone {
            Some(zone) => in_session(plain, zone, &schema),
            None => Transformed::no(plain),
        };
        let mended = zoned.transform_data(|expr| {
            expr.transform_up(|expr| {
                let mended = Conversion::of(&expr, &schema).and_then(|cast| single_casts::mended(&cast, false));
                Ok(match mended {
                    Some(mended) => Transformed::yes(mended),
                    None => Transformed::no(expr),
                })
            })
        })?;
        Ok((mended.data, mended.transformed))
    }
}

/// A cast of what is within lists and structs; no statement can call it, since no registry has it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NestedCast {
    name: String,
    to: DataType,
    way: Way,
    signature: Signature,
}

impl NestedCast {
    fn new(to: &DataType, way: Way) -> NestedCast {
        let (front, zone) = (if way.may_fail { TRY_NAME } else { NAME }, way.zone.as_deref().unwrap_or_default());
        let name = format!("{front}{zone} {to}");
        NestedCast { name, to: to.clone(), way, signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for NestedCast {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        each_value(&arguments.args[0], |values| read(values, &self.to, &self.way))
    }
}

/// The types of what is within values of two types, one beside the other; none where nothing is, or not alike.
pub(super) fn pairs<'a>(from: &'a DataType, to: &'a DataType) -> Option<Vec<(&'a DataType, &'a DataType)>> {
    use DataType::{FixedSizeList, LargeList, List, Map, Struct};
    match (from, to) {
        (Map(from, _), Map(to, _)) => pairs(from.data_type(), to.data_type()).or_else(|| {
            // Their keys and values may have other names.
            let (Struct(from), Struct(to)) = (from.data_type(), to.data_type()) else { return None };
            Some(from.iter().zip(to).map(|(from, to)| (from.data_type(), to.data_type())).collect())
        }),
        (List(from) | LargeList(from) | FixedSizeList(from, _), List(to) | LargeList(to) | FixedSizeList(to, _)) => {
            Some(vec![(from.data_type(), to.data_type())])
        }
        (Struct(from), Struct(to)) if has_names(from, to) => {
            Some(from.iter().zip(to).map(|(from, to)| (from.data_type(), to.data_type())).collect())
        }
        _ => None,
    }
}

fn has_names(one: &Fields, other: &Fields) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.name() == other.name())
}

/// Values as values of another type.
///
/// # Errors
/// Those of the casts of single values.
fn read(values: &ArrayRef, to: &DataType, way: &Way) -> Result<ArrayRef> {
    use DataType::{FixedSizeList, LargeList, List, Map, Struct};
    let from = values.data_type();
    if from == to {
        return Ok(values.clone());
    }
    if nested_texts::is_nested(from) && to.is_string() {
        return nested_texts::texts(values, to, &|values| read(values, &DataType::Utf8, way));
    }
    if is_text(from) && nested_texts::is_nested(to) {
        return read(&taken_apart(values, to, way)?, to, way);
    }
    let Some(within) = pairs(from, to) else { return read_items(values, to, way) };
    let options = CastOptions { safe: way.may_fail, ..CastOptions::default() };
    // The items of lists that are NULL, or no row's, are cast to nothing.
    let rows = UInt32Array::from_iter_values(0..values.len() as u32);
    let field = |field: &Field, data_type: &DataType| Arc::new(field.clone().with_data_type(data_type.clone()));
    Ok(match to {
        // Lists of the wanted kind with items as they are, which are then cast.
        List(items) => {
            let lists = cast_with_options(&take(values, &rows, None)?, &List(field(items, within[0].0)), &options)?;
            let lists = lists.as_list::<i32>();
            let items_read = read(lists.values(), items.data_type(), way)?;
            let nulls = lists.nulls().cloned();
            Arc::new(ListArray::try_new(items.clone(), lists.offsets().clone(), items_read, nulls)?)
        }
        LargeList(items) => {
            let lists =
                cast_with_options(&take(values, &rows, None)?, &LargeList(field(items, within[0].0)), &options)?;
            let lists = lists.as_list::<i64>();
            let items_read = read(lists.values(), items.data_type(), way)?;
            let nulls = lists.nulls().cloned();
            Arc::new(LargeListArray::try_new(items.clone(), lists.offsets().clone(), items_read, nulls)?)
        }
        FixedSizeList(items, length) => {
            let lists = FixedSizeList(field(items, within[0].0), *length);
            let lists = cast_with_options(&take(values, &rows, None)?, &lists, &options)?;
            let lists = lists.as_fixed_size_list();
            let items_read = read(lists.values(), items.data_type(), way)?;
            Arc::new(FixedSizeListArray::try_new(items.clone(), *length, items_read, lists.nulls().cloned())?)
        }
        Map(entries, is_ordered) => {
            let Struct(fields) = entries.data_type() else { return read_items(values, to, way) };
            let maps = take(values, &rows, None)?;
            let maps = maps.as_map();
            let parts = [maps.keys(), maps.values()].into_iter().zip(fields);
            let parts = parts.map(|(part, to)| read(part, to.data_type(), way)).collect::<Result<Vec<_>>>()?;
            // Keys that differ may be equal once they are cast.
            let wrong = repeating(&parts[0], maps.offsets())?;
            if !wrong.is_empty() && !way.may_fail {
                return Err(DataFusionError::Execution(KEY_TWICE.into()));
            }
            let is_right = (0..maps.len()).map(|map| wrong.binary_search(&map).is_err());
            let nulls = NullBuffer::union(maps.nulls(), Some(&NullBuffer::from_iter(is_right)));
            let pairs = StructArray::try_new(fields.clone(), parts, None)?;
            Arc::new(MapArray::try_new(entries.clone(), maps.offsets().clone(), pairs, nulls, *is_ordered)?)
        }
        Struct(fields) => {
            let is_none = is_null(values)?;
            let member = |(member, to): (&ArrayRef, &Arc<Field>)| read(&nullif(member, &is_none)?, to.data_type(), way);
            let members = values.as_struct().columns().iter().zip(fields).map(member).collect::<Result<_>>()?;
            Arc::new(StructArray::try_new(fields.clone(), members, values.nulls().cloned())?)
        }
        _ => values.clone(),
    })
}

/// Texts of lists, structs or maps as such, with texts within.
///
/// # Errors
/// A text that is none, unless the cast may fail.
fn taken_apart(values: &ArrayRef, to: &DataType, way: &Way) -> Result<ArrayRef> {
    let texts = cast(values, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>();
    fn each<T>(
        texts: &StringArray,
        way: &Way,
        to: &DataType,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<Option<T>>> {
        let wrong = |text: &str| DataFusionError::Execution(format!("'{text}' is no {}", sql_name(to)));
        let one = |text: Option<&str>| match text.map(|text| (text, read(text))) {
            Some((text, None)) if !way.may_fail => Err(wrong(text)),
            read => Ok(read.and_then(|(_, read)| read)),
        };
        texts.iter().map(one).collect()
    }
    match to {
        DataType::Struct(fields) => {
            // Members that are left out are NULL, and others are wrong.
            let members = |text: &str| {
                let pairs = nested_texts::pairs(text)?;
                let mut members: Vec<Item> = vec![None; fields.len()];
                for (name, value) in pairs {
                    let place = fields.iter().position(|field| field.name().eq_ignore_ascii_case(&name))?;
                    members[place] = value;
                }
                Some(members)
            };
            let rows = each(texts, way, to, members)?;
            let member = |place: usize| -> ArrayRef {
                let values = rows.iter().map(|row| row.as_ref().and_then(|row| row[place].clone()));
                Arc::new(StringArray::from_iter(values))
            };
            let columns = (0..fields.len()).map(member).collect();
            let fields: Fields = fields.iter().map(|field| Field::new(field.name(), DataType::Utf8, true)).collect();
            let nulls = NullBuffer::from_iter(rows.iter().map(Option::is_some));
            Ok(Arc::new(StructArray::try_new(fields, columns, Some(nulls))?))
        }
        DataType::Map(..) => {
            let mut maps = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
            for row in each(texts, way, to, nested_texts::pairs)? {
                let is_there = row.is_some();
                for (key, value) in row.into_iter().flatten() {
                    maps.keys().append_value(key);
                    maps.values().append_option(value);
                }
                maps.append(is_there)?;
            }
            Ok(Arc::new(maps.finish()))
        }
        _ => {
            let mut lists = ListBuilder::new(StringBuilder::new());
            each(texts, way, to, nested_texts::items)?.into_iter().for_each(|row| lists.append_option(row));
            Ok(Arc::new(lists.finish()))
        }
    }
}

/// Single values as values of another type.
fn read_items(values: &ArrayRef, to: &DataType, way: &Way) -> Result<ArrayRef> {
    let (expr, _) = way.of_item(values.data_type(), to)?;
    let schema = schema_of(values.data_type());
    let rows = RecordBatch::try_new(schema.clone(), vec![values.clone()])?;
    let expr = create_physical_expr(&expr, &DFSchema::try_from(schema)?, &ExecutionProps::new(), &Default::default())?;
    expr.evaluate(&rows)?.into_array(values.len())
}

/// Texts as values of a type, as casts read them.
///
/// # Errors
/// A text that is none.
pub(crate) fn read_texts(texts: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    read_items(texts, to, &Way { may_fail: false, zone: None })
}

/// A text as a value of a type, as casts read it.
pub(crate) fn cast_of_text(text: Expr, to: &DataType) -> Result<Expr> {
    let (cast, _) = Way { may_fail: false, zone: None }.of_item(&DataType::Utf8, to)?;
    let item = Expr::Column(Column::from_name(ITEM));
    let of_text = |expr: Expr| Ok(if expr == item { Transformed::yes(text.clone()) } else { Transformed::no(expr) });
    Ok(cast.transform_up(of_text)?.data)
}

fn schema_of(data_type: &DataType) -> Arc<Schema> {
    Arc::new(Schema::new(vec![Field::new(ITEM, data_type.clone(), true)]))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::TimeUnit;

    use super::*;

    #[test]
    fn a_function_is_found_by_its_name() {
        let list = DataType::new_list(DataType::Int32, true);
        for (may_fail, zone) in [(false, None), (true, None), (true, Some("America/New_York"))] {
            let way = Way { may_fail, zone: zone.map(str::to_string) };
            let made = ScalarUDF::new_from_impl(NestedCast::new(&list, way));
            assert_eq!(*function(made.name()).expect("a function of that name"), made);
        }
        assert!(function("warpcube_nested_").is_none());
    }

    #[test]
    fn casts_with_a_mended_rule_within_are_taken() {
        let list = |items: DataType| DataType::new_list(items, true);
        let decimal = DataType::Decimal128(2, 1);
        let of = |data_type: DataType| DataType::Struct(vec![Field::new("a", data_type, true)].into());
        let in_zone = |from: &DataType, to: &DataType, zone: &str| {
            super::is_taken(from, to, &Way { may_fail: false, zone: Some(zone.into()) })
        };
        let is_taken = |from: &DataType, to: &DataType| in_zone(from, to, "UTC");
        let instant = DataType::Timestamp(TimeUnit::Nanosecond, Some("Europe/Berlin".into()));
        let wall = DataType::Timestamp(TimeUnit::Nanosecond, None);
        assert!(in_zone(&list(instant.clone()), &list(wall.clone()), "Europe/Berlin"));
        assert!(!in_zone(&list(instant.clone()), &list(instant), "Europe/Berlin"));
        assert!(is_taken(&list(decimal.clone()), &list(DataType::Int32)));
        assert!(is_taken(&list(list(decimal.clone())), &list(list(DataType::Int32))));
        assert!(is_taken(&of(list(decimal.clone())), &of(list(DataType::Int32))));
        assert!(is_taken(&list(DataType::Utf8), &list(DataType::Int32)));
        assert!(is_taken(&list(DataType::Int64), &list(DataType::Int32)));
        assert!(!is_taken(&list(DataType::Utf8View), &list(DataType::Utf8)));
        assert!(!is_taken(&list(DataType::Int32), &list(DataType::Int64)));
        assert!(!is_taken(&decimal, &DataType::Int32));
        assert!(!is_taken(&list(DataType::Int32), &of(DataType::Int32)));
    }
}
