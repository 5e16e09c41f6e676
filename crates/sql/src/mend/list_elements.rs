//! Functions of lists and values: all are of one type, and `array_has` is false beside a NULL in the list.
//!
//! DataFusion 55.2 refuses `array_concat([1], NULL)`, whose NULL is a number there, and `array_has([1, 2], 1.5)`, a
//! BIGINT list and a decimal. Doubles become decimals beside some, as elsewhere ([`super::common_types`]). It makes
//! `x IN (1, NULL)` of `array_has([1, NULL], x)`, which is NULL where `x` is another value than 1; of a column of lists
//! it is false, as in DuckDB. Here NULL is a list among lists, a list and a value have the type that they are compared
//! in, and a list that is written out becomes one of IN without its NULLs, where all other elements are there in each
//! row. `array_distinct` and `array_intersect` keep a NULL in DataFusion, and here none, as in DuckDB;
//! `array_has_all` and `array_has_any` of NULL are NULL. DataFusion casts a key that is looked up in a map to the type
//! of its keys, so that `m[1.5]` finds 1, and `map_extract` gives a NULL for one that is not there: here an empty list.
//! `coalesce` takes no text beside a time there. `array_position`, `array_remove` and `array_replace` compare no
//! structs there: here they are given numbers in their place ([`by_numbers`]).
//!
//! The file goes once DataFusion's functions have types in common, and `array_has` one meaning.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, ListArray, UInt64Array};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{cast, concat, filter, is_not_null, nullif, take};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::common::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::functions_nested::expr_fn::array_element;
use datafusion::functions_nested::map_extract::map_extract_udf;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, lit,
};

use super::common_types::alike;
use super::each_value;
use crate::nested_keys::{has_keys, rows_of};

/// What an argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Role {
    List,
    /// A map, whose keys are of the type of its elements.
    Map,
    /// A value like the elements of the list.
    Value,
    Other,
}

/// Functions of lists and values like their elements, with the roles of their first arguments; those without are of
/// lists alone.
const NAMES: [(&str, &[Role]); 21] = {
    use Role::{List, Map, Other, Value};
    [
        (HAS, &[List, Value]),
        ("array_append", &[List, Value]),
        ("array_position", &[List, Value]),
        ("array_positions", &[List, Value]),
        ("array_remove", &[List, Value]),
        ("array_remove_all", &[List, Value]),
        ("array_remove_n", &[List, Value]),
        ("array_prepend", &[Value, List]),
        ("array_replace", &[List, Value, Value]),
        ("array_replace_all", &[List, Value, Value]),
        ("array_replace_n", &[List, Value, Value]),
        ("array_resize", &[List, Other, Value]),
        (MAP_EXTRACT, &[Map, Value]),
        (COALESCE, &[Value; 64]),
        ("array_concat", &[]),
        ("array_distinct", &[]),
        ("array_except", &[]),
        ("array_has_all", &[]),
        ("array_has_any", &[]),
        ("array_intersect", &[]),
        ("array_union", &[]),
    ]
};
const HAS: &str = "array_has";
/// How functions begin that look for a value in a list.
const SEARCHING: [&str; 3] = ["array_position", "array_remove", "array_replace"];
const MAP_EXTRACT: &str = "map_extract";
const COALESCE: &str = "coalesce";
/// Functions that give no NULLs.
const WITHOUT_NULLS: [&str; 2] = ["array_distinct", "array_intersect"];

/// Functions that are NULL where a list is.
const OF_BOTH: [&str; 2] = ["array_has_all", "array_has_any"];

/// The value of a key in a map: `m[k]`.
pub(super) fn of_key(map: Expr, key: Expr) -> Expr {
    let signature = Signature::user_defined(Volatility::Immutable);
    let extract = OfElements { original: map_extract_udf(), roles: &[Role::Map, Role::Value], signature };
    array_element(ScalarUDF::new_from_impl(extract).call(vec![map, key]), lit(1_i64))
}

/// The functions of a session, mended.
pub(super) fn functions(state: &SessionState) -> Vec<ScalarUDF> {
    let mended = |(name, roles): (&str, &'static [Role])| {
        let original = state.udf(name).ok()?;
        let signature = Signature::user_defined(Volatility::Immutable);
        Some(ScalarUDF::new_from_impl(OfElements { original, roles, signature }))
    };
    NAMES.into_iter().filter_map(mended).collect()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfElements {
    original: Arc<ScalarUDF>,
    roles: &'static [Role],
    signature: Signature,
}

impl ScalarUDFImpl for OfElements {
    fn name(&self) -> &str {
        self.original.name()
    }

    fn aliases(&self) -> &[String] {
        self.original.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.original.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<Arc<Field>> {
        self.original.return_field_from_args(args)
    }

    /// The types of elements and of values are that of a comparison; all else is as DataFusion has it.
    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if self.name() == COALESCE
            && let Ok(coerced) = self.original.coerce_types(types)
        {
            return Ok(coerced);
        }
        let mut types = in_common(self.roles, types).unwrap_or_else(|| types.to_vec());
        let list = types.iter().find(|own| !own.is_null()).cloned();
        if let Some(list) = list.filter(|_| self.roles.is_empty()) {
            types.iter_mut().filter(|own| own.is_null()).for_each(|own| *own = list.clone());
        }
        let fields: Vec<_> = types.iter().map(|kind| Arc::new(Field::new("", kind.clone(), true))).collect();
        let coerced = fields_with_udf(&fields, self.original.as_ref())?;
        Ok(coerced.iter().map(|field| field.data_type().clone()).collect())
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        if self.name() != HAS {
            return self.original.simplify(args, info);
        }
        let [list, value] = args.as_slice() else { return Ok(ExprSimplifyResult::Original(args)) };
        let Some(mut elements) = elements(list)? else { return Ok(ExprSimplifyResult::Original(args)) };
        elements.retain(|element| !matches!(element, Expr::Literal(value, _) if value.is_null()));
        let mut may_be_null = false;
        for element in &elements {
            may_be_null |= info.nullable(element)?;
        }
        if elements.is_empty() || may_be_null {
            return Ok(ExprSimplifyResult::Original(args));
        }
        Ok(ExprSimplifyResult::Simplified(value.clone().in_list(elements, false)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if self.name() == MAP_EXTRACT {
            return found_keys(&args);
        }
        if OF_BOTH.contains(&self.name()) {
            let (lists, rows) = (args.args.clone(), args.number_rows);
            return with_nulls(&self.original.invoke_with_args(args)?, &lists, rows);
        }
        let found = match self.roles.is_empty() || SEARCHING.iter().all(|begin| !self.name().starts_with(begin)) {
            true => self.original.invoke_with_args(args)?,
            false => by_numbers(self.original.as_ref(), self.roles, args)?,
        };
        match WITHOUT_NULLS.contains(&self.name()) {
            true => each_value(&found, without_nulls),
            false => Ok(found),
        }
    }

    fn short_circuits(&self) -> bool {
        self.original.short_circuits()
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.original.conditional_arguments(args)
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let original = Arc::new(self.original.inner().with_updated_config(config)?);
        Some(ScalarUDF::new_from_impl(OfElements { original, roles: self.roles, signature: self.signature.clone() }))
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.original.documentation()
    }
}

/// The field of the keys of a map, by that of its entries.
fn key_of(entries: &FieldRef) -> Option<&FieldRef> {
    match entries.data_type() {
        DataType::Struct(fields) => fields.first(),
        _ => None,
    }
}

/// The entries of a map with keys of a type.
fn with_keys(entries: &FieldRef, kind: DataType) -> FieldRef {
    let DataType::Struct(fields) = entries.data_type() else { return entries.clone() };
    let keys = fields.iter().take(1).map(|key| Arc::new(key.as_ref().clone().with_data_type(kind.clone())));
    let fields = keys.chain(fields.iter().skip(1).cloned()).collect();
    Arc::new(entries.as_ref().clone().with_data_type(DataType::Struct(fields)))
}

/// A call over structs and maps, of which each has the number of the first one that equals it.
fn by_numbers(function: &ScalarUDF, roles: &[Role], mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    let is_compared = |kind: &DataType| matches!(kind, DataType::Struct(_) | DataType::Map(..)) && has_keys(kind);
    let element = match args.arg_fields.first().map(|field| field.data_type()) {
        Some(DataType::List(field)) if is_compared(field.data_type()) => field.clone(),
        _ => return function.invoke_with_args(args),
    };
    let columns: Vec<ArrayRef> =
        args.args.iter().map(|argument| argument.to_array(args.number_rows)).collect::<Result<_>>()?;
    // Members of the same types may differ in whether they may be NULL.
    let values = |(place, column): (usize, &ArrayRef)| match roles.get(place) {
        Some(Role::List) => column.as_list_opt::<i32>().map(|lists| cast(lists.values(), element.data_type())),
        Some(Role::Value) => Some(cast(column, element.data_type())),
        _ => None,
    };
    let given: Vec<Option<ArrayRef>> =
        columns.iter().enumerate().map(|column| values(column).transpose()).collect::<std::result::Result<_, _>>()?;
    let all = concat(&given.iter().flatten().map(AsRef::as_ref).collect::<Vec<_>>())?;
    let keys = rows_of(&all)?;
    let mut seen = HashMap::new();
    let number = |at: usize| all.is_valid(at).then(|| *seen.entry(keys.row(at)).or_insert(at as i64));
    let numbers: Int64Array = (0..all.len()).map(number).collect();
    let item = Arc::new(Field::new_list_field(DataType::Int64, true));
    let mut first = 0;
    for (place, values) in given.iter().enumerate() {
        let Some(values) = values else { continue };
        let numbers: ArrayRef = Arc::new(numbers.slice(first, values.len()));
        first += values.len();
        let column: ArrayRef = match columns[place].as_list_opt::<i32>() {
            Some(lists) if roles[place] == Role::List => {
                let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
                Arc::new(ListArray::try_new(item.clone(), offsets, numbers, nulls)?)
            }
            _ => numbers,
        };
        args.arg_fields[place] = Arc::new(Field::new("", column.data_type().clone(), true));
        args.args[place] = ColumnarValue::Array(column);
    }
    let wanted = args.return_field.data_type().clone();
    let gives_elements = matches!(&wanted, DataType::List(field) if is_compared(field.data_type()));
    if gives_elements {
        args.return_field = Arc::new(Field::new("", DataType::List(item), true));
    }
    let found = function.invoke_with_args(args)?;
    if !gives_elements {
        return Ok(found);
    }
    each_value(&found, |lists| {
        let lists = lists.as_list::<i32>();
        let values = take(&all, lists.values(), None)?;
        let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
        Ok(cast(&ListArray::try_new(element.clone(), offsets, values, nulls)?, &wanted)?)
    })
}

/// The types of arguments whose elements and values are of one type; none where they are, or have none in common.
fn in_common(roles: &[Role], types: &[DataType]) -> Option<Vec<DataType>> {
    let role = |place: usize| match roles {
        [] => Role::List,
        roles => roles.get(place).copied().unwrap_or(Role::Other),
    };
    let of_place = |(place, own): (usize, &DataType)| {
        let kind = match (role(place), own) {
            (Role::List, DataType::List(items) | DataType::LargeList(items) | DataType::FixedSizeList(items, _)) => {
                items.data_type()
            }
            (Role::Map, DataType::Map(entries, _)) => key_of(entries)?.data_type(),
            (Role::Value, own) => own,
            _ => return None,
        };
        (!kind.is_null()).then(|| (place, kind.clone()))
    };
    let (places, own): (Vec<usize>, Vec<DataType>) = types.iter().enumerate().filter_map(of_place).unzip();
    if own.windows(2).all(|pair| pair[0] == pair[1]) {
        return None;
    }
    let mut kinds = alike(own);
    // The elements of lists alone are DataFusion's to bring together.
    if !roles.is_empty() {
        let mut all = kinds.iter().cloned();
        let first = all.next()?;
        let common = all.try_fold(first, |common, kind| comparison_coercion(&common, &kind))?;
        kinds.fill(common);
    }
    let mut types = types.to_vec();
    for (place, kind) in places.into_iter().zip(kinds) {
        types[place] = match &types[place] {
            DataType::Map(entries, is_sorted) if role(place) == Role::Map => {
                DataType::Map(with_keys(entries, kind), *is_sorted)
            }
            DataType::LargeList(items) if role(place) == Role::List => {
                DataType::LargeList(Arc::new(items.as_ref().clone().with_data_type(kind)))
            }
            DataType::List(items) | DataType::FixedSizeList(items, _) if role(place) == Role::List => {
                DataType::List(Arc::new(items.as_ref().clone().with_data_type(kind)))
            }
            _ => kind,
        };
    }
    Some(types)
}

/// The values of keys in maps, as lists without an element where there is no such key.
fn found_keys(args: &ScalarFunctionArgs) -> Result<ColumnarValue> {
    if args.args[0].data_type().is_null() {
        return Ok(args.args[0].clone());
    }
    let is_constant = args.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
    let rows = if is_constant { 1 } else { args.number_rows };
    let [maps, keys] = [args.args[0].to_array(rows)?, args.args[1].to_array(rows)?];
    let (Some(maps), DataType::List(item)) = (maps.as_map_opt(), args.return_field.data_type()) else {
        return Err(DataFusionError::Internal(format!("{MAP_EXTRACT} of a {}", maps.data_type())));
    };
    let sought = cast(&keys, maps.keys().data_type())?;
    let all = rows_of(&concat(&[maps.keys().as_ref(), sought.as_ref()])?)?;
    let (mut places, mut lengths) = (Vec::new(), Vec::with_capacity(rows));
    for row in 0..rows {
        let mut entries = maps.offsets()[row] as usize..maps.offsets()[row + 1] as usize;
        let is_sought = maps.is_valid(row) && sought.is_valid(row);
        let key = all.row(maps.keys().len() + row);
        let found = entries.find(|entry| is_sought && all.row(*entry) == key);
        places.extend(found.map(|place| place as u64));
        lengths.push(usize::from(found.is_some()));
    }
    let values = take(maps.values(), &UInt64Array::from(places), None)?;
    let lists = ListArray::try_new(item.clone(), OffsetBuffer::from_lengths(lengths), values, maps.nulls().cloned())?;
    Ok(match is_constant {
        true => ColumnarValue::Scalar(ScalarValue::try_from_array(&lists, 0)?),
        false => ColumnarValue::Array(Arc::new(lists)),
    })
}

/// The values of rows that have all arguments, and NULL for others.
fn with_nulls(found: &ColumnarValue, arguments: &[ColumnarValue], rows: usize) -> Result<ColumnarValue> {
    if arguments.iter().any(|argument| matches!(argument, ColumnarValue::Scalar(value) if value.is_null())) {
        return Ok(ColumnarValue::Scalar(ScalarValue::try_from(&found.data_type())?));
    }
    let columns = arguments.iter().filter_map(|argument| match argument {
        ColumnarValue::Array(column) => column.logical_nulls(),
        ColumnarValue::Scalar(_) => None,
    });
    let nulls = columns.reduce(|all, nulls| NullBuffer::union(Some(&all), Some(&nulls)).unwrap_or(all));
    let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else { return Ok(found.clone()) };
    let is_missing = BooleanArray::new(!nulls.inner(), None);
    Ok(ColumnarValue::Array(nullif(&found.to_array(rows)?, &is_missing)?))
}

/// The elements of a list that is a constant or is written out.
fn elements(list: &Expr) -> Result<Option<Vec<Expr>>> {
    match list {
        Expr::Literal(value @ (ScalarValue::List(_) | ScalarValue::LargeList(_)), _) if !value.is_null() => {
            let rows = ScalarValue::convert_array_to_scalar_vec(&value.to_array()?)?;
            Ok(Some(rows.into_iter().flatten().flatten().map(lit).collect()))
        }
        Expr::ScalarFunction(function) if function.func.name() == "make_array" => Ok(Some(function.args.clone())),
        _ => Ok(None),
    }
}

/// Lists without their NULLs.
fn without_nulls(lists: &ArrayRef) -> Result<ArrayRef> {
    match lists.as_list_opt::<i32>() {
        Some(lists) if lists.values().logical_null_count() > 0 => {
            let is_valid = is_not_null(lists.values())?;
            let lengths = lists
                .offsets()
                .windows(2)
                .map(|range| is_valid.slice(range[0] as usize, (range[1] - range[0]) as usize).true_count());
            let offsets = OffsetBuffer::from_lengths(lengths);
            let (first, last) = (lists.offsets()[0] as usize, lists.offsets()[lists.len()] as usize);
            let used = lists.values().slice(first, last - first);
            let values = filter(&used, &is_valid.slice(first, last - first))?;
            let DataType::List(field) = lists.data_type() else { return Ok(Arc::new(lists.clone())) };
            Ok(Arc::new(ListArray::try_new(field.clone(), offsets, values, lists.nulls().cloned())?))
        }
        _ => Ok(lists.clone()),
    }
}
