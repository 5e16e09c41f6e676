//! Casts of lists and structs cast what is within them as casts of single values do.
//!
//! DataFusion 55.2 leaves such casts to Arrow, whose rules for values are those that the other files here mend: `[1.7]`
//! as INT[] is cut off to 1, a text with an exponent is no decimal, and an offset moves a date. Here the items of lists
//! and the members of structs go through the mended cast of their own types. Structs whose members have other names
//! or another order are DataFusion's to match, and so are maps.
//!
//! The file goes with the others.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, LargeListArray, ListArray, RecordBatch, StructArray, UInt32Array,
};
use arrow::compute::{CastOptions, cast_with_options, is_null, nullif, take};
use arrow::datatypes::{DataType, Field, Fields, Schema};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TryCast, Volatility,
};
use datafusion::physical_expr::create_physical_expr;

use super::conversion::{Conversion, is_text};
use super::{each_value, single_casts};

/// The column of values that are cast.
const ITEM: &str = "item";

/// Whether a cast from one type to another has values within that are cast by a mended rule, or may raise.
fn is_taken(from: &DataType, to: &DataType) -> bool {
    pairs(from, to).is_some_and(|pairs| {
        let is_mended = |from: &DataType, to: &DataType| of_item(from, to, false).is_ok_and(|(_, is_mended)| is_mended);
        let of_item = |from: &DataType, to: &DataType| from != to && (may_raise(from, to) || is_mended(from, to));
        pairs.into_iter().any(|(from, to)| is_taken(from, to) || of_item(from, to))
    })
}

/// Whether a cast of texts to others, or of numbers to narrower ones, may raise.
fn may_raise(from: &DataType, to: &DataType) -> bool {
    let is_narrower = || from.primitive_width() > to.primitive_width() && from.is_numeric() && to.is_numeric();
    is_text(from) && !is_text(to) || is_narrower()
}

/// What casts the items of lists and the members of structs in a cast's place; none for other casts.
pub(super) fn of_items(cast: &Conversion) -> Option<Expr> {
    let function = || ScalarUDF::new_from_impl(NestedCast::new(cast.to, cast.may_fail));
    is_taken(&cast.from, cast.to).then(|| function().call(vec![cast.operand.clone()]))
}

/// The function of a name, for plans that come from another session.
pub(super) fn function(name: &str) -> Option<Arc<ScalarUDF>> {
    let target = |front: &str| name.strip_prefix(front)?.parse::<DataType>().ok();
    let (to, may_fail) = target(NAME).map(|to| (to, false)).or_else(|| Some((target(TRY_NAME)?, true)))?;
    Some(Arc::new(ScalarUDF::new_from_impl(NestedCast::new(&to, may_fail))))
}

/// How the names of functions begin that raise, and that give NULL, for what does not fit; the type follows.
const NAME: &str = "warpcube_nested_";
const TRY_NAME: &str = "warpcube_try_nested_";

/// A cast of what is within lists and structs; no statement can call it, since no registry has it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NestedCast {
    name: String,
    to: DataType,
    may_fail: bool,
    signature: Signature,
}

impl NestedCast {
    fn new(to: &DataType, may_fail: bool) -> NestedCast {
        let name = format!("{}{to}", if may_fail { TRY_NAME } else { NAME });
        NestedCast { name, to: to.clone(), may_fail, signature: Signature::any(1, Volatility::Immutable) }
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
        each_value(&arguments.args[0], |values| read(values, &self.to, self.may_fail))
    }
}

/// The types of what is within values of two types, one beside the other; none where nothing is, or not alike.
pub(super) fn pairs<'a>(from: &'a DataType, to: &'a DataType) -> Option<Vec<(&'a DataType, &'a DataType)>> {
    use DataType::{FixedSizeList, LargeList, List, Struct};
    match (from, to) {
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

/// Values as values of another type; what does not fit becomes NULL where it `may_fail`.
///
/// # Errors
/// Those of the casts of single values.
fn read(values: &ArrayRef, to: &DataType, may_fail: bool) -> Result<ArrayRef> {
    use DataType::{FixedSizeList, LargeList, List, Struct};
    let from = values.data_type();
    if from == to {
        return Ok(values.clone());
    }
    let Some(within) = pairs(from, to) else { return read_items(values, to, may_fail) };
    let options = CastOptions { safe: may_fail, ..CastOptions::default() };
    // The items of lists that are NULL, or no row's, are cast to nothing.
    let rows = UInt32Array::from_iter_values(0..values.len() as u32);
    let field = |field: &Field, data_type: &DataType| Arc::new(field.clone().with_data_type(data_type.clone()));
    Ok(match to {
        // Lists of the wanted kind with items as they are, which are then cast.
        List(items) => {
            let lists = cast_with_options(&take(values, &rows, None)?, &List(field(items, within[0].0)), &options)?;
            let lists = lists.as_list::<i32>();
            let items_read = read(lists.values(), items.data_type(), may_fail)?;
            let nulls = lists.nulls().cloned();
            Arc::new(ListArray::try_new(items.clone(), lists.offsets().clone(), items_read, nulls)?)
        }
        LargeList(items) => {
            let lists =
                cast_with_options(&take(values, &rows, None)?, &LargeList(field(items, within[0].0)), &options)?;
            let lists = lists.as_list::<i64>();
            let items_read = read(lists.values(), items.data_type(), may_fail)?;
            let nulls = lists.nulls().cloned();
            Arc::new(LargeListArray::try_new(items.clone(), lists.offsets().clone(), items_read, nulls)?)
        }
        FixedSizeList(items, length) => {
            let lists = FixedSizeList(field(items, within[0].0), *length);
            let lists = cast_with_options(&take(values, &rows, None)?, &lists, &options)?;
            let lists = lists.as_fixed_size_list();
            let items_read = read(lists.values(), items.data_type(), may_fail)?;
            Arc::new(FixedSizeListArray::try_new(items.clone(), *length, items_read, lists.nulls().cloned())?)
        }
        Struct(fields) => {
            let is_none = is_null(values)?;
            let member =
                |(member, to): (&ArrayRef, &Arc<Field>)| read(&nullif(member, &is_none)?, to.data_type(), may_fail);
            let members = values.as_struct().columns().iter().zip(fields).map(member).collect::<Result<_>>()?;
            Arc::new(StructArray::try_new(fields.clone(), members, values.nulls().cloned())?)
        }
        _ => values.clone(),
    })
}

/// Single values as values of another type.
fn read_items(values: &ArrayRef, to: &DataType, may_fail: bool) -> Result<ArrayRef> {
    let (expr, _) = of_item(values.data_type(), to, may_fail)?;
    let schema = schema_of(values.data_type());
    let rows = RecordBatch::try_new(schema.clone(), vec![values.clone()])?;
    let expr = create_physical_expr(&expr, &DFSchema::try_from(schema)?, &ExecutionProps::new(), &Default::default())?;
    expr.evaluate(&rows)?.into_array(values.len())
}

/// The cast of a column of single values, and whether it is a mended one.
fn of_item(from: &DataType, to: &DataType, may_fail: bool) -> Result<(Expr, bool)> {
    let item = Box::new(Expr::Column(Column::from_name(ITEM)));
    let plain = match may_fail {
        true => Expr::TryCast(TryCast::new(item, to.clone())),
        false => Expr::Cast(Cast::new(item, to.clone())),
    };
    let schema = DFSchema::try_from(schema_of(from))?;
    let mended = Conversion::of(&plain, &schema).and_then(|cast| single_casts::mended(&cast, false));
    let is_mended = mended.is_some();
    Ok((mended.unwrap_or(plain), is_mended))
}

fn schema_of(data_type: &DataType) -> Arc<Schema> {
    Arc::new(Schema::new(vec![Field::new(ITEM, data_type.clone(), true)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_found_by_its_name() {
        let list = DataType::new_list(DataType::Int32, true);
        for may_fail in [false, true] {
            let made = ScalarUDF::new_from_impl(NestedCast::new(&list, may_fail));
            assert_eq!(*function(made.name()).expect("a function of that name"), made);
        }
        assert!(function("warpcube_nested_").is_none());
    }

    #[test]
    fn casts_with_a_mended_rule_within_are_taken() {
        let list = |items: DataType| DataType::new_list(items, true);
        let decimal = DataType::Decimal128(2, 1);
        let of = |data_type: DataType| DataType::Struct(vec![Field::new("a", data_type, true)].into());
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
