//! Random fragments in stages: a join whose rows have several matches, whose rows another pipeline orders, numbers by
//! windows, or takes some of, and a last one that scans what those leave.
//!
//! Results do not depend on the order of equal rows: what is given of first rows are the keys of their order, and
//! frames of windows end with peers.

use arrow::datatypes::DataType;
use warpcube_engine::{
    AggregateKind, Expr, Fragment, Frame, FrameBound, JoinKind, OrderKey, Pipeline, Sink, Source, Step, TopK, Ty,
    WindowCall, WindowFunction,
};

use super::generator::{COLUMNS, Generator, Register};
use crate::support::*;

/// The key of the join: a number of 8 bits.
const KEY: usize = 2;

impl Generator {
    /// A fragment over a table that is joined with itself.
    pub fn staged(&mut self) -> Fragment {
        let base: Vec<Register> = self.base();
        let payload: Vec<usize> = (0..self.below(3)).map(|_| 1 + self.below(COLUMNS.len() - 1)).collect();
        let mut both = base.clone();
        let (build, kind) = match self.below(3) {
            // Groups of the smallest and largest values.
            0 => {
                both.extend([&base[0], &base[0]].map(Clone::clone));
                let values = [(reg(0), DataType::Int32)];
                (extremes(0, vec![], &[(reg(KEY), DataType::Int8)], &values), JoinKind::Inner)
            }
            _ => {
                both.extend(payload.iter().map(|column| base[*column].clone()));
                let build = builds(0, vec![], vec![reg(KEY)], payload.into_iter().map(reg).collect());
                (build, self.one_of(&[JoinKind::Inner, JoinKind::Left, JoinKind::Left]))
            }
        };
        let join = match kind {
            JoinKind::Left => probe_where(0, vec![reg(KEY)], kind, self.expr(Ty::Bool, &both, 2)),
            _ => probe(0, vec![reg(KEY)], kind),
        };
        let mut steps = vec![join];
        if self.below(2) == 0 {
            steps.push(self.filter(&both));
        }
        let outputs: Vec<usize> = (0..1 + self.below(4)).map(|_| self.below(both.len())).collect();
        let of = |outputs: &[usize]| -> Vec<(Expr, DataType)> {
            outputs.iter().map(|register| (reg(*register), both[*register].data_type.clone())).collect()
        };
        let (sink, mut types): (Sink, Vec<DataType>) = match self.below(4) {
            0 => {
                steps.push(Step::Limit { skip: self.below(20) as u64, rows: self.below(200) as u64 });
                (Sink::Rows { columns: vec![(int(1, Ty::I32), DataType::Int32)], limit: None }, vec![DataType::Int32])
            }
            1 => {
                let columns = of(&outputs);
                let types = columns.iter().map(|(_, data_type)| data_type.clone()).collect();
                (Sink::Rows { columns, limit: None }, types)
            }
            form => {
                let outputs = of(&outputs);
                let keys = outputs.iter().map(|(expr, _)| OrderKey {
                    expr: expr.clone(),
                    descending: self.below(2) == 0,
                    nulls_first: self.below(2) == 0,
                });
                let keys: Vec<OrderKey> = keys.collect();
                let windows = if form == 2 { self.windows(&outputs) } else { Vec::new() };
                let k = windows.is_empty().then(|| 1 + self.below(300) as u64);
                let skip = if k.is_some() { self.below(10) as u64 } else { 0 };
                let types = outputs.iter().map(|(_, data_type)| data_type.clone());
                let types = types.chain(windows.iter().map(|call| call.data_type.clone())).collect();
                (Sink::TopK(TopK { keys, k, skip, outputs, windows, first: None, algorithm: None }), types)
            }
        };
        let source = Source::Table(0);
        let middle = Pipeline { source, steps, sink };
        types.truncate(12);
        let columns = types.into_iter().enumerate().map(|(register, data_type)| (reg(register), data_type));
        let sink = match self.below(2) {
            0 => Sink::Rows { columns: columns.collect(), limit: None },
            _ => Sink::Aggregate { groups: columns.collect(), aggregates: vec![count()] },
        };
        let root = Pipeline { source: Source::Output(1), steps: vec![], sink };
        fragment(&[COLUMNS.len()], vec![build, middle, root])
    }

    /// Some windows over outputs by as many keys.
    fn windows(&mut self, outputs: &[(Expr, DataType)]) -> Vec<WindowCall> {
        (0..1 + self.below(4)).map(|_| self.window(outputs)).collect()
    }

    fn window(&mut self, outputs: &[(Expr, DataType)]) -> WindowCall {
        let partition = self.below(outputs.len() + 1);
        let order = partition + self.below(outputs.len() + 1 - partition);
        let start = [FrameBound::Unbounded, FrameBound::Peers(-2), FrameBound::Peers(0)];
        let end = [FrameBound::Unbounded, FrameBound::Peers(0), FrameBound::Peers(1)];
        let frame = Frame { start: self.one_of(&start), end: self.one_of(&end) };
        let is_integer = |(_, data_type): &&(Expr, DataType)| {
            matches!(
                data_type,
                DataType::Int8 | DataType::Int32 | DataType::Int64 | DataType::UInt16 | DataType::UInt64
            )
        };
        let output = self.below(outputs.len());
        let integer = outputs.get(output).filter(is_integer).map(|(_, data_type)| data_type.clone());
        let aggregate = |kind, output| WindowFunction::Aggregate { kind, output, filter: None, frame };
        let (function, data_type) = match (self.below(7), integer) {
            (0, _) => (WindowFunction::Rank, DataType::Int64),
            (1, _) => (WindowFunction::DenseRank, DataType::UInt64),
            (2, _) => (WindowFunction::CumeDist, DataType::Float64),
            (3, _) => (WindowFunction::PercentRank, DataType::Float64),
            (4, Some(data_type)) => (aggregate(AggregateKind::Min, Some(output)), data_type),
            (5, Some(data_type)) => (aggregate(AggregateKind::Max, Some(output)), data_type),
            (6, Some(DataType::Int8 | DataType::Int32)) => {
                (aggregate(AggregateKind::Sum, Some(output)), DataType::Int64)
            }
            _ => (aggregate(AggregateKind::Count, Some(output)), DataType::Int64),
        };
        WindowCall { function, partition, order, data_type }
    }
}
