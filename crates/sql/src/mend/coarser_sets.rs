//! The operator that makes the groups of coarser sets of the states of finer groups.
//!
//! States are collected and united. Then each set, those of most keys first, is made of the smallest set there with all
//! of its keys. What fits into memory is a lot; the next lot may give the same groups again, which the final
//! aggregation unites, as it does those of partitions.
//!
//! Each finest set has states of all rows, in other partitions and lots than those of another one: a coarser set is
//! made of one finest set and of what is made of that one, the same everywhere.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, RecordBatch, UInt64Array, new_null_array};
use arrow::compute::kernels::cmp::eq;
use arrow::compute::{cast, filter_record_batch};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Aggregate, EmitTo};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::execution_plan::{EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, InputDistributionRequirements, Partitioning,
    PlanProperties, collect,
};
use futures::{StreamExt, TryStreamExt, stream};

use crate::shared::bytes_of;

/// Bytes of a lot.
const LOT_BYTES: usize = 64 << 20;

/// Whether a set has all keys of another; each tells the keys that it lacks.
pub(super) fn contains(set: &[bool], other: &[bool]) -> bool {
    set.iter().zip(other).all(|(lacks, other_lacks)| !lacks || *other_lacks)
}

/// The number of a set that came `before` times before.
fn number(set: &[bool], before: u64) -> u64 {
    set.iter().fold(before, |number, lacks| number << 1 | u64::from(*lacks))
}

/// One set.
#[derive(Debug)]
struct Set {
    /// For each key whether the set lacks it.
    lacks: Vec<bool>,
    /// The numbers under which its groups are given: a set comes as often as it is named.
    numbers: Vec<u64>,
    /// The finest set that it is made of; itself if its states come from below.
    finest: usize,
    /// The columns of its groups: its keys, or a number where it has none, and the states.
    schema: SchemaRef,
}

impl Set {
    /// The columns before the states.
    fn keys(&self) -> usize {
        self.lacks.iter().filter(|lacks| !**lacks).count().max(1)
    }

    /// The place of a key among the columns.
    fn place(&self, key: usize) -> Option<usize> {
        (!self.lacks[key]).then(|| self.lacks[..key].iter().filter(|lacks| !**lacks).count())
    }
}

/// The sets of an aggregation, those of most keys first.
#[derive(Debug)]
struct Sets {
    sets: Vec<Set>,
    /// How many keys there are.
    keys: usize,
    /// Whether the states below have the number of their set behind the keys.
    is_numbered: bool,
    aggregates: Vec<Arc<AggregateFunctionExpr>>,
    /// The columns of the rows that are aggregated.
    rows: SchemaRef,
    /// Keys, the number of the set, states.
    output: SchemaRef,
}

impl Sets {
    fn of(finest: &AggregateExec, groups: &[Vec<bool>], output: SchemaRef) -> Sets {
        let keys = finest.group_expr().expr().len();
        let states = &output.fields()[keys + 1..];
        let mut named: Vec<(Vec<bool>, Vec<u64>)> = Vec::new();
        for lacks in groups {
            match named.iter_mut().find(|(known, _)| known == lacks) {
                Some((_, numbers)) => numbers.push(number(lacks, numbers.len() as u64)),
                None => named.push((lacks.clone(), vec![number(lacks, 0)])),
            }
        }
        named.sort_by_key(|(lacks, _)| lacks.iter().filter(|lacks| **lacks).count());
        // Of several finest sets the one of fewest keys.
        let is_finest = |lacks: &Vec<bool>| finest.group_expr().groups().contains(lacks);
        let of_finest = |set: usize| {
            let is_finer = |(lacks, _): &(Vec<bool>, Vec<u64>)| is_finest(lacks) && contains(lacks, &named[set].0);
            named.iter().rposition(is_finer).unwrap_or(set)
        };
        let finest_of: Vec<usize> = (0..named.len()).map(of_finest).collect();
        let set = |((lacks, numbers), finest): ((Vec<bool>, Vec<u64>), usize)| {
            let own = output.fields()[..keys].iter().zip(&lacks).filter(|(_, lacks)| !**lacks);
            let mut fields: Vec<_> = own.map(|(field, _)| field.clone()).collect();
            if fields.is_empty() {
                fields.push(Arc::new(Field::new(Aggregate::INTERNAL_GROUPING_ID, DataType::UInt64, false)));
            }
            fields.extend(states.iter().cloned());
            Set { lacks, numbers, finest, schema: Arc::new(Schema::new(fields)) }
        };
        Sets {
            sets: named.into_iter().zip(finest_of).map(set).collect(),
            keys,
            is_numbered: finest.group_expr().has_grouping_set(),
            aggregates: finest.aggr_expr().to_vec(),
            rows: finest.input_schema(),
            output,
        }
    }

    /// The rows of states for a set: `key` gives the column of a key.
    fn rows_for(
        &self,
        set: usize,
        key: impl Fn(usize) -> Option<ArrayRef>,
        states: &[ArrayRef],
        rows: usize,
    ) -> Result<RecordBatch> {
        let set = &self.sets[set];
        let mut columns: Vec<ArrayRef> = (0..self.keys).filter(|at| !set.lacks[*at]).filter_map(key).collect();
        if columns.is_empty() {
            columns.push(Arc::new(UInt64Array::from_value(0, rows)));
        }
        columns.extend_from_slice(states);
        Ok(RecordBatch::try_new(set.schema.clone(), columns)?)
    }

    /// The rows of each set that a batch from below has states of.
    fn given(&self, batch: &RecordBatch) -> Result<Vec<(usize, RecordBatch)>> {
        let given = self.sets.iter().enumerate().filter(|(at, set)| set.finest == *at);
        let of_set = |(at, set): (usize, &Set)| {
            let own = match self.is_numbered {
                true => {
                    let numbers = batch.column(self.keys);
                    let number = ScalarValue::UInt64(Some(number(&set.lacks, 0))).cast_to(numbers.data_type())?;
                    filter_record_batch(batch, &eq(numbers, &number.to_scalar()?)?)?
                }
                false => batch.clone(),
            };
            let states = &own.columns()[self.keys + usize::from(self.is_numbered)..];
            Ok((at, self.rows_for(at, |key| Some(own.column(key).clone()), states, own.num_rows())?))
        };
        given.map(of_set).collect()
    }

    /// The groups of a set as rows of states for a coarser one.
    fn narrowed(&self, groups: &[RecordBatch], from: usize, to: usize) -> Result<Vec<RecordBatch>> {
        let set = &self.sets[from];
        let narrowed = |batch: &RecordBatch| {
            let key = |key: usize| Some(batch.column(set.place(key)?).clone());
            self.rows_for(to, key, &batch.columns()[set.keys()..], batch.num_rows())
        };
        groups.iter().map(narrowed).collect()
    }

    /// One row a group of a set, of rows of states.
    async fn united(&self, set: usize, rows: Vec<RecordBatch>, context: &Arc<TaskContext>) -> Result<Vec<RecordBatch>> {
        let schema = &self.sets[set].schema;
        let key = |at: usize| {
            let name = schema.field(at).name();
            (Arc::new(Column::new(name, at)) as Arc<dyn PhysicalExpr>, name.clone())
        };
        let by = PhysicalGroupBy::new_single((0..self.sets[set].keys()).map(key).collect());
        let source = MemorySourceConfig::try_new_exec(&[rows], schema.clone(), None)?;
        let (aggregates, filters) = (self.aggregates.clone(), vec![None; self.aggregates.len()]);
        let mode = AggregateMode::PartialReduce;
        let plan = AggregateExec::try_new(mode, by, aggregates, filters, source, self.rows.clone())?;
        collect(Arc::new(plan), context.clone()).await
    }

    /// The groups of a set under each of its numbers, as they are given.
    fn numbered(&self, groups: &[RecordBatch], set: usize) -> Result<Vec<RecordBatch>> {
        let set = &self.sets[set];
        let mut batches = Vec::with_capacity(groups.len() * set.numbers.len());
        for (number, batch) in set.numbers.iter().flat_map(|number| groups.iter().map(move |batch| (number, batch))) {
            let key = |key: usize| match set.place(key) {
                Some(place) => batch.column(place).clone(),
                None => new_null_array(self.output.field(key).data_type(), batch.num_rows()),
            };
            let mut columns: Vec<ArrayRef> = (0..self.keys).map(key).collect();
            let numbers = UInt64Array::from_value(*number, batch.num_rows());
            columns.push(cast(&numbers, self.output.field(self.keys).data_type())?);
            columns.extend_from_slice(&batch.columns()[set.keys()..]);
            batches.push(RecordBatch::try_new(self.output.clone(), columns)?);
        }
        Ok(batches)
    }

    /// The row of the set without keys where there are no rows at all, if there is such a set.
    fn of_no_rows(&self) -> Result<Vec<RecordBatch>> {
        let Some(set) = self.sets.iter().position(|set| set.lacks.iter().all(|lacks| *lacks)) else {
            return Ok(Vec::new());
        };
        let mut states = Vec::new();
        for aggregate in &self.aggregates {
            if !aggregate.groups_accumulator_supported() {
                let state = aggregate.create_accumulator()?.state()?;
                states.extend(state.iter().map(ScalarValue::to_array).collect::<Result<Vec<_>>>()?);
                continue;
            }
            // A group of one row, which is left out.
            let mut group = aggregate.create_groups_accumulator()?;
            let null = |argument: &Arc<dyn PhysicalExpr>| Ok(new_null_array(&argument.data_type(&self.rows)?, 1));
            let arguments = aggregate.expressions().iter().map(null).collect::<Result<Vec<_>>>()?;
            group.update_batch(&arguments, &[0], Some(&BooleanArray::from(vec![false])), 1)?;
            states.extend(group.state(EmitTo::All)?);
        }
        self.numbered(&[self.rows_for(set, |_| None, &states, 1)?], set)
    }

    /// Whether the groups of a set can be made of those of another.
    fn is_made_of(&self, set: usize, other: usize) -> bool {
        let (set, other) = (&self.sets[set], &self.sets[other]);
        // The first numbers have a bit for each key that is lacking.
        set.finest == other.finest && other.numbers[0] & !set.numbers[0] == 0
    }
}

/// The groups of sets.
type Groups = HashMap<usize, Vec<RecordBatch>>;

fn rows_of(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

/// The work on one partition.
struct Work {
    sets: Arc<Sets>,
    context: Arc<TaskContext>,
    /// States from below, until all have come.
    states: Option<SendableRecordBatchStream>,
    memory: MemoryReservation,
    /// Of the lot: those that come from below, and those of which others are made.
    groups: Groups,
    /// For each set of the lot the smallest that it can be made of so far, behind the number of its groups.
    parents: Vec<Option<(usize, usize)>>,
    /// The set of the lot that is given next.
    next: usize,
    /// Whether there has been no state yet.
    is_empty: bool,
    /// Whether this partition tells that there were no rows.
    tells_empty: bool,
}

impl Work {
    /// The groups of the next set; none at the end.
    async fn next(&mut self) -> Result<Option<Vec<RecordBatch>>> {
        if self.next == self.sets.sets.len() {
            self.collect().await?;
            if self.groups.is_empty() {
                let is_told = std::mem::take(&mut self.tells_empty) && self.is_empty;
                return if is_told { Ok(Some(self.sets.of_no_rows()?)) } else { Ok(None) };
            }
            self.next = 0;
            self.parents.fill(None);
            let given: Vec<usize> = self.groups.keys().copied().collect();
            given.into_iter().for_each(|set| self.offer(set));
        }
        let set = self.next;
        self.next += 1;
        if !self.groups.contains_key(&set) {
            // A lot may have none of the states of a finest set.
            let Some((_, parent)) = self.parents[set] else { return Ok(Some(Vec::new())) };
            let rows = self.sets.narrowed(&self.groups[&parent], parent, set)?;
            self.groups.insert(set, self.sets.united(set, rows, &self.context).await?);
            self.offer(set);
        }
        let given = self.sets.numbered(&self.groups[&set], set)?;
        let mut is_parent = vec![false; self.parents.len()];
        self.parents[self.next..].iter().flatten().for_each(|(_, parent)| is_parent[*parent] = true);
        self.groups.retain(|set, _| is_parent[*set] || *set >= self.next);
        self.reserve()?;
        Ok(Some(given))
    }

    /// Enters a set whose groups are there as the parent of those for which it is the smallest.
    fn offer(&mut self, set: usize) {
        let own = (rows_of(&self.groups[&set]), set);
        for of in set + 1..self.parents.len() {
            if self.sets.is_made_of(of, set) && self.parents[of].is_none_or(|known| own < known) {
                self.parents[of] = Some(own);
            }
        }
    }

    /// Collects the states of a lot.
    async fn collect(&mut self) -> Result<()> {
        self.groups.clear();
        self.reserve()?;
        while let Some(states) = &mut self.states {
            let Some(batch) = states.next().await.transpose()? else {
                self.states = None;
                break;
            };
            self.is_empty &= batch.num_rows() == 0;
            for (set, rows) in self.sets.given(&batch)?.into_iter().filter(|(_, rows)| rows.num_rows() > 0) {
                self.groups.entry(set).or_default().push(rows);
            }
            let is_refused = self.memory.try_grow(bytes_of(&batch)?).is_err();
            if is_refused || self.memory.size() > LOT_BYTES {
                self.unite().await?;
                if is_refused || self.memory.size() > LOT_BYTES / 2 {
                    return Ok(());
                }
            }
        }
        self.unite().await
    }

    /// Makes groups of the states that were collected.
    async fn unite(&mut self) -> Result<()> {
        for (set, rows) in &mut self.groups {
            *rows = self.sets.united(*set, std::mem::take(rows), &self.context).await?;
        }
        self.reserve()
    }

    /// Reserves the memory of all groups that are there.
    fn reserve(&mut self) -> Result<()> {
        let bytes = self.groups.values().flatten().map(bytes_of).sum::<Result<usize>>()?;
        self.memory.resize(bytes);
        Ok(())
    }
}

/// Gives the states of all sets from those of the finest.
#[derive(Debug)]
pub(super) struct CoarserSetsExec {
    /// A partial aggregation by the finest sets.
    input: Arc<dyn ExecutionPlan>,
    /// The columns of its groups.
    by: Vec<Arc<dyn PhysicalExpr>>,
    sets: Arc<Sets>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl CoarserSetsExec {
    /// The states of `sets` over a partial aggregation by the finest among them, as `output` has them.
    pub(super) fn new(finest: AggregateExec, sets: &[Vec<bool>], output: SchemaRef) -> CoarserSetsExec {
        let sets = Arc::new(Sets::of(&finest, sets, output));
        let by = finest.output_group_expr();
        CoarserSetsExec::over(Arc::new(finest), by, sets)
    }

    fn over(input: Arc<dyn ExecutionPlan>, by: Vec<Arc<dyn PhysicalExpr>>, sets: Arc<Sets>) -> CoarserSetsExec {
        let of = input.properties();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(sets.output.clone()),
            Partitioning::UnknownPartitioning(of.output_partitioning().partition_count()),
            EmissionType::Final,
            of.boundedness,
        );
        let metrics = ExecutionPlanMetricsSet::new();
        CoarserSetsExec { input, by, sets, properties: Arc::new(properties), metrics }
    }

    fn above(&self, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let [input] = children
            .try_into()
            .map_err(|_| DataFusionError::Internal("coarser sets of other than one input".into()))?;
        Ok(Arc::new(CoarserSetsExec::over(input, self.by.clone(), self.sets.clone())))
    }
}

impl DisplayAs for CoarserSetsExec {
    fn fmt_as(&self, kind: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: usize = self.sets.sets.iter().map(|set| set.numbers.len()).sum();
        let given = self.sets.sets.iter().enumerate().filter(|(at, set)| set.finest == *at).count();
        match kind {
            DisplayFormatType::TreeRender => writeln!(f, "sets={all}\nfrom={given}"),
            _ => write!(f, "CoarserSetsExec: {all} sets from {given}"),
        }
    }
}

impl ExecutionPlan for CoarserSetsExec {
    fn name(&self) -> &str {
        "CoarserSetsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    /// Equal groups of all partitions come together before coarser ones are made of them.
    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::KeyPartitioned(self.by.clone())])
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for key in &self.by {
            if f(key)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.above(children)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.above(children)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let consumer = MemoryConsumer::new(format!("CoarserSets[{partition}]")).with_can_spill(true);
        let work = Work {
            sets: self.sets.clone(),
            states: Some(self.input.execute(partition, context.clone())?),
            memory: consumer.register(context.memory_pool()),
            context,
            groups: Groups::new(),
            parents: vec![None; self.sets.sets.len()],
            next: self.sets.sets.len(),
            is_empty: true,
            tells_empty: partition == 0,
        };
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let batches = stream::try_unfold(work, |mut work| async move {
            let batches = work.next().await?;
            Ok::<_, DataFusionError>(batches.map(|batches| (batches, work)))
        });
        let batches = batches.map_ok(|batches| stream::iter(batches.into_iter().map(Ok))).try_flatten();
        let batches = batches.inspect_ok(move |batch| metrics.record_output(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}
