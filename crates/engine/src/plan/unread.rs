//! What no pipeline reads of the rows of another is not kept.
//!
//! The rows of a sort or a list have columns for all that a plan's node has; a pipeline behind it may read few of
//! them, and each that is kept costs a gathered column. A fragment without the others is the same statement.

use std::borrow::Cow;

use crate::ir::{Expr, Fragment, Pipeline, Sink, Source};

/// The fragment without the columns of sorts and lists that no pipeline reads.
pub(crate) fn without_unread(fragment: &Fragment) -> Cow<'_, Fragment> {
    let mut kept = Cow::Borrowed(fragment);
    // Readers come behind what they read: what they do not keep is not read for them.
    for of in (0..fragment.pipelines.len()).rev() {
        let branches = fragment.branches(of);
        if branches.end - 1 != of {
            continue;
        }
        let Some(columns) = kept.pipelines[of].columns() else { continue };
        let mut is_read = vec![false; columns];
        let mut scanned = false;
        for reader in kept.pipelines.iter().filter(|reader| reader.source == Source::Output(of)) {
            scanned = true;
            reader.clone().change(&mut |expr| {
                if let Some(read) = expr.register().and_then(|register| is_read.get_mut(*register)) {
                    *read = true;
                }
            });
        }
        let mut has_windows = false;
        if let Sink::TopK(top) = &kept.pipelines[of].sink {
            let mut reads = |output: usize| is_read.iter_mut().skip(output).take(1).for_each(|read| *read = true);
            top.windows.iter().for_each(|call| call.function.outputs(&mut reads));
            has_windows = !top.windows.is_empty();
        }
        // Rows have a column at least, which tells how many there are.
        if !has_windows && !is_read.contains(&true) {
            is_read.iter_mut().take(1).for_each(|read| *read = true);
        }
        if !scanned || !is_read.contains(&false) {
            continue;
        }
        let fragment = kept.to_mut();
        fragment.pipelines[branches].iter_mut().for_each(|pipeline| pipeline.keep(&is_read));
        let place = |register: usize| match is_read.get(register) {
            Some(_) => is_read[..register].iter().filter(|read| **read).count(),
            None => register - is_read.iter().filter(|read| !**read).count(),
        };
        for reader in fragment.pipelines.iter_mut().filter(|reader| reader.source == Source::Output(of)) {
            reader.change(&mut |expr| {
                if let Some(register) = expr.register() {
                    *register = place(*register);
                }
            });
        }
    }
    kept
}

impl Expr {
    /// The register that the expression itself reads.
    pub(crate) fn register(&mut self) -> Option<&mut usize> {
        match self {
            Expr::Reg(register) | Expr::Place(register) | Expr::Lookup(register, _, _) | Expr::Match(register, _) => {
                Some(register)
            }
            _ => None,
        }
    }
}

impl Pipeline {
    /// The number of columns that its rows have, those of windows apart; none if it leaves no rows.
    fn columns(&self) -> Option<usize> {
        match &self.sink {
            Sink::TopK(top) => Some(top.outputs.len()),
            Sink::Rows { columns, .. } => Some(columns.len()),
            Sink::Build { .. } | Sink::Aggregate { .. } => None,
        }
    }

    /// Keeps some of the columns of its rows.
    fn keep(&mut self, is_read: &[bool]) {
        let mut read = is_read.iter();
        let mut is_kept = |_: &_| read.next().is_none_or(|read| *read);
        match &mut self.sink {
            Sink::TopK(top) => {
                top.outputs.retain(&mut is_kept);
                let place = |output: &mut usize| *output = is_read[..*output].iter().filter(|read| **read).count();
                top.windows.iter_mut().for_each(|call| call.function.change_outputs(&place));
            }
            Sink::Rows { columns, .. } => columns.retain(&mut is_kept),
            Sink::Build { .. } | Sink::Aggregate { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::DataType;

    use super::*;
    use crate::ir::{
        AggregateCall, AggregateKind, Frame, FrameBound, OrderKey, Overflow, Step, TopK, Ty, WindowCall, WindowFunction,
    };

    fn column(register: usize) -> (Expr, DataType) {
        (Expr::Reg(register), DataType::Int64)
    }

    #[test]
    fn readers_keep_what_they_read() {
        let sum = |output| WindowFunction::Aggregate {
            kind: AggregateKind::Sum,
            output: Some(output),
            filter: None,
            frame: Frame { start: FrameBound::Unbounded, end: FrameBound::Peers(0) },
        };
        let call = |function| WindowCall { function, partition: 0, order: 1, data_type: DataType::Int64 };
        let top = TopK {
            keys: vec![OrderKey { expr: Expr::Reg(0), descending: false, nulls_first: false }],
            k: None,
            skip: 0,
            outputs: (0..4).map(column).collect(),
            windows: vec![call(sum(2)), call(WindowFunction::RowNumber)],
            first: None,
            algorithm: None,
        };
        let sort = Pipeline { source: Source::Output(0), steps: Vec::new(), sink: Sink::TopK(top) };
        let columns = (0..5).map(column).collect();
        let list = Pipeline { source: Source::Table(0), steps: Vec::new(), sink: Sink::Rows { columns, limit: None } };
        // Reads the second output and both windows.
        let total = AggregateCall {
            kind: AggregateKind::Sum,
            argument: Some(Expr::Reg(5)),
            filter: None,
            data_type: DataType::Int64,
            unites: false,
        };
        let root = Pipeline {
            source: Source::Output(1),
            steps: vec![Step::Filter(Expr::Cast(Box::new(Expr::Reg(4)), Ty::Bool))],
            sink: Sink::Aggregate { groups: vec![column(1)], aggregates: vec![total] },
        };
        let fragment = Fragment {
            tables: Vec::new(),
            pipelines: vec![list, sort, root],
            unions: Vec::new(),
            result: Vec::new(),
            overflow: Overflow::Raise,
        };
        let kept = without_unread(&fragment);
        let [list, sort, root] = &kept.pipelines[..] else { panic!("three pipelines") };
        // Of the list: the key, what the root reads and what the sum adds up.
        assert_eq!(list.columns(), Some(3));
        let Sink::TopK(top) = &sort.sink else { panic!("a sort") };
        let read: Vec<String> = top.outputs.iter().map(|(expr, _)| format!("{expr:?}")).collect();
        assert_eq!(read, ["Reg(1)", "Reg(2)"]);
        assert_eq!(top.windows[0].function, sum(1));
        assert!(matches!(top.keys[0].expr, Expr::Reg(0)));
        let Sink::Aggregate { groups, aggregates } = &root.sink else { panic!("groups") };
        assert!(matches!(groups[0].0, Expr::Reg(0)) && matches!(aggregates[0].argument, Some(Expr::Reg(3))));
        let Step::Filter(Expr::Cast(flag, _)) = &root.steps[0] else { panic!("a filter") };
        assert!(matches!(**flag, Expr::Reg(2)));
        // What has nothing to lose stays as it is.
        assert!(matches!(without_unread(&kept), Cow::Borrowed(_)));
    }
}
