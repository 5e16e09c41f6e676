//! CORR, COVAR_SAMP, COVAR_POP and REGR_*: of integers and decimals exact until the last step, of floats by moments.
//!
//! DataFusion 55.2 makes doubles of integers and decimals, and correlates groups by sums of squares, whose digits
//! cancel where values are large beside their differences. Here sums of integers and decimals have 256 bits, as those
//! of variances have ([`super::variances`]), and the device's end in the same last step ([`PairSums::moments`]). Floats
//! have means and sums of deviations from them ([`Moments`]); over windows they are [`super::sliding`]'s.
//!
//! The file goes once DataFusion adds such values exactly, and correlates by moments.

use std::fmt;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray, UInt64Array};
use arrow::datatypes::{
    DECIMAL256_MAX_PRECISION, DataType, Decimal128Type, Decimal256Type, Field, FieldRef, Float64Type, UInt64Type, i256,
};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};

use super::exact_sums::{deviations, exact_values, rounded, scale_of};
use super::moments::{Moments, Statistic};

/// The names of the columns of a state behind the count.
const PARTS: [&str; 5] = ["one", "other", "squares_of_one", "squares_of_other", "products"];

/// A statistic of pairs.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Pairs {
    /// DataFusion's function.
    original: Arc<AggregateUDF>,
    statistic: Statistic,
    /// Digits after the point of both values; of floats none.
    scales: Option<[i8; 2]>,
    signature: Signature,
}

impl Pairs {
    /// The function in place of DataFusion's, for values of these types; none if it is another one, or they are.
    pub(super) fn of(function: &Arc<AggregateUDF>, types: [&DataType; 2]) -> Option<Arc<AggregateUDF>> {
        let statistic = Statistic::of_pairs(function)?;
        let scales = match types.map(scale_of) {
            [Some(one), Some(other)] => Some([one, other]),
            _ if types == [&DataType::Float64; 2] => None,
            _ => return None,
        };
        let signature = Signature::any(2, Volatility::Immutable);
        let own = Pairs { original: function.clone(), statistic, scales, signature };
        Some(Arc::new(AggregateUDF::new_from_impl(own)))
    }
}

impl AggregateUDFImpl for Pairs {
    fn name(&self) -> &str {
        self.original.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(type_of(self.statistic))
    }

    fn is_nullable(&self) -> bool {
        self.original.is_nullable()
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.original.default_value(data_type)
    }

    fn accumulator(&self, _arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(match self.scales {
            Some(scales) => Box::new(One(Groups::<PairSums>::new(self.statistic, scales))),
            None => Box::new(One(Groups::<Moments>::new(self.statistic, [0; 2]))),
        })
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let field = |name, data_type| Arc::new(Field::new(format_state_name(arguments.name, name), data_type, true));
        let part = if self.scales.is_some() { PairSums::part_type() } else { Moments::part_type() };
        let parts = PARTS.iter().map(|name| field(name, part.clone()));
        Ok(std::iter::once(field("count", DataType::UInt64)).chain(parts).collect())
    }

    fn groups_accumulator_supported(&self, _arguments: AccumulatorArgs) -> bool {
        true
    }

    fn create_groups_accumulator(&self, _arguments: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(match self.scales {
            Some(scales) => Box::new(Groups::<PairSums>::new(self.statistic, scales)),
            None => Box::new(Groups::<Moments>::new(self.statistic, [0; 2])),
        })
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }
}

fn type_of(statistic: Statistic) -> DataType {
    if statistic == Statistic::Count { DataType::UInt64 } else { DataType::Float64 }
}

/// Exact sums of pairs, as integers of their last digits, of their squares and of their products.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PairSums {
    pub(crate) count: u64,
    pub(crate) sums: [i256; 2],
    pub(crate) squares: [i256; 2],
    pub(crate) products: i256,
}

impl PairSums {
    /// The moments of values with so many digits after the point, each rounded a few times.
    pub(crate) fn moments(&self, scales: [i8; 2]) -> Moments {
        if self.count == 0 {
            return Moments::default();
        }
        let PairSums { count, sums, squares, products } = *self;
        let n = count as f64;
        let units = |scale: i32| 10f64.powi(scale);
        let [one, other] = scales.map(i32::from);
        let means = [rounded(sums[0]) / n / units(one), rounded(sums[1]) / n / units(other)];
        let of = |sums, products, scale| deviations(sums, products, count) / n / units(scale);
        let squares = [of([sums[0]; 2], squares[0], 2 * one), of([sums[1]; 2], squares[1], 2 * other)];
        Moments::new(count, means, squares, of(sums, products, one + other))
    }
}

/// What pairs of a group are added to.
trait State: fmt::Debug + Copy + Default + Send + Sync + 'static {
    /// Values of pairs.
    type Value: ArrowPrimitiveType;
    /// Parts of a state behind the count.
    type Part: ArrowPrimitiveType;

    fn part_type() -> DataType;

    /// A column as values.
    fn values(column: &ArrayRef) -> Result<ArrayRef>;

    fn add(&mut self, pair: [<Self::Value as ArrowPrimitiveType>::Native; 2]);

    /// Whether pairs may be taken away.
    fn takes_away() -> bool;

    fn take_away(&mut self, other: &Self);

    fn merge(&mut self, other: &Self);

    fn parts(&self) -> (u64, [<Self::Part as ArrowPrimitiveType>::Native; 5]);

    fn of_parts(count: u64, parts: [<Self::Part as ArrowPrimitiveType>::Native; 5]) -> Self;

    fn moments(&self, scales: [i8; 2]) -> Moments;
}

impl State for PairSums {
    type Value = Decimal128Type;
    type Part = Decimal256Type;

    fn part_type() -> DataType {
        DataType::Decimal256(DECIMAL256_MAX_PRECISION, 0)
    }

    fn values(column: &ArrayRef) -> Result<ArrayRef> {
        exact_values(column)
    }

    fn add(&mut self, pair: [i128; 2]) {
        let [one, other] = pair.map(i256::from_i128);
        let squares = [one.wrapping_mul(one), other.wrapping_mul(other)];
        self.merge(&PairSums { count: 1, sums: [one, other], squares, products: one.wrapping_mul(other) });
    }

    fn takes_away() -> bool {
        true
    }

    fn take_away(&mut self, other: &PairSums) {
        let (count, parts) = other.parts();
        let gone = PairSums::of_parts(0, parts.map(i256::wrapping_neg));
        self.merge(&gone);
        self.count -= count;
    }

    fn merge(&mut self, other: &PairSums) {
        let ((count, parts), (more, others)) = (self.parts(), other.parts());
        let sums = [0, 1, 2, 3, 4].map(|part: usize| parts[part].wrapping_add(others[part]));
        *self = PairSums::of_parts(count + more, sums);
    }

    fn parts(&self) -> (u64, [i256; 5]) {
        (self.count, [self.sums[0], self.sums[1], self.squares[0], self.squares[1], self.products])
    }

    fn of_parts(count: u64, [one, other, squares, squares_of_other, products]: [i256; 5]) -> PairSums {
        PairSums { count, sums: [one, other], squares: [squares, squares_of_other], products }
    }

    fn moments(&self, scales: [i8; 2]) -> Moments {
        PairSums::moments(self, scales)
    }
}

impl State for Moments {
    type Value = Float64Type;
    type Part = Float64Type;

    fn part_type() -> DataType {
        DataType::Float64
    }

    fn values(column: &ArrayRef) -> Result<ArrayRef> {
        Ok(column.clone())
    }

    fn add(&mut self, pair: [f64; 2]) {
        Moments::add(self, pair);
    }

    fn takes_away() -> bool {
        false
    }

    fn take_away(&mut self, _other: &Moments) {}

    fn merge(&mut self, other: &Moments) {
        *self = Moments::merge(self, other);
    }

    fn parts(&self) -> (u64, [f64; 5]) {
        Moments::parts(self)
    }

    fn of_parts(count: u64, [one, other, squares, squares_of_other, products]: [f64; 5]) -> Moments {
        Moments::new(count, [one, other], [squares, squares_of_other], products)
    }

    fn moments(&self, _scales: [i8; 2]) -> Moments {
        *self
    }
}

/// A state for each group.
#[derive(Debug)]
struct Groups<S> {
    statistic: Statistic,
    scales: [i8; 2],
    states: Vec<S>,
}

impl<S: State> Groups<S> {
    fn new(statistic: Statistic, scales: [i8; 2]) -> Groups<S> {
        Groups { statistic, scales, states: Vec::new() }
    }

    /// Calls `visit` for the pairs of rows without NULL.
    fn pairs(
        columns: &[ArrayRef],
        mut visit: impl FnMut(usize, [<S::Value as ArrowPrimitiveType>::Native; 2]),
    ) -> Result<()> {
        let [one, other] = columns else { return Err(torn()) };
        let (one, other) = (S::values(one)?, S::values(other)?);
        let (one, other) = (one.as_primitive::<S::Value>(), other.as_primitive::<S::Value>());
        for row in 0..one.len() {
            if one.is_valid(row) && other.is_valid(row) {
                visit(row, [one.value(row), other.value(row)]);
            }
        }
        Ok(())
    }
}

fn torn() -> DataFusionError {
    DataFusionError::Internal("the state of a statistic of pairs is torn".into())
}

impl<S: State> GroupsAccumulator for Groups<S> {
    fn update_batch(
        &mut self,
        columns: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.states.resize(total, S::default());
        Groups::<S>::pairs(columns, |row, pair| {
            if filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row)) {
                self.states[groups[row]].add(pair);
            }
        })
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.states.resize(total, S::default());
        let [counts, parts @ ..] = states else { return Err(torn()) };
        let counts = counts.as_primitive::<UInt64Type>();
        let parts: Vec<&PrimitiveArray<S::Part>> = parts.iter().map(|part| part.as_primitive()).collect();
        let parts: [&PrimitiveArray<S::Part>; 5] = parts.try_into().map_err(|_| torn())?;
        for (row, group) in groups.iter().enumerate().filter(|(row, _)| counts.is_valid(*row)) {
            self.states[*group].merge(&S::of_parts(counts.value(row), parts.map(|part| part.value(row))));
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let states = emit_to.take_needed(&mut self.states);
        Ok(Moments::results(states.iter().map(|state| state.moments(self.scales)), self.statistic))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let (counts, parts): (Vec<_>, Vec<_>) = emit_to.take_needed(&mut self.states).iter().map(State::parts).unzip();
        let column = |at: usize| {
            let values = PrimitiveArray::<S::Part>::from_iter_values(parts.iter().map(|parts| parts[at]));
            Arc::new(values.with_data_type(S::part_type())) as ArrayRef
        };
        Ok(std::iter::once(Arc::new(UInt64Array::from(counts)) as ArrayRef).chain((0..5).map(column)).collect())
    }

    fn convert_to_state(&self, columns: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let rows = columns[0].len();
        let mut each = Groups::<S>::new(self.statistic, self.scales);
        each.update_batch(columns, &(0..rows).collect::<Vec<_>>(), filter, rows)?;
        each.state(EmitTo::All)
    }

    fn size(&self) -> usize {
        self.states.capacity() * size_of::<S>()
    }
}

/// The state of one group.
#[derive(Debug)]
struct One<S>(Groups<S>);

impl<S: State> Accumulator for One<S> {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.0.update_batch(columns, &vec![0; columns[0].len()], None, 1)
    }

    fn retract_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.0.states.resize(1, S::default());
        Groups::<S>::pairs(columns, |_, pair| {
            let mut gone = S::default();
            gone.add(pair);
            self.0.states[0].take_away(&gone);
        })
    }

    fn supports_retract_batch(&self) -> bool {
        S::takes_away()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.0.merge_batch(states, &vec![0; states[0].len()], 1)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let state = self.0.states.first().copied().unwrap_or_default();
        Ok(state.moments(self.0.scales).result(self.0.statistic))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.0.states.resize(1, S::default());
        let columns = self.0.state(EmitTo::All)?;
        columns.iter().map(|column| ScalarValue::try_from_array(column, 0)).collect()
    }

    fn size(&self) -> usize {
        size_of_val(self) + GroupsAccumulator::size(&self.0)
    }
}
