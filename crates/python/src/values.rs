//! Values of Arrow as objects of Python.

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, GenericListArray, OffsetSizeTrait, PrimitiveArray, RecordBatch,
    StructArray, new_null_array,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, DecimalType, DurationMicrosecondType, Float64Type, Int64Type,
    IntervalMonthDayNanoType, IntervalUnit, SchemaRef, Time64MicrosecondType, TimeUnit, TimestampMicrosecondType,
    UInt64Type,
};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use pyo3::{IntoPyObjectExt, intern};

type Object<'py> = Bound<'py, PyAny>;
/// Days from the first day that Python counts, 0001-01-01 with number 1, to 1970-01-01.
const EPOCH_ORDINAL: i64 = 719_163;
const SECOND_MICROS: i64 = 1_000_000;
const DAY_SECONDS: i64 = 86_400;
/// A month of an interval as days, as intervals are compared.
const MONTH_DAYS: i64 = 30;

/// Makes objects of values; holds the classes of Python that it needs.
pub(crate) struct Converter<'py> {
    none: Object<'py>,
    from_ordinal: Object<'py>,
    delta: Object<'py>,
    epoch: Object<'py>,
    utc_epoch: Object<'py>,
    decimal: Object<'py>,
    zone_info: Object<'py>,
}

impl<'py> Converter<'py> {
    pub(crate) fn new(py: Python<'py>) -> PyResult<Converter<'py>> {
        let datetime = py.import("datetime")?;
        let class = datetime.getattr("datetime")?;
        let utc = datetime.getattr("timezone")?.getattr("utc")?;
        Ok(Converter {
            none: py.None().into_bound(py),
            from_ordinal: datetime.getattr("date")?.getattr("fromordinal")?,
            delta: datetime.getattr("timedelta")?,
            epoch: class.call1((1970, 1, 1))?,
            utc_epoch: class.call1((1970, 1, 1, 0, 0, 0, 0, utc))?,
            decimal: py.import("decimal")?.getattr("Decimal")?,
            zone_info: py.import("zoneinfo")?.getattr("ZoneInfo")?,
        })
    }

    /// Appends the rows of a batch as tuples.
    pub(crate) fn append(
        &self,
        py: Python<'py>,
        schema: &SchemaRef,
        batch: &RecordBatch,
        rows: &Bound<'py, PyList>,
    ) -> PyResult<()> {
        let columns = batch.columns().iter().map(|column| self.column(py, column)).collect::<PyResult<Vec<_>>>()?;
        debug_assert_eq!(columns.len(), schema.fields().len());
        (0..batch.num_rows()).try_for_each(|row| rows.append(PyTuple::new(py, columns.iter().map(|it| &it[row]))?))
    }

    /// The objects of a column's values.
    fn column(&self, py: Python<'py>, array: &ArrayRef) -> PyResult<Vec<Object<'py>>> {
        match array.data_type() {
            DataType::Null => Ok(vec![self.none.clone(); array.len()]),
            DataType::Boolean => {
                let values = array.as_boolean().iter();
                values.map(|value| value.into_bound_py_any(py)).collect()
            }
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
                self.numbers::<Int64Type>(py, array, &DataType::Int64)
            }
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
                self.numbers::<UInt64Type>(py, array, &DataType::UInt64)
            }
            DataType::Float16 | DataType::Float32 | DataType::Float64 => {
                self.numbers::<Float64Type>(py, array, &DataType::Float64)
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                let texts = converted(array, &DataType::Utf8View)?;
                texts.as_string_view().iter().map(|text| text.into_bound_py_any(py)).collect()
            }
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
                let bytes = converted(array, &DataType::Binary)?;
                let object = |bytes: Option<&[u8]>| match bytes {
                    Some(bytes) => PyBytes::new(py, bytes).into_any(),
                    None => self.none.clone(),
                };
                Ok(bytes.as_binary::<i32>().iter().map(object).collect())
            }
            DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) => {
                self.column(py, &converted(array, &DataType::Decimal128(38, *scale))?)
            }
            DataType::Decimal128(..) => self.decimals::<Decimal128Type>(array),
            DataType::Decimal256(..) => self.decimals::<Decimal256Type>(array),
            DataType::Date32 | DataType::Date64 => self.each::<Date32Type>(array, &DataType::Date32, |days| {
                self.from_ordinal.call1((EPOCH_ORDINAL + i64::from(days),))
            }),
            DataType::Time32(_) | DataType::Time64(_) => {
                let unit = DataType::Time64(TimeUnit::Microsecond);
                self.each::<Time64MicrosecondType>(array, &unit, |micros| {
                    self.epoch.add(self.micros(micros)?)?.call_method0(intern!(py, "time"))
                })
            }
            DataType::Timestamp(_, None) => {
                let unit = DataType::Timestamp(TimeUnit::Microsecond, None);
                self.each::<TimestampMicrosecondType>(array, &unit, |micros| self.epoch.add(self.micros(micros)?))
            }
            DataType::Timestamp(_, Some(zone)) => {
                let unit = DataType::Timestamp(TimeUnit::Microsecond, Some(zone.clone()));
                let zone = self.zone(py, zone)?;
                self.each::<TimestampMicrosecondType>(array, &unit, |micros| {
                    self.utc_epoch.add(self.micros(micros)?)?.call_method1(intern!(py, "astimezone"), (&zone,))
                })
            }
            DataType::Duration(_) => {
                let unit = DataType::Duration(TimeUnit::Microsecond);
                self.each::<DurationMicrosecondType>(array, &unit, |micros| self.micros(micros))
            }
            DataType::Interval(_) => {
                let unit = DataType::Interval(IntervalUnit::MonthDayNano);
                self.each::<IntervalMonthDayNanoType>(array, &unit, |value| {
                    let days = i64::from(value.months) * MONTH_DAYS + i64::from(value.days);
                    self.delta.call1((days, 0, value.nanoseconds / 1000))
                })
            }
            DataType::List(_) => self.lists(py, array.as_list::<i32>()),
            DataType::LargeList(_) => self.lists(py, array.as_list::<i64>()),
            DataType::ListView(field) | DataType::LargeListView(field) | DataType::FixedSizeList(field, _) => {
                self.column(py, &converted(array, &DataType::LargeList(field.clone()))?)
            }
            DataType::Struct(_) => self.structs(py, array.as_struct()),
            DataType::Map(..) => {
                let map = array.as_map();
                let entries = map.entries();
                let keys = self.column(py, entries.column(0))?;
                let values = self.column(py, entries.column(1))?;
                let offsets = map.value_offsets();
                let dict = |row: usize| {
                    if map.is_null(row) {
                        return Ok(self.none.clone());
                    }
                    let dict = PyDict::new(py);
                    let places = offsets[row] as usize..offsets[row + 1] as usize;
                    places.into_iter().try_for_each(|at| dict.set_item(&keys[at], &values[at]))?;
                    Ok(dict.into_any())
                };
                (0..map.len()).map(dict).collect()
            }
            DataType::Dictionary(_, value) => self.column(py, &converted(array, value)?),
            DataType::RunEndEncoded(_, values) => self.column(py, &converted(array, values.data_type())?),
            DataType::Union(..) => {
                let options = FormatOptions::default();
                let texts = ArrayFormatter::try_new(array, &options).map_err(failed)?;
                let text = |row| Ok(PyString::new(py, &texts.value(row).try_to_string().map_err(failed)?).into_any());
                (0..array.len()).map(text).collect()
            }
        }
    }

    fn numbers<T: ArrowPrimitiveType>(
        &self,
        py: Python<'py>,
        array: &ArrayRef,
        wide: &DataType,
    ) -> PyResult<Vec<Object<'py>>>
    where
        T::Native: IntoPyObject<'py>,
    {
        self.each::<T>(array, wide, |value| value.into_bound_py_any(py))
    }

    /// The objects of values of one type, to which the array is cast.
    fn each<T: ArrowPrimitiveType>(
        &self,
        array: &ArrayRef,
        cast_to: &DataType,
        object: impl Fn(T::Native) -> PyResult<Object<'py>>,
    ) -> PyResult<Vec<Object<'py>>> {
        let array = converted(array, cast_to)?;
        let values: &PrimitiveArray<T> = array.as_primitive();
        values.iter().map(|value| value.map_or_else(|| Ok(self.none.clone()), &object)).collect()
    }

    fn decimals<T: DecimalType>(&self, array: &ArrayRef) -> PyResult<Vec<Object<'py>>> {
        let values: &PrimitiveArray<T> = array.as_primitive();
        let object = |row| match values.is_null(row) {
            true => Ok(self.none.clone()),
            false => self.decimal.call1((values.value_as_string(row),)),
        };
        (0..values.len()).map(object).collect()
    }

    fn lists<O: OffsetSizeTrait>(&self, py: Python<'py>, lists: &GenericListArray<O>) -> PyResult<Vec<Object<'py>>> {
        let (offsets, values) = (lists.value_offsets(), lists.values());
        let (first, last) = (offsets[0].as_usize(), offsets[lists.len()].as_usize());
        let values = self.column(py, &values.slice(first, last - first))?;
        let list = |row: usize| match lists.is_null(row) {
            true => Ok(self.none.clone()),
            false => {
                let places = offsets[row].as_usize() - first..offsets[row + 1].as_usize() - first;
                Ok(PyList::new(py, &values[places])?.into_any())
            }
        };
        (0..lists.len()).map(list).collect()
    }

    fn structs(&self, py: Python<'py>, structs: &StructArray) -> PyResult<Vec<Object<'py>>> {
        let columns = structs.columns().iter().map(|column| self.column(py, column)).collect::<PyResult<Vec<_>>>()?;
        let dict = |row: usize| {
            if structs.is_null(row) {
                return Ok(self.none.clone());
            }
            let dict = PyDict::new(py);
            for (name, values) in structs.column_names().into_iter().zip(&columns) {
                dict.set_item(name, &values[row])?;
            }
            Ok(dict.into_any())
        };
        (0..structs.len()).map(dict).collect()
    }

    /// A difference of times.
    fn micros(&self, micros: i64) -> PyResult<Object<'py>> {
        let seconds = micros.div_euclid(SECOND_MICROS);
        let (days, seconds) = (seconds.div_euclid(DAY_SECONDS), seconds.rem_euclid(DAY_SECONDS));
        self.delta.call1((days, seconds, micros.rem_euclid(SECOND_MICROS)))
    }

    /// A zone by its name, or by its offset as `+02:00`.
    fn zone(&self, py: Python<'py>, name: &str) -> PyResult<Object<'py>> {
        if !name.starts_with(['+', '-']) {
            return self.zone_info.call1((name,));
        }
        let format = intern!(py, "%z");
        self.epoch.get_type().call_method1("strptime", (name, format))?.getattr("tzinfo")
    }
}

/// The array as another type has its values.
fn converted(array: &ArrayRef, data_type: &DataType) -> PyResult<ArrayRef> {
    if array.data_type() == data_type {
        return Ok(array.clone());
    }
    if array.null_count() == array.len() {
        return Ok(new_null_array(data_type, array.len()));
    }
    cast(array, data_type).map_err(failed)
}

fn failed(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}
