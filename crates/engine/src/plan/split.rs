//! Steps of a pipeline that run on whole vectors, steps that take a row at a time, and the columns that are loaded for
//! them.

use std::ops::Range;

use crate::plan::input::PipelineInput;
use crate::plan::order::{Item, Planned};

/// The split of a pipeline's steps.
#[derive(Debug, Clone)]
pub(crate) struct Split {
    /// Steps that run on whole vectors.
    pub(crate) dense: Vec<Planned>,
    /// Probes that find an entry for every row: only their payload is read.
    pub(crate) certain: Vec<Planned>,
    /// Steps behind them, which take a row at a time.
    pub(crate) rows: Vec<Planned>,
    /// Columns loaded whole, in the order of first use.
    pub(crate) loaded: Vec<usize>,
    /// Those of them that rows of the queue are asked for once more, where these are not very few.
    pub(crate) again: Vec<usize>,
    /// Whether rows are worked on where they are, instead of going through a queue.
    pub(crate) in_place: bool,
    /// Whether rows have several matches.
    pub(crate) multiplies: bool,
    /// Whether any of the columns loaded whole is packed.
    pub(crate) packed: bool,
    /// Values of a column that a lane has in a step.
    pub(crate) slots: usize,
    /// Steps that are on their way at once; one where steps are not worked on in turn.
    pub(crate) ahead: usize,
    /// Estimated bytes read from columns.
    pub(crate) bytes: f64,
    /// Why rows go through a queue, or do not.
    pub(crate) why: String,
}

impl Split {
    /// Estimated share of rows that come to the sink.
    pub(crate) fn share(&self) -> f64 {
        self.rows.iter().chain(&self.dense).map(|planned| planned.share).product()
    }

    /// The dense steps that are taken together: filters in a row, and each probe for itself.
    pub(crate) fn dense_runs(&self) -> impl Iterator<Item = Range<usize>> {
        let is_filter = |planned: &Planned| matches!(planned.item, Item::Filter(_));
        let mut from = 0;
        self.dense.chunk_by(move |one, next| is_filter(one) && is_filter(next)).map(move |run| {
            from += run.len();
            from - run.len()..from
        })
    }

    /// The dense steps that use a column, and those that are taken together with them, if nothing else uses it.
    pub(crate) fn uses(&self, column: usize, input: &PipelineInput) -> Vec<usize> {
        let mut later = Vec::new();
        let mut read = |register| input.read_by(register, &mut |column| later.push(column));
        input.pipeline.sink.registers(&mut read);
        self.rows.iter().for_each(|planned| planned.item.registers(&mut read));
        if is_asked_later(self.dense.iter().chain(&self.certain), column, &later) {
            return Vec::new();
        }
        let is_used = |planned: &Planned| {
            let mut found = false;
            planned.item.registers(&mut |register| found |= register == column);
            found
        };
        self.dense_runs().filter(|run| self.dense[run.clone()].iter().any(is_used)).flatten().collect()
    }

    /// Bytes of registers a row of the columns that are loaded whole.
    pub(crate) fn register_bytes(&self, input: &PipelineInput) -> f64 {
        self.loaded.iter().map(|column| input.columns[*column].layout.register_bytes()).sum()
    }
}

/// True if a column is read `later` than the steps on vectors, or if the payload of one of these probes by it is: that
/// is gathered by key for the rows that are left.
pub(crate) fn is_asked_later<'a>(
    mut probes: impl Iterator<Item = &'a Planned>,
    column: usize,
    later: &[usize],
) -> bool {
    let by_payload = probes.any(|planned| {
        let Item::Probe(probe, payload) = &planned.item else { return false };
        let mut by_column = false;
        probe.keys.iter().for_each(|key| key.registers(&mut |register| by_column |= register == column));
        by_column && later.iter().any(|register| payload.contains(register))
    });
    by_payload || later.contains(&column)
}
